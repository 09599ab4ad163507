package nat44

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// With externalTrafficPolicy Local clients outside get local backends, those in the cluster all. NAT44 does not tell clients
// from each other; so what those in the cluster send goes to another address, which is nobody's, and has a mapping of its own.
// On pods' interfaces VPP's pnat changes the address, without remembering anything, before NAT44 sees it, and back behind it;
// for the host's own processes the host does (HostAliases).

// mostAliases is how many places have aliases. Each is four requests per pod, so of more than that the rest is as for clients
// outside.
const mostAliases = 256

// aliasNet is where aliases are: of class E, reserved, and more than enough.
const aliasNet = 254

// aliasOf is the alias of an address: it has the same checksum, so nothing else of a packet changes, and fragments may come
// apart. Addresses of one /16 have different ones; of others two could have the same, and only one of them has it then.
func aliasOf(addr netip.Addr) netip.Addr {
	a := addr.As4()
	high, low := uint32(a[0])<<8|uint32(a[1]), uint32(a[2])<<8|uint32(a[3])
	upper := uint32(aliasNet)<<8 | uint32(a[0]^a[1])
	lower := (high + low + 0xffff - upper) % 0xffff
	return netip.AddrFrom4([4]byte{byte(upper >> 8), byte(upper), byte(lower >> 8), byte(lower)})
}

// serve adds a place for clients outside, and an alias of it for those in the cluster, if there is something else for them.
func (g *rendering) serve(e external, outside, inside target) {
	n := len(g.out.mappings)
	if !g.add(mapping{external: e}, outside) || len(inside.backends) == 0 {
		return
	}
	alias := external{aliasOf(e.addr), e.port, e.proto}
	if g.add(mapping{external: alias, of: e}, inside) {
		g.out.mappings[n].alias = alias.addr
	}
}

// alias notes the alias of a place that is served; m is its mapping.
func (r *Renderer) alias(m *mapping) {
	var now netip.Addr
	if m.alias.IsValid() && r.hasAlias(external{m.alias, m.external.port, m.external.proto}, m.external) {
		now = m.alias
	}
	if r.aliases[m.external] == now {
		return
	}
	if r.aliasesNew = true; now.IsValid() {
		r.aliases[m.external] = now
	} else {
		delete(r.aliases, m.external)
	}
}

// emitAliases puts the aliases on the interfaces of pods, and tells the host of them, if there is something new.
func (r *Renderer) emitAliases() {
	if r.aliasesNew {
		r.listAliases()
		r.routeAliases()
	}
	pods := renderer.NewInterfaces()
	for name := range r.frontends {
		if len(r.aliasList) > 0 && !slices.Contains(r.node.Shared, name) {
			pods[name] = struct{}{}
		}
	}
	for name := range r.aliased {
		if !pods.Has(name) {
			r.remove(&vpp_pnat.Interface{Name: name})
		}
	}
	for name := range pods {
		if r.aliasesNew || !r.aliased.Has(name) {
			r.put(&vpp_pnat.Interface{Name: name, Aliases: r.aliasList})
		}
	}
	r.aliased, r.aliasesNew = pods, false
}

// listAliases puts them into order, and tells the host.
func (r *Renderer) listAliases() {
	places := slices.SortedFunc(maps.Keys(r.aliases), external.compare)
	tooMany := len(places) > mostAliases
	if tooMany && !r.tooManyAliases {
		r.Log.Warn("clients in the cluster get local backends only of some services with externalTrafficPolicy Local",
			"addresses and ports", len(places), "served", mostAliases)
	}
	places = places[:min(len(places), mostAliases)]
	r.tooManyAliases, r.aliasList = tooMany, nil
	var host []HostAlias
	for _, e := range places {
		to := r.aliases[e]
		a := &vpp_pnat.Interface_Alias{Ip: e.addr.String(), Port: uint32(e.port), Alias: to.String()}
		if e.proto == renderer.UDP {
			a.Protocol = vpp_pnat.Interface_UDP
		}
		r.aliasList = append(r.aliasList, a)
		host = append(host, HostAlias{At: netip.AddrPortFrom(e.addr, e.port), Proto: e.proto, To: to})
	}
	if r.HostAliases != nil && r.node.HostLink.IsValid() {
		r.HostAliases.SetAliases(host)
	}
}

// routeAliases: the host sends what is for them to VPP, where no other route leads.
func (r *Renderer) routeAliases() {
	want := len(r.aliasList) > 0 && r.HostAliases != nil && r.node.HostLink.IsValid()
	route := &linux_l3.Route{
		OutgoingInterface: r.node.HostIf, Scope: linux_l3.Route_GLOBAL,
		DstNetwork: netip.PrefixFrom(netip.AddrFrom4([4]byte{aliasNet}), 8).String(), GwAddr: r.node.HostLink.String(),
	}
	switch {
	case want && !r.hostRoute:
		r.put(route)
	case !want && r.hostRoute:
		r.remove(route)
	}
	r.hostRoute = want
}

func (e external) compare(f external) int {
	return cmp.Or(e.addr.Compare(f.addr), cmp.Compare(e.port, f.port), cmp.Compare(e.proto, f.proto))
}
