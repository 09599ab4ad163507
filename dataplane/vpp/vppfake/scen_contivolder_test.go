package vppfake_test

import (
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// contivPolicyOlder tests flows that are older than the first policy of pod B: clients that it denies are cut, also those of UDP.
func contivPolicyOlder(ps *packetScript) {
	policedNode(ps)
	ps.policy(1, []contiv.ContivRule{rule(polAllow, 1, 0, 17, 53)}, nil)
	ps.bothFamilies(func(a, b, _, _ string) {
		for _, port := range []uint16{53, 54} {
			ps.l4(podA, vppfake.ProtoUDP, end2(a, 40000), end2(b, port))
			ps.l4(podB, vppfake.ProtoUDP, end2(b, port), end2(a, 40000))
		}
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 5000), end2(b, 5000))
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 40001), end2(a, 53))
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(b, 50000))
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 40000), end2(a, 50000))
		ps.connections()
	})
	ps.police(podB+1, tier(polDeny, 1), nil)
	ps.bothFamilies(func(a, b, _, _ string) {
		ps.note("a client that is allowed, whose server sends first")
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 53), end2(a, 40000))
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 40000), end2(b, 53))
		ps.note("clients that are denied")
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 54), end2(a, 40000))
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 40000), end2(b, 54))
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 5000), end2(a, 5000))
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 5000), end2(b, 5000))
		ps.note("the server's own flow")
		ps.l4(podB, vppfake.ProtoUDP, end2(b, 40001), end2(a, 53))
		ps.l4(podA, vppfake.ProtoUDP, end2(a, 53), end2(b, 40001))
		ps.note("TCP between high ports: a client that is denied, and one of the server's own connections")
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 50000), end2(a, 40000), syn, ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 40000), end2(b, 50000), ack)
		ps.l4(podA, vppfake.ProtoTCP, end2(a, 50000), end2(b, 40000), syn, ack)
		ps.l4(podB, vppfake.ProtoTCP, end2(b, 40000), end2(a, 50000), ack)
	})
	ps.verdicts()
}
