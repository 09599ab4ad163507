package intdataplane

import (
	"maps"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// appliesTo reports whether a host endpoint applies to an interface of the node with these addresses: by the interface's name or, if the
// endpoint has no name, by an address.
func appliesTo(ep *proto.HostEndpoint, iface string, addrs []netip.Addr) bool {
	if ep.GetName() != "" {
		return ep.GetName() == iface
	}
	for _, list := range [][]string{ep.GetExpectedIpv4Addrs(), ep.GetExpectedIpv6Addrs()} {
		for _, text := range list {
			a, err := netip.ParseAddr(text)
			if err == nil && slices.Contains(addrs, a.Unmap()) {
				return true
			}
		}
	}
	return false
}

// resolveHosts returns the endpoint of each interface of the node: of the endpoints that apply to it, the one with the lowest ID. The
// endpoint for all interfaces, also the one with the lowest ID, has the key rules.AllInterfaces.
func resolveHosts(endpoints map[epstate.HostID]*proto.HostEndpoint, addrs map[string][]netip.Addr) map[string]epstate.HostID {
	resolved := map[string]epstate.HostID{}
	for _, id := range slices.Sorted(maps.Keys(endpoints)) {
		ep := endpoints[id]
		if ep.GetName() == rules.AllInterfaces {
			if _, taken := resolved[rules.AllInterfaces]; !taken {
				resolved[rules.AllInterfaces] = id
			}
			continue
		}
		for iface, list := range addrs {
			if _, taken := resolved[iface]; !taken && appliesTo(ep, iface, list) {
				resolved[iface] = id
			}
		}
	}
	return resolved
}

// hostWanted is what a host endpoint needs in one layer.
type hostWanted struct {
	host rules.Host
	refs []chainRef
}

// hostLayers returns what the resolved endpoints need, by layer and interface. All have chains in layer Filter, those with untracked
// policies also in Raw, those with pre-DNAT policies also in Mangle. The endpoint for all interfaces has chains in Mangle only.
func hostLayers(own func(felix string) string, endpoints map[epstate.HostID]*proto.HostEndpoint, resolved map[string]epstate.HostID) map[table.Layer]map[string]hostWanted {
	layers := map[table.Layer]map[string]hostWanted{table.Raw: {}, table.Mangle: {}, table.Filter: {}}
	for iface, id := range resolved {
		ep := endpoints[id]
		if hasPolicies(ep.GetPreDnatTiers()) {
			layers[table.Mangle][iface] = hostIn(own, table.Mangle, iface, ep.GetPreDnatTiers())
		}
		if iface == rules.AllInterfaces {
			continue
		}
		if hasPolicies(ep.GetUntrackedTiers()) {
			layers[table.Raw][iface] = hostIn(own, table.Raw, iface, ep.GetUntrackedTiers())
		}
		layers[table.Filter][iface] = hostFilter(own, iface, ep)
	}
	return layers
}

func hasPolicies(tiers []*proto.TierInfo) bool {
	return slices.ContainsFunc(tiers, func(t *proto.TierInfo) bool {
		return len(t.GetIngressPolicies())+len(t.GetEgressPolicies()) > 0
	})
}

func hostIn(own func(felix string) string, l table.Layer, iface string, tiers []*proto.TierInfo) hostWanted {
	w := hostWanted{host: rules.Host{Iface: iface}}
	w.host.From, w.refs = direction(own, l, tiers, nil, true, nil)
	if l != table.Mangle { // before DNAT there is no egress
		w.host.To, w.refs = direction(own, l, tiers, nil, false, w.refs)
	}
	return w
}

func hostFilter(own func(felix string) string, iface string, ep *proto.HostEndpoint) hostWanted {
	w := hostWanted{host: rules.Host{Iface: iface}}
	w.host.From, w.refs = direction(own, table.Filter, ep.GetTiers(), ep.GetProfileIds(), true, nil)
	w.host.To, w.refs = direction(own, table.Filter, ep.GetTiers(), ep.GetProfileIds(), false, w.refs)
	var forward rules.Direction
	forward, w.refs = direction(own, table.Filter, ep.GetForwardTiers(), nil, true, w.refs)
	w.host.ForwardFrom = forward.Tiers
	forward, w.refs = direction(own, table.Filter, ep.GetForwardTiers(), nil, false, w.refs)
	w.host.ForwardTo = forward.Tiers
	return w
}
