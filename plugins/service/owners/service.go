package owners

import (
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// ServiceOf returns the table's view of a service, with all frontends that the service names.
func ServiceOf(value *renderer.ContivService, uid string, created int64) *Service {
	s := &Service{ID: value.ID, UID: uid, Created: created}
	seen := map[Name]bool{}
	add := func(kind renderer.FrontendKind, f renderer.Frontend) {
		if n := (Name{Frontend: f, Kind: kind}); !seen[n] {
			seen[n] = true
			s.Names = append(s.Names, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value.Ports)) {
		port := value.Ports[name]
		for _, addr := range value.ClusterIPs.Addrs() {
			add(renderer.AtClusterIP, renderer.Frontend{Addr: addr, Port: port.Port, Protocol: port.Protocol})
		}
		for _, addr := range value.ExternalIPs.Addrs() {
			add(renderer.AtExternalIP, renderer.Frontend{Addr: addr, Port: port.Port, Protocol: port.Protocol})
		}
		for _, np := range nodePorts(value, port) {
			add(renderer.AtNodePort, np)
		}
	}
	return s
}

// nodePorts returns the frontends that represent a node port of a service, one for each of its families.
func nodePorts(value *renderer.ContivService, port *renderer.ServicePort) (out []renderer.Frontend) {
	if port.NodePort == 0 {
		return nil
	}
	for _, ipv6 := range []bool{false, true} {
		if slices.ContainsFunc(value.ClusterIPs.Addrs(), func(a netip.Addr) bool { return a.Is6() == ipv6 }) {
			out = append(out, renderer.NodePort(port.NodePort, port.Protocol, ipv6))
		}
	}
	return out
}

// FrontendsOf returns the frontends of losses, which are sorted.
func FrontendsOf(losses []Loss) []renderer.Frontend {
	var out []renderer.Frontend
	for _, l := range losses {
		out = append(out, l.Frontend)
	}
	return slices.Compact(out)
}

// Without returns a service without the frontends that it has lost.
func Without(base *renderer.ContivService, lost []renderer.Frontend) *renderer.ContivService {
	if base == nil || len(lost) == 0 {
		return base
	}
	out := *base
	out.Lost = lost
	lostAll := func(addr netip.Addr) bool { return !ownsAny(&out, addr) }
	out.ExternalIPs = without(base.ExternalIPs, lostAll)
	if base.LoadBalancerIPs != nil {
		out.LoadBalancerIPs = without(base.LoadBalancerIPs, lostAll)
	}
	out.Ports = make(map[string]*renderer.ServicePort, len(base.Ports))
	for name, port := range base.Ports {
		now := *port
		if !slices.ContainsFunc(nodePorts(base, port), out.Owns) {
			now.NodePort = 0
		}
		out.Ports[name] = &now
	}
	return &out
}

// ownsAny reports whether the service owns at least one port at an address.
func ownsAny(cs *renderer.ContivService, addr netip.Addr) bool {
	for _, port := range cs.Ports {
		if cs.Owns(renderer.Frontend{Addr: addr, Port: port.Port, Protocol: port.Protocol}) {
			return true
		}
	}
	return false
}

func without(set *renderer.IPAddresses, what func(netip.Addr) bool) *renderer.IPAddresses {
	return renderer.FromSorted(slices.DeleteFunc(slices.Clone(set.Addrs()), what))
}
