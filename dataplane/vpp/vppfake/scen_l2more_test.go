package vppfake_test

import (
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memif"
)

func l2MoreScenarios() []scenario {
	return []scenario{
		{"bridge_arp", bridgeARPTermination},
		{"bridge_mac_age", bridgeMACAge},
		{"l2fib_any_interface", l2FIBAnyInterface},
		{"tag_rewrite", tagRewrites},
		{"tag_rewrite_port", tagRewritesOfPorts},
		{"xconnect_deleted", xconnectDeleted},
	}
}

func bridgeARPTermination(s *script) {
	dump := func(bd uint32) { s.dump(&l2.BdIPMacDump{BdID: bd}) }
	set := func(add bool, bd uint32, ip, hw string) {
		s.do(&l2.BdIPMacAddDel{IsAdd: add, Entry: l2.BdIPMac{BdID: bd, IP: address(ip), Mac: mac(hw)}})
	}
	set(true, 0, "10.1.0.1", "02:00:00:00:00:01")
	set(true, 7, "10.1.0.1", "02:00:00:00:00:01")
	dump(none)
	dump(7)
	s.bd(7)
	s.bd(8)
	set(true, 7, "10.1.0.1", "02:00:00:00:00:01")
	set(true, 7, "10.1.0.1", "02:00:00:00:00:01")
	set(true, 7, "10.1.0.2", "02:00:00:00:00:01")
	set(true, 7, "10.1.0.2", "02:00:00:00:00:02")
	set(true, 7, "0.0.0.0", "00:00:00:00:00:00")
	set(true, 7, "fd00::1", "02:00:00:00:00:61")
	set(true, 7, "fd00::1", "02:00:00:00:00:62")
	set(true, 8, "10.1.0.1", "02:00:00:00:00:08")
	dump(none)
	dump(7)
	dump(8)
	dump(9)
	dump(0)
	s.note("delete")
	set(false, 7, "10.1.0.2", "02:00:00:00:00:01")
	set(false, 7, "10.1.0.2", "02:00:00:00:00:02")
	set(false, 7, "10.1.0.2", "02:00:00:00:00:02")
	set(false, 7, "fd00::1", "02:00:00:00:00:61")
	set(false, 7, "fd00::1", "02:00:00:00:00:62")
	set(false, 7, "fd00::1", "02:00:00:00:00:62")
	set(false, 0, "10.1.0.1", "02:00:00:00:00:01")
	set(false, 9, "10.1.0.1", "02:00:00:00:00:01")
	dump(none)
	s.note("the next bridge domain begins without")
	s.do(&l2.BridgeDomainAddDelV2{BdID: 7})
	dump(none)
	s.bd(7)
	dump(7)
}

func bridgeMACAge(s *script) {
	age := func(bd uint32, minutes uint8) { s.do(&l2.BridgeDomainSetMacAge{BdID: bd, MacAge: minutes}) }
	age(0, 5)
	age(7, 5)
	s.bd(7)
	age(7, 5)
	s.bridges()
	age(7, 255)
	s.bridges()
	age(7, 0)
	s.bridges()
}

func l2FIBAnyInterface(s *script) {
	i := s.loopUp()
	s.bd(7)
	s.bridge(i, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	add := func(hw string, filter bool) {
		s.do(&l2.L2fibAddDel{IsAdd: true, Mac: mac(hw), BdID: 7, SwIfIndex: i, StaticMac: true, FilterMac: filter})
	}
	del := func(hw string, i index) { s.do(&l2.L2fibAddDel{Mac: mac(hw), BdID: 7, SwIfIndex: i}) }
	add("02:00:00:00:00:01", false)
	add("02:00:00:00:00:02", true)
	add("02:00:00:00:00:03", true)
	add("02:00:00:00:00:04", true)
	del("02:00:00:00:00:01", 9)
	del("02:00:00:00:00:01", 0)
	del("02:00:00:00:00:01", 0)
	del("02:00:00:00:00:02", i)
	del("02:00:00:00:00:02", 9)
	del("02:00:00:00:00:03", index(none))
	del("02:00:00:00:00:04", 0)
	s.dump(&l2.L2FibTableDump{BdID: 7})
	del("de:ad:00:00:00:00", 0)
	s.dump(&l2.L2FibTableDump{BdID: 7})
}

// rewrite sets a tag rewrite; the operations are numbered as in VPP's l2_vtr.h.
func (s *script) rewrite(i index, op, dot1q, tag1, tag2 uint32) {
	s.do(&l2.L2InterfaceVlanTagRewrite{SwIfIndex: i, VtrOp: op, PushDot1q: dot1q, Tag1: tag1, Tag2: tag2})
}

func (s *script) iface(i index) { s.dump(&interfaces.SwInterfaceDump{SwIfIndex: i}) }

// tagged creates sub-interfaces of i, without tags, with one and with two tags, of all kinds that VPP accepts.
func (s *script) tagged(i index) []index {
	const one, two, exact = interface_types.SUB_IF_API_FLAG_ONE_TAG, interface_types.SUB_IF_API_FLAG_TWO_TAGS, interface_types.SUB_IF_API_FLAG_EXACT_MATCH
	var all []index
	for n, flags := range []interface_types.SubIfFlags{
		interface_types.SUB_IF_API_FLAG_DEFAULT, one | exact, one | interface_types.SUB_IF_API_FLAG_DOT1AD,
		two | exact, two | interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY, two | interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY,
	} {
		q := &interfaces.CreateSubif{SwIfIndex: i, SubID: uint32(200 + n), SubIfFlags: flags}
		if flags&(one|two) != 0 && flags&interface_types.SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY == 0 {
			q.OuterVlanID = uint16(20 + n)
		}
		if flags&two != 0 && flags&interface_types.SUB_IF_API_FLAG_INNER_VLAN_ID_ANY == 0 {
			q.InnerVlanID = uint16(30 + n)
		}
		all = append(all, s.do(q).(*interfaces.CreateSubifReply).SwIfIndex)
	}
	return all
}

func tagRewrites(s *script) {
	i := s.loopUp()
	subs := append([]index{i}, s.tagged(i)...)
	for op := range uint32(9) {
		s.note("operation %d", op)
		for _, sub := range subs {
			s.rewrite(sub, op, op%2, 100+op, 300)
		}
		s.interfaces()
	}
	s.note("odd values")
	sub := subs[2]
	s.rewrite(sub, 6, 7, 0x11234, 0x25678)
	s.iface(sub)
	s.rewrite(sub, 2, 0, 5000, 0)
	s.iface(sub)
	s.rewrite(sub, 2, 1, 0, 0)
	s.iface(sub)
	s.rewrite(sub, 8, 1, 400, 401) // two tags, but the sub-interface has one
	s.iface(sub)
	s.rewrite(sub, 9, 0, 0, 0)
	s.rewrite(sub, none, 0, 0, 0)
	s.rewrite(99, 1, 0, 0, 0)
	s.rewrite(99, 9, 0, 0, 0)
	s.rewrite(0, 1, 0, 7, 0)
	s.rewrite(0, 3, 0, 7, 0)
	s.iface(sub)
	s.do(&memif.MemifCreateV2{Role: memif.MEMIF_ROLE_API_MASTER, ID: 6, Mode: memif.MEMIF_MODE_API_IP, RingSize: 1024, BufferSize: 2048})
	s.rewrite(8, 1, 0, 7, 0)
	s.interfaces()
}

func tagRewritesOfPorts(s *script) {
	i := s.loopUp()
	sub := s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 100}).(*interfaces.CreateVlanSubifReply).SwIfIndex
	s.bd(7)
	s.bd(8)
	s.note("in a bridge domain, in another, in none")
	s.bridge(sub, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.rewrite(sub, 3, 0, 0, 0)
	s.iface(sub)
	s.bridge(sub, 8, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.iface(sub)
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: sub, BdID: 8})
	s.iface(sub)
	s.note("set before; cross-connected; disabled where it was not enabled")
	s.rewrite(sub, 5, 1, 300, 0)
	s.bridge(sub, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.iface(sub)
	s.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: sub, TxSwIfIndex: i, Enable: true})
	s.iface(sub)
	s.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: sub, TxSwIfIndex: i})
	s.iface(sub)
	s.rewrite(sub, 5, 1, 300, 0)
	s.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: sub, BdID: 8})
	s.iface(sub)
	s.note("deleted while a port")
	again := func() {
		s.do(&interfaces.DeleteSubif{SwIfIndex: sub})
		s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 101})
		s.iface(sub)
	}
	s.bridge(sub, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	s.rewrite(sub, 3, 0, 0, 0)
	again()
	s.note("deleted while in layer 3")
	s.rewrite(sub, 5, 1, 300, 0)
	again()
	s.rewrite(sub, 0, 0, 0, 0)
	s.iface(sub)
}

// xconnectDeleted deletes one half of a cross-connect and records the other half.
func xconnectDeleted(s *script) {
	i, j, k := s.loopUp(), s.loopUp(), s.loopUp()
	x := func(rx, tx index) { s.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: rx, TxSwIfIndex: tx, Enable: true}) }
	x(i, j)
	x(j, i)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.dump(&l2.L2XconnectDump{})
	s.note("the peer is a port")
	s.bd(7)
	s.bridge(j, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	x(k, j)
	s.do(&interfaces.DeleteLoopback{SwIfIndex: k})
	s.bridges()
	s.dump(&l2.L2XconnectDump{})
}
