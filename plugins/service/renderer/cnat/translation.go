package cnat

import (
	"cmp"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// mostBackends is how many backends a translation can have.
const mostBackends = 1000

// rendering is a service while its translations are being made.
type rendering struct {
	r     *Renderer
	value *renderer.ContivService
	out   *service
}

// render makes the translations of a service.
func (r *Renderer) render(value *renderer.ContivService) *service {
	g := &rendering{r: r, value: value, out: &service{
		translations: map[vip]*vpp_cnat.Translation{}, drops: map[vip]bool{}, restricted: map[vip]*restriction{},
		aliases: map[vip]netip.AddrPort{},
	}}
	fronts := map[string][]renderer.PortFrontend{}
	for _, f := range value.Frontends(r.nodePorts) {
		if r.serves(f.Addr) {
			fronts[f.PortName] = append(fronts[f.PortName], f)
		}
	}
	for ipv6 := range r.node {
		for _, name := range slices.Sorted(maps.Keys(value.Ports)) {
			if port := value.Ports[name]; served(port.Protocol, ipv6) {
				g.port(name, fronts[name], ipv6)
			}
		}
	}
	g.out.fences = g.fences()
	return g.out
}

// served: VPP does not look at SCTP over IPv6.
func served(p renderer.ProtocolType, ipv6 bool) bool {
	return p == renderer.TCP || p == renderer.UDP || p == renderer.SCTP && !ipv6
}

func (g *rendering) port(name string, fronts []renderer.PortFrontend, ipv6 bool) {
	port := g.value.Ports[name]
	inside := g.backends(name, g.value.InternalTrafficPolicy, ipv6)
	outside := inside
	if g.value.TrafficPolicy != g.value.InternalTrafficPolicy {
		outside = g.backends(name, g.value.TrafficPolicy, ipv6)
	}
	ranges, restricted := g.value.SourceRanges(ipv6)
	for _, f := range fronts {
		v := vip{f.Addr, f.Port, f.Protocol}
		limited := restricted && f.Kind == renderer.AtExternalIP && g.value.LoadBalancerIPs.Contains(f.Addr)
		switch {
		case f.Addr.Is6() != ipv6:
		case f.Kind == renderer.AtClusterIP:
			g.add(v, inside)
		case limited && len(outside.backends) > 0:
			g.restrict(v, port, ranges)
		default:
			g.add(v, outside)
			if !limited { // of who may use it an alias knows nothing
				g.alias(v, port, inside)
			}
		}
	}
}

// target is what becomes of packets: without backends they are dropped, or rejected.
type target struct {
	backends []*vpp_cnat.Translation_Backend
	drop     bool
}

func (g *rendering) add(v vip, to target) {
	backends := to.backends
	if g.out.translations[v] != nil || g.out.restricted[v] != nil {
		return
	}
	if len(backends) == 0 {
		g.out.translations[v] = nil
		if to.drop && v.proto != renderer.SCTP {
			g.out.drops[v] = true
		}
		return
	}
	delete(g.out.drops, v)
	t := &vpp_cnat.Translation{
		Vip: v.addr.String(), Port: uint32(v.port), Backends: backends, Sticky: g.value.SessionAffinityTimeout > 0,
	}
	switch v.proto {
	case renderer.UDP:
		t.Protocol = vpp_cnat.Translation_UDP
	case renderer.SCTP:
		t.Protocol = vpp_cnat.Translation_SCTP
	}
	g.out.translations[v] = t
}

// backends are those that a port has for traffic under a policy.
func (g *rendering) backends(port string, policy renderer.TrafficPolicyType, ipv6 bool) target {
	selected, verdict := g.value.Select(port, policy, ipv6)
	addrs := make([]netip.AddrPort, 0, len(selected))
	for _, b := range selected {
		if at := netip.AddrPortFrom(b.Addr(), b.Port); at.IsValid() && !at.Addr().IsUnspecified() && at.Port() != 0 {
			addrs = append(addrs, at)
		}
	}
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	addrs = g.r.some(slices.Compact(addrs))
	out := make([]*vpp_cnat.Translation_Backend, len(addrs))
	for i, at := range addrs {
		out[i] = &vpp_cnat.Translation_Backend{Ip: at.Addr().String(), Port: uint32(at.Port())}
	}
	return target{out, verdict == renderer.Drop}
}

// some picks as many backends as a translation can have. The choice depends on the backends' own addresses, so that one that
// comes or goes does not change the others, and on the node, so that all backends are used by some node.
func (r *Renderer) some(all []netip.AddrPort) []netip.AddrPort {
	if len(all) <= mostBackends {
		return all
	}
	score := make(map[netip.AddrPort]uint64, len(all))
	for _, at := range all {
		h := fnv.New64a()
		h.Write([]byte(r.NodeName + at.String()))
		score[at] = h.Sum64()
	}
	slices.SortFunc(all, func(a, b netip.AddrPort) int { return cmp.Compare(score[a], score[b]) })
	all = all[:mostBackends]
	slices.SortFunc(all, netip.AddrPort.Compare)
	return all
}

// fences are the addresses of a service that must not leave by the uplink, whether a port of theirs is served or not: external
// ones, and cluster IPs that are not where the configuration says that they are.
func (g *rendering) fences() []netip.Addr {
	var out []netip.Addr
	for _, set := range []*renderer.IPAddresses{g.value.ExternalIPs, g.value.ClusterIPs} {
		for _, addr := range set.Addrs() {
			if g.r.serves(addr) && !slices.ContainsFunc(g.r.node[addr.Is6()].Services,
				func(p netip.Prefix) bool { return p.Contains(addr) }) {
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// clusterIPs are the service's own of a family, for a port.
func (g *rendering) clusterIPs(port *renderer.ServicePort, ipv6 bool) []netip.Addr {
	return slices.DeleteFunc(ofFamily(g.value.ClusterIPs, ipv6), func(a netip.Addr) bool {
		return !g.value.Owns(renderer.Frontend{Addr: a, Port: port.Port, Protocol: port.Protocol})
	})
}

func ofFamily(set *renderer.IPAddresses, ipv6 bool) (out []netip.Addr) {
	for _, addr := range set.Addrs() {
		if addr.Is6() == ipv6 {
			out = append(out, addr)
		}
	}
	return out
}
