package tunnel

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// nodes holds the other nodes' VTEPs by node, and how many nodes claim a MAC address or a tunnel address.
type nodes struct {
	ends   map[string][]VTEP
	macs   map[mac]int
	tunnel map[netip.Addr]int
}

func newNodes() nodes {
	return nodes{map[string][]VTEP{}, map[mac]int{}, map[netip.Addr]int{}}
}

// set replaces a node's VTEPs.
func (n *nodes) set(node string, ends []VTEP) {
	n.count(n.ends[node], -1)
	n.count(ends, 1)
	if n.ends[node] = ends; len(ends) == 0 {
		delete(n.ends, node)
	}
}

// count adds or removes the claims of one node.
func (n *nodes) count(ends []VTEP, by int) {
	macs, addrs := map[mac]bool{}, map[netip.Addr]bool{}
	for _, e := range ends {
		if len(e.MAC) == len(mac{}) {
			macs[mac(e.MAC)] = true
		}
		addrs[e.TunnelAddr.Unmap()] = true
	}
	for m := range macs {
		if n.macs[m] += by; n.macs[m] == 0 {
			delete(n.macs, m)
		}
	}
	for a := range addrs {
		if n.tunnel[a] += by; n.tunnel[a] == 0 {
			delete(n.tunnel, a)
		}
	}
}

// shared reports whether several nodes claim an address of these VTEPs.
func (n *nodes) shared(ends []VTEP) bool {
	return slices.ContainsFunc(ends, func(e VTEP) bool {
		return len(e.MAC) == len(mac{}) && n.macs[mac(e.MAC)] > 1 || n.tunnel[e.TunnelAddr.Unmap()] > 1
	})
}

// SetNode replaces the VTEPs of one other node; without ends the node is removed. The cost does not depend on the number of nodes, unless
// nodes contradict each other.
func (v *VXLAN) SetNode(node string, ends ...VTEP) {
	old := v.nodes.ends[node]
	if slices.EqualFunc(old, ends, sameVTEP) {
		return
	}
	tricky := len(v.bad) > 0 || v.nodes.shared(old)
	v.nodes.set(node, slices.Clone(ends))
	tricky = tricky || v.nodes.shared(ends) || slices.ContainsFunc(ends, func(e VTEP) bool { return v.check(e) != nil })
	if tricky {
		v.rebuild()
		return
	}
	for _, e := range old {
		v.fdb.Desired().Delete(mac(e.MAC))
		v.neighs.Desired().Delete(e.TunnelAddr.Unmap())
	}
	for _, e := range ends {
		v.fdb.Desired().Set(mac(e.MAC), e.ParentAddr.Unmap())
		if inner := e.TunnelAddr.Unmap(); inner.IsValid() {
			v.neighs.Desired().Set(inner, mac(e.MAC))
		}
	}
}

// SetVTEPs replaces the list of the other nodes' VTEPs. If two contradict each other, the node with the lower name takes precedence.
func (v *VXLAN) SetVTEPs(vteps []VTEP) {
	v.nodes = newNodes()
	byNode := map[string][]VTEP{}
	for _, e := range vteps {
		byNode[e.Node] = append(byNode[e.Node], e)
	}
	for node, ends := range byNode {
		v.nodes.set(node, ends)
	}
	v.rebuild()
}

// rebuild computes the entries for all nodes from scratch.
func (v *VXLAN) rebuild() {
	v.bad = nil
	fdb, neighs := map[mac]netip.Addr{}, map[netip.Addr]mac{}
	for _, node := range slices.Sorted(maps.Keys(v.nodes.ends)) {
		ends := slices.SortedFunc(slices.Values(v.nodes.ends[node]), func(x, y VTEP) int {
			return cmp.Or(strings.Compare(x.Node, y.Node), x.TunnelAddr.Compare(y.TunnelAddr), bytes.Compare(x.MAC, y.MAC),
				x.ParentAddr.Compare(y.ParentAddr))
		})
		for _, vtep := range ends {
			if err := v.claim(vtep, fdb, neighs); err != nil {
				v.bad = append(v.bad, err)
			}
		}
	}
	v.fdb.Desired().ReplaceAll(maps.All(fdb))
	v.neighs.Desired().ReplaceAll(maps.All(neighs))
}

// claim adds the entries for a VTEP, unless it is invalid or another node has the address.
func (v *VXLAN) claim(vtep VTEP, fdb map[mac]netip.Addr, neighs map[netip.Addr]mac) error {
	if err := v.check(vtep); err != nil {
		return err
	}
	m, parent, inner := mac(vtep.MAC), vtep.ParentAddr.Unmap(), vtep.TunnelAddr.Unmap()
	if to, taken := fdb[m]; taken && to != parent {
		return fmt.Errorf("VTEP of node %s: MAC %s is another node's, at %s", vtep.Node, vtep.MAC, to)
	}
	if other, taken := neighs[inner]; taken && other != m {
		return fmt.Errorf("VTEP of node %s: tunnel address %s is another node's", vtep.Node, inner)
	}
	fdb[m] = parent
	if inner.IsValid() {
		neighs[inner] = m
	}
	return nil
}
