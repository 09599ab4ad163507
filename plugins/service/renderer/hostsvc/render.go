package hostsvc

import (
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// render makes the message of a service. The result depends on the arguments only, not on the order of their elements.
func render(s *renderer.ContivService, nodeIPs []netip.Addr) *proto.BalancedServiceUpdate {
	m := message(s)
	m.AffinitySeconds = s.SessionAffinityTimeout
	type where struct {
		port string
		ipv6 bool
	}
	fronts := map[where][]renderer.PortFrontend{}
	for _, f := range s.Frontends(nodeIPs) {
		w := where{f.PortName, f.Addr.Is6()}
		fronts[w] = append(fronts[w], f)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
		for _, ipv6 := range []bool{false, true} {
			if list := fronts[where{name, ipv6}]; len(list) > 0 {
				m.Ports = append(m.Ports, renderPort(s, name, ipv6, list))
			}
		}
	}
	return m
}

func renderPort(s *renderer.ContivService, name string, ipv6 bool, list []renderer.PortFrontend) *proto.BalancedPort {
	p := &proto.BalancedPort{Name: name, Protocol: uint32(s.Ports[name].Protocol), Ipv6: ipv6}
	source := proto.BalancedFrontend_EXTERNAL
	if s.TrafficPolicy == renderer.NodeLocal {
		source = proto.BalancedFrontend_EXTERNAL_LOCAL
	}
	ranges, restricted := sources(s, ipv6)
	for _, front := range list {
		f := &proto.BalancedFrontend{Address: front.Addr.AsSlice(), Port: uint32(front.Port), Source: source}
		switch front.Kind {
		case renderer.AtClusterIP:
			f.Source, f.HereOnly = proto.BalancedFrontend_CLUSTER, s.InternalTrafficPolicy == renderer.NodeLocal
		case renderer.AtExternalIP:
			if restricted && s.LoadBalancerIPs.Contains(front.Addr) {
				f.Restricted, f.SourceRanges = true, ranges
			}
		case renderer.AtNodePort:
		}
		p.Frontends = append(p.Frontends, f)
	}
	everywhere := slices.ContainsFunc(p.Frontends, func(f *proto.BalancedFrontend) bool { return !f.HereOnly })
	here := slices.ContainsFunc(p.Frontends, func(f *proto.BalancedFrontend) bool {
		return f.HereOnly || f.Source == proto.BalancedFrontend_EXTERNAL_LOCAL
	})
	var chosen [][]*renderer.ServiceBackend
	if everywhere {
		selected, verdict := s.Select(name, renderer.ClusterWide, ipv6)
		p.Everywhere, chosen = group(selected, verdict, ipv6), append(chosen, selected)
	}
	if here {
		selected, verdict := s.Select(name, renderer.NodeLocal, ipv6)
		p.Here, chosen = group(selected, verdict, ipv6), append(chosen, selected)
	}
	if kept := s.KeptBeside(name, ipv6, chosen...); len(kept) > 0 {
		p.Kept = group(kept, renderer.Balance, ipv6)
	}
	return p
}

func ofFamily(addrs []netip.Addr, ipv6 bool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return a.Is6() != ipv6 })
}

// sources returns the networks from which load balancer addresses may be used. They include the load balancer addresses themselves: a node
// that has such an address uses it as the source of its traffic to this address.
func sources(s *renderer.ContivService, ipv6 bool) (texts []string, restricted bool) {
	ranges, restricted := s.SourceRanges(ipv6)
	if !restricted {
		return nil, false
	}
	for _, net := range ranges {
		texts = append(texts, net.String())
	}
	for _, addr := range ofFamily(s.LoadBalancerIPs.Addrs(), ipv6) {
		texts = append(texts, ipaddr.HostPrefix(addr).String())
	}
	return texts, true
}

// backend holds the properties of a renderer.ServiceBackend that are rendered.
type backend struct {
	addr netip.AddrPort
	own  bool // a pod of this node
}

func group(selected []*renderer.ServiceBackend, verdict renderer.Verdict, ipv6 bool) *proto.BalancedGroup {
	switch verdict {
	case renderer.Drop:
		return &proto.BalancedGroup{Verdict: proto.BalancedGroup_DROP}
	case renderer.Reject:
		return &proto.BalancedGroup{Verdict: proto.BalancedGroup_REJECT}
	}
	list := make([]backend, len(selected))
	for i, b := range selected {
		list[i] = backend{netip.AddrPortFrom(b.Addr(), b.Port), b.Local && !b.HostNetwork}
	}
	slices.SortFunc(list, func(a, b backend) int { return a.addr.Compare(b.addr) })
	list = slices.CompactFunc(list, func(a, b backend) bool { return a.addr == b.addr })
	size := 4
	if ipv6 {
		size = 16
	}
	g := &proto.BalancedGroup{Addresses: make([]byte, 0, len(list)*size)}
	same := true
	for _, b := range list {
		a := b.addr.Addr().As16()
		g.Addresses = append(g.Addresses, a[16-size:]...)
		if b.own {
			g.Own = append(g.Own, a[16-size:]...)
		}
		same = same && b.addr.Port() == list[0].addr.Port()
	}
	if same {
		g.Ports = []uint32{uint32(list[0].addr.Port())}
		return g
	}
	g.Ports = make([]uint32, len(list))
	for i, b := range list {
		g.Ports[i] = uint32(b.addr.Port())
	}
	return g
}
