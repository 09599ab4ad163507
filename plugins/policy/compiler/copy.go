package compiler

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Copy returns a new compiler with the same pods, namespaces, nodes and endpoints, and without policies. It shares no mutable data, so
// another goroutine may use it.
func (c *Compiler) Copy() *Compiler {
	n := New()
	n.large.limit = c.large.limit
	maps.Copy(n.nodes.byName, c.nodes.byName) // a changed node is a new object
	for name, ns := range c.peers.namespaces {
		if ns.known {
			n.SetNamespace(name, &kube.Namespace{Name: name, Labels: ns.labels})
		}
	}
	for name, problems := range c.blocked {
		n.SetNamespace(name, &kube.Namespace{Name: name, Problems: problems})
	}
	for _, e := range c.endpoints {
		if !e.gone {
			n.SetEndpoint(e.Local)
		}
	}
	for id, p := range c.pods {
		n.SetPod(id, p.obj)
	}
	return n
}

// Peer is a possible peer of pods, with its addresses.
type Peer struct {
	Name      string
	Pod       model.EndpointID // zero for a node
	Addresses []netip.Addr
}

// Peers returns all pods that have addresses of their own, and all nodes, sorted by name.
func (c *Compiler) Peers() []Peer {
	var list []Peer
	for id, p := range c.pods {
		if len(p.addrs) > 0 {
			list = append(list, Peer{id.String(), id, slices.Clone(p.addrs)})
		}
	}
	for name, n := range c.nodes.byName {
		list = append(list, Peer{"node " + name, model.EndpointID{}, n.addrs})
	}
	slices.SortFunc(list, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Networks returns the members of a set whose networks are written in policies; is is false if the members are pods or nodes.
func (c *Compiler) Networks(id model.SetID) (nets []netip.Prefix, is bool) {
	s := c.sets[id]
	if s == nil || s.choice != nil || s.nodes != nil {
		return nil, false
	}
	return s.nets, true
}
