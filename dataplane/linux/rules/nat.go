package rules

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/ipaddr"
)

// metadataService is the address from which a workload gets its metadata (OpenStack, EC2).
const metadataService = "169.254.169.254"

func (r *renderer) natPrerouting(f table.Family) table.Chain {
	list := []table.Rule{rule(table.Match{}, "", jump(r.Own(chainFIPDnat)))}
	if f == table.IPv4 && r.OpenStackMetadataIP.IsValid() {
		m := dport(protoTCP, 80)
		m.DstNets = []netip.Prefix{ipaddr.HostPrefix(netip.MustParseAddr(metadataService))}
		list = append(list, rule(m, "OpenStack metadata", table.Action{Verb: table.DNAT, To: r.OpenStackMetadataIP,
			Ports: table.PortRange{First: r.OpenStackMetadataPort, Last: r.OpenStackMetadataPort}}))
	}
	return table.Chain{Name: r.Own(chainPrerouting), Rules: list}
}

func (r *renderer) natOutput() table.Chain {
	return table.Chain{Name: r.Own(chainOutput), Rules: []table.Rule{rule(table.Match{}, "", jump(r.Own(chainFIPDnat)))}}
}

func (r *renderer) natPostrouting(f table.Family) table.Chain {
	list := []table.Rule{rule(table.Match{}, "", jump(r.Own(chainFIPSnat))), rule(table.Match{}, "", jump(r.Own(chainNATOutgoing)))}
	// Packets that the node itself sends through a tunnel must have the tunnel's address as source, otherwise the replies take another
	// route.
	tunnel := func(device string) table.Rule {
		m := table.Match{OutIface: device, SrcNotOnOut: true, Src: table.AddrLocal}
		return rule(m, "The node's own packets take the tunnel's address", act(table.Masquerade))
	}
	if r.IPIPEnabled && r.IPIPTunnelAddress.IsValid() && f == table.IPv4 {
		list = append(list, tunnel(IPIPDevice))
	}
	if r.VXLANEnabled {
		list = append(list, tunnel(r.VXLANDevice))
	}
	return table.Chain{Name: r.Own(chainPostrouting), Rules: list}
}

// IPIPDevice is the IPIP device that the kernel creates.
const IPIPDevice = "tunl0"

func (r *renderer) NATOutgoing(active bool) table.Chain {
	chain := table.Chain{Name: r.Own(chainNATOutgoing)}
	if !active {
		return chain
	}
	m := table.Match{SrcSets: []string{SetMasqPools}, NotDstSets: []string{SetAllPools},
		OutIface: r.IptablesNATOutgoingInterfaceFilter}
	if r.NATPortRange != (table.PortRange{}) {
		// A match ends the processing here, so Felix's RETURN after each of these rules is not needed: no packet would reach it.
		for _, protocol := range []uint8{protoTCP, protoUDP} {
			m.Protocol = protocol
			chain.Rules = append(chain.Rules, rule(m, "", table.Action{Verb: table.Masquerade, Ports: r.NATPortRange}))
		}
		m.Protocol = 0
	}
	chain.Rules = append(chain.Rules, rule(m, "", act(table.Masquerade)))
	return chain
}

func (r *renderer) FloatingIPs(dnat, snat []NATPair) []table.Chain {
	to, from := table.Chain{Name: r.Own(chainFIPDnat)}, table.Chain{Name: r.Own(chainFIPSnat)}
	for _, p := range dnat {
		m := table.Match{DstNets: []netip.Prefix{ipaddr.HostPrefix(p.External)}}
		to.Rules = append(to.Rules, rule(m, "", table.Action{Verb: table.DNAT, To: p.Internal}))
	}
	for _, p := range snat {
		// A workload that sends to its own floating IP must not receive packets with its own address as source.
		own := []netip.Prefix{ipaddr.HostPrefix(p.Internal)}
		hairpin := table.Match{SrcNets: own, DstNets: own}
		from.Rules = append(from.Rules, rule(hairpin, "", table.Action{Verb: table.SNAT, To: p.External}))
	}
	return []table.Chain{to, from}
}
