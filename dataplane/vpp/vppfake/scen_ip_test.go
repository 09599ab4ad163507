package vppfake_test

import (
	"go.fd.io/govpp/binapi/arp"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
)

type index = interface_types.InterfaceIndex

func prefixWithAddr(text string) ip_types.AddressWithPrefix {
	p, err := ip_types.ParseAddressWithPrefix(text)
	if err != nil {
		panic(err)
	}
	return p
}

func address(text string) ip_types.Address {
	a, err := ip_types.ParseAddress(text)
	if err != nil {
		panic(err)
	}
	return a
}

func ip4(text string) ip_types.IP4Address {
	a := address(text)
	return a.Un.GetIP4()
}

func ip6(text string) ip_types.IP6Address {
	a := address(text)
	return a.Un.GetIP6()
}

func (s *script) addr(i index, prefix string) {
	s.do(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: i, IsAdd: true, Prefix: prefixWithAddr(prefix)})
}

func (s *script) delAddr(i index, prefix string) {
	s.do(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: i, Prefix: prefixWithAddr(prefix)})
}

func (s *script) table(id uint32, v6 bool) {
	s.do(&ip.IPTableAddDelV2{IsAdd: true, CreateMfib: true, Table: ip.IPTable{TableID: id, IsIP6: v6, Name: "t"}})
}

// routes dumps a table.
func (s *script) routes(id uint32, v6 bool) {
	s.dump(&ip.IPRouteV2Dump{Table: ip.IPTable{TableID: id, IsIP6: v6}})
}

func addressScenarios() []scenario {
	return []scenario{
		{"address4", addresses4},
		{"address6", addresses6},
		{"unnumbered", unnumbered},
		{"ip6_enable", ip6Enable},
		{"table", tables},
		{"flow_hash", flowHashes},
	}
}

func flowHashes(s *script) {
	set := func(table uint32, af ip_types.AddressFamily, hash ip.IPFlowHashConfigV2) {
		s.do(&ip.SetIPFlowHashV3{TableID: table, Af: af, FlowHashConfig: hash})
	}
	set(0, ip_types.ADDRESS_IP4, ip.IP_API_V2_FLOW_HASH_SRC_IP)
	set(0, ip_types.ADDRESS_IP6, ip.IP_API_V2_FLOW_HASH_SRC_IP|ip.IP_API_V2_FLOW_HASH_SYMETRIC)
	set(0, ip_types.ADDRESS_IP6, 0)
	set(0, ip_types.ADDRESS_IP6, ip.IPFlowHashConfigV2(none))
	set(0, 2, ip.IP_API_V2_FLOW_HASH_SRC_IP)
	set(5, ip_types.ADDRESS_IP4, ip.IP_API_V2_FLOW_HASH_SRC_IP)
	set(none, ip_types.ADDRESS_IP4, ip.IP_API_V2_FLOW_HASH_SRC_IP)
	s.table(5, false)
	set(5, ip_types.ADDRESS_IP4, ip.IP_API_V2_FLOW_HASH_SRC_IP)
	set(5, ip_types.ADDRESS_IP6, ip.IP_API_V2_FLOW_HASH_SRC_IP)
}

func addresses4(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.addr(i, "10.1.1.1/24")
	s.addr(j, "10.1.1.1/24")
	s.addr(j, "10.1.1.2/24")
	s.addr(j, "10.1.0.1/16")
	s.addr(i, "10.1.1.2/24")
	s.addr(i, "10.1.1.3/32")
	s.addr(j, "10.2.0.1/32")
	s.addr(j, "10.3.0.0/31")
	s.addr(j, "10.4.0.1/30")
	s.addr(j, "0.0.0.0/0")
	s.addr(9, "10.9.0.1/32")
	s.addr(0, "10.8.0.1/32")
	s.dump(&ip.IPAddressDump{SwIfIndex: i})
	s.dump(&ip.IPAddressDump{SwIfIndex: j})
	s.dump(&ip.IPAddressDump{SwIfIndex: 9})
	s.routes(0, false)
	s.note("down takes the routes, up brings them back")
	s.down(j)
	s.routes(0, false)
	s.up(j)
	s.routes(0, false)
	s.delAddr(i, "10.1.1.1/24")
	s.delAddr(i, "10.1.1.1/24")
	s.delAddr(i, "10.1.1.2/16")
	s.delAddr(j, "10.1.1.2/24")
	s.routes(0, false)
	s.do(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: j, DelAll: true})
	s.dump(&ip.IPAddressDump{SwIfIndex: j})
	s.routes(0, false)
	s.note("set table with addresses, in another VRF the same address")
	s.table(5, false)
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 5})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: j, VrfID: 5})
	s.addr(j, "10.1.1.2/24")
	s.routes(5, false)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.routes(5, false)
}

func addresses6(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.routes(0, true)
	s.addr(i, "fd00:1::1/64")
	s.addr(i, "fd00:1::1/64")
	s.addr(j, "fd00:1::2/64")
	s.addr(i, "fd00:1::2/64")
	s.addr(j, "fd00:2::1/128")
	s.addr(j, "fe80::1/128")
	s.addr(j, "fe80::1/64")
	s.dump(&ip.IPAddressDump{SwIfIndex: i, IsIPv6: true})
	s.dump(&ip.IPAddressDump{SwIfIndex: j, IsIPv6: true})
	s.routes(0, true)
	s.do(&ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i})
	s.do(&ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: j})
	s.delAddr(i, "fd00:1::1/64")
	s.delAddr(i, "fd00:1::1/64")
	s.routes(0, true)
	s.do(&interfaces.SwInterfaceAddDelAddress{SwIfIndex: i, DelAll: true})
	s.routes(0, true)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.routes(0, true)
}

func unnumbered(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: j, IsAdd: true})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: j, IsAdd: true})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 9, UnnumberedSwIfIndex: j, IsAdd: true})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: 9, IsAdd: true})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: index(none)})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: j})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: i})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: 9})
	s.dump(&ip.IPAddressDump{SwIfIndex: j})
	s.routes(0, false)
	s.note("set table while unnumbered; lender in another table")
	s.table(5, false)
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: j, VrfID: 5})
	k := s.loopUp()
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: k, VrfID: 5})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: k, IsAdd: true})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: j})
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: i, UnnumberedSwIfIndex: j})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: j, VrfID: 5})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: index(none)})
	s.note("lender without address, and with one added later")
	l := s.loopUp()
	m := s.loopUp()
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: l, UnnumberedSwIfIndex: m, IsAdd: true})
	s.addr(l, "10.7.0.1/32")
	s.dump(&ip.IPAddressDump{SwIfIndex: m})
	s.routes(0, false)
	s.note("lender deleted")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: l})
	s.dump(&ip.IPUnnumberedDump{SwIfIndex: index(none)})
}

func ip6Enable(s *script) {
	i := s.loopUp()
	s.do(&ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i})
	s.do(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: i, Enable: true})
	s.do(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: i, Enable: true})
	s.do(&ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i})
	s.routes(0, true)
	s.dump(&ip.IPAddressDump{SwIfIndex: i, IsIPv6: true})
	s.do(&ip.SwInterfaceIP6SetLinkLocalAddress{SwIfIndex: i, IP: ip6("fe80::77")})
	s.do(&ip.SwInterfaceIP6GetLinkLocalAddress{SwIfIndex: i})
	s.do(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: i})
	s.do(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: i})
	s.do(&ip.SwInterfaceIP6EnableDisable{SwIfIndex: 9, Enable: true})
	s.do(&ip.SwInterfaceIP4EnableDisable{SwIfIndex: i, Enable: true})
}

func tables(s *script) {
	s.dump(&ip.IPTableDump{})
	s.do(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 3, Name: "three"}})
	s.do(&ip.IPTableAddDel{IsAdd: true, Table: ip.IPTable{TableID: 3, Name: "drei"}})
	s.do(&ip.IPTableAddDelV2{IsAdd: true, Table: ip.IPTable{TableID: 4, IsIP6: true}})
	s.do(&ip.IPTableAddDelV2{IsAdd: true, Table: ip.IPTable{TableID: 0, Name: "zero"}})
	s.do(&ip.IPTableAllocate{Table: ip.IPTable{TableID: 9, Name: "nine"}})
	s.do(&ip.IPTableAllocate{Table: ip.IPTable{TableID: 9, Name: "nine again"}})
	s.dump(&ip.IPTableDump{})
	s.routes(3, false)
	s.routes(4, true)
	s.routes(77, false)
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 3}})
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 3}})
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 0}})
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 77}})
	s.dump(&ip.IPTableDump{})
	s.note("table in use by a route, by an interface")
	i := s.loopUp()
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 9})
	s.route(true, 9, "10.9.0.0/24", via("", uint32(i)))
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 9}})
	s.dump(&ip.IPTableDump{})
	s.routes(9, false)
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 0})
	s.dump(&ip.IPTableDump{})
	s.table(10, false)
	s.route(true, 10, "10.9.0.0/24", via("", uint32(i)))
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 10}})
	s.dump(&ip.IPTableDump{})
	s.routes(10, false)
	s.note("flush and replace")
	s.table(11, false)
	s.route(true, 11, "10.9.0.0/24", via("", uint32(i)))
	s.route(true, 11, "10.9.1.0/24", via("", uint32(i)))
	s.do(&ip.IPTableFlush{Table: ip.IPTable{TableID: 11}})
	s.routes(11, false)
	s.do(&ip.IPTableFlush{Table: ip.IPTable{TableID: 99}})
	s.note("lookup from a table that is then deleted")
	s.table(12, false)
	s.route(true, 0, "10.12.0.0/16", fibPath{table: 12})
	s.do(&ip.IPTableAddDelV2{Table: ip.IPTable{TableID: 12}})
	s.dump(&ip.IPTableDump{})
	s.route(false, 0, "10.12.0.0/16")
	s.dump(&ip.IPTableDump{})
}

func neighborScenarios() []scenario {
	return []scenario{
		{"neighbor", neighbors},
		{"proxy_arp", proxyARP},
	}
}

func (s *script) neighbor(add bool, i index, addr, hw string, flags ip_neighbor.IPNeighborFlags) {
	s.do(&ip_neighbor.IPNeighborAddDel{IsAdd: add, Neighbor: ip_neighbor.IPNeighbor{
		SwIfIndex: i, Flags: flags, MacAddress: mac(hw), IPAddress: address(addr)}})
}

func (s *script) neighbors(i index, af ip_types.AddressFamily) {
	s.dump(&ip_neighbor.IPNeighborDump{SwIfIndex: i, Af: af})
}

func neighbors(s *script) {
	const static, noFib = ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC, ip_neighbor.IP_API_NEIGHBOR_FLAG_NO_FIB_ENTRY
	i := s.loopUp()
	s.addr(i, "10.1.1.1/24")
	s.addr(i, "fd00::1/64")
	s.neighbor(true, i, "10.1.1.2", "02:00:00:00:01:02", static)
	s.neighbor(true, i, "10.1.1.2", "02:00:00:00:01:02", static)
	s.neighbor(true, i, "10.1.1.2", "02:00:00:00:01:03", static)
	s.neighbor(true, i, "10.1.1.3", "02:00:00:00:01:04", 0)
	s.neighbor(true, i, "10.1.1.2", "02:00:00:00:01:05", 0)
	s.neighbor(true, i, "10.1.1.4", "02:00:00:00:01:06", noFib)
	s.neighbor(true, i, "10.99.1.4", "02:00:00:00:01:07", static)
	s.neighbor(true, i, "fd00::2", "02:00:00:00:01:08", static)
	s.neighbor(true, 9, "10.1.1.2", "02:00:00:00:01:03", static)
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.neighbors(i, ip_types.ADDRESS_IP6)
	s.neighbors(9, ip_types.ADDRESS_IP4)
	s.routes(0, false)
	s.routes(0, true)
	s.neighbor(false, i, "10.1.1.2", "02:00:00:00:01:05", static)
	s.neighbor(false, i, "10.1.1.2", "02:00:00:00:01:05", static)
	s.neighbor(false, i, "10.1.1.3", "02:00:00:00:ff:ff", 0)
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.routes(0, false)
	s.note("interface down and up")
	s.down(i)
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.routes(0, false)
	s.up(i)
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.routes(0, false)
	s.do(&ip_neighbor.IPNeighborFlush{Af: ip_types.ADDRESS_IP4, SwIfIndex: index(none)})
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.do(&ip_neighbor.IPNeighborFlush{Af: ip_types.ADDRESS_IP4, SwIfIndex: 9})
	s.do(&ip_neighbor.IPNeighborConfigGet{Af: ip_types.ADDRESS_IP4})
	s.do(&ip_neighbor.IPNeighborConfig{Af: ip_types.ADDRESS_IP4, MaxNumber: 100, MaxAge: 60, Recycle: true})
	s.do(&ip_neighbor.IPNeighborConfigGet{Af: ip_types.ADDRESS_IP4})
	s.do(&ip_neighbor.IPNeighborConfigGet{Af: ip_types.ADDRESS_IP6})
	s.note("address deleted, interface deleted")
	s.neighbor(true, i, "10.1.1.2", "02:00:00:00:01:02", static)
	s.delAddr(i, "10.1.1.1/24")
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.routes(0, false)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.neighbors(index(none), ip_types.ADDRESS_IP4)
	s.neighbors(index(none), ip_types.ADDRESS_IP6)
	s.routes(0, false)
}

func proxyARP(s *script) {
	i := s.loopUp()
	rng := func(low, high string) arp.ProxyArp {
		return arp.ProxyArp{Low: ip4(low), Hi: ip4(high)}
	}
	s.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: rng("10.0.0.1", "10.0.0.100")})
	s.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: rng("10.0.0.1", "10.0.0.100")})
	s.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: rng("10.0.0.50", "10.0.0.150")})
	s.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: rng("10.0.1.50", "10.0.0.150")})
	bad := rng("10.0.2.1", "10.0.2.2")
	bad.TableID = 66
	s.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: bad})
	s.dump(&arp.ProxyArpDump{})
	s.do(&arp.ProxyArpAddDel{Proxy: rng("10.0.0.1", "10.0.0.99")})
	s.do(&arp.ProxyArpAddDel{Proxy: rng("10.0.0.1", "10.0.0.100")})
	s.do(&arp.ProxyArpAddDel{Proxy: rng("10.0.0.1", "10.0.0.100")})
	s.dump(&arp.ProxyArpDump{})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: i, Enable: true})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: i, Enable: true})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: 9, Enable: true})
	s.dump(&arp.ProxyArpIntfcDump{})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: i})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: i})
	s.dump(&arp.ProxyArpIntfcDump{})
	s.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: i, Enable: true})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.dump(&arp.ProxyArpIntfcDump{})
}
