package vppfake_test

import (
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memif"
	"go.fd.io/govpp/binapi/pipe"
	"go.fd.io/govpp/binapi/vxlan"
)

func l2Scenarios() []scenario {
	return []scenario{
		{"bridge_domain", bridgeDomains},
		{"bridge_port", bridgePorts},
		{"l2fib", l2FIB},
		{"xconnect", xconnects},
	}
}

func (s *script) bridges() { s.dump(&l2.BridgeDomainDump{BdID: none, SwIfIndex: index(none)}) }

func (s *script) bridge(i index, bd uint32, port l2.L2PortType, shg uint8) {
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: i, BdID: bd, PortType: port, Shg: shg, Enable: true})
}

func (s *script) bd(id uint32) {
	s.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: id, Forward: true, Flood: false, BdTag: "vxlanBD"})
}

func bridgeDomains(s *script) {
	s.bridges()
	s.bd(7)
	s.bd(7)
	s.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 8, Forward: true, Flood: true, UuFlood: true, Learn: true, ArpTerm: true, ArpUfwd: true, MacAge: 5})
	s.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: none})
	s.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 0})
	s.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 1 << 24})
	s.bridges()
	s.dump(&l2.BridgeDomainDump{BdID: 8, SwIfIndex: index(none)})
	s.dump(&l2.BridgeDomainDump{BdID: 99, SwIfIndex: index(none)})
	s.dump(&l2.BridgeDomainDump{BdID: 8, SwIfIndex: 1})
	s.do(&l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_LEARN})
	s.do(&l2.BridgeFlags{BdID: 99, IsSet: true, Flags: l2.BRIDGE_API_FLAG_LEARN})
	s.bridges()
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	s.do(&l2.BridgeDomainAddDelV2{BdID: 0})
	s.do(&l2.BridgeDomainAddDel{BdID: 8})
	s.bridges()
}

func bridgePorts(s *script) {
	i, j, k := s.loopUp(), s.loopUp(), s.loopUp()
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.bridges()
	s.bd(7)
	s.bd(8)
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	s.bridge(j, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	s.bridges()
	s.bridge(j, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	s.bridge(k, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	s.bridge(9, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	s.bridges()
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.note("move, change of group")
	s.bridge(k, 8, l2.L2_API_PORT_TYPE_NORMAL, 2)
	s.bridge(j, 7, l2.L2_API_PORT_TYPE_NORMAL, 5)
	s.bridges()
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: j, BdID: 7})
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: j, BdID: 7})
	s.note("address on the BVI, MAC of the BVI")
	s.addr(i, "10.1.1.1/24")
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: i, MacAddress: mac("02:00:00:00:00:77")})
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.note("interface deleted while a member")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: k})
	s.bridges()
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	s.do(&l2.BridgeDomainAddDelV2{BdID: 8})
	s.bridges()
}

func l2FIB(s *script) {
	i, j := s.loopUp(), s.loopUp()
	s.bd(7)
	add := func(m string, bd uint32, i index, static, filter, bvi bool) {
		s.do(&l2.L2fibAddDel{IsAdd: true, Mac: mac(m), BdID: bd, SwIfIndex: i, StaticMac: static, FilterMac: filter, BviMac: bvi})
	}
	add("02:00:00:00:00:01", 7, i, true, false, false)
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.bridge(j, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	add("02:00:00:00:00:01", 7, i, true, false, false)
	add("02:00:00:00:00:01", 7, i, true, false, false)
	add("02:00:00:00:00:01", 7, j, true, false, false)
	add("02:00:00:00:00:02", 7, i, false, false, false)
	add("02:00:00:00:00:03", 7, index(none), true, true, false)
	add("02:00:00:00:00:04", 7, i, true, false, true)
	add("02:00:00:00:00:05", 9, i, true, false, false)
	add("02:00:00:00:00:06", 7, 9, true, false, false)
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.dump(&l2.L2FibTableDump{BdID: none})
	s.dump(&l2.L2FibTableDump{BdID: 9})
	s.note("delete")
	del := func(m string, bd uint32, i index) { s.do(&l2.L2fibAddDel{Mac: mac(m), BdID: bd, SwIfIndex: i}) }
	del("02:00:00:00:00:01", 7, i)
	del("02:00:00:00:00:01", 7, j)
	del("02:00:00:00:00:01", 7, j)
	del("02:00:00:00:00:03", 7, 0)
	del("02:00:00:00:00:03", 7, index(none))
	del("02:00:00:00:00:02", 9, i)
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.note("port leaves, interface goes, bridge domain goes")
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: i, BdID: 7})
	s.dump(&l2.L2FibTableDump{BdID: 7})
	add("02:00:00:00:00:07", 7, j, true, false, false)
	add("02:00:00:00:00:08", 7, j, false, false, false)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.dump(&l2.L2FibTableDump{BdID: 7})
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	s.bd(7)
	s.dump(&l2.L2FibTableDump{BdID: 7})
}

func xconnects(s *script) {
	i, j := s.loopUp(), s.loopUp()
	x := func(rx, tx index, enable bool) {
		s.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: enable})
	}
	x(i, j, true)
	x(i, j, true)
	x(j, i, true)
	x(9, i, true)
	x(i, 9, true)
	s.dump(&l2.L2XconnectDump{})
	s.bd(7)
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.dump(&l2.L2XconnectDump{})
	s.bridges()
	x(j, i, false)
	x(j, i, false)
	s.dump(&l2.L2XconnectDump{})
	x(j, i, true)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.dump(&l2.L2XconnectDump{})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: j})
	s.dump(&l2.L2XconnectDump{})
}

func tunnelScenarios() []scenario {
	return []scenario{
		{"vxlan", vxlans},
		{"vxlan6", vxlans6},
		{"memif", memifs},
		{"pipe", pipes},
	}
}

func tunnel(src, dst string, vni uint32) *vxlan.VxlanAddDelTunnelV3 {
	return &vxlan.VxlanAddDelTunnelV3{IsAdd: true, Instance: none, SrcAddress: address(src), DstAddress: address(dst),
		McastSwIfIndex: index(none), DecapNextIndex: none, Vni: vni}
}

func vxlans(s *script) {
	i := s.loopUp()
	s.addr(i, "192.168.16.1/24")
	s.do(tunnel("192.168.16.1", "192.168.16.2", 10))
	s.do(tunnel("192.168.16.1", "192.168.16.2", 10))
	s.routes(0, false)
	s.do(tunnel("192.168.16.1", "192.168.16.2", 11))
	s.do(tunnel("192.168.16.1", "192.168.16.3", 10))
	s.routes(0, false)
	s.note("errors")
	s.do(tunnel("192.168.16.1", "192.168.16.1", 10))
	q := tunnel("192.168.16.1", "192.168.16.9", 10)
	q.EncapVrfID = 77
	s.do(q)
	q = tunnel("192.168.16.1", "192.168.16.9", 10)
	q.Instance = 0
	s.do(q)
	q.Instance = 44
	s.do(q)
	q = tunnel("192.168.16.1", "192.168.16.10", 10)
	q.DecapNextIndex = 77
	s.do(q)
	q = tunnel("192.168.16.1", "192.168.16.10", 10)
	q.DstAddress = address("fd00::1")
	s.do(q)
	q = tunnel("192.168.16.1", "192.168.16.10", 12)
	q.SrcPort, q.DstPort = 4444, 4445
	s.do(q)
	s.do(tunnel("192.168.16.1", "224.1.1.1", 10))
	s.dump(&vxlan.VxlanTunnelV2Dump{SwIfIndex: index(none)})
	s.dump(&vxlan.VxlanTunnelDump{SwIfIndex: 2})
	s.dump(&vxlan.VxlanTunnelV2Dump{SwIfIndex: i})
	s.interfaces()
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 2, PromiscOn: true})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 2, Mtu: 1450})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 2, MacAddress: mac("02:00:00:00:00:55")})
	s.down(2)
	s.interfaces()
	s.note("delete")
	q = tunnel("192.168.16.1", "192.168.16.2", 10)
	q.IsAdd = false
	s.do(q)
	s.do(q)
	q = tunnel("192.168.16.1", "192.168.16.3", 10)
	q.IsAdd = false
	s.do(q)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 3})
	s.routes(0, false)
	s.interfaces()
	s.note("bridged tunnel")
	s.bd(7)
	s.bridge(3, 7, 0, 1)
	s.do(&interfaces.SwInterfaceSetFlags{SwIfIndex: 3, Flags: 1})
	s.bridges()
	q = tunnel("192.168.16.1", "192.168.16.2", 11)
	q.IsAdd = false
	s.do(q)
	s.bridges()
	s.interfaces()
	s.do(&ip.IPRouteLookupV2{Prefix: routePrefix("192.168.16.2/32")})
}

func vxlans6(s *script) {
	i := s.loopUp()
	s.addr(i, "fd00::1/64")
	s.do(tunnel("fd00::1", "fd00::2", 10))
	s.do(tunnel("fd00::1", "fd00::2", 10))
	s.do(tunnel("fd00::9", "fd00::2", 10))
	s.dump(&vxlan.VxlanTunnelV2Dump{SwIfIndex: index(none)})
	s.routes(0, true)
	q := tunnel("fd00::1", "fd00::2", 10)
	q.IsAdd = false
	s.do(q)
	s.do(q)
	_ = ip_types.ADDRESS_IP6
}

func memifs(s *script) {
	dump := func() { s.dump(&memif.MemifDump{}) }
	s.dump(&memif.MemifSocketFilenameDump{})
	sock := func(add bool, id uint32, name string) {
		s.do(&memif.MemifSocketFilenameAddDelV2{IsAdd: add, SocketID: id, SocketFilename: name})
	}
	sock(true, 1, "/tmp/vppfake-memif-1.sock")
	sock(true, 1, "/tmp/vppfake-memif-1.sock")
	sock(true, 1, "/tmp/vppfake-memif-2.sock")
	sock(true, 2, "/tmp/vppfake-memif-2.sock")
	sock(true, 0, "/tmp/vppfake-memif-0.sock")
	sock(true, none, "/tmp/vppfake-memif-3.sock")
	sock(true, 9, "")
	sock(false, 77, "")
	s.dump(&memif.MemifSocketFilenameDump{})
	q := memif.MemifCreateV2{Role: memif.MEMIF_ROLE_API_MASTER, ID: 4, SocketID: 1, RingSize: 1024, BufferSize: 2048, HwAddr: mac("02:00:00:00:00:44")}
	create := func(change func(*memif.MemifCreateV2)) {
		c := q
		if change != nil {
			change(&c)
		}
		s.do(&c)
	}
	create(nil)
	create(nil)
	create(func(q *memif.MemifCreateV2) { q.ID = 5; q.Role = memif.MEMIF_ROLE_API_SLAVE })
	create(func(q *memif.MemifCreateV2) { q.ID = 5; q.RingSize = 1000 })
	create(func(q *memif.MemifCreateV2) { q.ID = 5; q.SocketID = 55 })
	create(func(q *memif.MemifCreateV2) {
		q.SocketID = 2
		q.Role = memif.MEMIF_ROLE_API_SLAVE
		q.RingSize = 0
		q.BufferSize = 0
		q.HwAddr = mac("00:00:00:00:00:00")
	})
	create(func(q *memif.MemifCreateV2) { q.ID = 6; q.Mode = memif.MEMIF_MODE_API_IP })
	s.do(&memif.MemifCreate{Role: memif.MEMIF_ROLE_API_MASTER, ID: 8, SocketID: 1})
	dump()
	s.interfaces()
	s.up(1)
	dump()
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: 1})
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 1, Mode: 2})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 1, PromiscOn: true})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 1, Mtu: 1450})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 1, MacAddress: mac("02:00:00:00:00:55")})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 3, MacAddress: mac("02:00:00:00:00:55")})
	s.do(&interfaces.SwInterfaceGetMacAddress{SwIfIndex: 3})
	s.interfaces()
	sock(false, 1, "")
	s.do(&memif.MemifDelete{SwIfIndex: 1})
	s.do(&memif.MemifDelete{SwIfIndex: 1})
	s.do(&memif.MemifDelete{SwIfIndex: 0})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	sock(false, 1, "")
	sock(false, 2, "")
	s.do(&memif.MemifDelete{SwIfIndex: 2})
	sock(false, 2, "")
	sock(false, 0, "")
	dump()
	s.dump(&memif.MemifSocketFilenameDump{})
}

func pipes(s *script) {
	s.do(&pipe.PipeCreate{IsSpecified: true, UserInstance: 8200})
	for _, taken := range []uint32{8200, 16 * 1024} { // besides the error, VPP's reply has undefined contents
		r := &pipe.PipeCreateReply{}
		err := s.conn.Invoke(s.t.Context(), &pipe.PipeCreate{IsSpecified: true, UserInstance: taken}, r)
		s.line("pipe %d again: retval %d %v", taken, r.Retval, err)
	}
	s.do(&pipe.PipeCreate{UserInstance: 77})
	s.dump(&pipe.PipeDump{})
	s.interfaces()
	s.note("an end is up with its parent")
	s.up(2)
	s.interfaces()
	s.down(2)
	s.up(1)
	s.interfaces()
	s.down(2)
	s.interfaces()
	s.note("and down with it")
	s.down(1)
	s.interfaces()
	s.up(1)
	s.down(2)
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: 2, Tag: "first"})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: 2, VrfID: 7})
	s.table(7, false)
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: 2, VrfID: 7})
	s.addr(3, "169.254.1.1/32")
	s.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 3, UnnumberedSwIfIndex: 2, IsAdd: true})
	s.up(2)
	s.note("routes through it")
	s.route(true, 7, "0.0.0.0/0", via("0.0.0.0", 2))
	s.route(true, 7, "10.9.0.0/16", via("10.9.9.9", 2))
	s.routes(7, false)
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 2, MacAddress: mac("02:00:00:00:00:55")})
	s.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1400, 0, 0, 0}})
	s.interfaces()
	s.note("delete")
	s.route(false, 7, "0.0.0.0/0", via("0.0.0.0", 2))
	s.route(false, 7, "10.9.0.0/16", via("10.9.9.9", 2))
	s.do(&pipe.PipeDelete{SwIfIndex: 99})
	s.do(&pipe.PipeDelete{SwIfIndex: 1})
	s.do(&pipe.PipeDelete{SwIfIndex: 1})
	s.dump(&pipe.PipeDump{})
	s.interfaces()
	s.do(&pipe.PipeCreate{IsSpecified: true, UserInstance: 8200})
	s.interfaces()
}
