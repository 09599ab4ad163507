package vppfake_test

import (
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// contivCollisions tests SNAT with only one address and port.
func contivCollisions(ps *packetScript) {
	contivNode(ps)
	tcp := uint8(vppfake.ProtoTCP)
	ps.snat(1, "192.0.2.1", "", 40000, 40001)
	for n := range 2 {
		q := endpoint(index(n+1), rolePod, at4(n))
		q.Egress = 1
		ps.do(q)
	}
	ps.l4(podA, tcp, end2(at4(podA), 40000), "8.8.8.8:53")
	ps.l4(podB, tcp, end2(at4(podB), 40000), "8.8.8.8:53")
	ps.l4(podB, tcp, end2(at4(podB), 40005), "8.8.8.8:53")
	ps.note("another end has ports of its own")
	ps.l4(podB, tcp, end2(at4(podB), 40000), "8.8.8.8:54")
	ps.l4(podB, tcp, end2(at4(podB), 40000), "8.8.4.4:53")
	ps.note("answers go where they belong")
	ps.l4(uplinkPort, tcp, "8.8.8.8:53", "192.0.2.1:40000", syn, ack)
	ps.l4(uplinkPort, tcp, "8.8.8.8:53", "192.0.2.1:40001", syn, ack)
	ps.note("two services with one backend, from one port")
	ps.front("10.96.0.1:80", tcp, to(1), to(1))
	ps.front("10.96.0.2:80", tcp, to(1), to(1))
	ps.l4(podA, tcp, end2(at4(podA), 1000), "10.96.0.1:80")
	ps.ownPort(end2(at4(podA), 1000), "10.96.0.2:80")
	ps.note("one is ended by hand, and its port is free")
	ps.do(&contiv.ContivConnectionDel{Protocol: tcp, Client: apiAddr(at4(podA)), ClientPort: 40000, Frontend: apiAddr("8.8.8.8"), FrontendPort: 53})
	ps.do(&contiv.ContivConnectionDel{Protocol: tcp, Client: apiAddr(at4(podA)), ClientPort: 40000, Frontend: apiAddr("8.8.8.8"), FrontendPort: 53})
	ps.l4(podB, tcp, end2(at4(podB), 40005), "8.8.8.8:53")
	ps.stats()
}

// contivStates tests which TCP packets cause a new choice of the backend.
func contivStates(ps *packetScript) {
	contivNode(ps)
	tcp := uint8(vppfake.ProtoTCP)
	ps.front("10.96.0.1:80", tcp, to(1), to(1))
	client, vip, b := end2(at4(podA), 1000), "10.96.0.1:80", end2(at4(podB), 8080)
	swap := func() {
		ps.backend(true, 1, end2(at4(podB), 8081), 0)
		ps.backend(false, 1, end2(at4(podB), 8080), 0)
		ps.note("the backend is 8081 now")
	}
	back := func() {
		ps.backend(true, 1, end2(at4(podB), 8080), 0)
		ps.backend(false, 1, end2(at4(podB), 8081), 0)
		ps.note("the backend is 8080 again")
	}
	ps.note("never answered: a SYN chooses afresh when its backend has gone")
	ps.l4(podA, tcp, client, vip)
	ps.l4(podA, tcp, client, vip)
	swap()
	ps.l4(podA, tcp, client, vip)
	back()
	ps.note("answered: a SYN that is sent again stays, and what follows")
	client = end2(at4(podA), 1005)
	ps.l4(podA, tcp, client, vip)
	ps.l4(podB, tcp, b, client, syn, ack)
	swap()
	ps.l4(podA, tcp, client, vip)
	ps.l4(podA, tcp, client, vip, ack)
	back()
	ps.note("open: it stays, a SYN too")
	client = end2(at4(podA), 1001)
	ps.l4(podA, tcp, client, vip)
	ps.l4(podB, tcp, b, client, syn, ack)
	ps.l4(podA, tcp, client, vip, ack)
	ps.connections()
	swap()
	ps.l4(podA, tcp, client, vip, ack)
	ps.l4(podA, tcp, client, vip)
	ps.note("closed by both: a SYN chooses afresh, another packet does not; a FIN counts when it is acknowledged")
	ps.l4(podA, tcp, client, vip, fin, ack)
	ps.connections()
	ps.l4(podB, tcp, b, client, ack)
	ps.connections()
	ps.l4(podB, tcp, b, client, fin, ack)
	ps.connections()
	ps.l4(podA, tcp, client, vip, ack)
	ps.connections()
	ps.l4(podA, tcp, client, vip)
	back()
	ps.note("a reset that acknowledges nothing, an ACK that is no answer, a refusal")
	client = end2(at4(podA), 1002)
	ps.l4(podA, tcp, client, vip)
	ps.l4(podB, tcp, b, client, rst)
	ps.l4(podB, tcp, b, client, ack)
	ps.l4(podA, tcp, client, vip, ack)
	ps.connections()
	ps.l4(podB, tcp, b, client, rst, ack)
	ps.connections()
	swap()
	ps.l4(podA, tcp, client, vip)
	ps.note("UDP of a client whose backend has gone")
	ps.front("10.96.0.1:80", 17, to(1), to(1))
	ps.l4(podA, 17, client, vip)
	back()
	ps.l4(podA, 17, client, vip)
	ps.note("not the first packet of a connection, a reset of none")
	ps.l4(podA, tcp, end2(at4(podA), 1003), vip, ack)
	ps.l4(podA, tcp, end2(at4(podA), 1004), vip, rst)
}

// contivServiceComes tests that a service that is created after its first clients takes over those without a reply.
func contivServiceComes(ps *packetScript) {
	contivNode(ps)
	ps.snat(1, "192.0.2.1", "fd00:2::1", 0, 0)
	q := endpoint(1, rolePod, at4(podA), at6(podA))
	q.Egress = 1
	ps.do(q)
	tcp := uint8(vppfake.ProtoTCP)
	for _, f := range []struct {
		vip, a, node string
		service      uint64
	}{{"10.96.0.1", at4(podA), "192.0.2.1", 1}, {"fd00:96::1", at6(podA), "fd00:2::1", 11}} {
		vip := end2(f.vip, 80)
		query := func() {
			ps.l4(podA, tcp, end2(f.a, 40000), vip)
			ps.l4(podA, 17, end2(f.a, 40000), vip)
			ps.l4(podA, 17, end2(f.a, 40001), end2(f.vip, 81))
		}
		query()
		ps.note("answered: this one stays where it is")
		ps.l4(podA, tcp, end2(f.a, 40002), vip)
		ps.l4(uplinkPort, tcp, vip, end2(f.node, 40002), syn, ack)
		ps.l4(podA, tcp, end2(f.a, 40002), vip, ack)
		ps.note("a service of another address, then one of this")
		ps.front(sameFamily(f.vip, "10.96.0.2:80", "[fd00:96::2]:80"), tcp, to(f.service), to(f.service))
		query()
		ps.front(vip, tcp, to(f.service), to(f.service))
		ps.front(vip, 17, to(f.service), to(f.service))
		query()
		ps.l4(podA, tcp, end2(f.a, 40002), vip, ack)
	}
	ps.connections()
}

// contivFlows tests that a UDP flow follows its backend from one service to another, and leaves a frontend that no longer leads to it.
func contivFlows(ps *packetScript) {
	contivNode(ps)
	udp := uint8(vppfake.ProtoUDP)
	for _, f := range []struct {
		vip, a, b string
		service   uint64
	}{{"10.96.0.1", at4(podA), at4(podB), 1}, {"fd00:96::1", at6(podA), at6(podB), 11}} {
		vip, backend := end2(f.vip, 80), end2(f.b, 8080)
		flows := func() {
			for port := range uint16(8) {
				ps.l4(podA, udp, end2(f.a, 1000+port), vip)
			}
		}
		ps.front(vip, udp, to(f.service), to(f.service))
		flows()
		ps.note("another service with this backend and one more")
		ps.service(true, f.service+20, 0)
		ps.backend(true, f.service+20, backend, 0)
		ps.backend(true, f.service+20, end2(f.b, 8081), 0)
		ps.front(vip, udp, to(f.service+20), to(f.service+20))
		ps.service(false, f.service, 0)
		ps.advance(3 * time.Second)
		flows()
		ps.dump(&contiv.ContivBackendDump{ServiceID: f.service + 20})
		ps.note("a service without the backend")
		ps.service(true, f.service, 0)
		ps.backend(true, f.service, end2(f.b, 8082), 0)
		ps.front(vip, udp, to(f.service), to(f.service))
		flows()
		ps.note("the frontend is deleted")
		gone := place(vip, udp)
		gone.IsAdd = false
		ps.do(gone)
		ps.advance(3 * time.Second)
		ps.dumpConnections(addr(f.a).Is6())
	}
}

// contivKept tests that a backend with the flag KEEP keeps its UDP flows but gets no new connections.
func contivKept(ps *packetScript) {
	ps.reports = true
	contivNode(ps)
	udp, next := uint8(vppfake.ProtoUDP), uint16(2000)
	vip, old := "10.96.0.1:80", end2(at4(podB), 8080)
	begin := func() {
		for range 4 {
			next++
			ps.l4(podA, udp, end2(at4(podA), next), vip)
		}
	}
	ps.front(vip, udp, to(1), to(1))
	ps.l4(podA, udp, end2(at4(podA), 1000), vip)
	ps.backend(true, 1, end2(at4(podB), 8081), 0)
	ps.backend(true, 1, old, contiv.CONTIV_BACKEND_API_KEEP)
	ps.dump(&contiv.ContivBackendDump{ServiceID: 1})
	ps.note("the flow stays, new ones go to the other backend")
	ps.advance(3 * time.Second)
	ps.l4(podA, udp, end2(at4(podA), 1000), vip)
	begin()
	ps.note("no new flows, but the flow stays")
	still := rejected()
	still.ServiceID = 1
	ps.front(vip, udp, still, still)
	ps.l4(podA, udp, end2(at4(podA), 1000), vip)
	begin()
	ps.front(vip, udp, to(1), to(1))
	ps.note("only kept backends")
	ps.backend(false, 1, end2(at4(podB), 8081), 0)
	begin()
	ps.note("gone")
	ps.backend(true, 1, end2(at4(podB), 8082), 0)
	ps.backend(false, 1, old, 0)
	ps.l4(podA, udp, end2(at4(podA), 1000), vip)
	ps.advance(3 * time.Second)
	ps.connections()
}

// contivLastBackend tests that the last backend stays for a moment, or until there is another one.
func contivLastBackend(ps *packetScript) {
	contivNode(ps)
	tcp := uint8(vppfake.ProtoTCP)
	ps.front("10.96.0.1:80", tcp, to(1), to(1))
	client := uint16(1000)
	next := func() { client++; ps.l4(podA, tcp, end2(at4(podA), client), "10.96.0.1:80") }
	ps.behind = func() { ps.backend(false, 1, end2(at4(podB), 8080), 0) }
	next()
	ps.backend(false, 1, end2(at4(podB), 8080), 0)
	ps.dump(&contiv.ContivServiceDump{})
	ps.note("another one comes: it goes at once")
	ps.backend(true, 1, end2(at4(podB), 8081), 0)
	next()
	ps.backend(false, 1, end2(at4(podB), 8080), 0)
	ps.note("it comes back itself")
	ps.backend(false, 1, end2(at4(podB), 8081), 0)
	ps.backend(true, 1, end2(at4(podB), 8081), 0)
	ps.advance(500 * time.Millisecond)
	next()
	ps.note("none comes")
	ps.backend(false, 1, end2(at4(podB), 8081), 0)
	ps.advance(500 * time.Millisecond)
	next()
	ps.backend(false, 1, end2(at4(podB), 8081), 0)
	ps.note("with the service")
	ps.backend(true, 1, end2(at4(podB), 8082), 0)
	next()
	ps.service(false, 1, 0)
	next()
}

// contivLimits tests that one pod cannot use up the resources of others.
func contivLimits(ps *packetScript) {
	contivNode(ps)
	udp := uint8(vppfake.ProtoUDP)
	ps.front("10.96.0.1:80", udp, to(1), to(1))
	q := endpoint(1, rolePod, at4(podA), at6(podA))
	q.MaxConnections = 2
	ps.do(q)
	for port := range uint16(3) {
		ps.l4(podA, udp, end2(at4(podA), 1000+port), "10.96.0.1:80")
	}
	ps.note("what is open goes on, other endpoints too, and what needs no connection")
	ps.l4(podA, udp, end2(at4(podA), 1001), "10.96.0.1:80")
	ps.l4(hostPort, udp, end2(at4(hostPort), 1002), "10.96.0.1:80")
	ps.l4(podA, udp, end2(at4(podA), 1003), "8.8.8.8:53")
	ps.dump(&contiv.ContivEndpointDump{})
	ps.note("of all pods")
	ps.do(endpoint(1, rolePod, at4(podA), at6(podA)))
	ps.do(&contiv.ContivConfigSet{EndpointConnections: 3, TunnelPorts: make([]uint16, 4)})
	for port := range uint16(3) {
		ps.l4(podA, udp, end2(at4(podA), 1002+port), "10.96.0.1:80")
	}
	ps.stats()
	ps.note("gone with the endpoint")
	ps.do(&contiv.ContivEndpointDel{SwIfIndex: 1})
	ps.do(endpoint(1, rolePod, at4(podA)))
	ps.l4(podA, udp, end2(at4(podA), 1006), "10.96.0.1:80")
}

// contivErrors tests ICMP errors about connections, from their ends and from routers, in both directions.
func contivErrors(ps *packetScript) {
	ps.reports = true
	contivNode(ps)
	ps.snat(1, "192.0.2.1", "fd00:2::1", 0, 0)
	q := endpoint(1, rolePod, at4(podA), at6(podA))
	q.Egress = 1
	ps.do(q)
	for _, f := range []struct {
		vip, a, b, far, node, router string
		service                      uint64
	}{{"10.96.0.1", at4(podA), at4(podB), "8.8.8.8", "192.0.2.1", at4(uplinkPort), 1},
		{"fd00:96::1", at6(podA), at6(podB), "2001:db8::8", "fd00:2::1", at6(uplinkPort), 11}} {
		udp := uint8(vppfake.ProtoUDP)
		ps.front(end2(f.vip, 80), udp, to(f.service), to(f.service))
		report := func(port int, src string, inner vppfake.Packet) {
			inner.EthSrc, inner.EthDst, inner.TTL = vppfake.MAC{}, vppfake.MAC{}, 63
			ps.portUnreachable(port+1, src, inner)
		}
		ps.note("from the backend")
		ps.l4(podA, udp, end2(f.a, 40000), end2(f.vip, 80))
		report(podB, f.b, from(podB, udp, end2(f.a, 40000), end2(f.b, 8080)))
		ps.note("from another pod, which has no part in it")
		report(podB, f.b, from(podB, udp, end2(f.a, 40001), end2(f.vip, 80)))
		ps.note("from the client, about an answer")
		ps.l4(podB, udp, end2(f.b, 8080), end2(f.a, 40000))
		report(podA, f.a, from(podA, udp, end2(f.vip, 80), end2(f.a, 40000)))
		ps.note("from outside, from the way")
		ps.l4(podA, udp, end2(f.a, 40002), end2(f.far, 53))
		report(uplinkPort, f.far, from(uplinkPort, udp, end2(f.node, 40002), end2(f.far, 53)))
		report(uplinkPort, f.router, from(uplinkPort, udp, end2(f.node, 40002), end2(f.far, 53)))
		ps.note("about nothing")
		report(uplinkPort, f.router, from(uplinkPort, udp, end2(f.a, 40003), end2(f.far, 53)))
	}
}

// contivFragments tests that later fragments follow the first one.
func contivFragments(ps *packetScript) {
	contivNode(ps)
	udp := uint8(vppfake.ProtoUDP)
	for _, f := range []struct {
		vip, a, b, far string
		service        uint64
	}{{"10.96.0.1", at4(podA), at4(podB), at4(uplinkPort), 1}, {"fd00:96::1", at6(podA), at6(podB), at6(uplinkPort), 11}} {
		ps.front(end2(f.vip, 80), udp, to(f.service), to(f.service))
		piece := func(port int, id uint32, offset uint16, more bool, src, dst string) {
			p := from(port, udp, src, dst)
			p.Frag, p.Size = &vppfake.Fragment{ID: id, Offset: offset, More: more}, 16
			if offset > 0 {
				p.SrcPort, p.DstPort = 0, 0
			}
			ps.send(port, p)
		}
		ps.note("in order")
		piece(podA, 1, 0, true, end2(f.a, 1000), end2(f.vip, 80))
		piece(podA, 1, 3, true, end2(f.a, 1000), end2(f.vip, 80))
		piece(podA, 1, 5, false, end2(f.a, 1000), end2(f.vip, 80))
		ps.note("the last one first")
		piece(podA, 2, 3, false, end2(f.a, 1000), end2(f.vip, 80))
		piece(podA, 2, 0, true, end2(f.a, 1000), end2(f.vip, 80))
		ps.note("answers")
		piece(podB, 3, 0, true, end2(f.b, 8080), end2(f.a, 1000))
		piece(podB, 3, 3, false, end2(f.b, 8080), end2(f.a, 1000))
		ps.note("to a tunnel's port, under another name")
		piece(podA, 4, 0, true, end2(f.a, 1000), end2(f.far, 8472))
		piece(podA, 4, 3, false, end2(f.a, 1000), end2(f.far, 8472))
		piece(podA, 5, 0, true, end2(f.b, 1000), end2(f.far, 80))
		piece(podA, 5, 3, false, end2(f.b, 1000), end2(f.far, 80))
		ps.note("to no service")
		piece(podA, 6, 0, true, end2(f.a, 1000), end2(f.far, 80))
		piece(podA, 6, 3, false, end2(f.a, 1000), end2(f.far, 80))
	}
	ps.connections()
}
