package vppfake_test

import "contiv.dev/vswitch/dataplane/vpp/vppfake"

// reuseScenarios returns scenarios in which a client reuses a port for services that have the same backend, and for the backend itself. Replies
// are identified by backend and client only, so they may come from an address that is not the destination of the client's request.
func reuseScenarios() []packetScenario {
	return []packetScenario{
		{"reuse_nat", reuseNAT},
	}
}

// connection sends the start of a connection from the pod behind pg0 to a server, the reply of the backend behind pg1, and the end.
func (ps *packetScript) connection(client string, port uint16, to string, toPort uint16, backend string) {
	ps.t.Helper()
	ps.tcp(1, client, port, to, toPort)
	ps.tcp(2, backend, 8080, client, port, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, client, port, to, toPort, vppfake.FlagACK)
	ps.tcp(1, client, port, to, toPort, vppfake.FlagRST)
}

func (ps *packetScript) inTurn(client, one, two, backend string) {
	ps.t.Helper()
	for n, turns := range [][]string{
		{one, one}, {one, two}, {one, two, one}, {one, backend}, {backend, one}, {backend, one, backend},
	} {
		ps.note("in turn: %v", turns)
		for _, to := range turns {
			port := uint16(80)
			if to == backend {
				port = 8080
			}
			ps.connection(client, 1000+uint16(n), to, port, backend)
		}
	}
	ps.note("the same by UDP")
	for _, to := range []string{one, two, one} {
		ps.udp(1, client, 1000, to, 80)
		ps.udp(2, backend, 8080, client, 1000)
	}
}

func reuseNAT(ps *packetScript) {
	natNode(ps)
	for _, vip := range []string{"10.96.0.10", "10.96.0.11"} {
		for _, proto := range []uint8{tcpProto, udpProto} {
			m := static(true, "10.1.1.3", vip, selfTwice)
			m.Protocol, m.VrfID = proto, 1
			ps.do(m)
		}
	}
	ps.inTurn("10.1.1.2", "10.96.0.10", "10.96.0.11", "10.1.1.3")
	ps.sessions("10.1.1.3")
}
