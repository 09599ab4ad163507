package owners

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Lost returns the frontends that a service names and does not own, sorted.
func (t *Table) Lost(id svcmodel.ID) []Loss {
	s := t.services[id]
	if s == nil {
		return nil
	}
	var out []Loss
	for _, n := range s.Names {
		switch n.Kind {
		case renderer.AtClusterIP:
			if owner := t.clusterOwner(n.Addr); owner != s {
				out = append(out, Loss{n, owner.ID, "that service has the cluster IP, and is older"})
			}
		case renderer.AtNodePort:
			out = t.nodePort(out, s, n)
		case renderer.AtExternalIP:
			out = t.atExternal(out, s, n)
		}
	}
	slices.SortFunc(out, func(a, b Loss) int { return a.Frontend.Compare(b.Frontend) })
	return out
}

// older adds a loss if an older service names the same frontend in the same way.
func (t *Table) older(out []Loss, s *Service, n Name) []Loss {
	if owner := first(t.names[n]); owner != s {
		return append(out, Loss{n, owner.ID, "that service is older"})
	}
	return out
}

func (t *Table) nodePort(out []Loss, s *Service, n Name) []Loss {
	if owner := first(t.names[n]); owner != s {
		return append(out, Loss{n, owner.ID, "that service is older"})
	}
	for _, addr := range t.rules.NodePortsAt() {
		if owner := t.clusterOwner(addr); owner != nil && owner != s && addr.Is6() == n.Addr.Is6() {
			at := renderer.Frontend{Addr: addr, Port: n.Port, Protocol: n.Protocol}
			out = append(out, Loss{Name{at, n.Kind}, owner.ID, "the address is its cluster IP"})
		}
	}
	return out
}

func (t *Table) atExternal(out []Loss, s *Service, n Name) []Loss {
	cluster := t.clusterOwner(n.Addr)
	switch {
	case cluster == s:
		return out
	case cluster != nil:
		return append(out, Loss{n, cluster.ID, "the address is its cluster IP"})
	}
	if why := t.rules.Reserved(n.Frontend); why != "" {
		return append(out, Loss{Name: n, Why: why})
	}
	if t.rules.IsNode(n.Addr) {
		owner := first(t.names[Name{asNodePort(n.Frontend), renderer.AtNodePort}])
		switch {
		case owner == s:
			return out
		case owner != nil:
			return append(out, Loss{n, owner.ID, "the port is its node port, and the address a node's"})
		}
	}
	return t.older(out, s, n)
}

// AtAddresses returns the services that name one of the addresses as an external one.
func (t *Table) AtAddresses(addrs []netip.Addr) []svcmodel.ID {
	out := map[svcmodel.ID]struct{}{}
	for _, addr := range addrs {
		for _, s := range t.at(addr).external {
			out[s.ID] = struct{}{}
		}
	}
	return sorted(out)
}

// WithNodePorts returns the services that have node ports, if one of the moved addresses is a cluster IP. moved are the addresses at which
// node ports have started or ceased to be served.
func (t *Table) WithNodePorts(moved []netip.Addr) []svcmodel.ID {
	out := map[svcmodel.ID]struct{}{}
	if slices.ContainsFunc(moved, func(a netip.Addr) bool { return t.clusterOwner(a) != nil }) {
		for s := range t.nodePorts {
			out[s.ID] = struct{}{}
		}
	}
	return sorted(out)
}
