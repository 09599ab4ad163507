package cnat

import (
	"cmp"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/gate"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
)

// backACL drops what the host hands back: it has something to do with it, or nobody has.
const backACL = "services-cnat-host"

// restriction is what becomes of packets to a place that only some clients may use: the host's own stack looks who sends
// them, and sends them to another place of the service, as its own.
type restriction struct {
	to   netip.AddrPort
	from []netip.Prefix
}

// restrict takes a place with source ranges.
func (g *rendering) restrict(v vip, port *renderer.ServicePort, from []netip.Prefix) {
	if g.out.translations[v] != nil || g.out.restricted[v] != nil {
		return
	}
	g.add(v, target{drop: true})
	to, why := g.substitute(v, port)
	if why == "" {
		g.out.restricted[v] = &restriction{to: to, from: from}
	}
	if g.r.nodeIPs.Contains(v.addr) { // see settle
		why = "it is a node's own address"
	}
	g.out.closed = cmp.Or(g.out.closed, why)
}

// substitute is a place of the service with the backends that one for clients outside has, and why there is none.
func (g *rendering) substitute(v vip, port *renderer.ServicePort) (to netip.AddrPort, why string) {
	node := g.r.node[v.addr.Is6()]
	switch {
	case v.proto == renderer.SCTP:
		return to, "the host serves TCP and UDP only"
	case g.r.SetPlaces == nil || !node.HostLink.IsValid() || !node.HostOwn.IsValid():
		return to, "there is no link to the host's own stack"
	case g.value.TrafficPolicy == renderer.NodeLocal:
		return to, "with externalTrafficPolicy Local the backends would have to see the client's address"
	case port.NodePort != 0 && g.value.Owns(renderer.NodePort(port.NodePort, port.Protocol, v.addr.Is6())):
		return netip.AddrPortFrom(node.HostLink, port.NodePort), ""
	case g.value.InternalTrafficPolicy != g.value.TrafficPolicy:
		return to, "with internalTrafficPolicy Local it needs a node port"
	}
	for _, addr := range g.clusterIPs(port, v.addr.Is6()) {
		return netip.AddrPortFrom(addr, port.Port), ""
	}
	return to, "it has neither a node port nor a cluster IP of that family"
}

// setRestriction notes what the host has to do for a place; nil: nothing.
func (r *Renderer) setRestriction(v vip, now *restriction) {
	if now == nil {
		delete(r.byHost, v)
	} else {
		r.byHost[v] = now
	}
}

// emitRestrictions leads the addresses of such places to the host, and tells the host.
func (r *Renderer) emitRestrictions(out *output) {
	addrs := map[netip.Addr]bool{}
	for v := range r.byHost {
		addrs[v.addr] = true
	}
	for addr := range addrs {
		if !r.viaHost[addr] {
			r.viaHost[addr] = true
			r.back.Set(gate.Place{Addr: addr}, nil)
			out.Put(r.toHost(addr))
		}
	}
	for addr := range r.viaHost {
		if !addrs[addr] {
			delete(r.viaHost, addr)
			r.back.Clear(gate.Place{Addr: addr})
			out.Remove(r.toHost(addr))
		}
	}
	on := renderer.NewInterfaces()
	for _, node := range r.node {
		if node.HostIf != "" {
			on[node.HostIf] = struct{}{}
		}
	}
	r.back.Emit(gate.Node{Interfaces: on}, out.Put, out.Remove)
	r.tellHost()
}

// toHost is the route of an address to the host. It is preferred to the one that rejects.
func (r *Renderer) toHost(addr netip.Addr) *vpp_l3.Route {
	node := r.node[addr.Is6()]
	return &vpp_l3.Route{
		DstNetwork: netip.PrefixFrom(addr, addr.BitLen()).String(), NextHopAddr: node.HostOwn.String(),
		OutgoingInterface: node.HostIf,
	}
}

// tellHost tells the host of its places, if something is new.
func (r *Renderer) tellHost() {
	if r.SetPlaces == nil {
		return
	}
	var places [2]hostend.Places
	for ipv6, node := range r.node {
		places[familyOf(ipv6)].Via = node.HostLink
	}
	for _, v := range slices.SortedFunc(maps.Keys(r.byHost), vip.compare) {
		now := r.byHost[v]
		own := slices.ContainsFunc(r.localIPs.Addrs(), func(a netip.Addr) bool {
			return slices.ContainsFunc(now.from, func(p netip.Prefix) bool { return p.Contains(a) })
		})
		p := &places[familyOf(v.addr.Is6())]
		p.List = append(p.List, hostend.Place{
			At: netip.AddrPortFrom(v.addr, v.port), UDP: v.proto == renderer.UDP, To: now.to, From: now.from, Own: own,
		})
	}
	for _, ipv6 := range []bool{false, true} {
		f := familyOf(ipv6)
		if _, known := r.node[ipv6]; !known && r.Families.Has(ipv6) {
			continue // not yet: what a former agent has told stays
		}
		if !r.toldHost[f] || !reflect.DeepEqual(r.told[f], places[f]) {
			r.told[f], r.toldHost[f] = places[f], true
			r.SetPlaces(ipv6, places[f])
		}
	}
}

func familyOf(ipv6 bool) int {
	if ipv6 {
		return 1
	}
	return 0
}
