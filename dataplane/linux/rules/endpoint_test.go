package rules_test

import (
	"fmt"
	"net/netip"
	"reflect"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

func tier(name string, policies ...string) rules.Tier {
	return rules.Tier{Name: name, Policies: policies}
}

func TestWorkloadPolicies(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{})
		open := n.openProfile()
		web := n.policy(rules.PolicyInboundPfx, "web", allowTCP(80))
		n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("default", web)}, Profiles: open.Profiles}, open)
		n.workload("calidb", dbAddr, rules.Direction{}, open)
		n.apply()

		far, webIP, dbIP := farAddr[f], webAddr[f], dbAddr[f]
		n.expect("allowed port", tcp("eth0", "caliweb", far, webIP, 80), "accept")
		n.expect("other port: the end of a tier drops, profiles do not count", tcp("eth0", "caliweb", far, webIP, 81), "drop")
		answer := tcp("caliweb", "eth0", webIP, far, 40000)
		answer.CT = table.CTEstablished
		n.expect("answer", answer, "accept")
		n.expect("out by profile", tcp("caliweb", "eth0", webIP, far, 443), "accept")
		n.expect("no policy, no profile: default deny", tcp("eth0", "calidb", far, dbIP, 80), "drop")
		n.expect("workload to workload: both policies", tcp("calidb", "caliweb", dbIP, webIP, 80), "accept")
		n.expect("workload to workload: receiver's policy", tcp("calidb", "caliweb", dbIP, webIP, 81), "drop")
		n.expect("workload to workload: receiver without policy", tcp("caliweb", "calidb", webIP, dbIP, 80), "drop")
		invalid := tcp("eth0", "caliweb", far, webIP, 80)
		invalid.CT = table.CTInvalid
		n.expect("invalid", invalid, "drop")
		n.expect("unknown workload sends", tcp("calinew", "eth0", netip.MustParseAddr("10.9.9.9"), farAddr[4], 80), "drop")
		n.expect("unknown workload receives", tcp("eth0", "calinew", far, dbIP, 80), "drop")
		n.expect("unknown workload to the node", tcp("calinew", "", dbIP, nodeAddr[f], 80), "drop")
		n.expect("node to workload", tcp("", "calidb", nodeAddr[f], dbIP, 80), "pass")
		n.expect("not ours", tcp("eth0", "eth1", far, peerAddr[f], 80), "pass")
	}
}

func TestAdminDown(t *testing.T) {
	n := newNode(t, rules.Config{})
	for _, f := range families {
		chains := n.r.WorkloadChains(f, rules.Workload{Iface: "caliweb", Sources: []netip.Prefix{one(webAddr[f])},
			To: n.openProfile(), From: n.openProfile()})
		n.fakes().SetChains(f, table.Filter, chains...)
	}
	n.workloads = []string{"caliweb"}
	n.dispatch()
	n.apply()
	p := tcp("caliweb", "eth0", webAddr[4], farAddr[4], 80)
	p.CT = table.CTEstablished
	n.expect("from a workload that is down", p, "drop")
	n.expect("to a workload that is down", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 80), "drop")
}

func TestSpoofedSources(t *testing.T) {
	for _, f := range families {
		n := newNode(t, rules.Config{EndpointToHostAction: "ACCEPT"})
		n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
		n.workload("calidb", dbAddr, n.openProfile(), n.openProfile())
		n.apply()
		forged := tcp("caliweb", "eth0", dbAddr[f], farAddr[f], 80)
		n.expect("another workload's address", forged, "drop")
		forged.CT = table.CTEstablished
		n.expect("in another workload's connection", forged, "drop")
		n.expect("to the node", tcp("caliweb", "", dbAddr[f], nodeAddr[f], 80), "drop")
	}
	n := newNode(t, rules.Config{})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.apply()
	spoofed := tcp("caliweb", "eth0", webAddr[6], farAddr[6], 80)
	spoofed.Spoofed = true
	n.expect("not routed back", spoofed, "drop")
	n.expect("the node's loopback", tcp("caliweb", "", webAddr[4], netip.MustParseAddr("127.0.0.1"), 80), "drop")
	for _, kind := range []uint8{130, 131, 132, 133, 135, 136} {
		for _, src := range []string{"::", "fe80::1", webAddr[6].String()} {
			nd := rulestest.Packet{In: "caliweb", Src: netip.MustParseAddr(src), Dst: netip.MustParseAddr("ff02::1"), Proto: 58,
				ICMPType: kind}
			want := "accept"
			if src == "fe80::1" && (kind == 133 || kind == 135) { // the kernel would store each source
				want = "drop"
			}
			n.expect("neighbour discovery", nd, want)
		}
	}
	n.expect("a link-local source", rulestest.Packet{In: "caliweb", Src: netip.MustParseAddr("fe80::1"), Dst: nodeAddr[6], Proto: 58,
		ICMPType: 128}, "drop")
	n.expect("redirects are not neighbour discovery", rulestest.Packet{In: "caliweb", Src: webAddr[6], Dst: nodeAddr[6],
		Proto: 58, ICMPType: 137}, "drop")
}

func TestTiers(t *testing.T) {
	n := newNode(t, rules.Config{})
	first := n.policy(rules.PolicyInboundPfx, "first", allowTCP(1), &proto.Rule{Action: "next-tier",
		Protocol: protocol("tcp"), DstPorts: ports(2, 3, 4)},
		&proto.Rule{Action: "deny", Protocol: protocol("tcp"), DstPorts: ports(5)})
	skipped := n.policy(rules.PolicyInboundPfx, "skipped", allowTCP(2), allowTCP(4), allowTCP(6))
	second := n.policy(rules.PolicyInboundPfx, "second", allowTCP(2), &proto.Rule{Action: "pass", Protocol: protocol("tcp"),
		DstPorts: ports(3)})
	profile := n.policy(rules.ProfileInboundPfx, "profile", allowTCP(3), allowTCP(7), allowTCP(5))
	n.workload("caliweb", webAddr, rules.Direction{
		Tiers:    []rules.Tier{tier("one", first, skipped), tier("empty"), tier("two", second)},
		Profiles: []string{profile}}, n.openProfile())
	n.apply()
	want := map[uint16]string{
		1: "accept", // by the first tier
		2: "accept", // passed by the first tier, allowed by the second
		3: "accept", // passed by both, allowed by the profile
		4: "drop",   // passed by the first policy, so not checked by the next one; end of the second tier
		5: "drop",   // denied
		6: "accept", // allowed by the second policy of the first tier
		7: "drop",   // end of the first tier
	}
	for port, verdict := range want {
		n.expect("tiers", tcp("eth0", "caliweb", farAddr[4], webAddr[4], port), verdict)
	}
}

// TestManyPoliciesOfATier: the decision of a policy is final for all policies after it, at any position in the tier.
func TestManyPoliciesOfATier(t *testing.T) {
	n := newNode(t, rules.Config{})
	const policies = 40
	first := rules.Tier{Name: "one"}
	rule := func(action string, port int) *proto.Rule {
		return &proto.Rule{Action: action, Protocol: protocol("tcp"), DstPorts: ports(int32(port))}
	}
	for i := range policies { // each allows a port and passes one; the next denies both, and the next tier denies allowed ones
		list := []*proto.Rule{rule("allow", 1000+i), rule("pass", 2000+i), rule("deny", 999+i), rule("deny", 1999+i)}
		first.Policies = append(first.Policies, n.policy(rules.PolicyInboundPfx, fmt.Sprint("p", i), list...))
	}
	var second []*proto.Rule
	for i := range policies {
		second = append(second, rule("deny", 1000+i), rule("allow", 2000+i))
	}
	last := tier("two", n.policy(rules.PolicyInboundPfx, "second", second...))
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{first, last}}, n.openProfile())
	n.apply()
	for i := range uint16(policies) {
		n.expect("allowed", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 1000+i), "accept")
		n.expect("passed, and allowed by the next tier", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 2000+i), "accept")
	}
	n.expect("in no policy", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 3000), "drop")
}

func TestTierThatPassesAtItsEnd(t *testing.T) {
	n := newNode(t, rules.Config{})
	first := n.policy(rules.PolicyInboundPfx, "first", &proto.Rule{Action: "deny", Protocol: protocol("tcp"), DstPorts: ports(5)})
	one := tier("one", first)
	one.PassAtEnd = true
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{one}, Profiles: n.openProfile().Profiles}, n.openProfile())
	n.apply()
	n.expect("denied", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 5), "drop")
	n.expect("undecided", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 6), "accept")
}

func TestWorkloadToHost(t *testing.T) {
	for action, verdict := range map[string]string{"DROP": "drop", "ACCEPT": "accept", "RETURN": "pass"} {
		n := newNode(t, rules.Config{EndpointToHostAction: action})
		closed := n.policy(rules.PolicyOutboundPfx, "closed", allowTCP(80))
		n.workload("caliweb", webAddr, n.openProfile(), rules.Direction{Tiers: []rules.Tier{tier("t", closed)}})
		n.apply()
		n.expect(action, tcp("caliweb", "", webAddr[4], nodeAddr[4], 80), verdict)
		n.expect(action+" is after policy", tcp("caliweb", "", webAddr[4], nodeAddr[4], 81), "drop")
		answer := tcp("caliweb", "", webAddr[4], nodeAddr[4], 40000)
		answer.CT = table.CTEstablished
		n.expect("answers to the node", answer, "accept")
	}
}

func TestAllowActionReturn(t *testing.T) {
	n := newNode(t, rules.Config{IptablesFilterAllowAction: "RETURN", IptablesMangleAllowAction: "RETURN"})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.workload("calidb", dbAddr, rules.Direction{}, n.openProfile())
	n.apply()
	n.expect("left to the rules after ours", tcp("eth0", "caliweb", farAddr[4], webAddr[4], 80), "pass")
	p := tcp("eth0", "caliweb", farAddr[4], webAddr[4], 80)
	p.CT = table.CTEstablished
	n.expect("known connections as well", p, "pass")
	n.expect("a drop stays a drop", tcp("caliweb", "calidb", webAddr[4], dbAddr[4], 80), "drop")
}

func TestDisableConntrackInvalid(t *testing.T) {
	for disabled, want := range map[bool]string{false: "drop", true: "accept"} {
		n := newNode(t, rules.Config{DisableConntrackInvalid: disabled})
		n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
		n.apply()
		p := tcp("eth0", "caliweb", farAddr[4], webAddr[4], 80)
		p.CT = table.CTInvalid
		n.expect("invalid", p, want)
	}
}

func TestSeveralWorkloadPrefixes(t *testing.T) {
	n := newNode(t, rules.Config{WorkloadIfacePrefixes: []string{"tap", "cali"}})
	closed := n.policy(rules.PolicyOutboundPfx, "closed", &proto.Rule{Action: "deny"})
	n.workload("tapweb", webAddr, n.openProfile(), n.openProfile())
	n.workload("calidb", dbAddr, n.openProfile(), rules.Direction{Tiers: []rules.Tier{tier("t", closed)}})
	n.apply()
	n.expect("sender's policy holds between prefixes", tcp("calidb", "tapweb", dbAddr[4], webAddr[4], 80), "drop")
	n.expect("tap to cali", tcp("tapweb", "calidb", webAddr[4], dbAddr[4], 80), "accept")
	n.expect("unknown tap", tcp("tapnew", "eth0", webAddr[4], farAddr[4], 80), "drop")
}

func TestTunnelledPacketsOfWorkloads(t *testing.T) {
	n := newNode(t, rules.Config{VXLANEnabled: true, IPIPEnabled: true})
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.apply()
	n.expect("VXLAN", rulestest.Packet{In: "caliweb", Out: "eth0", Src: webAddr[4], Dst: peerAddr[4], Proto: 17,
		DstPort: 4789}, "drop")
	n.expect("IPIP", rulestest.Packet{In: "caliweb", Out: "eth0", Src: webAddr[4], Dst: peerAddr[4], Proto: 4}, "drop")
	n.expect("other UDP", rulestest.Packet{In: "caliweb", Out: "eth0", Src: webAddr[4], Dst: peerAddr[4], Proto: 17,
		DstPort: 53}, "accept")
	n.expect("VXLAN to this node by way of a service", rulestest.Packet{In: "caliweb", Src: webAddr[4], Dst: nodeAddr[4],
		Proto: 17, DstPort: 4789, DNATed: true}, "drop")
}

// TestWorkloadsNeverSend: packets that only nodes, routers and DHCP servers send are dropped before any policy, from any source.
func TestWorkloadsNeverSend(t *testing.T) {
	n := newNode(t, rules.Config{VXLANEnabled: true, EndpointToHostAction: "ACCEPT"})
	for _, f := range families {
		n.fakes().ReplaceSet(f, table.Set{ID: rules.SetAllHosts, Type: table.SetNet}, []table.Member{{Net: one(peerAddr[f])}})
	}
	n.workload("caliweb", webAddr, n.openProfile(), n.openProfile())
	n.apply()
	from := func(f table.Family, what string, change func(*rulestest.Packet), want string) {
		t.Helper()
		for _, out := range []string{"", "eth0"} {
			p := rulestest.Packet{In: "caliweb", Out: out, Src: webAddr[f], Dst: nodeAddr[f], Proto: 17, SrcPort: 40000, DstPort: 53}
			change(&p)
			n.expect(what, p, want)
		}
	}
	for _, f := range families {
		from(f, "what it may send", func(*rulestest.Packet) {}, "accept")
		from(f, "VXLAN as another node", func(p *rulestest.Packet) { p.Src, p.DstPort = peerAddr[f], 4789 }, "drop")
		from(f, "no reverse path", func(p *rulestest.Packet) { p.Spoofed = true }, "drop")
	}
	from(4, "IPIP as another node", func(p *rulestest.Packet) { p.Src, p.Proto = peerAddr[4], 4 }, "drop")
	from(4, "DHCP server", func(p *rulestest.Packet) { p.SrcPort, p.DstPort = 67, 68 }, "drop")
	from(4, "DHCP client", func(p *rulestest.Packet) { p.SrcPort, p.DstPort = 68, 67 }, "accept")
	from(6, "DHCPv6 server", func(p *rulestest.Packet) { p.SrcPort, p.DstPort = 547, 546 }, "drop")
	for kind, want := range map[uint8]string{134: "drop", 137: "drop", 133: "accept", 135: "accept", 128: "accept"} {
		from(6, fmt.Sprintf("ICMPv6 type %d", kind), func(p *rulestest.Packet) { p.Proto, p.ICMPType = 58, kind }, want)
	}
}

// TestFamilyWithoutAddress: a workload without an address of a family sends nothing in it, and adding a policy changes none of those rules.
func TestFamilyWithoutAddress(t *testing.T) {
	r, err := rules.NewRenderer(rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	from := func(f table.Family, policies ...string) []table.Rule {
		ep := rules.Workload{Iface: "caliweb", Up: true, Sources: []netip.Prefix{netip.PrefixFrom(webAddr[table.IPv4], 32)},
			From: rules.Direction{Tiers: []rules.Tier{{Name: "default", Policies: policies}}}}
		return r.WorkloadChains(f, ep)[1].Rules
	}
	if rules := from(table.IPv4, "one"); len(rules) < 3 {
		t.Errorf("IPv4: %+v", rules)
	}
	want := from(table.IPv6)
	if len(want) != 1 || want[0].Actions[0].Verb != table.Drop || len(want[0].Match.NotSrcNets) > 0 {
		t.Errorf("IPv6: %+v", want)
	}
	if got := from(table.IPv6, "one", "two"); !reflect.DeepEqual(got, want) {
		t.Errorf("IPv6, under policy: %+v", got)
	}
}

// TestErrorsOfWorkloads: a workload's ICMP error passes if it refers to a connection of the workload, as client or as server. Errors from
// elsewhere pass as before: routers send errors about connections of others.
func TestErrorsOfWorkloads(t *testing.T) {
	for _, noInvalid := range []bool{false, true} {
		for _, f := range families {
			n := newNode(t, rules.Config{DisableConntrackInvalid: noInvalid})
			open := n.openProfile()
			n.workload("caliweb", webAddr, open, open)
			n.workload("calidb", dbAddr, open, open)
			n.apply()
			far, webIP, dbIP := farAddr[f], webAddr[f], dbAddr[f]
			for _, test := range []struct {
				why              string
				in, out          string
				src, dst         netip.Addr
				origSrc, replSrc netip.Addr
				want             string
			}{
				{"of the client", "caliweb", "calidb", webIP, dbIP, webIP, dbIP, "accept"},
				{"of the server, also behind a service", "caliweb", "calidb", webIP, dbIP, dbIP, webIP, "accept"},
				{"of the client of a masqueraded connection", "caliweb", "eth0", webIP, far, webIP, far, "accept"},
				{"of a workload that has no part in it", "caliweb", "calidb", webIP, dbIP, dbIP, far, "drop"},
				{"of the same to the other side", "caliweb", "eth0", webIP, far, far, dbIP, "drop"},
				{"of the same to the node", "caliweb", "", webIP, nodeAddr[f], nodeAddr[f], dbIP, "drop"},
				{"of a router", "eth0", "calidb", peerAddr[f], dbIP, dbIP, far, "accept"},
			} {
				p := rulestest.Packet{In: test.in, Out: test.out, Src: test.src, Dst: test.dst, Proto: 1, ICMPType: 3, CT: table.CTRelated,
					OrigSrc: test.origSrc, ReplSrc: test.replSrc}
				n.expect("an error "+test.why, p, test.want)
			}
		}
	}
}
