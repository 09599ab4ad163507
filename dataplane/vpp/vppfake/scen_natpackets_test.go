package vppfake_test

import (
	"fmt"
	"time"

	"go.fd.io/govpp/binapi/feature"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
	"go.fd.io/govpp/binapi/pipe"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func natPacketScenarios() []packetScenario {
	return []packetScenario{
		{"nat_service", natServicePackets},
		{"nat_backends", natBackendPackets},
		{"nat_closed", natClosedPackets},
		{"nat_twins", natTwinPackets},
		{"nat_bridge", natBridgePackets},
		{"nat_hairpin", natHairpinPackets},
		{"nat_static", natStaticPackets},
		{"nat_output", natOutputPackets},
		{"nat_nodeport", natNodePortPackets},
		{"nat_no_identity", natNoIdentityPackets},
		{"nat_inside", natInsidePackets},
		{"nat_strict", natStrictPackets},
		{"nat_affinity", natAffinityPackets},
		{"nat_limit", natLimitPackets},
		{"nat_by_hand", natByHandPackets},
		{"nat_vxlan", natVxlanPackets},
		{"nat_pipe", natPipePackets},
	}
}

// transport returns a packet between two sockets, from host h behind a port.
func transport(proto uint8, h, port int, src string, sport uint16, dst string, dport uint16) vppfake.Packet {
	p := udp(h, port, src, dst)
	p.Proto, p.SrcPort, p.DstPort = proto, sport, dport
	return p
}

func echo(h, port int, src, dst string, id uint16, reply bool) vppfake.Packet {
	p := transport(vppfake.ProtoICMP, h, port, src, 0, dst, 0)
	p.Echo, p.EchoReply = id, reply
	return p
}

func (ps *packetScript) tcp(h int, src string, sport uint16, dst string, dport uint16, flags ...uint8) {
	ps.t.Helper()
	p := transport(vppfake.ProtoTCP, h, h-1, src, sport, dst, dport)
	for _, f := range flags {
		p.Flags |= f
	}
	ps.send(h-1, p)
}

func (ps *packetScript) udp(h int, src string, sport uint16, dst string, dport uint16) {
	ps.t.Helper()
	ps.send(h-1, transport(vppfake.ProtoUDP, h, h-1, src, sport, dst, dport))
}

func (ps *packetScript) ping(h int, src, dst string, id uint16) {
	ps.t.Helper()
	ps.send(h-1, echo(h, h-1, src, dst, id, false))
}

func (ps *packetScript) pong(h int, src, dst string, id uint16) {
	ps.t.Helper()
	ps.send(h-1, echo(h, h-1, src, dst, id, true))
}

// natNode configures a node: pods 10.1.1.2 to .4 behind pg0 to pg2 in table 1, the uplink pg3 with 192.168.16.1/24 in table 0, a machine
// 192.168.16.9 and the default route there. The pods' interfaces are inside and outside, as on a node where any pod may be a client and a
// backend; the uplink has the output feature.
func natNode(ps *packetScript) {
	ps.table(1, false)
	loop := ps.loopUp()
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: loop, VrfID: 1})
	ps.addr(loop, "10.1.1.1/32")
	ps.natOn()
	for n := index(1); n <= 3; n++ {
		ip := fmt.Sprintf("10.1.1.%d", n+1)
		ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: n, VrfID: 1})
		ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: loop, UnnumberedSwIfIndex: n, IsAdd: true})
		ps.route(true, 1, ip+"/32", via(ip, uint32(n)))
		ps.host(n, ip, int(n))
		ps.natIf(true, n, 0)
		ps.natIf(true, n, nat_types.NAT_IS_INSIDE)
	}
	ps.route(true, 1, "0.0.0.0/0", fibPath{table: 0})
	ps.addr(4, "192.168.16.1/24")
	ps.host(4, "192.168.16.9", 4)
	ps.route(true, 0, "10.1.1.0/24", fibPath{table: 1})
	ps.route(true, 0, "0.0.0.0/0", via("192.168.16.9", 4))
	ps.natOut(true, 4)
	ps.natPoolRange(true, "192.168.16.1", "192.168.16.1", none, false)
	ps.natPoolRange(true, "192.0.2.254", "192.0.2.254", none, true)
	natIdentities(ps, true)
	ps.out.Reset()
}

// natIdentities prevents the translation of packets from the node's own address that leave through the uplink: packets that NAT has already
// translated on the receiving interface, and tunnel packets.
func natIdentities(ps *packetScript, add bool) {
	ps.do(identity(add, "192.168.16.1", 0, 1))
	ps.do(identity(add, "192.168.16.1", 0, 0))
}

func (ps *packetScript) sessions(addrs ...string) {
	for _, a := range addrs {
		ps.dump(&nat44_ed.Nat44UserSessionV3Dump{IPAddress: addr4(a)})
	}
	ps.dump(&nat44_ed.Nat44UserDump{})
}

const selfTwice = nat_types.NAT_IS_SELF_TWICE_NAT | nat_types.NAT_IS_OUT2IN_ONLY

func natServicePackets(ps *packetScript) {
	natNode(ps)
	a, b := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.4", 8080, 3, 1)
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, a, b))
	ps.do(balanced(true, "10.96.0.10", udpProto, selfTwice, 0, a, b))
	ps.note("connections from a pod, spread over backends")
	for n := range uint16(8) {
		ps.tcp(1, "10.1.1.2", 1000+n, "10.96.0.10", 80)
	}
	ps.udp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.note("answers, from both: one has no session")
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(3, "10.1.1.4", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(2, "10.1.1.3", 8080, "10.1.1.2", 1000)
	ps.udp(3, "10.1.1.4", 8080, "10.1.1.2", 1000)
	ps.note("later packets stay; one in the middle of an unknown connection")
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 999, "10.96.0.10", 80, vppfake.FlagACK)
	ps.note("another port, ping, not a service, past the service")
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 81)
	ps.ping(1, "10.1.1.2", "10.96.0.10", 7)
	ps.tcp(1, "10.1.1.2", 1000, "10.1.1.3", 8080)
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.ping(1, "10.1.1.2", "10.1.1.3", 8)
	ps.pong(2, "10.1.1.3", "10.1.1.2", 8)
	ps.sessions("10.1.1.2", "10.1.1.3", "10.1.1.4")
}

// natBackendPackets tests sessions when backends are added and removed.
func natBackendPackets(ps *packetScript) {
	natNode(ps)
	a, b := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.4", 8080, 1, 1)
	hold := backend("10.1.1.3", 0, 0, 1)
	ps.note("one backend, in the form of two")
	ps.do(balanced(true, "10.96.0.10", tcpProto, out2in, 0, a, hold))
	connect := func(from, to uint16, flags ...uint8) {
		for n := from; n < to; n++ {
			ps.tcp(1, "10.1.1.2", n, "10.96.0.10", 80, flags...)
		}
	}
	connect(1000, 1003)
	ps.note("a second one comes")
	ps.local(true, "10.96.0.10", tcpProto, b)
	ps.local(false, "10.96.0.10", tcpProto, hold)
	connect(1000, 1003, vppfake.FlagACK)
	connect(1003, 1006)
	ps.note("the first is taken away: its connections die")
	ps.do(balanced(true, "10.96.0.11", udpProto, out2in, 0, a, b))
	ps.udp(1, "10.1.1.2", 500, "10.96.0.11", 80)
	ps.udp(1, "10.1.1.2", 501, "10.96.0.11", 80)
	ps.local(true, "10.96.0.10", tcpProto, backend("10.1.1.4", 0, 0, 1))
	ps.local(false, "10.96.0.10", tcpProto, a)
	ps.sessions("10.1.1.3", "10.1.1.4")
	connect(1000, 1006, vppfake.FlagACK)
	ps.note("replaced by way of an identity: connections live on")
	ps.do(identity(false, "10.96.0.10", 80, 0))
	q := identity(false, "10.96.0.10", 80, 1)
	q.Protocol = tcpProto
	ps.do(q)
	ps.sessions("10.1.1.4")
	connect(1000, 1001)
	ps.do(balanced(true, "10.96.0.10", tcpProto, out2in, 0, a, hold))
	connect(1003, 1006, vppfake.FlagACK)
	connect(1010, 1012)
	ps.note("deleted: all connections die")
	ps.do(balanced(false, "10.96.0.10", tcpProto, out2in, 0))
	connect(1003, 1006, vppfake.FlagACK)
	connect(1010, 1012, vppfake.FlagACK)
	ps.note("a session is deleted, by its side behind NAT")
	ps.udp(1, "10.1.1.2", 501, "10.96.0.11", 80)
	ps.sessions("10.1.1.3", "10.1.1.4")
	del := &nat44_ed.Nat44DelSession{Address: addr4("10.1.1.4"), Port: 8080, Protocol: udpProto, VrfID: 1,
		ExtHostAddress: addr4("10.1.1.2"), ExtHostPort: 501}
	ps.do(del)
	del.Address = addr4("10.1.1.3")
	ps.do(del)
	ps.do(del)
	ps.sessions("10.1.1.3", "10.1.1.4")
}

// natClosedPackets tests that a session's timeout depends on whether its connection is open, and on the current timeouts.
func natClosedPackets(ps *packetScript) {
	natNode(ps)
	a := backend("10.1.1.3", 8080, 1, 1)
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, a, backend("10.1.1.3", 0, 0, 1)))
	client := func(port uint16, flags ...uint8) { ps.tcp(1, "10.1.1.2", port, "10.96.0.10", 80, flags...) }
	server := func(port uint16, flags ...uint8) { ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", port, flags...) }
	open := func(port uint16) {
		client(port)
		server(port, vppfake.FlagSYN, vppfake.FlagACK)
		client(port, vppfake.FlagACK)
	}
	ps.note("asked for, open, closed by the server, closed by the client and reset, closed by one side, closed and open again")
	client(1000)
	open(1001)
	for port := uint16(1002); port <= 1005; port++ {
		open(port)
	}
	server(1002, vppfake.FlagFIN, vppfake.FlagACK)
	client(1002, vppfake.FlagFIN, vppfake.FlagACK)
	server(1002, vppfake.FlagACK)
	client(1003, vppfake.FlagFIN, vppfake.FlagACK)
	server(1003, vppfake.FlagRST)
	client(1004, vppfake.FlagFIN, vppfake.FlagACK)
	server(1005, vppfake.FlagFIN, vppfake.FlagACK)
	client(1005, vppfake.FlagFIN, vppfake.FlagACK)
	open(1005)
	// VPP's clock advances while a loaded machine is slow: the short timeout is far above such delays, and the long one far above the short
	// one.
	const short, long = 60, 240
	ps.advance((short + 1) * time.Second)
	timeouts := func(transitory uint32) {
		ps.do(&nat44_ed.NatSetTimeouts{UDP: 300, TCPEstablished: 7440, TCPTransitory: transitory, ICMP: 60})
	}
	ps.note("long timeouts, short ones, and long ones again: the sessions are still there")
	timeouts(long)
	ps.sessions("10.1.1.3")
	timeouts(short)
	ps.sessions("10.1.1.3")
	timeouts(long)
	ps.sessions("10.1.1.3")
	ps.note("one that has been heard of does not count as timed out")
	client(1004, vppfake.FlagACK)
	timeouts(short)
	ps.sessions("10.1.1.3")
	timeouts(long)
}

// natTwinPackets tests two sessions that are equal behind NAT, and how they are found.
func natTwinPackets(ps *packetScript) {
	natNode(ps)
	for _, service := range []string{"10.96.0.10", "10.96.0.11"} {
		ps.do(balanced(true, service, tcpProto, selfTwice, 0, backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 0, 0, 1)))
		ps.tcp(1, "10.1.1.2", 1000, service, 80)
		ps.send(3, transport(vppfake.ProtoTCP, 4, 3, "192.168.16.9", 1000, service, 80))
	}
	ps.sessions("10.1.1.3")
	del := func(from string, port uint16, to string, toPort uint16, vrf uint32) {
		ps.do(&nat44_ed.Nat44DelSession{Address: addr4(from), Port: port, ExtHostAddress: addr4(to), ExtHostPort: toPort,
			Protocol: tcpProto, VrfID: vrf})
	}
	ps.note("by the side behind NAT: the newer one, then none")
	for range 2 {
		del("10.1.1.3", 8080, "10.1.1.2", 1000, 1)
		ps.sessions("10.1.1.3")
	}
	ps.note("by the other side, in the client's table")
	del("10.1.1.2", 1000, "10.96.0.10", 80, 0)
	del("10.1.1.2", 1000, "10.96.0.10", 80, 1)
	del("192.168.16.9", 1000, "10.96.0.11", 80, 1)
	del("192.168.16.9", 1000, "10.96.0.11", 80, 0)
	ps.sessions("10.1.1.3")
}

// natBridgePackets tests that a balanced mapping without port and protocol matches all packets to its address that have no other mapping.
func natBridgePackets(ps *packetScript) {
	natNode(ps)
	a, b := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.4", 8080, 3, 1)
	bridge, end := balanced(true, "10.96.0.10", 0, selfTwice, 0, a, b), identity(false, "10.96.0.10", 0, 1)
	bridge.ExternalPort, end.Flags = 0, 0
	exact := identity(false, "10.96.0.10", 80, 1)
	exact.Protocol = tcpProto
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, a, a))
	ps.note("the mapping of the port goes first")
	ps.do(bridge)
	ps.do(bridge)
	ps.dump(&nat44_ed.Nat44LbStaticMappingDump{})
	for n := range uint16(4) {
		ps.tcp(1, "10.1.1.2", 1000+n, "10.96.0.10", 80)
	}
	ps.note("without it the bridge stands in, for other ports and protocols, too")
	ps.do(exact)
	for n := range uint16(4) {
		ps.tcp(1, "10.1.1.2", 1010+n, "10.96.0.10", 80)
	}
	ps.tcp(1, "10.1.1.2", 1020, "10.96.0.10", 81)
	ps.udp(1, "10.1.1.2", 1020, "10.96.0.10", 82)
	ps.ping(1, "10.1.1.2", "10.96.0.10", 7)
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1010, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(3, "10.1.1.4", 8080, "10.1.1.2", 1010, vppfake.FlagSYN, vppfake.FlagACK)
	ps.sessions("10.1.1.3", "10.1.1.4")
	ps.note("the bridge goes, its connections stay")
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, a, b))
	ps.do(end)
	ps.do(end)
	ps.dump(&nat44_ed.Nat44LbStaticMappingDump{})
	for n := range uint16(4) {
		ps.tcp(1, "10.1.1.2", 1010+n, "10.96.0.10", 80, vppfake.FlagACK)
	}
	ps.tcp(1, "10.1.1.2", 1030, "10.96.0.10", 80)
	ps.tcp(1, "10.1.1.2", 1031, "10.96.0.10", 81)
}

func natHairpinPackets(ps *packetScript) {
	natNode(ps)
	a := backend("10.1.1.3", 8080, 1, 1)
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, a, backend("10.1.1.3", 0, 0, 1)))
	ps.do(balanced(true, "10.96.0.11", tcpProto, out2in, 0, a, backend("10.1.1.3", 0, 0, 1)))
	ps.do(balanced(true, "10.96.0.12", tcpProto, out2in|nat_types.NAT_IS_TWICE_NAT, 0, a, backend("10.1.1.3", 0, 0, 1)))
	ps.note("the backend calls itself")
	ps.tcp(2, "10.1.1.3", 1000, "10.96.0.10", 80)
	ps.sessions("10.1.1.3")
	ps.note("and answers")
	const port = 11570 // VPP's second random number: the first one chose the backend
	ps.tcp(2, "10.1.1.3", 8080, "192.0.2.254", port, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(2, "10.1.1.3", 1000, "10.96.0.10", 80, vppfake.FlagACK)
	ps.note("without twice-NAT")
	ps.tcp(2, "10.1.1.3", 1001, "10.96.0.11", 80)
	ps.note("twice-NAT for all")
	ps.tcp(1, "10.1.1.2", 1001, "10.96.0.12", 80)
	ps.sessions("10.1.1.3")
	ps.note("no address to turn the source into")
	ps.natPoolRange(false, "192.0.2.254", "192.0.2.254", none, true)
	ps.tcp(2, "10.1.1.3", 1002, "10.96.0.10", 80)
	ps.tcp(1, "10.1.1.2", 1002, "10.96.0.10", 80)
}

func natStaticPackets(ps *packetScript) {
	natNode(ps)
	q := static(true, "10.1.1.3", "10.96.0.10", out2in)
	q.VrfID = 1
	ps.do(q)
	q = static(true, "10.1.1.4", "10.96.0.11", out2in|nat_types.NAT_IS_ADDR_ONLY)
	q.VrfID = 1
	ps.do(q)
	ps.note("a port")
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.tcp(1, "10.1.1.2", 1001, "10.96.0.10", 80)
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.note("a whole address")
	ps.udp(1, "10.1.1.2", 1000, "10.96.0.11", 77)
	ps.udp(3, "10.1.1.4", 77, "10.1.1.2", 1000)
	ps.ping(1, "10.1.1.2", "10.96.0.11", 9)
	ps.pong(3, "10.1.1.4", "10.1.1.2", 9)
	ps.sessions("10.1.1.3", "10.1.1.4")
	ps.note("deleted: one session of the port goes, all of the address")
	q.IsAdd = false
	ps.do(q)
	q = static(false, "10.1.1.3", "10.96.0.10", out2in)
	ps.do(q)
	ps.sessions("10.1.1.3", "10.1.1.4")
}

func natOutputPackets(ps *packetScript) {
	natNode(ps)
	ps.note("pods to the outside")
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80)
	ps.tcp(2, "10.1.1.3", 1500, "192.168.16.9", 80)
	ps.udp(1, "10.1.1.2", 1500, "8.8.8.8", 53)
	ps.udp(1, "10.1.1.2", 53, "8.8.8.8", 53)
	ps.ping(1, "10.1.1.2", "8.8.8.8", 3000)
	ps.ping(2, "10.1.1.3", "8.8.8.8", 3000)
	ps.note("answers")
	ps.tcp(4, "192.168.16.9", 80, "192.168.16.1", 1500, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(4, "8.8.8.8", 53, "192.168.16.1", 1500)
	ps.pong(4, "8.8.8.8", "192.168.16.1", 3000)
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80, vppfake.FlagACK)
	ps.note("a connection in the middle")
	ps.tcp(1, "10.1.1.2", 1501, "192.168.16.9", 80, vppfake.FlagACK)
	ps.note("unasked, to a pod and to the node")
	ps.tcp(4, "192.168.16.9", 1000, "10.1.1.2", 80)
	ps.tcp(1, "10.1.1.2", 80, "192.168.16.9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.ping(4, "192.168.16.9", "10.1.1.2", 5)
	ps.pong(1, "10.1.1.2", "192.168.16.9", 5)
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 7777)
	ps.sessions("10.1.1.2", "10.1.1.3", "192.168.16.1")
	ps.note("what the node's own address sends is left alone")
	ps.do(identity(true, "10.1.1.4", 0, 1))
	ps.do(identity(true, "10.1.1.2", 4789, 1))
	ps.udp(3, "10.1.1.4", 1000, "192.168.16.9", 53)
	ps.udp(1, "10.1.1.2", 4789, "192.168.16.9", 53)
	ps.udp(1, "10.1.1.2", 4790, "192.168.16.9", 53)
	ps.note("no address left")
	ps.natPoolRange(false, "192.168.16.1", "192.168.16.1", none, false)
	ps.sessions("10.1.1.2", "10.1.1.3")
	ps.udp(1, "10.1.1.2", 1500, "8.8.8.8", 53)
}

// natNodePortPackets tests services at the node's address, from outside and from pods.
func natNodePortPackets(ps *packetScript) {
	natNode(ps)
	a, hold := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 0, 0, 1)
	ps.do(balanced(true, "192.168.16.1", tcpProto, selfTwice, 0, a, hold))
	ps.do(balanced(true, "203.0.113.7", tcpProto, out2in|nat_types.NAT_IS_TWICE_NAT, 0, a, hold))
	ps.note("from outside")
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80)
	ps.tcp(2, "10.1.1.3", 8080, "192.168.16.9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80, vppfake.FlagACK)
	ps.note("from a pod")
	ps.tcp(1, "10.1.1.2", 1000, "192.168.16.1", 80)
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("an address of a load balancer")
	ps.tcp(4, "192.168.16.9", 1000, "203.0.113.7", 80)
	ps.sessions("10.1.1.3")
	const port = 22324 // the third random number: each choice of a backend uses one
	ps.tcp(2, "10.1.1.3", 8080, "192.0.2.254", port, vppfake.FlagSYN, vppfake.FlagACK)
	ps.note("its answers leave by the uplink if it is an identity; then pods' packets go wrong, unless it is in the pool, too")
	ps.do(identity(true, "203.0.113.7", 0, 1))
	ps.tcp(2, "10.1.1.3", 8080, "192.0.2.254", port, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 1000, "203.0.113.7", 80)
	ps.natPoolRange(true, "203.0.113.7", "203.0.113.7", 99, false)
	ps.tcp(1, "10.1.1.2", 1001, "203.0.113.7", 80)
	ps.tcp(4, "192.168.16.9", 1002, "203.0.113.7", 80)
	ps.udp(1, "10.1.1.2", 1500, "8.8.8.8", 53)
	ps.note("a backend on another node: out again by the uplink")
	remote := balanced(true, "192.168.16.1", udpProto, selfTwice, 0, backend("192.168.16.9", 8080, 1),
		backend("192.168.16.9", 0, 0))
	ps.do(remote)
	ps.udp(1, "10.1.1.2", 1000, "192.168.16.1", 80)
	ps.udp(4, "192.168.16.9", 8080, "10.1.1.2", 1000)
	ps.udp(4, "192.168.16.77", 1000, "192.168.16.1", 80)
	ps.sessions("10.1.1.2", "192.168.16.9", "10.1.1.3")
}

// natNoIdentityPackets tests the same without the node's address as an identity. The first packet of a connection is translated when it leaves,
// later packets when they are received, and then, as packets of an unknown connection, again or not at all.
func natNoIdentityPackets(ps *packetScript) {
	natNode(ps)
	natIdentities(ps, false)
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80)
	ps.tcp(4, "192.168.16.9", 80, "192.168.16.1", 1500, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80, vppfake.FlagACK)
	ps.udp(1, "10.1.1.2", 1500, "192.168.16.9", 53)
	ps.udp(1, "10.1.1.2", 1500, "192.168.16.9", 53)
	ps.udp(1, "10.1.1.2", 1500, "192.168.16.9", 53)
	ps.do(balanced(true, "192.168.16.1", tcpProto, selfTwice, 0, backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 0, 0, 1)))
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80)
	ps.tcp(2, "10.1.1.3", 8080, "192.168.16.9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.sessions("10.1.1.2", "10.1.1.3")
}

// natInsidePackets tests classic NAT: an inside and an outside interface.
func natInsidePackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
	ps.natIf(true, 1, nat_types.NAT_IS_INSIDE)
	ps.natIf(true, 2, 0)
	ps.udp(1, "10.1.0.2", 1500, "10.2.0.2", 53)
	ps.natPoolRange(true, "10.9.0.1", "10.9.0.3", none, false)
	ps.udp(1, "10.1.0.2", 1500, "10.2.0.2", 53)
	ps.udp(1, "10.1.0.3", 1500, "10.2.0.2", 53)
	ps.udp(1, "10.1.0.7", 1500, "10.2.0.2", 53)
	ps.udp(1, "10.1.0.10", 1500, "10.2.0.2", 53)
	ps.udp(1, "10.1.0.2", 100, "10.2.0.2", 53)
	ps.ping(1, "10.1.0.2", "10.2.0.2", 77)
	ps.udp(1, "10.1.0.2", 1500, "10.2.0.1", 53)
	ps.udp(1, "10.1.0.2", 1500, "10.99.0.1", 53)
	ps.sessions("10.1.0.2", "10.1.0.3")
	ps.note("both directions of a mapping")
	ps.do(static(true, "10.1.0.2", "10.9.0.9", 0))
	ps.tcp(2, "10.2.0.2", 1000, "10.9.0.9", 80)
	ps.tcp(1, "10.1.0.2", 8080, "10.2.0.2", 1001)
	ps.tcp(2, "10.2.0.2", 1002, "10.9.0.9", 81)
	ps.send(1, arpRequest(2, "10.2.0.2", "10.9.0.9"))
	ps.send(1, arpRequest(2, "10.2.0.2", "10.9.0.1"))
	ps.note("to a mapping, from inside")
	ps.tcp(1, "10.1.0.7", 1000, "10.9.0.9", 80)
	ps.sessions("10.1.0.2", "10.1.0.7")
	ps.note("the interface leaves: sessions are void")
	ps.natIf(false, 2, 0)
	ps.natIf(false, 1, nat_types.NAT_IS_INSIDE)
	ps.sessions("10.1.0.2")
	ps.natIf(true, 1, nat_types.NAT_IS_INSIDE)
	ps.natIf(true, 2, 0)
	ps.udp(2, "10.2.0.2", 53, "10.9.0.1", 1500)
	ps.udp(1, "10.1.0.2", 1500, "10.2.0.2", 53)
	ps.sessions("10.1.0.2")
}

// natStrictPackets tests that without forwarding a packet without translation is dropped.
func natStrictPackets(ps *packetScript) {
	natNode(ps)
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 0, 0, 1)))
	ps.tcp(1, "10.1.1.2", 1000, "10.1.1.3", 80)
	ps.tcp(4, "192.168.16.9", 1000, "10.1.1.3", 80)
	ps.sessions("10.1.1.2", "10.1.1.3")
	ps.do(&nat44_ed.Nat44ForwardingEnableDisable{})
	ps.sessions("10.1.1.2", "10.1.1.3")
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.tcp(2, "10.1.1.3", 8080, "10.1.1.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 81)
	ps.tcp(1, "10.1.1.2", 1001, "10.1.1.3", 80)
	ps.tcp(4, "192.168.16.9", 1000, "10.1.1.3", 80)
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80)
	ps.udp(1, "10.1.1.2", 1500, "8.8.8.8", 53)
	ps.udp(4, "8.8.8.8", 53, "192.168.16.1", 1500)
}

func natAffinityPackets(ps *packetScript) {
	natNode(ps)
	a, b := backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.4", 8080, 1, 1)
	c := backend("10.1.1.3", 8081, 1, 1)
	ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 1000, a, b, c))
	calls := func(port uint16) {
		for _, src := range []string{"10.1.1.2", "10.1.1.20", "10.1.1.21", "10.1.1.22", "10.1.1.23"} {
			ps.udp(1, src, port, "10.96.0.10", 80)
		}
	}
	calls(1000)
	ps.note("the same clients again")
	calls(1001)
	ps.note("a backend goes: its clients are sent there all the same")
	ps.local(false, "10.96.0.10", udpProto, b)
	calls(1002)
	ps.note("the next one takes its place, and its clients")
	ps.local(true, "10.96.0.10", udpProto, backend("10.1.1.4", 8082, 1, 1))
	calls(1003)
	ps.note("replaced without deleting it: the places count")
	q := identity(false, "10.96.0.10", 80, 1)
	ps.do(q)
	ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 1000, backend("10.1.1.3", 1, 1, 1), backend("10.1.1.3", 2, 0, 1),
		backend("10.1.1.3", 3, 0, 1)))
	calls(1004)
	ps.note("deleted and made again: forgotten")
	ps.do(balanced(false, "10.96.0.10", udpProto, out2in, 0))
	ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 1000, a, b, c))
	calls(1005)
}

// natLimitPackets tests the maximum number of sessions; packets that NAT does not translate still pass.
func natLimitPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 3})
	ps.do(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	for n := index(1); n <= 2; n++ {
		ps.natIf(true, n, 0)
		ps.natIf(true, n, nat_types.NAT_IS_INSIDE)
	}
	ps.do(balanced(true, "10.96.0.10", udpProto, out2in, 0, backend("10.2.0.2", 53, 1), backend("10.2.0.2", 0, 0)))
	for n := range uint16(5) {
		ps.udp(1, "10.1.0.2", 1000+n, "10.96.0.10", 80)
	}
	ps.udp(1, "10.1.0.2", 1000, "10.2.0.2", 99)
	ps.sessions("10.2.0.2")
}

// natByHandPackets tests interfaces that are only inside for NAT, on which the feature of inside and outside interfaces is enabled manually.
// NAT works, and VPP adds no addresses to the tables of these interfaces.
func natByHandPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.natOn()
	ps.natPoolRange(true, "192.0.2.254", "192.0.2.254", none, true)
	by := func(i index, name string, on bool) {
		ps.do(&feature.FeatureEnableDisable{SwIfIndex: i, Enable: on, ArcName: "ip4-unicast", FeatureName: name})
	}
	for n := index(1); n <= 2; n++ {
		ps.natIf(true, n, nat_types.NAT_IS_INSIDE)
		by(n, "nat-pre-in2out", false)
		by(n, "nat44-ed-classify", true)
	}
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, backend("10.2.0.2", 8080, 1), backend("10.2.0.2", 0, 0)))
	ps.tcp(1, "10.1.0.2", 1000, "10.96.0.10", 80)
	ps.tcp(2, "10.2.0.2", 8080, "10.1.0.2", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(2, "10.2.0.2", 1000, "10.96.0.10", 80)
	ps.tcp(1, "10.1.0.2", 1000, "10.2.0.2", 99)
	ps.routes(0, false)
	ps.dump(&nat44_ed.Nat44InterfaceDump{})
	ps.enabled(1, "ip4-unicast", "nat44-ed-classify")
	ps.note("and off again")
	by(1, "nat44-ed-classify", false)
	ps.natIf(false, 1, nat_types.NAT_IS_INSIDE)
	ps.enabled(1, "ip4-unicast", "ip4-sv-reassembly-feature")
	ps.tcp(1, "10.1.0.2", 1000, "10.96.0.10", 80)
	ps.tcp(1, "10.1.0.2", 1000, "10.2.0.2", 99)
}

// natVxlanPackets tests SNAT on the uplink with a tunnel to another node over it.
func natVxlanPackets(ps *packetScript) {
	natNode(ps)
	ps.do(tunnel("192.168.16.1", "192.168.16.9", 10))
	ps.bd(7)
	bvi := ps.loopUp()
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: bvi, VrfID: 1})
	ps.bridge(bvi, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	ps.bridge(bvi-1, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	ps.addr(bvi, "192.168.30.1/24")
	remote := mac("1a:2b:3c:4d:5e:02")
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: remote, BdID: 7, SwIfIndex: bvi - 1, StaticMac: true})
	ps.neighbor(true, bvi, "192.168.30.2", remote.String(), ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC)
	ps.route(true, 1, "10.1.2.0/24", via("192.168.30.2", uint32(bvi)))
	ps.natIf(true, bvi, 0)
	ps.natIf(true, bvi, nat_types.NAT_IS_INSIDE)
	ps.out.Reset()
	ps.note("to a pod of the other node: without the identities the outer source port is translated")
	natIdentities(ps, false)
	ps.tcp(1, "10.1.1.2", 1000, "10.1.2.9", 80)
	natIdentities(ps, true)
	ps.tcp(1, "10.1.1.2", 1001, "10.1.2.9", 80)
	ps.note("a service with a backend there")
	ps.do(balanced(true, "10.96.0.10", tcpProto, selfTwice, 0, backend("10.1.2.9", 8080, 1, 1), backend("10.1.2.9", 0, 0, 1)))
	ps.tcp(1, "10.1.1.2", 1002, "10.96.0.10", 80)
	ps.note("and its answer")
	inner := transport(vppfake.ProtoTCP, 1, 0, "10.1.2.9", 8080, "10.1.1.2", 1002)
	inner.EthDst, inner.EthSrc, inner.TTL, inner.Flags = mac("de:ad:00:00:00:01"), remote, 63, vppfake.FlagSYN|vppfake.FlagACK
	p := transport(vppfake.ProtoUDP, 4, 3, "192.168.16.9", 0, "192.168.16.1", 4789)
	p.VXLAN = &vppfake.VXLAN{VNI: 10, Inner: inner}
	ps.send(3, p)
	ps.do(identity(true, "192.168.16.1", 4789, 0))
	ps.send(3, p)
	ps.dump(&nat44_ed.Nat44UserSessionV3Dump{IPAddress: addr4("10.1.2.9")})
}

// natPipePackets tests SNAT in a pipe before the uplink: the uplink also carries packets between pods of different nodes, so packets of pods to
// the outside are translated in the pipe.
func natPipePackets(ps *packetScript) {
	natNode(ps)
	ps.natOut(false, 4)
	for n := index(1); n <= 4; n++ { // inside for VPP, so that the pipe's table is the only outside table; outside manually
		if n < 4 {
			ps.natIf(false, n, 0)
		}
		ps.natIf(true, n, nat_types.NAT_IS_INSIDE)
		for _, f := range []string{"nat-pre-in2out", "nat44-ed-classify"} {
			ps.do(&feature.FeatureEnableDisable{SwIfIndex: n, Enable: f == "nat44-ed-classify", ArcName: "ip4-unicast", FeatureName: f})
		}
	}
	ends := ps.do(&pipe.PipeCreate{IsSpecified: true, UserInstance: 8200}).(*pipe.PipeCreateReply)
	in, out := ends.PipeSwIfIndex[0], ends.PipeSwIfIndex[1]
	ps.up(ends.SwIfIndex)
	ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 4, UnnumberedSwIfIndex: out, IsAdd: true})
	ps.natOut(true, in)
	ps.route(true, 1, "0.0.0.0/0", via("0.0.0.0", uint32(in)))
	ps.route(true, 1, "10.1.0.0/16", fibPath{table: 0})
	ps.route(true, 0, "10.1.2.0/24", via("192.168.16.9", 4))
	local := backend("10.1.1.3", 8080, 1, 1)
	ps.do(balanced(true, "192.168.16.1", tcpProto, selfTwice, 0, local, backend("10.1.1.3", 0, 0, 1)))
	ps.out.Reset()
	ps.note("pods to the outside")
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80)
	ps.tcp(2, "10.1.1.3", 1500, "192.168.16.9", 80)
	ps.udp(1, "10.1.1.2", 1500, "8.8.8.8", 53)
	ps.ping(1, "10.1.1.2", "8.8.8.8", 3000)
	ps.note("answers")
	ps.tcp(4, "192.168.16.9", 80, "192.168.16.1", 1500, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(4, "8.8.8.8", 53, "192.168.16.1", 1500)
	ps.pong(4, "8.8.8.8", "192.168.16.1", 3000)
	ps.tcp(1, "10.1.1.2", 1500, "192.168.16.9", 80, vppfake.FlagACK)
	ps.note("to a pod of another node and back, and the other way round")
	ps.tcp(1, "10.1.1.2", 1600, "10.1.2.7", 80)
	ps.tcp(4, "10.1.2.7", 80, "10.1.1.2", 1600, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(4, "10.1.2.7", 1700, "10.1.1.2", 53)
	ps.udp(1, "10.1.1.2", 53, "10.1.2.7", 1700)
	ps.note("a node port, whose backend sees the client")
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80)
	ps.tcp(2, "10.1.1.3", 8080, "192.168.16.9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.tcp(4, "192.168.16.9", 1000, "192.168.16.1", 80, vppfake.FlagACK)
	ps.note("unasked, to a pod: its answer is not taken for one")
	ps.tcp(4, "192.168.16.9", 1000, "10.1.1.2", 80)
	ps.tcp(1, "10.1.1.2", 80, "192.168.16.9", 1000, vppfake.FlagSYN, vppfake.FlagACK)
	ps.udp(4, "192.168.16.9", 1001, "10.1.1.2", 53)
	ps.udp(1, "10.1.1.2", 53, "192.168.16.9", 1001)
	ps.sessions("10.1.1.2", "10.1.1.3", "192.168.16.1")
}
