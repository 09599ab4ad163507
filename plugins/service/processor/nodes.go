package processor

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// nodes are the addresses of the nodes of the cluster.
type nodes struct {
	nodePorts []netip.Prefix // see Config.NodePortAddresses
	own       string         // name of this node
	byName    map[string][]netip.Addr
	used      map[netip.Addr]int    // by how many nodes
	all       *renderer.IPAddresses // of all nodes
	local     *renderer.IPAddresses // those of them that are this node's and take traffic for node ports
}

func newNodes(cfg Config) nodes {
	return nodes{
		nodePorts: cfg.NodePortAddresses, own: cfg.NodeName, byName: map[string][]netip.Addr{}, used: map[netip.Addr]int{},
		all: renderer.NewIPAddresses(), local: renderer.NewIPAddresses(),
	}
}

// has reports whether an address is a node's, so that a backend there uses the node's network.
func (n *nodes) has(addr netip.Addr) bool { return n.used[addr] > 0 }

// set takes the addresses of a node; none: there is no such node. moved are those that were not a node's and are now, or the
// other way round.
func (n *nodes) set(name string, addrs []netip.Addr) (moved map[netip.Addr]bool) {
	addrs = renderer.FromAddrs(addrs...).Addrs()
	old := n.byName[name]
	if slices.Equal(old, addrs) {
		return nil
	}
	moved = map[netip.Addr]bool{}
	for _, addr := range addrs {
		if n.used[addr]++; n.used[addr] == 1 {
			moved[addr] = true
		}
	}
	for _, addr := range old {
		if n.used[addr]--; n.used[addr] == 0 {
			delete(n.used, addr)
			moved[addr] = true
		}
	}
	if n.byName[name] = addrs; len(addrs) == 0 {
		delete(n.byName, name)
	}
	if name == n.own {
		n.local = renderer.FromAddrs(slices.DeleteFunc(slices.Clone(addrs), n.notForNodePorts)...)
	}
	n.move(moved)
	return moved
}

// move brings all up to date without sorting it again.
func (n *nodes) move(moved map[netip.Addr]bool) {
	list := slices.Clone(n.all.Addrs())
	changed := false
	for addr := range moved {
		if special(addr) {
			continue
		}
		i, found := slices.BinarySearchFunc(list, addr, netip.Addr.Compare)
		switch {
		case n.has(addr) && !found:
			list, changed = slices.Insert(list, i, addr), true
		case !n.has(addr) && found:
			list, changed = slices.Delete(list, i, i+1), true
		}
	}
	if changed {
		n.all = renderer.FromSorted(list)
	}
}

func (n *nodes) notForNodePorts(addr netip.Addr) bool {
	if special(addr) {
		return true
	}
	return len(n.nodePorts) > 0 && !slices.ContainsFunc(n.nodePorts, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// SetNode takes the addresses of a node of the cluster; none: there is no such node any more.
func (p *Processor) SetNode(name string, addrs []netip.Addr) (change string, err error) {
	oldAll, oldLocal := p.nodes.all, p.nodes.local
	moved := slices.Collect(maps.Keys(p.nodes.set(name, addrs)))
	affected := p.movedFrontends(moved, oldLocal)
	var changes []string
	errs := []error{p.yield(affected)}
	allChanged, localChanged := !oldAll.Equal(p.nodes.all), !oldLocal.Equal(p.nodes.local)
	if allChanged || localChanged {
		changes = append(changes, fmt.Sprintf("addresses of node %s", name))
		errs = append(errs, p.tellNodes(allChanged, localChanged))
	}
	text, err := p.refreshEach(p.outside.At(moved))
	changes, errs = append(changes, text), append(errs, err, p.settle(affected))
	return describeChange(joinChanges(changes), affected), errors.Join(errs...)
}

// movedFrontends are the services of which frontends may have another owner, since addresses have become nodes' or are not any
// more, and since node ports are served at other addresses of this node than at oldLocal.
func (p *Processor) movedFrontends(moved []netip.Addr, oldLocal *renderer.IPAddresses) []svcmodel.ID {
	ids := p.owners.AtAddresses(moved)
	if local := oldLocal.Differing(p.nodes.local); len(local) > 0 {
		ids = append(ids, p.owners.WithNodePorts(local)...)
	}
	slices.SortFunc(ids, svcmodel.ID.Compare)
	return slices.Compact(ids)
}

// NodeChanged informs renderers that data of a node other than its addresses may have changed. addrs are its addresses, before and now.
func (p *Processor) NodeChanged(addrs []netip.Addr) error {
	return p.each(func(r renderer.ServiceRendererAPI) error {
		if n, ok := r.(renderer.NodesRenderer); ok {
			return n.UpdateNodes(addrs)
		}
		return nil
	})
}

func (p *Processor) tellNodes(allChanged, localChanged bool) error {
	services := p.withNodePorts.list()
	return p.each(func(r renderer.ServiceRendererAPI) error {
		var errs []error
		if l, ok := r.(renderer.LocalNodeIPsRenderer); ok && localChanged {
			errs = append(errs, l.UpdateLocalNodeIPs(p.nodes.local, services))
		}
		if allChanged {
			errs = append(errs, r.UpdateNodePortServices(p.nodes.all, services))
		}
		return errors.Join(errs...)
	})
}

// outsideOf are the addresses of backends that may be at a node's address, sorted.
func (p *Processor) outsideOf(value *renderer.ContivService) (out []netip.Addr) {
	if value == nil {
		return nil
	}
	for port := range value.Ports {
		for _, b := range value.AllBackends(port) {
			addr := b.Addr()
			if !slices.ContainsFunc(p.cfg.PodNetworks, func(n netip.Prefix) bool { return n.Contains(addr) }) {
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Clip(slices.Compact(out))
}
