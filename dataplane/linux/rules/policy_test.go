package rules_test

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// verdict is what a policy of one rule, then a profile that allows all, make of a packet to web. The rule must be the
// whole policy of its tier, so "not matched" is a drop; pass lets the profile decide.
func verdict(t *testing.T, r *proto.Rule, p rulestest.Packet, sets ...func(*node)) (string, []rules.Problem) {
	t.Helper()
	n := newNode(t, rules.Config{})
	for _, set := range sets {
		set(n)
	}
	chain := n.policy(rules.PolicyInboundPfx, "one", r)
	problems := n.problems
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)},
		Profiles: n.openProfile().Profiles}, n.openProfile())
	n.apply()
	out := n.send(p)
	if out.Verdict == "accept" && !out.Accepted {
		t.Fatalf("the packet fell through all rules: %+v", out)
	}
	return out.Verdict, problems
}

func (n *node) withSet(id string, kind table.SetType, members ...table.Member) {
	n.set(id, kind, members...)
}

// matchCase is a rule without action, and packets that it is for and not for.
type matchCase struct {
	name     string
	rule     *proto.Rule
	yes, not []rulestest.Packet
}

func toWeb(f table.Family) rulestest.Packet {
	return tcp("eth0", "caliweb", farAddr[f], webAddr[f], 80)
}

func with(p rulestest.Packet, change func(*rulestest.Packet)) rulestest.Packet {
	change(&p)
	return p
}

func udpToWeb(port uint16) rulestest.Packet {
	return with(toWeb(4), func(p *rulestest.Packet) { p.Proto, p.DstPort = 17, port })
}

func icmpToWeb(f table.Family, kind, code uint8) rulestest.Packet {
	return with(toWeb(f), func(p *rulestest.Packet) {
		p.Proto, p.ICMPType, p.ICMPCode = 1, kind, code
		if f == table.IPv6 {
			p.Proto = 58
		}
	})
}

func from(src string) rulestest.Packet {
	a := netip.MustParseAddr(src)
	f := table.IPv6
	if a.Is4() {
		f = table.IPv4
	}
	return with(toWeb(f), func(p *rulestest.Packet) { p.Src = a })
}

func toPort(port uint16) rulestest.Packet {
	return with(toWeb(4), func(p *rulestest.Packet) { p.DstPort = port })
}

func number(n int32) *proto.Protocol {
	return &proto.Protocol{NumberOrName: &proto.Protocol_Number{Number: n}}
}

func matchCases() []matchCase {
	list := func(p ...rulestest.Packet) []rulestest.Packet { return p }
	tcpName := protocol("tcp")
	return []matchCase{
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
			func(p *rulestest.Packet) { p.SrcPort = 1 }))},
		{"not source ports", &proto.Rule{Protocol: tcpName, NotSrcPorts: ports(40000)}, list(with(toWeb(4),
			func(p *rulestest.Packet) { p.SrcPort = 1 })), list(toWeb(4))},
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

// usualSets are the sets that the cases name.
func usualSets(n *node) {
	n.withSet("far", table.SetIP, table.Member{Net: one(farAddr[4])})
	n.withSet("net", table.SetNet, table.Member{Net: netip.MustParsePrefix("198.51.100.0/24")})
	n.withSet("web", table.SetIP, table.Member{Net: one(webAddr[4])})
	n.withSet("empty", table.SetIP)
	n.withSet("http", table.SetIPAndPort, table.Member{Net: one(webAddr[4]), Proto: 6, Port: 80},
		table.Member{Net: one(webAddr[4]), Proto: 17, Port: 53})
}

func TestMatches(t *testing.T) {
	for _, c := range matchCases() {
		for action, want := range map[string][2]string{"allow": {"accept", "drop"}, "": {"accept", "drop"}, "pass": {"accept",
			"drop"}, "next-tier": {"accept", "drop"}} {
			c.rule.Action = action
			for i, packets := range [][]rulestest.Packet{c.yes, c.not} {
				for _, p := range packets {
					got, problems := verdict(t, c.rule, p, usualSets)
					if got != want[i] || len(problems) > 0 {
						t.Errorf("%s, action %q: %s, want %s (%v)\n%+v", c.name, action, got, want[i], problems, p)
					}
				}
			}
		}
	}
}

// denyThen is what a rule, then one that allows everything, make of a packet.
func denyThen(t *testing.T, r *proto.Rule, p rulestest.Packet) string {
	t.Helper()
	n := newNode(t, rules.Config{})
	usualSets(n)
	chain := n.policy(rules.PolicyInboundPfx, "two", r, &proto.Rule{Action: "allow"})
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)}}, n.openProfile())
	n.apply()
	return n.send(p).Verdict
}

func TestDenyMatches(t *testing.T) {
	for _, c := range matchCases() {
		c.rule.Action = "deny"
		for _, p := range c.yes {
			if got := denyThen(t, c.rule, p); got != "drop" {
				t.Errorf("deny %s: %s, want drop\n%+v", c.name, got, p)
			}
		}
		for _, p := range c.not {
			if got := denyThen(t, c.rule, p); got != "accept" {
				t.Errorf("deny %s: %s, want accept\n%+v", c.name, got, p)
			}
		}
	}
}

// TestFailClosed: whatever is wrong with a rule, it never lets more through than it was asked to. bad rules would match the
// packet if they were understood in the most generous way.
func TestFailClosed(t *testing.T) {
	bad := map[string]*proto.Rule{
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
	p := toWeb(4)
	for name, r := range bad {
		for _, action := range []string{"allow", "pass"} {
			r.Action = action
			got, problems := verdict(t, r, p, usualSets)
			if got != "drop" || len(problems) == 0 {
				t.Errorf("%s: %s: %s with problems %v, want drop with a problem", action, name, got, problems)
			}
		}
		switch name {
		case "ICMP type of TCP", "ICMP type out of range", "ports of ICMP":
			continue // checked below: their other matches need not hold for this packet
		}
		r.Action = "deny"
		if got := denyThen(t, r, p); got != "drop" {
			t.Errorf("deny: %s: %s, want drop", name, got)
		}
	}
	// What is left of a rule to deny bounds it.
	kept := proto.Rule{Action: "deny", SrcNet: []string{"10.0.0.0/8"}, DstIpSetIds: []string{"gone"}}
	if got := denyThen(t, &kept, p); got != "accept" {
		t.Errorf("deny from another net: %s, want accept", got)
	}
}

// TestBrokenPassDoesNotAllow: leaving a pass rule out would let the rest of its policy allow what a later tier denies.
func TestBrokenPassDoesNotAllow(t *testing.T) {
	r := proto.Rule{Action: "pass", SrcIpSetIds: []string{"gone"}}
	if got := denyThen(t, &r, toWeb(4)); got != "drop" {
		t.Errorf("pass from a missing set, then allow: %s, want drop", got)
	}
}

func TestUnknownAction(t *testing.T) {
	r := proto.Rule{Action: "quarantine", Protocol: protocol("tcp"), DstPorts: ports(80)}
	got, problems := verdict(t, &r, toWeb(4))
	if got != "drop" || len(problems) == 0 || !strings.Contains(problems[0].String(), "quarantine") {
		t.Errorf("%s, %v; want drop and a problem that names the action", got, problems)
	}
	if got := denyThen(t, &r, toPort(81)); got != "accept" {
		t.Errorf("what it does not match: %s, want accept", got)
	}
}

func TestLog(t *testing.T) {
	n := newNode(t, rules.Config{IptablesLogPrefix: "audit"})
	chain := n.policy(rules.PolicyInboundPfx, "log", &proto.Rule{Action: "log", Protocol: protocol("tcp")}, allowTCP(80))
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)}}, n.openProfile())
	n.apply()
	out := n.send(toWeb(4))
	if out.Verdict != "accept" || len(out.Logged) != 1 || out.Logged[0] != "audit: " {
		t.Errorf("%s, logged %q; want accept and \"audit: \"", out.Verdict, out.Logged)
	}
}

func TestProblemsNameTheSets(t *testing.T) {
	_, problems := verdict(t, &proto.Rule{SrcIpSetIds: []string{"a", "far"}, NotDstIpSetIds: []string{"b"}}, toWeb(4), usualSets)
	if len(problems) == 0 || strings.Join(problems[0].Sets, ",") != "a,b" {
		t.Errorf("%v, want a problem with sets a and b", problems)
	}
}
