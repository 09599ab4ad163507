package vppfake_test

import (
	"fmt"

	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func cnatScenarios() []scenario {
	return []scenario{
		{"cnat_translations", cnatTranslations},
		{"cnat_source", cnatSource},
	}
}

func cnatPacketScenarios() []packetScenario {
	return []packetScenario{
		{"cnat_service", cnatServicePackets},
		{"cnat_backends", cnatBackendPackets},
		{"cnat_hairpin", cnatHairpinPackets},
		{"cnat_nodeport", cnatNodePortPackets},
		{"cnat_ip4", cnatPackets4},
	}
}

func cnatEndpoint(a string, port uint16) cnat.CnatEndpoint {
	return cnat.CnatEndpoint{Addr: address(a), SwIfIndex: index(none), IfAf: address(a).Af, Port: port}
}

// cnatTo is a translation to backends at port 8080, with the mark of the agent.
func cnatTo(vip string, port uint16, proto ip_types.IPProto, backends ...string) *cnat.CnatTranslationUpdate {
	unspecified := "::"
	if address(vip).Af == ip_types.ADDRESS_IP4 {
		unspecified = "0.0.0.0"
	}
	q := &cnat.CnatTranslationUpdate{Translation: cnat.CnatTranslation{Vip: cnatEndpoint(vip, port), IPProto: proto, IsRealIP: 1}}
	for _, b := range backends {
		q.Translation.Paths = append(q.Translation.Paths, cnat.CnatEndpointTuple{DstEp: cnatEndpoint(b, 8080),
			SrcEp: cnatEndpoint(unspecified, 0), Flags: 1 << 6})
	}
	return q
}

func sticky(q *cnat.CnatTranslationUpdate) *cnat.CnatTranslationUpdate {
	q.Translation.LbType, q.Translation.FlowHashConfig = cnat.CNAT_LB_TYPE_MAGLEV, ip.IP_API_V2_FLOW_HASH_SRC_IP
	return q
}

func cnatTranslations(s *script) {
	s.dump(&cnat.CnatTranslationDump{})
	s.do(cnatTo("fd00:96::1", 80, tcpProto, "fd00:1::2", "fd00:1::3"))
	s.do(cnatTo("fd00:96::1", 81, tcpProto, "fd00:1::2"))
	s.do(sticky(cnatTo("fd00:96::1", 80, udpProto, "fd00:1::2")))
	s.do(cnatTo("10.96.0.1", 80, tcpProto, "10.1.1.2", "10.1.1.2"))
	s.dump(&cnat.CnatTranslationDump{})
	s.note("in place; how clients are spread does not change")
	s.do(cnatTo("fd00:96::1", 80, tcpProto, "fd00:1::4"))
	s.do(sticky(cnatTo("fd00:96::1", 81, tcpProto, "fd00:1::4")))
	s.dump(&cnat.CnatTranslationDump{})
	s.note("numbers are used again")
	s.do(&cnat.CnatTranslationDel{ID: 0})
	s.do(&cnat.CnatTranslationDel{ID: 2})
	s.do(&cnat.CnatTranslationDel{ID: 2})
	s.do(&cnat.CnatTranslationDel{ID: 99})
	s.do(cnatTo("fd00:96::9", 80, tcpProto, "fd00:1::4"))
	s.do(cnatTo("fd00:96::9", 81, tcpProto, "fd00:1::4"))
	s.do(cnatTo("fd00:96::9", 82, tcpProto, "fd00:1::4"))
	s.dump(&cnat.CnatTranslationDump{})
	s.note("a purge takes translations, too")
	s.do(&cnat.CnatSessionPurge{})
	s.dump(&cnat.CnatTranslationDump{})
}

func cnatSource(s *script) {
	i := s.loopUp()
	s.do(&cnat.CnatGetSnatAddresses{})
	s.do(&cnat.CnatSetSnatAddresses{SnatIP4: addr4("10.0.0.1"), SnatIP6: ip_types.IP6Address(addr("fd00::1").As16()),
		SwIfIndex: index(none)})
	s.do(&cnat.CnatGetSnatAddresses{})
	s.do(&cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_K8S})
	s.do(&cnat.CnatSetSnatPolicy{Policy: 9})
	for table := range cnat.CnatSnatPolicyTable(5) {
		s.do(&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: i, IsAdd: 1, Table: table})
	}
	s.do(&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: 99, IsAdd: 1})
	s.do(&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: i})
	s.do(&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: i})
	s.do(&cnat.CnatSetSnatAddresses{SwIfIndex: index(none)})
	s.do(&cnat.CnatGetSnatAddresses{})
}

func (ps *packetScript) cnatIf(i index, tables ...cnat.CnatSnatPolicyTable) {
	for _, v := range []string{"4", "6"} {
		for arc, name := range map[string]string{"-output": "cnat-output-ip", "-unicast": "cnat-input-ip"} {
			ps.do(&feature.FeatureEnableDisable{SwIfIndex: i, Enable: true, ArcName: "ip" + v + arc, FeatureName: name + v})
		}
	}
	for _, t := range tables {
		ps.do(&cnat.CnatSnatPolicyAddDelIf{SwIfIndex: i, IsAdd: 1, Table: t})
	}
}

// cnatNode is a node: pods fd00:1::2 and ::3 behind pg0 and pg1 in table 1, the uplink pg2 with fd00:16::1/64 in table 0 and a
// machine fd00:16::9 there, the link to the host pg3 with the host fd00:17::2. Pods' addresses of another node are behind the
// machine. The service network is rejected.
func cnatNode(ps *packetScript) {
	ps.table(1, true)
	loop := ps.loopUp()
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: loop, IsIPv6: true, VrfID: 1})
	ps.addr(loop, "fd00:1::1/128")
	for n := index(1); n <= 2; n++ {
		pod := fmt.Sprintf("fd00:1::%d", n+1)
		ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: n, IsIPv6: true, VrfID: 1})
		ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: loop, UnnumberedSwIfIndex: n, IsAdd: true})
		ps.route(true, 1, pod+"/128", via(pod, uint32(n)))
		ps.host(n, pod, int(n))
		ps.cnatIf(n, cnat.CNAT_POLICY_POD)
	}
	ps.route(true, 1, "::/0", fibPath{table: 0, v6: true})
	for n, net := range map[index]string{3: "fd00:16::1/64", 4: "fd00:17::1/64"} {
		ps.addr(n, net)
	}
	ps.host(3, "fd00:16::9", 3)
	ps.host(4, "fd00:17::2", 4)
	ps.cnatIf(3)
	ps.cnatIf(4, cnat.CNAT_POLICY_POD, cnat.CNAT_POLICY_HOST)
	ps.route(true, 0, "fd00:1::/64", fibPath{table: 1, v6: true})
	ps.route(true, 0, "fd00:2::/64", via("fd00:16::9", 3))
	ps.route(true, 0, "::/0", via("fd00:16::9", 3))
	ps.route(true, 0, "100::1/128", fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT, v6: true})
	ps.route(true, 0, "fd00:96::/112", fibPath{nh: "100::1"})
	ps.do(&cnat.CnatSetSnatPolicy{Policy: cnat.CNAT_POLICY_K8S})
	ps.do(&cnat.CnatSetSnatAddresses{SnatIP6: ip_types.IP6Address(addr("fd00:16::1").As16()), SwIfIndex: index(none)})
	ps.out.Reset()
}

func cnatServicePackets(ps *packetScript) {
	cnatNode(ps)
	ps.do(cnatTo("fd00:96::10", 80, tcpProto, "fd00:1::3"))
	ps.do(cnatTo("fd00:96::10", 80, udpProto, "fd00:1::3"))
	ps.note("a pod, and the answer")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.tcp(2, "fd00:1::3", 8080, "fd00:1::2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.udp(2, "fd00:1::3", 8080, "fd00:1::2", 1000)
	ps.note("a packet in the middle of an unknown connection opens one, too")
	ps.tcp(1, "fd00:1::2", 999, "fd00:96::10", 80, vppfake.FlagACK)
	ps.note("another port, another service, past the service, its answer")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:96::10", 81)
	ps.tcp(1, "fd00:1::2", 1000, "fd00:96::11", 80)
	ps.tcp(1, "fd00:1::2", 1001, "fd00:1::3", 8080)
	ps.tcp(2, "fd00:1::3", 8080, "fd00:1::2", 1001, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("the host, and the answer")
	ps.tcp(4, "fd00:17::2", 1000, "fd00:96::10", 80)
	ps.tcp(2, "fd00:1::3", 8080, "fd00:17::2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("a pod goes outside with its own address")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:99::1", 80)
	ps.tcp(4, "fd00:17::2", 1000, "fd00:99::1", 80)
	ps.dump(&cnat.CnatSessionDump{})
}

// cnatBackendPackets: what becomes of sessions when backends come and go.
func cnatBackendPackets(ps *packetScript) {
	cnatNode(ps)
	ps.do(cnatTo("fd00:96::10", 80, udpProto, "fd00:1::3"))
	ps.udp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.note("another backend: a session stays where it is, a new one goes to the new one")
	ps.do(cnatTo("fd00:96::10", 80, udpProto, "fd00:2::5"))
	ps.udp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.udp(1, "fd00:1::2", 1001, "fd00:96::10", 80)
	ps.udp(3, "fd00:2::5", 8080, "fd00:1::2", 1001)
	ps.note("no translation: sessions go on, a new one is rejected")
	ps.do(&cnat.CnatTranslationDel{ID: 0})
	ps.udp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.udp(1, "fd00:1::2", 1002, "fd00:96::10", 80)
	ps.note("none of that after a purge")
	ps.do(&cnat.CnatSessionPurge{})
	ps.udp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.udp(2, "fd00:1::3", 8080, "fd00:1::2", 1000)
}

func cnatHairpinPackets(ps *packetScript) {
	cnatNode(ps)
	ps.do(cnatTo("fd00:96::10", 80, tcpProto, "fd00:1::2"))
	ps.note("a pod talks to itself: it sees the node's address")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:96::10", 80)
	ps.tcp(1, "fd00:1::2", 8080, "fd00:16::1", 0xC000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "fd00:1::2", 1000, "fd00:96::10", 80, vppfake.FlagACK)
	ps.dump(&cnat.CnatSessionDump{})
}

func cnatNodePortPackets(ps *packetScript) {
	cnatNode(ps)
	ps.do(cnatTo("fd00:16::1", 30080, tcpProto, "fd00:1::3"))
	ps.do(cnatTo("fd00:16::1", 30081, tcpProto, "fd00:2::5"))
	ps.note("from outside to a pod here, which sees the client")
	ps.tcp(3, "fd00:16::9", 1000, "fd00:16::1", 30080)
	ps.tcp(2, "fd00:1::3", 8080, "fd00:16::9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("from outside to a pod of another node, which sees this node")
	ps.tcp(3, "fd00:16::9", 1000, "fd00:16::1", 30081)
	ps.tcp(3, "fd00:2::5", 8080, "fd00:16::1", 0xC000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("from a pod, and from the host, to a pod of another node: their own address")
	ps.tcp(1, "fd00:1::2", 1000, "fd00:16::1", 30081)
	ps.tcp(3, "fd00:2::5", 8080, "fd00:1::2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(4, "fd00:17::2", 1000, "fd00:16::1", 30081)
	ps.note("what is for the host keeps its source")
	ps.tcp(3, "fd00:16::9", 1001, "fd00:17::2", 22)
	ps.dump(&cnat.CnatSessionDump{})
}

func cnatPackets4(ps *packetScript) {
	for n := index(1); n <= 2; n++ {
		ps.addr(n, fmt.Sprintf("10.1.%d.1/24", n))
		ps.host(n, fmt.Sprintf("10.1.%d.2", n), int(n))
		ps.cnatIf(n, cnat.CNAT_POLICY_POD)
	}
	ps.route(true, 0, "192.0.0.8/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT})
	ps.route(true, 0, "10.96.0.0/16", fibPath{nh: "192.0.0.8"})
	ps.out.Reset()
	ps.do(cnatTo("10.96.0.10", 80, tcpProto, "10.1.2.2"))
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.tcp(2, "10.1.2.2", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 81)
	ps.ping(1, "10.1.1.2", "10.1.2.2", 7)
	ps.ping(1, "10.1.1.2", "10.96.0.10", 7)
	ps.note("no policy, and an address: VPP translates every source")
	ps.do(&cnat.CnatSetSnatAddresses{SnatIP4: addr4("10.9.9.9"), SwIfIndex: index(none)})
	ps.tcp(1, "10.1.1.2", 2000, "10.1.2.2", 80)
	ps.ping(1, "10.1.1.2", "10.1.2.2", 8)
	ps.dump(&cnat.CnatSessionDump{})
}
