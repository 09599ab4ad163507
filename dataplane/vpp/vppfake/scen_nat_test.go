package vppfake_test

import (
	"fmt"
	"time"

	"go.fd.io/govpp/binapi/dhcp"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

func natScenarios() []scenario {
	return []scenario{
		{"nat_plugin", natPlugin},
		{"nat_interfaces", natInterfaces},
		{"nat_pool", natPool},
		{"nat_static", natStatic},
		{"nat_identity", natIdentity},
		{"nat_resolve", natResolve},
		{"nat_lb", natLB},
		{"nat_fib", natFIB},
		{"nat_delete", natDelete},
		{"dhcp_client", dhcpClients},
	}
}

const (
	udpProto = 17
	tcpProto = 6
	out2in   = nat_types.NAT_IS_OUT2IN_ONLY
)

func addr4(text string) ip_types.IP4Address { return ip_types.IP4Address(addr(text).As4()) }

func (s *script) natOn() {
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 1000})
	s.do(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
}

func (s *script) natIf(add bool, i index, flags nat_types.NatConfigFlags) {
	s.do(&nat44_ed.Nat44InterfaceAddDelFeature{IsAdd: add, SwIfIndex: i, Flags: flags})
}

func (s *script) natOut(add bool, i index) {
	s.do(&nat44_ed.Nat44EdAddDelOutputInterface{IsAdd: add, SwIfIndex: i})
}

func (s *script) natPoolRange(add bool, first, last string, vrf uint32, twice bool) {
	q := &nat44_ed.Nat44AddDelAddressRange{IsAdd: add, FirstIPAddress: addr4(first), LastIPAddress: addr4(last), VrfID: vrf}
	if twice {
		q.Flags = nat_types.NAT_IS_TWICE_NAT
	}
	s.do(q)
}

func backend(a string, port uint16, weight uint8, vrf ...uint32) nat44_ed.Nat44LbAddrPort {
	l := nat44_ed.Nat44LbAddrPort{Addr: addr4(a), Port: port, Probability: weight}
	if len(vrf) > 0 {
		l.VrfID = vrf[0]
	}
	return l
}

func balanced(add bool, ext string, proto uint8, flags nat_types.NatConfigFlags, affinity uint32,
	locals ...nat44_ed.Nat44LbAddrPort) *nat44_ed.Nat44AddDelLbStaticMapping {
	return &nat44_ed.Nat44AddDelLbStaticMapping{IsAdd: add, Flags: flags, ExternalAddr: addr4(ext), ExternalPort: 80,
		Protocol: proto,
		Affinity: affinity, Tag: "the tag", Locals: locals}
}

func (s *script) local(add bool, ext string, proto uint8, l nat44_ed.Nat44LbAddrPort) {
	s.do(&nat44_ed.Nat44LbStaticMappingAddDelLocal{IsAdd: add, ExternalAddr: addr4(ext), ExternalPort: 80, Protocol: proto,
		Local: l})
}

func static(add bool, local, ext string, flags nat_types.NatConfigFlags) *nat44_ed.Nat44AddDelStaticMappingV2 {
	return &nat44_ed.Nat44AddDelStaticMappingV2{IsAdd: add, Flags: flags, LocalIPAddress: addr4(local),
		ExternalIPAddress: addr4(ext),
		LocalPort:         8080, ExternalPort: 80, Protocol: tcpProto, ExternalSwIfIndex: index(none), Tag: "static"}
}

func identity(add bool, a string, port uint16, vrf uint32) *nat44_ed.Nat44AddDelIdentityMapping {
	q := &nat44_ed.Nat44AddDelIdentityMapping{IsAdd: add, IPAddress: addr4(a), Port: port, Protocol: udpProto, VrfID: vrf,
		SwIfIndex: index(none), Tag: "identity"}
	if port == 0 {
		q.Flags, q.Protocol = nat_types.NAT_IS_ADDR_ONLY, 0
	}
	return q
}

// natState records all configuration that NAT reports.
func (s *script) natState() {
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
	s.dump(&nat44_ed.Nat44AddressDump{})
	s.dump(&nat44_ed.Nat44InterfaceDump{})
	s.dump(&nat44_ed.Nat44StaticMappingDump{})
	s.dump(&nat44_ed.Nat44LbStaticMappingDump{})
	s.dump(&nat44_ed.Nat44IdentityMappingDump{})
}

func natPlugin(s *script) {
	s.natState()
	i := s.loopUp()
	s.note("off")
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{})
	s.natIf(true, i, nat_types.NAT_IS_INSIDE)
	s.natIf(true, 9, nat_types.NAT_IS_INSIDE)
	s.natOut(true, i)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.1", none, false)
	s.do(static(true, "10.1.0.2", "10.9.0.1", out2in))
	s.do(static(false, "10.1.0.2", "10.9.0.1", out2in))
	s.do(balanced(true, "10.9.0.1", udpProto, out2in, 0, backend("10.1.0.2", 1, 1)))
	s.local(true, "10.9.0.1", udpProto, backend("10.1.0.2", 1, 1))
	s.do(identity(true, "10.9.0.1", 53, 0))
	s.do(&nat44_ed.Nat44DelSession{Address: addr4("10.1.0.1"), Protocol: udpProto})
	s.do(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	s.do(&nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4})
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
	s.note("on")
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Flags: nat44_ed.NAT44_IS_STATIC_MAPPING_ONLY})
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true, Sessions: 5000, InsideVrf: 7, OutsideVrf: 8})
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
	s.do(&nat44_ed.NatSetTimeouts{UDP: 1, TCPEstablished: 2, TCPTransitory: 3, ICMP: 4})
	s.do(&nat44_ed.Nat44ForwardingEnableDisable{Enable: true})
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
	s.dump(&ip.IPTableDump{})
	s.note("off again")
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{})
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{})
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{Enable: true})
	s.do(&nat44_ed.Nat44ShowRunningConfig{})
}

func natInterfaces(s *script) {
	a, b, c := s.loopUp(), s.loopUp(), s.loopUp()
	s.natOn()
	show := func() {
		s.dump(&nat44_ed.Nat44InterfaceDump{})
		for _, i := range []index{a, b, c} {
			for _, f := range []string{"nat-pre-in2out", "nat-pre-out2in", "nat44-ed-classify", "ip4-sv-reassembly-feature"} {
				s.enabled(i, "ip4-unicast", f)
			}
			s.enabled(i, "ip4-output", "nat-pre-in2out-output")
			s.enabled(i, "ip4-output", "ip4-sv-reassembly-output-feature")
		}
	}
	s.natIf(true, a, nat_types.NAT_IS_INSIDE)
	s.natIf(true, a, nat_types.NAT_IS_INSIDE)
	s.natIf(true, b, 0)
	s.natOut(true, c)
	show()
	s.natIf(true, a, 0)
	s.natOut(true, a)
	s.natOut(true, c)
	s.natIf(true, c, 0)
	show()
	s.natIf(false, a, nat_types.NAT_IS_INSIDE)
	show()
	s.note("the wrong role")
	s.natIf(false, b, nat_types.NAT_IS_INSIDE)
	show()
	s.natIf(false, b, 0)
	s.natOut(false, c)
	s.natOut(false, c)
	s.natIf(true, 9, 0)
	s.natOut(true, 9)
	show()
	s.note("deleted with NAT on")
	s.natIf(true, b, 0)
	s.natIf(true, b, nat_types.NAT_IS_INSIDE)
	s.natOut(true, c)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: a})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: b})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: c})
	s.dump(&nat44_ed.Nat44InterfaceDump{})
	s.loopUp()
	s.dump(&nat44_ed.Nat44InterfaceDump{})
}

func natPool(s *script) {
	s.natOn()
	s.table(5, false)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.4", none, false)
	s.natPoolRange(true, "10.9.0.3", "10.9.0.9", none, false)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.1", none, true)
	s.natPoolRange(true, "10.9.1.1", "10.9.1.2", 5, false)
	s.natPoolRange(true, "10.9.2.1", "10.9.2.1", 6, true)
	s.natPoolRange(true, "10.9.3.2", "10.9.3.1", none, false)
	s.dump(&nat44_ed.Nat44AddressDump{})
	s.dump(&ip.IPTableDump{})
	s.natPoolRange(false, "10.9.0.2", "10.9.0.2", none, false)
	s.natPoolRange(false, "10.9.0.1", "10.9.0.4", none, false)
	s.natPoolRange(false, "10.9.2.1", "10.9.2.1", none, true)
	s.natPoolRange(false, "10.9.1.1", "10.9.1.2", 77, false)
	s.dump(&nat44_ed.Nat44AddressDump{})
	s.dump(&ip.IPTableDump{})
}

func natStatic(s *script) {
	s.natOn()
	s.do(static(true, "10.1.0.2", "10.9.0.1", out2in))
	s.do(static(true, "10.1.0.2", "10.9.0.1", out2in))
	s.do(static(true, "10.1.0.3", "10.9.0.1", out2in))
	s.do(static(true, "10.1.0.2", "10.9.0.2", out2in))
	s.note("both directions: the local side must be free")
	s.do(static(true, "10.1.0.2", "10.9.0.3", 0))
	s.do(static(true, "10.1.0.2", "10.9.0.4", 0))
	s.do(static(true, "10.1.0.4", "10.9.0.5", out2in|nat_types.NAT_IS_SELF_TWICE_NAT))
	s.do(static(true, "10.1.0.4", "10.9.0.6", out2in|nat_types.NAT_IS_TWICE_NAT))
	q := static(true, "10.1.0.4", "10.9.0.7", out2in|nat_types.NAT_IS_TWICE_NAT)
	q.PoolIPAddress, q.MatchPool = addr4("10.8.0.1"), true
	s.do(q)
	q = static(true, "10.1.0.5", "10.9.0.8", out2in|nat_types.NAT_IS_ADDR_ONLY)
	s.do(q)
	q.Flags |= nat_types.NAT_IS_TWICE_NAT
	s.do(q)
	q = static(true, "10.1.0.6", "10.9.0.9", out2in)
	q.VrfID = 7
	s.do(q)
	q = static(true, "10.1.0.6", "10.9.0.10", out2in)
	q.VrfID = none
	s.do(q)
	s.natState()
	s.note("LB requests on them")
	s.local(true, "10.9.0.1", tcpProto, backend("10.1.0.9", 8080, 1))
	s.do(balanced(false, "10.9.0.1", tcpProto, out2in, 0))
	s.do(balanced(true, "10.9.0.1", tcpProto, out2in, 0, backend("10.1.0.2", 1, 1), backend("10.1.0.2", 1, 1)))
	s.note("gone")
	s.do(static(false, "10.1.0.77", "10.9.0.1", out2in))
	s.do(static(false, "10.1.0.2", "10.9.0.1", out2in))
	s.do(static(false, "10.1.0.2", "10.9.0.3", 0))
	s.do(static(true, "10.1.0.2", "10.9.0.4", 0))
	s.do(static(false, "10.1.0.5", "10.9.0.8", out2in|nat_types.NAT_IS_ADDR_ONLY))
	s.natState()
}

func natIdentity(s *script) {
	s.natOn()
	s.do(identity(true, "10.9.0.1", 4789, 0))
	s.do(identity(true, "10.9.0.1", 4789, 0))
	s.do(identity(true, "10.9.0.1", 4789, 3))
	s.do(identity(true, "10.9.0.1", 0, 3))
	s.do(identity(true, "10.9.0.2", 0, 0))
	s.do(identity(true, "10.9.0.3", 0, none))
	s.do(static(true, "10.1.0.2", "10.9.0.2", out2in))
	s.natState()
	s.dump(&ip.IPTableDump{})
	s.do(identity(false, "10.9.0.1", 4789, 9))
	s.do(identity(false, "10.9.0.1", 4789, 0))
	s.do(identity(false, "10.9.0.1", 4789, 0))
	s.natState()
	s.do(identity(false, "10.9.0.1", 4789, 3))
	s.do(identity(false, "10.9.0.1", 0, 3))
	s.do(identity(false, "10.9.0.3", 0, 0))
	s.natState()
	s.dump(&ip.IPTableDump{})
}

// natResolve tests mappings that have an interface's address.
func natResolve(s *script) {
	s.natOn()
	i := s.loopUp()
	q := static(true, "10.1.0.2", "0.0.0.0", out2in|nat_types.NAT_IS_TWICE_NAT)
	q.ExternalSwIfIndex = i
	s.do(q)
	s.do(q)
	id := identity(true, "0.0.0.0", 4789, 0)
	id.SwIfIndex = i
	s.do(id)
	s.natState()
	s.addr(i, "10.9.0.1/24")
	s.natState()
	s.addr(i, "10.9.1.1/24")
	s.natState()
	s.delAddr(i, "10.9.0.1/24")
	s.natState()
	s.delAddr(i, "10.9.1.1/24")
	s.addr(i, "10.9.2.1/24")
	s.natState()
	id.IsAdd, q.IsAdd = false, false
	s.do(id)
	s.do(q)
	s.do(q)
	s.natState()
	s.note("interface 0 is an interface, too")
	q.IsAdd, q.ExternalSwIfIndex = true, 0
	s.do(q)
	s.natState()
}

func natLB(s *script) {
	s.natOn()
	a, b, c := backend("10.1.0.2", 8080, 1), backend("10.1.0.3", 8080, 2), backend("10.1.0.4", 8080, 3, 5)
	s.do(balanced(true, "10.9.0.1", tcpProto, out2in, 0))
	s.do(balanced(true, "10.9.0.1", tcpProto, out2in, 0, a))
	s.do(balanced(true, "10.9.0.1", tcpProto, 0, 0, a, b))
	s.do(balanced(true, "10.9.0.1", tcpProto, out2in, 0, a, b))
	s.do(balanced(true, "10.9.0.1", tcpProto, out2in, 0, a, b))
	s.do(balanced(true, "10.9.0.1", udpProto, out2in|nat_types.NAT_IS_SELF_TWICE_NAT, 300, a, a, c))
	s.do(balanced(true, "10.9.0.2", udpProto, out2in|nat_types.NAT_IS_TWICE_NAT|nat_types.NAT_IS_SELF_TWICE_NAT, 0, a, c))
	s.natState()
	s.note("backends")
	s.local(true, "10.9.0.1", tcpProto, a)
	s.local(true, "10.9.0.1", tcpProto, c)
	s.local(true, "10.9.0.1", tcpProto, backend("10.1.0.4", 8080, 3))
	s.local(true, "10.9.0.9", tcpProto, c)
	s.local(false, "10.9.0.1", tcpProto, backend("10.1.0.9", 8080, 1))
	s.natState()
	s.local(false, "10.9.0.1", tcpProto, b)
	s.local(true, "10.9.0.1", tcpProto, backend("10.1.0.5", 8080, 9))
	s.natState()
	s.local(false, "10.9.0.1", tcpProto, a)
	s.local(false, "10.9.0.1", tcpProto, c)
	s.local(false, "10.9.0.1", tcpProto, backend("10.1.0.5", 8080, 9))
	s.local(false, "10.9.0.1", udpProto, a)
	s.local(false, "10.9.0.1", udpProto, a)
	s.natState()
	s.note("one mapping of the pool's address, both directions")
	s.natPoolRange(true, "10.9.0.5", "10.9.0.5", none, false)
	s.do(balanced(true, "10.9.0.5", tcpProto, 0, 0, a, b))
	s.note("deletion of an identity takes the backends of its table")
	s.do(identity(false, "10.9.0.2", 80, 5))
	s.natState()
	s.do(identity(false, "10.9.0.2", 80, 5))
	s.do(identity(false, "10.9.0.2", 80, 0))
	s.natState()
	s.do(balanced(false, "10.9.0.1", tcpProto, 0, 0))
	s.do(balanced(false, "10.9.0.1", udpProto, out2in, 0, a))
	s.do(balanced(false, "10.9.0.1", udpProto, out2in, 0, a))
	s.do(balanced(false, "10.9.0.5", tcpProto, 0, 0))
	s.natState()
}

// natFIB tests the routes that NAT adds to the tables of outside interfaces.
func natFIB(s *script) {
	s.natOn()
	a, b := s.loopUp(), s.loopUp()
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: b})
	s.addr(a, "10.1.0.1/24")
	s.natIf(true, a, 0)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.1", none, false)
	s.do(static(true, "10.1.0.2", "10.9.0.2", out2in))
	s.do(balanced(true, "10.9.0.3", udpProto, out2in, 0, backend("10.1.0.2", 1, 1), backend("10.1.0.3", 1, 1)))
	s.do(identity(true, "10.9.0.4", 53, 0))
	s.natPoolRange(true, "10.9.0.5", "10.9.0.5", none, true)
	s.routes(0, false)
	s.note("load-balancing mappings only at the next interface")
	s.natOut(true, b)
	s.routes(0, false)
	s.do(balanced(false, "10.9.0.3", udpProto, out2in, 0))
	s.do(static(false, "10.1.0.2", "10.9.0.2", out2in))
	s.natPoolRange(false, "10.9.0.1", "10.9.0.1", none, false)
	s.routes(0, false)
	s.natIf(false, a, 0)
	s.natOut(false, b)
	s.routes(0, false)
}

// dhcpClients tests DHCP clients without a server.
func dhcpClients(s *script) {
	i, j := s.loop(), s.loopUp()
	client := func(add bool, ifx index) {
		s.do(&dhcp.DHCPClientConfig{IsAdd: add, Client: dhcp.DHCPClient{
			SwIfIndex: ifx, WantDHCPEvent: true, SetBroadcastFlag: true, PID: 7, ID: make([]byte, 64)}})
	}
	client(false, i)
	client(true, i)
	client(true, i)
	client(true, 9)
	s.dump(&dhcp.DHCPClientDump{})
	s.do(&dhcp.DHCPClientConfig{IsAdd: true, Client: dhcp.DHCPClient{SwIfIndex: j, Hostname: "a-host",
		ID: append([]byte("an-id"), make([]byte, 59)...)}})
	s.advance(50 * time.Millisecond) // VPP stores the hardware address with its first request
	s.dump(&dhcp.DHCPClientDump{})
	s.note("the client outlives its interface")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.dump(&dhcp.DHCPClientDump{})
	client(false, i)
	s.loop()
	client(true, i)
	client(false, i)
	client(false, j)
	s.dump(&dhcp.DHCPClientDump{})
}

// natDelete disables NAT while all kinds of mappings except load-balancing ones exist.
func natDelete(s *script) {
	s.natOn()
	a, b := s.loopUp(), s.loopUp()
	s.natIf(true, a, 0)
	s.natIf(true, a, nat_types.NAT_IS_INSIDE)
	s.natOut(true, b)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.2", 7, false)
	s.natPoolRange(true, "10.9.0.1", "10.9.0.2", none, true)
	for n := range 3 {
		s.do(static(true, "10.1.0.2", fmt.Sprintf("10.9.1.%d", n), out2in))
	}
	s.do(&nat44_ed.Nat44EdPluginEnableDisable{})
	s.natState()
	s.routes(0, false)
	s.enabled(a, "ip4-unicast", "nat44-ed-classify")
	s.enabled(b, "ip4-output", "nat-pre-in2out-output")
	s.natOn()
	s.natState()
}
