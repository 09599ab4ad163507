package compiler

import (
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/ipaddr"
	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// nodes relates the nodes of the cluster to the selectors of peers. There are few such selectors, so each is compared with each node.
type nodes struct {
	byName  map[string]*node
	choices map[string]*nodeChoice // by the text of their selector
}

type node struct {
	labels map[string]string
	addrs  []netip.Addr
}

// nodeChoice holds the nodes that a selector selects.
type nodeChoice struct {
	selector *selector
	addrs    map[netip.Addr]int // the number of nodes that have an address, by address
	set      *set
}

func newNodes() nodes { return nodes{map[string]*node{}, map[string]*nodeChoice{}} }

// choose returns a new choice; a selector has one set, and so one choice.
func (n *nodes) choose(sel *selector) *nodeChoice {
	c := &nodeChoice{selector: sel, addrs: map[netip.Addr]int{}}
	n.choices[sel.text] = c
	for _, one := range n.byName {
		for _, a := range one.chosen(c) {
			c.addrs[a]++
		}
	}
	return c
}

func (n *nodes) release(c *nodeChoice) { delete(n.choices, c.selector.text) }

// chosen returns the addresses that a node, which may be nil, adds to a choice.
func (n *node) chosen(c *nodeChoice) []netip.Addr {
	if n == nil || !c.selector.matches(n.labels) {
		return nil
	}
	return n.addrs
}

// SetNode adds or changes a node; nil removes it.
func (c *Compiler) SetNode(name string, obj *kube.Node) {
	before := c.nodes.byName[name]
	var now *node
	if obj == nil {
		delete(c.nodes.byName, name)
	} else {
		now = &node{labels: obj.GetLabels(), addrs: parseAddrs(obj.GetAddresses())}
		c.nodes.byName[name] = now
	}
	if before != nil && now != nil && slices.Equal(before.addrs, now.addrs) && maps.Equal(before.labels, now.labels) {
		return
	}
	for _, choice := range c.nodes.choices {
		for _, a := range now.chosen(choice) {
			c.inNodes(choice, a, 1)
		}
		for _, a := range before.chosen(choice) {
			c.inNodes(choice, a, -1)
		}
	}
}

// inNodes changes the number of nodes that have an address by by.
func (c *Compiler) inNodes(choice *nodeChoice, a netip.Addr, by int) {
	was := choice.addrs[a] > 0
	if choice.addrs[a] += by; choice.addrs[a] == 0 {
		delete(choice.addrs, a)
	}
	if is := choice.addrs[a] > 0; is != was {
		choice.set.note(model.Member{Net: ipaddr.HostPrefix(a)}, by)
		c.dirtySets[choice.set] = struct{}{}
	}
}

// parseAddrs returns the valid addresses in texts, without duplicates.
func parseAddrs(texts []string) []netip.Addr {
	var list []netip.Addr
	for _, text := range texts {
		a, err := netip.ParseAddr(text)
		if err == nil && a.Zone() == "" && !slices.Contains(list, a.Unmap()) {
			list = append(list, a.Unmap())
		}
	}
	return list
}
