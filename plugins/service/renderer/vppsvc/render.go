package vppsvc

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"

	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/service/renderer"
)

type target = vpp_contiv.Frontend_Target

const (
	balance = vpp_contiv.Frontend_Target_BALANCE
	reject  = vpp_contiv.Frontend_Target_REJECT
	drop    = vpp_contiv.Frontend_Target_DROP
)

// rendering is a service while its values are being made.
type rendering struct {
	r     *Renderer
	value *renderer.ContivService
	out   *service
}

// render makes the values of a service. They depend on the service and the node only, not on the order of anything.
func (r *Renderer) render(value *renderer.ContivService) *service {
	g := &rendering{r: r, value: value, out: newService(value)}
	for _, f := range value.Frontends(r.nodePorts) {
		if r.families.Has(f.Addr.Is6()) {
			g.frontend(f)
		}
	}
	g.out.addresses = g.addresses()
	slices.SortFunc(g.out.outside, netip.Addr.Compare)
	g.out.outside = slices.Clip(slices.Compact(g.out.outside))
	return g.out
}

// frontend puts one frontend, and the sets of backends that it names.
func (g *rendering) frontend(f renderer.PortFrontend) {
	v6 := f.Addr.Is6()
	v := &vpp_contiv.Frontend{
		Ip: f.Addr.String(), Port: uint32(f.Port), Protocol: vpp_contiv.Frontend_Protocol(f.Protocol), Name: g.name(f.PortName),
	}
	if f.Kind == renderer.AtClusterIP {
		v.InCluster = g.target(f.PortName, g.value.InternalTrafficPolicy, v6, false)
		v.Outside = v.InCluster
	} else {
		// As kube-proxy: with policy Cluster a backend may be anywhere, so that all clients are hidden. With policy Local clients
		// outside get backends of this node, and those in the cluster get all.
		hide := g.value.TrafficPolicy == renderer.ClusterWide
		v.InCluster = g.target(f.PortName, renderer.ClusterWide, v6, hide)
		v.Outside = g.target(f.PortName, g.value.TrafficPolicy, v6, hide)
		g.limit(v, f)
	}
	if balances(v) && g.value.SessionAffinityTimeout > 0 {
		v.AffinityGroup = id("affinity", g.name(f.PortName), family(v6))
		v.AffinityTimeout = g.value.SessionAffinityTimeout
	}
	g.out.put(v)
}

func balances(v *vpp_contiv.Frontend) bool {
	return v.InCluster.Action == balance || v.Outside.Action == balance
}

// limit lets only clients in the service's source ranges use an address of its load balancer. Where nothing serves the port, all
// clients get the rejection.
func (g *rendering) limit(v *vpp_contiv.Frontend, f renderer.PortFrontend) {
	v6 := f.Addr.Is6()
	ranges, restricted := g.value.SourceRanges(v6)
	if !restricted || f.Kind != renderer.AtExternalIP || !g.value.LoadBalancerIPs.Contains(f.Addr) || !balances(v) {
		return
	}
	set := &vpp_contiv.RangeSet{Id: id("ranges", g.value.ID.String(), family(v6))}
	for _, p := range g.r.withHost(ranges, v6) {
		set.Prefixes = append(set.Prefixes, p.String())
	}
	g.out.put(set)
	v.Ranges = set.Id
}

// target returns the action for packets under a policy.
func (g *rendering) target(port string, policy renderer.TrafficPolicyType, v6, hide bool) *target {
	selected, verdict := g.value.Select(port, policy, v6)
	ends := g.ends(nil, selected, false)
	t := &target{Action: balance, Masquerade: hide}
	switch {
	case verdict == renderer.Drop:
		t = &target{Action: drop}
	case verdict == renderer.Reject || len(ends) == 0:
		t = &target{Action: reject}
	}
	if g.value.Ports[port].Protocol == renderer.UDP { // connections of other protocols stay in any case
		ends = g.ends(ends, g.value.KeptBeside(port, v6, selected), true)
	}
	if len(ends) == 0 {
		return t
	}
	set := &vpp_contiv.Service{
		Id: id("service", g.name(port), family(v6), policy.String()), Name: g.name(port), Backends: g.backends(ends),
	}
	g.out.put(set)
	t.Service = set.Id
	return t
}

// end is a backend of a set. If it is kept, it gets no new connections.
type end struct {
	at   netip.AddrPort
	kept bool
}

// ends appends backends to those of a set.
func (g *rendering) ends(to []end, backends []*renderer.ServiceBackend, kept bool) []end {
	to = slices.Grow(to, len(backends))
	for _, b := range backends {
		if at := netip.AddrPortFrom(b.Addr(), b.Port); at.IsValid() && !at.Addr().IsUnspecified() && at.Port() != 0 {
			to = append(to, end{at, kept})
		}
		if b.HostNetwork {
			g.out.outside = append(g.out.outside, b.Addr())
		}
	}
	return to
}

// backends are those of a set, each once. A backend that would not answer by this VPP sees the node instead of the client.
func (g *rendering) backends(ends []end) []*vpp_contiv.Service_Backend {
	slices.SortFunc(ends, func(a, b end) int { return a.at.Compare(b.at) })
	ends = slices.CompactFunc(ends, func(a, b end) bool { return a.at == b.at })
	out := make([]*vpp_contiv.Service_Backend, 0, len(ends))
	for _, e := range ends {
		masquerade := g.r.Network.NextHopTo(e.at.Addr()).Masquerade
		if masquerade {
			g.out.outside = append(g.out.outside, e.at.Addr())
		}
		out = append(out, &vpp_contiv.Service_Backend{
			Ip: e.at.Addr().String(), Port: uint32(e.at.Port()), Masquerade: masquerade, Kept: e.kept,
		})
	}
	return out
}

// addresses are those that belong to services alone, if they are no node's.
func (g *rendering) addresses() []netip.Addr {
	var out []netip.Addr
	for _, set := range []*renderer.IPAddresses{g.value.ClusterIPs, g.value.ExternalIPs} {
		for _, addr := range set.Addrs() {
			if g.r.families.Has(addr.Is6()) && len(g.value.Ports) > 0 {
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func (g *rendering) name(port string) string {
	name := g.value.ID.String()
	if port != "" {
		name += ":" + port
	}
	return name
}

func family(v6 bool) string {
	if v6 {
		return "ipv6"
	}
	return "ipv4"
}

// id names an object of the plugin by a hash of what it is, so that a restarted agent finds it again. Users choose the names of services
// and ports, so it must be a hash for which a second input cannot be computed: otherwise the set of one service could replace that of another.
func id(parts ...string) uint64 {
	var buf [256]byte
	b := buf[:0]
	for _, p := range parts {
		b = append(append(b, p...), 0)
	}
	sum := sha256.Sum256(b)
	return cmp.Or(binary.BigEndian.Uint64(sum[:8]), 1)
}

// closed is the frontend for all ports of an address that no service takes.
func closed(addr netip.Addr) *vpp_contiv.Frontend {
	return &vpp_contiv.Frontend{
		Ip: addr.String(), Name: "unused ports", InCluster: &target{Action: reject}, Outside: &target{Action: reject},
	}
}
