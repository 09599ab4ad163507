package rules

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// routerMessages returns the ICMPv6 types by which a router configures its neighbours: advertisement and redirect (RFC 4861).
func routerMessages() []uint8 { return []uint8{routerAdvertisement, 137} }

// unanswered returns the ICMPv6 types that a workload may not send from link-local addresses: solicitations of a router and of a neighbour
// (RFC 4861). The kernel stores their sources in a table with 1,024 entries for all namespaces. There are 2^64 link-local addresses, so a
// workload could fill this table, and the node could resolve no other neighbour. A workload solicits its gateway from its own address.
// Workloads of OpenStack solicit their router from link-local addresses, so nothing is dropped there.
func (r *renderer) unanswered() []uint8 {
	if r.OpenStackSpecialCasesEnabled {
		return nil
	}
	return []uint8{133, 135}
}

// workloadsNeverSend drops, before all other rules, packets of workloads that only nodes, routers and DHCP servers send. from matches
// packets of workloads.
func (r *renderer) workloadsNeverSend(f table.Family, from table.Match) []table.Rule {
	list := r.tunnelled(f, from, "of a workload")
	dhcp := sport(protoUDP, 67)
	if f == table.IPv6 {
		dhcp = sport(protoUDP, 547)
		for _, kind := range routerMessages() {
			m := from
			m.Protocol, m.ICMP = protoICMPv6, &table.ICMP{Type: kind, AnyCode: true}
			list = append(list, rule(m, "A router's message of a workload", act(table.Drop)))
		}
		for _, kind := range r.unanswered() {
			m := from
			m.Protocol, m.ICMP = protoICMPv6, &table.ICMP{Type: kind, AnyCode: true}
			m.SrcNets = []netip.Prefix{netip.MustParsePrefix("fe80::/10")}
			list = append(list, rule(m, "A link-local solicitation of a workload", act(table.Drop)))
		}
	} else {
		// No route leads from a workload's interface to the loopback; a packet to it is an attack or a fault.
		m := from
		m.DstNets = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		list = append(list, rule(m, "The node's loopback", act(table.Drop)))
	}
	dhcp.Mark, dhcp.MarkMask = from.Mark, from.MarkMask
	return append(list, rule(dhcp, "A DHCP server's answer of a workload", act(table.Drop)))
}

// ReversePath returns the chain that drops packets whose source is not routed back to the interface on which they arrived, except for
// sources that the workload may spoof. It does not depend on rp_filter, which an administrator may change.
func (r *renderer) ReversePath(f table.Family, workloads []Workload) table.Chain {
	chain := table.Chain{Name: r.Own(chainReversePath)}
	for _, w := range workloads {
		nets := slices.DeleteFunc(slices.Clone(w.Spoof), func(p netip.Prefix) bool { return p.Addr().Is4() != (f == table.IPv4) })
		if len(nets) > 0 {
			chain.Rules = append(chain.Rules,
				rule(table.Match{InIface: w.Iface, SrcNets: nets}, "May spoof", act(table.Return)))
		}
	}
	chain.Rules = append(chain.Rules,
		rule(table.Match{NoReversePath: true}, "Source not routed back to the workload", act(table.Drop)))
	return chain
}
