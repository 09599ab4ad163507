package nat44

import (
	"cmp"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// mostBackends is how many backends a mapping of VPP can have.
const mostBackends = 255

// mapping is one address and port of a service. Without backends it rejects or drops.
type mapping struct {
	external   external
	backends   []*vpp_nat.DNat44_StaticMapping_LocalIP
	hide       bool // the client's address
	affinity   uint32
	restricted bool           // only clients in from may use it
	from       []netip.Prefix // none: without backends packets are dropped instead of rejected
}

func (m *mapping) value(acl string) *vpp_nat.DNat44_StaticMapping {
	v := &vpp_nat.DNat44_StaticMapping{
		ExternalIp: m.external.addr.String(), ExternalPort: uint32(m.external.port), LocalIps: m.backends,
		TwiceNat: vpp_nat.DNat44_StaticMapping_SELF, SessionAffinity: m.affinity,
	}
	if m.hide {
		v.TwiceNat = vpp_nat.DNat44_StaticMapping_ENABLED
	}
	if m.external.proto == renderer.UDP {
		v.Protocol = vpp_nat.DNat44_UDP
	}
	if m.restricted {
		v.Guard = acl
	}
	return v
}

// rendering is a service while its mappings are being made.
type rendering struct {
	r     *Renderer
	value *renderer.ContivService
	out   *service
	seen  map[external]bool
}

// render makes the mappings of a service.
func (r *Renderer) render(value *renderer.ContivService) *service {
	g := &rendering{r: r, value: value, out: &service{value: value}, seen: map[external]bool{}}
	fronts := map[string][]renderer.PortFrontend{}
	for _, f := range value.Frontends(r.nodePorts) {
		if f.Addr.Is4() {
			fronts[f.PortName] = append(fronts[f.PortName], f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(value.Ports)) {
		port := value.Ports[name]
		if port.Protocol != renderer.TCP && port.Protocol != renderer.UDP {
			g.out.sctp = true
			continue
		}
		g.port(name, fronts[name])
	}
	g.out.rejects = g.rejects()
	slices.SortFunc(g.out.outside, netip.Addr.Compare)
	g.out.outside = slices.Clip(slices.Compact(g.out.outside))
	return g.out
}

func (g *rendering) port(name string, fronts []renderer.PortFrontend) {
	inside := g.backends(name, g.value.InternalTrafficPolicy)
	inside.hide = inside.masquerade
	outside := g.backends(name, g.value.TrafficPolicy)
	outside.hide = outside.masquerade || g.value.TrafficPolicy == renderer.ClusterWide
	ranges, restricted := g.value.SourceRanges(false)
	for _, f := range fronts {
		e := external{f.Addr, f.Port, f.Protocol}
		switch {
		case f.Kind == renderer.AtClusterIP:
			g.add(mapping{external: e}, inside)
		case f.Kind == renderer.AtExternalIP && restricted && g.value.LoadBalancerIPs.Contains(f.Addr):
			g.add(mapping{external: e}, outside.only(ranges))
		default:
			g.add(mapping{external: e}, outside)
		}
	}
}

// target describes where packets to a frontend go.
type target struct {
	backends   []*vpp_nat.DNat44_StaticMapping_LocalIP
	masquerade bool // replies of some backends would bypass this VPP
	hide       bool // the client's address
	restricted bool // see mapping
	from       []netip.Prefix
}

// only restricts the target to clients in some networks; packets from other clients are dropped.
func (t target) only(from []netip.Prefix) target {
	if len(t.backends) == 0 {
		return t
	}
	t.restricted, t.from = true, from
	if len(from) == 0 {
		t.backends = nil
	}
	return t
}

// add adds a mapping, unless the service already has one for the same address, port and protocol.
func (g *rendering) add(m mapping, to target) {
	if g.seen[m.external] {
		return
	}
	g.seen[m.external] = true
	m.backends, m.hide, m.affinity, m.restricted, m.from = to.backends, to.hide, g.value.SessionAffinityTimeout, to.restricted, to.from
	g.out.mappings = append(g.out.mappings, m)
}

// backends returns the target of a port under a traffic policy.
func (g *rendering) backends(port string, policy renderer.TrafficPolicyType) (t target) {
	selected, verdict := g.value.Select(port, policy, false)
	t.restricted = verdict == renderer.Drop
	selected = g.r.some(selected)
	seen := make(map[netip.AddrPort]bool, len(selected))
	for _, b := range selected {
		at := netip.AddrPortFrom(b.Addr(), b.Port)
		if seen[at] || at.Addr().IsUnspecified() {
			continue
		}
		seen[at] = true
		hop := g.r.Network.NextHopTo(at.Addr())
		t.masquerade = t.masquerade || hop.Masquerade
		if hop.Masquerade || b.HostNetwork {
			g.out.outside = append(g.out.outside, at.Addr())
		}
		t.backends = append(t.backends, &vpp_nat.DNat44_StaticMapping_LocalIP{
			VrfId: hop.VRF, LocalIp: at.Addr().String(), LocalPort: uint32(at.Port()), Probability: 1,
		})
	}
	return t
}

// some selects as many backends as VPP supports. The selection depends on the addresses of the backends, so that a backend that is added or
// removed does not change the others, and on the node, so that each backend is used by some node.
func (r *Renderer) some(all []*renderer.ServiceBackend) []*renderer.ServiceBackend {
	if len(all) <= mostBackends {
		return all
	}
	score := func(b *renderer.ServiceBackend) uint64 {
		h := fnv.New64a()
		h.Write([]byte(r.NodeName))
		h.Write(b.IP)
		h.Write([]byte{byte(b.Port >> 8), byte(b.Port)})
		return h.Sum64()
	}
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b *renderer.ServiceBackend) int { return cmp.Compare(score(a), score(b)) })
	return out[:mostBackends]
}

func onlyIPv4(addrs *renderer.IPAddresses) []netip.Addr {
	all := addrs.Addrs()
	n := slices.IndexFunc(all, netip.Addr.Is6) // IPv4 goes first
	if n < 0 {
		return all
	}
	return all[:n]
}
