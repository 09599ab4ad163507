package vppfake_test

import (
	"strings"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

const (
	networks = contiv.CONTIV_SET_API_NETWORKS
	portSet  = contiv.CONTIV_SET_API_PORTS
	polAllow = contiv.CONTIV_RULE_API_ALLOW
	polDeny  = contiv.CONTIV_RULE_API_DENY
	polPass  = contiv.CONTIV_RULE_API_PASS
)

func (s *script) set(add bool, id uint64, kind contiv.ContivSetKind) {
	s.do(&contiv.ContivSetAddDel{IsAdd: add, ID: id, Name: "pods of default", Kind: kind})
}

// member adds or removes a member of a set of networks or, with a protocol and a port, of a set of ports.
func (s *script) member(add bool, set uint64, p string, proto uint8, port uint16) {
	if !strings.Contains(p, "/") {
		p += sameFamily(p, "/32", "/128")
	}
	s.do(&contiv.ContivSetMemberAddDel{IsAdd: add, SetID: set, Prefix: prefix(p), Protocol: proto, Port: port})
}

func (s *script) policy(id uint64, ingress, egress []contiv.ContivRule) {
	s.do(&contiv.ContivPolicySet{ID: id, Name: "default/web", NIngress: uint32(len(ingress)), Rules: append(ingress[:len(ingress):len(ingress)], egress...)})
}

// police sets the policy of an endpoint; all tiers of ingress come before those of egress.
func (s *script) police(i index, ingress, egress []contiv.ContivTierItem) {
	s.do(&contiv.ContivEndpointPolicySet{
		SwIfIndex: i, Name: "default/pod", Ingress: polAllow, Egress: polAllow, NIngress: uint32(len(ingress)),
		Items: append(ingress[:len(ingress):len(ingress)], egress...),
	})
}

// tier returns a tier of policies that ends with an action.
func tier(end contiv.ContivRuleAction, policies ...uint64) (items []contiv.ContivTierItem) {
	for _, id := range policies {
		items = append(items, contiv.ContivTierItem{PolicyID: id})
	}
	return append(items, contiv.ContivTierItem{Action: end})
}

// rule returns a rule for one port of a protocol; port 0: for all ports.
func rule(action contiv.ContivRuleAction, source, dest uint64, proto uint8, ports ...uint16) contiv.ContivRule {
	r := contiv.ContivRule{Action: action, Source: source, Destination: dest, Protocol: proto, NPorts: uint8(len(ports))}
	for i, p := range ports {
		r.Ports[i] = contiv.ContivPortRange{First: p, Last: p}
	}
	return r
}

func contivSets(s *script) {
	s.member(true, 1, "10.1.0.2", 0, 0)
	s.set(true, 1, networks)
	s.set(true, 1, networks)
	s.set(true, 1<<63, portSet)
	for _, p := range []string{"10.1.0.2", "10.1.0.2", "10.0.0.0/8", "0.0.0.0/0", "fd00::2", "fd00::/16"} {
		s.member(true, 1, p, 0, 0)
	}
	s.member(true, 1<<63, "10.1.0.2", 6, 80)
	s.member(true, 1<<63, "10.1.0.2", 17, 80)
	s.member(true, 1<<63, "fd00::2", 132, 65535)
	s.dump(&contiv.ContivSetDump{})
	s.dump(&contiv.ContivSetMemberDump{})
	s.dump(&contiv.ContivSetMemberDump{SetID: 1 << 63})
	s.dump(&contiv.ContivSetMemberDump{SetID: 5})
	s.note("what is refused")
	s.set(true, 0, networks)
	s.set(true, 2, 0)
	s.set(true, 2, 3)
	s.set(true, 1, portSet)
	s.set(false, 2, networks)
	s.member(true, 0, "10.1.0.2", 0, 0)
	s.member(true, 1, "10.1.0.2/24", 0, 0)
	s.member(true, 1, "10.1.0.2", 6, 80)
	s.member(true, 1, "10.1.0.2", 0, 80)
	s.member(true, 1<<63, "10.1.0.2", 6, 0)
	s.member(true, 1<<63, "10.1.0.2", 0, 80)
	s.member(true, 1<<63, "10.1.0.0/24", 6, 80)
	s.member(false, 1, "10.1.0.3", 0, 0)
	s.member(false, 2, "10.1.0.3", 0, 0)
	s.note("gone")
	s.member(false, 1, "10.1.0.2", 0, 0)
	s.member(false, 1, "10.1.0.2", 0, 0)
	s.set(false, 1<<63, 0)
	s.set(false, 1<<63, 0)
	s.dump(&contiv.ContivSetDump{})
	s.dump(&contiv.ContivSetMemberDump{})
}

func contivPolicies(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.do(endpoint(i, rolePod, "10.1.0.2", "fd00::2"))
	s.do(endpoint(j, roleUplink))
	icmp := contiv.ContivRule{Action: polPass, Family: 4, Protocol: 1, Flags: 3, ICMPType: 8, ICMPCode: 1}
	ranges := rule(polAllow, 1, 2, 6, 1, 2, 3, 4, 5, 6, 7, 8)
	ranges.Ports[7].Last, ranges.PortSet = 65535, 1<<63
	s.policy(1, []contiv.ContivRule{rule(polDeny, 0, 0, 0), icmp}, []contiv.ContivRule{ranges})
	s.policy(1<<63, nil, nil)
	s.dump(&contiv.ContivPolicyDump{})
	s.policy(1, nil, []contiv.ContivRule{icmp})
	s.dump(&contiv.ContivPolicyDump{})
	s.note("what is refused")
	s.policy(0, nil, nil)
	bad := func(change func(*contiv.ContivRule)) {
		r := rule(polAllow, 0, 0, 6, 80)
		change(&r)
		s.policy(2, []contiv.ContivRule{r}, nil)
	}
	bad(func(r *contiv.ContivRule) { r.Action = 0 })
	bad(func(r *contiv.ContivRule) { r.Action = 4 })
	bad(func(r *contiv.ContivRule) { r.Family = 5 })
	bad(func(r *contiv.ContivRule) { r.NPorts = 9 })
	bad(func(r *contiv.ContivRule) { r.Protocol = 0 })
	bad(func(r *contiv.ContivRule) { r.Protocol = 47 })
	bad(func(r *contiv.ContivRule) { r.Ports[0].First = 81 })
	bad(func(r *contiv.ContivRule) { r.Flags = 1 })
	bad(func(r *contiv.ContivRule) { r.Protocol, r.NPorts, r.Flags = 1, 0, 2 })
	bad(func(r *contiv.ContivRule) { r.Protocol, r.NPorts, r.Flags = 1, 0, 4 })
	s.do(&contiv.ContivPolicySet{ID: 2, Name: "x", NIngress: 1})
	s.do(&contiv.ContivPolicyDel{ID: 2})
	s.dump(&contiv.ContivPolicyDump{})
	s.note("of endpoints")
	s.police(i, tier(polPass, 1, 1<<63), tier(polDeny, 1))
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.do(&contiv.ContivPolicyDel{ID: 1})
	s.do(&contiv.ContivPolicyDel{ID: 1})
	s.dump(&contiv.ContivPolicyDump{})
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.police(i, tier(polDeny, 1), nil)
	s.policy(1, []contiv.ContivRule{icmp}, nil)
	s.dump(&contiv.ContivPolicyDump{})
	s.note("what is refused")
	s.police(j, nil, nil)
	s.police(99, nil, nil)
	s.police(i, tier(polDeny, 3), nil)
	s.police(i, nil, tier(polDeny, 3))
	s.police(i, tier(0, 1), nil)
	s.police(i, tier(4, 1), nil)
	s.police(i, tier(polDeny, 1)[:1], nil)
	s.police(i, []contiv.ContivTierItem{{PolicyID: 1, Action: polDeny}, {Action: polDeny}}, nil)
	for _, action := range []contiv.ContivRuleAction{0, polPass, 4} {
		s.do(&contiv.ContivEndpointPolicySet{SwIfIndex: i, Name: "x", Ingress: action, Egress: polAllow})
		s.do(&contiv.ContivEndpointPolicySet{SwIfIndex: i, Name: "x", Ingress: polDeny, Egress: action})
	}
	s.do(&contiv.ContivEndpointPolicySet{SwIfIndex: i, Name: "x", Ingress: polDeny, Egress: polDeny, NIngress: 1})
	s.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: 99})
	s.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: j})
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.note("closed; another address keeps the policy; gone with the endpoint")
	s.do(&contiv.ContivEndpointPolicySet{SwIfIndex: i, Name: "default/closed", Ingress: polDeny, Egress: polDeny})
	s.do(endpoint(i, rolePod, "10.1.0.3"))
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.do(&contiv.ContivPolicyDel{ID: 1})
	s.do(&contiv.ContivPolicyDel{ID: 1})
	s.do(&contiv.ContivEndpointDel{SwIfIndex: i})
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.do(endpoint(i, rolePod))
	s.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: i})
	s.do(&contiv.ContivEndpointPolicySet{SwIfIndex: i, Name: "default/closed", Ingress: polDeny, Egress: polAllow})
	s.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: i})
	s.dump(&contiv.ContivEndpointPolicyDump{})
	s.dump(&contiv.ContivDeniedGet{})
}

// policedNode is like contivNode, with the host's own addresses configured. Set 1 is pod A, in both families.
func policedNode(ps *packetScript) {
	contivNode(ps)
	ps.do(endpoint(index(hostPort+1), roleHost, at4(hostPort), at6(hostPort)))
	ps.set(true, 1, networks)
	ps.member(true, 1, at4(podA), 0, 0)
	ps.member(true, 1, at6(podA), 0, 0)
	ps.out.Reset()
}

// bothFamilies runs a scenario for each family.
func (ps *packetScript) bothFamilies(story func(a, b, host, far string)) {
	story(at4(podA), at4(podB), at4(hostPort), "8.8.8.8")
	story(at6(podA), at6(podB), at6(hostPort), "2001:db8::8")
}

// verdicts records the counters.
func (ps *packetScript) verdicts() {
	ps.connections()
	ps.stats()
	ps.dump(&contiv.ContivPolicyDump{})
	ps.dump(&contiv.ContivEndpointPolicyDump{})
}

// denied records the newest denied flows; only 8 flows per tenth of a second are kept.
func (ps *packetScript) denied() {
	for _, m := range ps.collect(&contiv.ContivDeniedGet{}) {
		if d, ok := m.(*contiv.ContivDeniedDetails); ok {
			d.Age = 0
			ps.line("%s", text(d))
		}
	}
}

// contivPolicy tests the ingress policy of pod B.
func contivPolicy(ps *packetScript) {
	policedNode(ps)
	ps.policy(1, []contiv.ContivRule{rule(polAllow, 1, 0, 6, 80, 81), rule(polDeny, 0, 0, 17, 54), rule(polAllow, 0, 0, 17)}, nil)
	ps.police(podB+1, tier(polDeny, 1), nil)
	ps.bothFamilies(func(a, b, host, far string) {
		ps.note("allowed, there and back")
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(b, 80))
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 80), end2(a, 40000), syn, ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(b, 80), ack)
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(far, 40000), end2(b, 53))
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 53), end2(far, 40000))
		ps.note("another port, another peer, another protocol")
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(b, 82))
		ps.l4(uplinkPort, vppfake.ProtoTCP, end2(far, 40000), end2(b, 80))
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 40000), end2(b, 54))
		ps.note("what it starts has its answers; a SYN is none")
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 40000), end2(a, 90))
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 90), end2(b, 40000), syn, ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 90), end2(b, 40000))
		ps.note("the node itself, not what it forwards, nor its address from elsewhere")
		ps.l4(hostPort, vppfake.ProtoTCP, end2(host, 40000), end2(b, 9000))
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 9000), end2(host, 40000), syn, ack)
		ps.l4(hostPort, vppfake.ProtoTCP, end2(far, 40001), end2(b, 9000))
		ps.l4(uplinkPort, vppfake.ProtoTCP, end2(host, 40001), end2(b, 9000))
		ps.note("a tunnel port is no way in")
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(far, 40001), end2(b, 8472))
	})
	ps.verdicts()
}

// contivPolicyServices tests that services are evaluated by their backends, and clients by their own addresses.
func contivPolicyServices(ps *packetScript) {
	policedNode(ps)
	masq := to(1)
	masq.Flags = contiv.CONTIV_TARGET_API_MASQ
	masq6 := to(11)
	masq6.Flags = contiv.CONTIV_TARGET_API_MASQ
	ps.front("10.96.0.1:80", 6, masq, masq)
	ps.front("[fd00:96::1]:80", 6, masq6, masq6)
	ps.front("10.96.0.1:81", 6, to(2), to(2))
	ps.front("[fd00:96::1]:81", 6, to(12), to(12))
	ps.set(true, 2, portSet)
	ps.member(true, 2, at4(podB), 6, 8080)
	ps.member(true, 2, at6(podB), 6, 8080)
	named := rule(polAllow, 0, 0, 6)
	named.PortSet = 2
	ps.policy(1, []contiv.ContivRule{rule(polAllow, 1, 0, 6, 8080)}, nil)
	ps.policy(2, nil, []contiv.ContivRule{named})
	ps.police(podB+1, tier(polDeny, 1), nil)
	ps.police(podA+1, tier(polDeny, 1), tier(polDeny, 2))
	ps.bothFamilies(func(a, b, host, far string) {
		vip, source := sameFamily(a, "10.96.0.1", "fd00:96::1"), sameFamily(a, "192.0.2.254", "fd00:2::254")
		ps.note("pod A, and the backend answers the masquerade address")
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(vip, 80))
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 8080), end2(source, 40000), syn, ack)
		ps.note("the node; the outside")
		ps.l4(hostPort, vppfake.ProtoTCP, end2(host, 40002), end2(vip, 80))
		ps.l4(uplinkPort, vppfake.ProtoTCP, end2(far, 40000), end2(vip, 80))
		ps.note("hairpin of a pod that may reach nothing else")
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(vip, 81))
		ps.note("the port by its name, of another pod, of another number")
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40001), end2(b, 8080))
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40001), end2(b, 8081))
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40001), end2(far, 8080))
		ps.note("the name leads elsewhere: the connection is cut, and allowed again")
		ps.member(false, 2, b, 6, 8080)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(vip, 80), ack)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 8080), end2(source, 40000), ack)
		ps.connections()
		ps.member(true, 2, b, 6, 8080)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(vip, 80), ack)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 8080), end2(source, 40000), ack)
		if addr(a).Is4() {
			ps.denied()
		}
	})
	ps.verdicts()
}

// contivPolicyChanges tests tiers, unknown sets, the first policy of open connections, and closed endpoints.
func contivPolicyChanges(ps *packetScript) {
	policedNode(ps)
	ps.policy(1, []contiv.ContivRule{rule(polPass, 0, 0, 6, 80), rule(polDeny, 0, 0, 6)}, nil)
	ps.policy(2, []contiv.ContivRule{rule(polAllow, 0, 0, 0)}, nil)
	ps.policy(3, []contiv.ContivRule{rule(polDeny, 7, 0, 6, 81), rule(polAllow, 8, 0, 6, 80), rule(polPass, 9, 0, 6, 82), rule(polAllow, 1, 0, 6)}, nil)
	try := func(what string, port int, items []contiv.ContivTierItem) {
		ps.note("%s", what)
		ps.police(podB+1, items, nil)
		for n, dport := range []uint16{80, 81, 82} {
			ps.l4(podA, vppfake.ProtoTCP, end2(at4(podA), uint16(port+n)), end2(at4(podB), dport))
			ps.l4(podA, vppfake.ProtoTCP, end2(at6(podA), uint16(port+n)), end2(at6(podB), dport))
		}
		ps.l4(podA, vppfake.ProtoUDP, end2(at4(podA), uint16(port)), end2(at4(podB), 80))
	}
	concat := func(tiers ...[]contiv.ContivTierItem) (all []contiv.ContivTierItem) {
		for _, t := range tiers {
			all = append(all, t...)
		}
		return all
	}
	try("pass to the end", 40000, tier(polPass, 1))
	try("pass to a tier that allows", 40100, concat(tier(polDeny, 1), tier(polDeny, 2)))
	try("pass over the rest of a tier", 40200, concat(tier(polPass, 1, 2), tier(polDeny)))
	try("sets that are not known", 40300, tier(polDeny, 3))
	ps.set(true, 7, networks)
	ps.set(true, 9, networks)
	try("two are known", 40400, tier(polDeny, 3))
	ps.set(false, 9, 0)
	ps.set(true, 9, portSet)
	try("one is of another kind", 40500, tier(polDeny, 3))
	ps.note("no policy any more, and connections without")
	ps.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: podB + 1})
	ps.policy(4, []contiv.ContivRule{rule(polAllow, 1, 0, 6, 80)}, nil)
	ps.bothFamilies(func(a, b, host, far string) {
		ps.do(&contiv.ContivEndpointPolicyDel{SwIfIndex: podB + 1})
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41000), end2(b, 80))
		ps.note("the first policy: the server's packet comes first, on either kind of connection")
		ps.police(podB+1, tier(polDeny, 4), nil)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 80), end2(a, 41000), ack)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 81), end2(a, 41001), ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41000), end2(b, 80), ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41001), end2(b, 81), ack)
		ps.note("the server may open nothing on it; ports that say nothing")
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 80), end2(a, 41000))
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 2000), end2(b, 80), ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 2000), end2(b, 82), ack)
		ps.note("a far client whose server speaks first")
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 80), end2(far, 41000), ack)
		ps.note("cut by a member, there and back")
		ps.member(false, 1, a, 0, 0)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41000), end2(b, 80), ack)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 80), end2(a, 41000), ack)
		ps.member(true, 1, a, 0, 0)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41000), end2(b, 80), ack)
		ps.note("closed: the node only")
		ps.do(&contiv.ContivEndpointPolicySet{SwIfIndex: podB + 1, Name: "closed", Ingress: polDeny, Egress: polDeny})
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 41000), end2(b, 80), ack)
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 1000), end2(a, 2000))
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 1000), end2(far, 2000))
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 1000), end2(host, 2000))
		ps.l4(hostPort, vppfake.ProtoTCP, end2(host, 40000), end2(b, 9000))
	})
	ps.connections()
	ps.stats()
}

// contivPolicyICMP tests echoes, and errors, which are evaluated by the packet inside.
func contivPolicyICMP(ps *packetScript) {
	policedNode(ps)
	echo := contiv.ContivRule{Action: polAllow, Protocol: 1, Source: 1, Flags: contiv.CONTIV_RULE_API_ICMP_TYPE, ICMPType: 8}
	echo6 := echo
	echo6.Protocol, echo6.ICMPType = 58, 128
	ps.policy(1, []contiv.ContivRule{echo, echo6, rule(polAllow, 1, 0, 17, 53)}, nil)
	ps.policy(2, nil, nil)
	ps.police(podB+1, tier(polDeny, 1), nil)
	for _, v6 := range []bool{false, true} {
		a, b, far, proto := at4(podA), at4(podB), "8.8.8.8", uint8(vppfake.ProtoICMP)
		if v6 {
			a, b, far, proto = at6(podA), at6(podB), "2001:db8::8", vppfake.ProtoICMPv6
		}
		ping := func(port int, src, dst string, id uint16, reply bool) {
			p := from(port, proto, src, dst)
			p.Echo, p.EchoReply = id, reply
			ps.send(port, p)
		}
		ps.note("echo there and back; replies without a request; from outside")
		ping(podA, a, b, 7, false)
		ping(podB, b, a, 7, true)
		ping(podA, a, b, 8, true)
		ping(uplinkPort, far, b, 7, false)
		ps.note("the same number the other way, allowed and not")
		ping(podB, b, a, 7, false)
		ping(podA, a, b, 7, true)
		ps.police(podB+1, tier(polDeny, 1), tier(polDeny, 2))
		ping(podB, b, a, 7, false)
		ping(podB, b, a, 7, true)
		ps.police(podB+1, tier(polDeny, 1), nil)
		ps.note("errors about a connection, about none, about one of others")
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 4000), end2(b, 53))
		requested := from(podA, vppfake.ProtoUDP, end2(a, 4000), end2(b, 53))
		ps.fail(podB, b, a, requested)
		ps.fail(podA, a, b, from(podB, vppfake.ProtoUDP, end2(b, 4001), end2(a, 53)))
		ps.l4(uplinkPort, vppfake.ProtoUDP, end2(far, 4002), end2(a, 53))
		ps.fail(podA, a, b, from(uplinkPort, vppfake.ProtoUDP, end2(far, 4002), end2(a, 53)))
		ps.note("an error about a connection that is cut")
		ps.member(false, 1, a, 0, 0)
		ps.fail(podB, b, a, requested)
		ps.member(true, 1, a, 0, 0)
	}
	ps.verdicts()
}

// fail sends an ICMP error about a packet.
func (ps *packetScript) fail(port int, src, dst string, about vppfake.Packet) {
	proto, kind, code := uint8(vppfake.ProtoICMP), uint8(3), uint8(3)
	if addr(src).Is6() {
		proto, kind, code = vppfake.ProtoICMPv6, 1, 4
	}
	p := from(port, proto, src, dst)
	p.Size, about.TTL = 0, 64
	p.Error = &vppfake.ICMPError{Type: kind, Code: code, Inner: about}
	ps.send(port, p)
}
