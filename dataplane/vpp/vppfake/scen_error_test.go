package vppfake_test

import (
	"go.fd.io/govpp/binapi/fib_types"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func errorScenarios() []packetScenario {
	return []packetScenario{
		{"error_routes", errorRoutes},
		{"error_nat", errorNAT},
	}
}

// portUnreachable sends the reply of a machine without a listener on the port: h, behind the port h-1, received the packet.
func (ps *packetScript) portUnreachable(h int, from string, got vppfake.Packet) {
	ps.t.Helper()
	p := vppfake.Packet{EthSrc: hostMAC(h), EthDst: portMAC(h - 1), Src: addr(from), Dst: got.Src, Proto: vppfake.ProtoICMP,
		Error: &vppfake.ICMPError{Type: 3, Code: 3, Inner: got}}
	if got.Dst.Is6() {
		p.Proto, p.Error.Type, p.Error.Code = vppfake.ProtoICMPv6, 1, 4
	}
	ps.send(h-1, p)
}

func errorRoutes(ps *packetScript) {
	ps.reports = true
	ps.addr(1, "10.1.0.1/24")
	ps.addr(1, "10.7.0.1/24")
	ps.addr(1, "fd00:1::1/64")
	ps.host(1, "10.1.0.2", 1)
	ps.host(1, "10.7.0.2", 1)
	ps.host(1, "fd00:1::2", 1)
	reject := fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH}
	prohibit := fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT}
	reject6, prohibit6 := reject, prohibit
	reject6.v6, prohibit6.v6 = true, true
	ps.route(true, 0, "10.50.0.0/16", reject)
	ps.route(true, 0, "10.51.0.0/16", prohibit)
	ps.route(true, 0, "fd00:50::/64", reject6)
	ps.route(true, 0, "fd00:51::/64", prohibit6)
	ps.route(true, 0, "10.52.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	for _, dst := range []string{"10.50.0.1", "10.51.0.1", "10.52.0.1"} {
		ps.udp(1, "10.1.0.2", 1000, dst, 80)
		ps.tcp(1, "10.1.0.2", 1000, dst, 80)
	}
	ps.note("from another address of the interface; no machine has a route back")
	ps.udp(1, "10.7.0.2", 1000, "10.51.0.1", 80)
	ps.udp(1, "10.9.0.2", 1000, "10.51.0.1", 80)
	for _, dst := range []string{"fd00:50::1", "fd00:51::1"} {
		ps.udp(1, "fd00:1::2", 1000, dst, 80)
		ps.tcp(1, "fd00:1::2", 1000, dst, 80)
	}
	ps.note("long packets, a ping")
	p := transport(vppfake.ProtoUDP, 1, 0, "10.1.0.2", 1000, "10.51.0.1", 80)
	p.Size = 200
	ps.send(0, p)
	ps.ping(1, "10.1.0.2", "10.51.0.1", 7)
}

func errorNAT(ps *packetScript) {
	natNode(ps)
	ps.reports = true
	prohibit := fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT}
	ps.route(true, 0, "10.96.0.0/16", prohibit)
	ps.route(true, 0, "203.0.113.7/32", prohibit)
	ps.route(true, 0, "203.0.113.8/32", prohibit)
	ps.natPoolRange(true, "203.0.113.7", "203.0.113.7", 9, false)
	ps.do(identity(true, "203.0.113.7", 0, 0))
	ps.do(identity(true, "203.0.113.7", 0, 1))
	ps.note("a pod is told, by TCP and UDP")
	ps.tcp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	ps.udp(1, "10.1.1.2", 1000, "10.96.0.10", 80)
	// Not with UDP: the address is VPP's own, and VPP replies for ports without a listener, or punts the packets. Which of the two it does
	// depends on other plugins of this VPP (linux-cp).
	ps.tcp(1, "10.1.1.2", 1000, "203.0.113.7", 80)
	ps.udp(1, "10.1.1.2", 1000, "203.0.113.8", 80)
	ps.note("the outside is not, where NAT knows of nothing to leave alone")
	ps.udp(4, "192.168.16.9", 1000, "203.0.113.7", 80)
	ps.tcp(4, "192.168.16.9", 1000, "203.0.113.7", 80)
	ps.udp(4, "192.168.16.9", 1001, "203.0.113.8", 80)
	ps.tcp(4, "192.168.16.9", 1001, "203.0.113.8", 80)
	ps.sessions("203.0.113.7", "203.0.113.8")
	ps.note("a backend rejects: the client is told of the service")
	ps.do(balanced(true, "10.96.0.20", udpProto, selfTwice, 0, backend("10.1.1.3", 8080, 1, 1), backend("10.1.1.3", 8081, 1, 1)))
	ps.udp(1, "10.1.1.2", 1002, "10.96.0.20", 80)
	for port := range uint16(2) {
		ps.portUnreachable(2, "10.1.1.3", transport(vppfake.ProtoUDP, 1, 0, "10.1.1.2", 1002, "10.1.1.3", 8080+port))
	}
	ps.note("a machine outside rejects: the pod receives the error")
	ps.udp(1, "10.1.1.2", 2000, "192.168.16.9", 53)
	ps.portUnreachable(4, "192.168.16.9", transport(vppfake.ProtoUDP, 4, 3, "192.168.16.1", 2000, "192.168.16.9", 53))
	ps.note("about nothing that is known")
	ps.portUnreachable(2, "10.1.1.3", transport(vppfake.ProtoUDP, 1, 0, "10.1.1.2", 7, "10.1.1.3", 7))
	ps.sessions("10.1.1.2", "10.1.1.3", "10.1.1.4")
	ps.portUnreachable(4, "192.168.16.9", transport(vppfake.ProtoUDP, 4, 3, "192.168.16.1", 7, "192.168.16.9", 7))
}
