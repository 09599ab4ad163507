package drivertest

import "contiv.dev/vswitch/dataplane/proto"

// MatchCase is a rule without an action, with packets that match it and packets that do not.
type MatchCase struct {
	Name    string
	Rule    *proto.Rule
	Yes, No []Packet
}

// MatchCases returns the matrix. The rules refer to the sets of UsualSets.
func MatchCases() []MatchCase {
	list := func(p ...Packet) []Packet { return p }
	tcpName := protocol("tcp")
	return []MatchCase{
		{"everything", &proto.Rule{}, list(toWeb(4), toWeb(6), udpToWeb(1)), nil},
		{"IPv4", &proto.Rule{IpVersion: proto.IPVersion_IPV4}, list(toWeb(4)), list(toWeb(6))},
		{"IPv6", &proto.Rule{IpVersion: proto.IPVersion_IPV6}, list(toWeb(6)), list(toWeb(4))},
		{"protocol", &proto.Rule{Protocol: tcpName}, list(toWeb(4)), list(udpToWeb(80))},
		{"protocol number", &proto.Rule{Protocol: number(17)}, list(udpToWeb(80)), list(toWeb(4))},
		{"not protocol", &proto.Rule{NotProtocol: tcpName}, list(udpToWeb(80)), list(toWeb(4))},
		{"source net", &proto.Rule{SrcNet: []string{"198.51.100.0/24"}}, list(toWeb(4)), list(from("198.51.101.1"), toWeb(6))},
		{"source nets of both families", &proto.Rule{SrcNet: []string{"198.51.100.0/24", "fd01::/16"}}, list(toWeb(4),
			from("fd01::1")), list(toWeb(6))},
		{"address without length", &proto.Rule{SrcNet: []string{"198.51.100.9"}}, list(toWeb(4)), list(from("198.51.100.10"))},
		{"not source net", &proto.Rule{NotSrcNet: []string{"198.51.100.0/24"}}, list(from("198.51.101.1")), list(toWeb(4), toWeb(6))},
		{"net without exception", &proto.Rule{SrcNet: []string{"198.0.0.0/8"}, NotSrcNet: []string{"198.51.100.8/30"}},
			list(from("198.1.1.1")), list(toWeb(4), from("1.1.1.1"))},
		{"destination net", &proto.Rule{DstNet: []string{"10.1.0.0/31"}}, list(toWeb(4)), list(toWeb(6))},
		{"not destination net", &proto.Rule{NotDstNet: []string{"10.1.0.0/31"}}, nil, list(toWeb(4))},
		{"ports", &proto.Rule{Protocol: tcpName, DstPorts: []*proto.PortRange{{First: 70, Last: 79}, {First: 90, Last: 90}}},
			list(toPort(70), toPort(79), toPort(90)), list(toPort(80), toPort(69))},
		{"not ports", &proto.Rule{Protocol: tcpName, NotDstPorts: ports(80, 81)}, list(toPort(82)), list(toPort(80), toPort(81))},
		{"source ports", &proto.Rule{Protocol: tcpName, SrcPorts: ports(40000)}, list(toWeb(4)), list(with(toWeb(4),
			func(p *Packet) { p.SrcPort = 1 }))},
		{"not source ports", &proto.Rule{Protocol: tcpName, NotSrcPorts: ports(40000)}, list(with(toWeb(4),
			func(p *Packet) { p.SrcPort = 1 })), list(toWeb(4))},
		{"source sets, all of them", &proto.Rule{SrcIpSetIds: []string{"far", "net"}}, list(toWeb(4)), list(from("198.51.100.10"))},
		{"not source sets, none of them", &proto.Rule{NotSrcIpSetIds: []string{"far", "empty"}}, list(from("198.51.100.10")),
			list(toWeb(4))},
		{"empty set", &proto.Rule{SrcIpSetIds: []string{"empty"}}, nil, list(toWeb(4))},
		{"destination set", &proto.Rule{DstIpSetIds: []string{"web"}}, list(toWeb(4)), list(toWeb(6))},
		{"not destination set", &proto.Rule{NotDstIpSetIds: []string{"web"}}, list(toWeb(6)), list(toWeb(4))},
		{"named port or number", &proto.Rule{Protocol: tcpName, DstPorts: ports(99), DstNamedPortIpSetIds: []string{"http"}},
			list(toPort(80), toPort(99)), list(toPort(81))},
		{"not named port", &proto.Rule{Protocol: tcpName, NotDstNamedPortIpSetIds: []string{"http"}}, list(toPort(81)),
			list(toPort(80))},
		{"service", &proto.Rule{DstIpPortSetIds: []string{"http"}}, list(toPort(80), udpToWeb(53)), list(toPort(53),
			udpToWeb(80), icmpToWeb(4, 8, 0))},
		{"service, one protocol", &proto.Rule{Protocol: tcpName, DstIpPortSetIds: []string{"http"}}, list(toPort(80)),
			list(udpToWeb(53))},
		{"service, not one protocol", &proto.Rule{NotProtocol: tcpName, DstIpPortSetIds: []string{"http"}}, list(udpToWeb(53)),
			list(toPort(80))},
		{"ICMP", &proto.Rule{Protocol: protocol("icmp")}, list(icmpToWeb(4, 8, 0)), list(toWeb(4))},
		{"ICMP type", &proto.Rule{Protocol: protocol("icmp"), Icmp: &proto.Rule_IcmpType{IcmpType: 8}}, list(icmpToWeb(4, 8,
			3)), list(icmpToWeb(4, 0, 0), icmpToWeb(6, 8, 0))},
		{"ICMP type of either family", &proto.Rule{Icmp: &proto.Rule_IcmpType{IcmpType: 8}}, list(icmpToWeb(4, 8, 3),
			icmpToWeb(6, 8, 0)), list(toWeb(4))},
		{"ICMP code", &proto.Rule{Protocol: protocol("ICMPv6"),
			Icmp: &proto.Rule_IcmpTypeCode{IcmpTypeCode: &proto.IcmpTypeAndCode{Type: 1, Code: 4}}},
			list(icmpToWeb(6, 1, 4)), list(icmpToWeb(6, 1, 3), icmpToWeb(4, 1, 4))},
		{"not ICMP type", &proto.Rule{Protocol: protocol("icmp"), NotIcmp: &proto.Rule_NotIcmpType{NotIcmpType: 8}},
			list(icmpToWeb(4, 0, 0)), list(icmpToWeb(4, 8, 0))},
		{"not ICMP code", &proto.Rule{Protocol: protocol("icmp"),
			NotIcmp: &proto.Rule_NotIcmpTypeCode{NotIcmpTypeCode: &proto.IcmpTypeAndCode{Type: 3, Code: 4}}},
			list(icmpToWeb(4, 3, 1)), list(icmpToWeb(4, 3, 4))},
	}
}

// UsualSets returns the sets to which the cases refer.
func UsualSets() []*proto.IPSetUpdate {
	return []*proto.IPSetUpdate{
		set("far", far4.String()),
		{Id: "net", Type: proto.IPSetUpdate_NET, Members: []string{"198.51.100.0/24"}},
		set("web", web4.String()),
		set("empty"),
		{Id: "http", Type: proto.IPSetUpdate_IP_AND_PORT, Members: []string{web4.String() + ",tcp:80", web4.String() + ",udp:53"}},
	}
}

// BadRules returns rules that no driver can carry out. Each would match toWeb(4) if it were interpreted in the most permissive way.
func BadRules() map[string]*proto.Rule {
	return map[string]*proto.Rule{
		"missing set":               {SrcIpSetIds: []string{"gone"}},
		"missing set, negated":      {NotSrcIpSetIds: []string{"gone"}},
		"missing set beside a net":  {SrcNet: []string{"198.51.100.0/24"}, DstIpSetIds: []string{"gone"}},
		"set of the wrong type":     {SrcIpSetIds: []string{"http"}},
		"port set of wrong type":    {Protocol: protocol("tcp"), DstNamedPortIpSetIds: []string{"far"}},
		"net that does not parse":   {SrcNet: []string{"198.51.100.0/24", "nonsense"}},
		"net with a zone":           {SrcNet: []string{"fe80::1%eth0"}},
		"negated net that does not": {NotSrcNet: []string{"1.2.3.4/33"}},
		"unknown protocol":          {Protocol: protocol("quic")},
		"protocol out of range":     {Protocol: number(1000)},
		"ports without protocol":    {DstPorts: ports(80)},
		"ports of ICMP":             {Protocol: protocol("icmp"), DstPorts: ports(80)},
		"no range":                  {Protocol: protocol("tcp"), DstPorts: []*proto.PortRange{{First: 90, Last: 80}}},
		"port out of range":         {Protocol: protocol("tcp"), NotDstPorts: []*proto.PortRange{{First: 1, Last: 70000}}},
		"ICMP type of TCP":          {Protocol: protocol("tcp"), Icmp: &proto.Rule_IcmpType{IcmpType: 8}},
		"ICMP type out of range":    {Icmp: &proto.Rule_IcmpType{IcmpType: 300}},
		"negated ICMP of anything":  {NotIcmp: &proto.Rule_NotIcmpType{NotIcmpType: 8}},
		"two services":              {DstIpPortSetIds: []string{"http", "http"}},
		"service and ports":         {Protocol: protocol("tcp"), DstPorts: ports(80), DstIpPortSetIds: []string{"http"}},
		"HTTP":                      {Protocol: protocol("tcp"), HttpMatch: &proto.HTTPMatch{Methods: []string{"GET"}}},
	}
}
