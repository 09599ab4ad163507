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

// nodes holds the addresses of the nodes of the cluster.
type nodes struct {
	nodePorts []netip.Prefix // see Config.NodePortAddresses
	own       string         // name of this node
	byName    map[string][]netip.Addr
	used      map[netip.Addr]int    // the number of nodes that have the address
	all       *renderer.IPAddresses // of all nodes
	local     *renderer.IPAddresses // those of all that belong to this node and accept traffic for node ports
}

func newNodes(cfg Config) nodes {
	return nodes{
		nodePorts: cfg.NodePortAddresses, own: cfg.NodeName, byName: map[string][]netip.Addr{}, used: map[netip.Addr]int{},
		all: renderer.NewIPAddresses(), local: renderer.NewIPAddresses(),
	}
}

// has reports whether an address belongs to a node, so that a backend at this address uses the node's network.
func (n *nodes) has(addr netip.Addr) bool { return n.used[addr] > 0 }

// set sets the addresses of a node; an empty list removes the node. moved are the addresses that have become, or have ceased to be,
// addresses of a node.
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

// move updates the list of all addresses without sorting it again.
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

// SetNode sets the addresses of a node of the cluster; an empty list means that the node no longer exists.
func (p *Processor) SetNode(name string, addrs []netip.Addr) (change string, err error) {
	oldAll, oldLocal := p.nodes.all, p.nodes.local
	moved := slices.Collect(maps.Keys(p.nodes.set(name, addrs)))
	affected := p.movedFrontends(moved, oldLocal)
	var changes []string
	errs := []error{p.releaseLost(affected)}
	allChanged, localChanged := !oldAll.Equal(p.nodes.all), !oldLocal.Equal(p.nodes.local)
	if allChanged || localChanged {
		changes = append(changes, fmt.Sprintf("addresses of node %s", name))
		errs = append(errs, p.reportNodes(allChanged, localChanged))
	}
	text, err := p.refreshEach(p.outside.At(moved))
	changes, errs = append(changes, text), append(errs, err, p.settle(affected))
	return describeChange(joinChanges(changes), affected), errors.Join(errs...)
}

// movedFrontends returns the services whose frontends may have another owner: because the moved addresses have become, or have ceased to
// be, addresses of nodes, or because the addresses of this node at which node ports are served differ from oldLocal.
func (p *Processor) movedFrontends(moved []netip.Addr, oldLocal *renderer.IPAddresses) []svcmodel.ID {
	ids := p.owners.AtAddresses(moved)
	if local := oldLocal.Differing(p.nodes.local); len(local) > 0 {
		ids = append(ids, p.owners.WithNodePorts(local)...)
	}
	slices.SortFunc(ids, svcmodel.ID.Compare)
	return slices.Compact(ids)
}

// NodeChanged informs renderers that data of a node other than its addresses may have changed. addrs are the old and the new addresses of
// the node.
func (p *Processor) NodeChanged(addrs []netip.Addr) error {
	return p.each(func(r renderer.ServiceRendererAPI) error {
		if n, ok := r.(renderer.NodesRenderer); ok {
			return n.UpdateNodes(addrs)
		}
		return nil
	})
}

func (p *Processor) reportNodes(allChanged, localChanged bool) error {
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

// outsideOf returns the addresses of backends that may be at a node's address, sorted.
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
