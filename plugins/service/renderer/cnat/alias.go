package cnat

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
)

// With externalTrafficPolicy Local clients outside get local backends, those in the cluster all. cnat does not tell clients from
// each other; but what the host's own processes send the host can send to the service's cluster IP instead, which has all backends.

// alias is where the host's own processes go for a place; invalid: there.
func (g *rendering) alias(v vip, port *renderer.ServicePort, inside target) {
	if g.value.TrafficPolicy != renderer.NodeLocal || g.value.InternalTrafficPolicy != renderer.ClusterWide ||
		len(inside.backends) == 0 || v.proto == renderer.SCTP {
		return
	}
	for _, addr := range g.clusterIPs(port, v.addr.Is6()) {
		if _, seen := g.out.aliases[v]; !seen {
			g.out.aliases[v] = netip.AddrPortFrom(addr, port.Port)
		}
		return
	}
}

// setAlias notes the alias of a place; invalid: none.
func (r *Renderer) setAlias(v vip, now netip.AddrPort) {
	if now.IsValid() {
		r.aliases[v] = now
	} else {
		delete(r.aliases, v)
	}
}

// tellAliases tells the host of aliases, if something is new.
func (r *Renderer) tellAliases() {
	if r.SetAliases == nil {
		return
	}
	var all [2][]hostend.Alias
	for _, v := range slices.SortedFunc(maps.Keys(r.aliases), vip.compare) {
		f := familyOf(v.addr.Is6())
		all[f] = append(all[f], hostend.Alias{
			At: netip.AddrPortFrom(v.addr, v.port), UDP: v.proto == renderer.UDP, To: r.aliases[v],
		})
	}
	for ipv6, node := range r.node {
		f := familyOf(ipv6)
		if node.HostLink.IsValid() && (!r.toldAliases[f] || !reflect.DeepEqual(r.hostAliases[f], all[f])) {
			r.hostAliases[f], r.toldAliases[f] = all[f], true
			r.SetAliases(ipv6, all[f])
		}
	}
}
