package vppfake_test

import (
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/ethernet_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/tapv2"
)

const none = ^uint32(0)

func interfaceScenarios() []scenario {
	return []scenario{
		{"loopback", loopbacks},
		{"interface_flags", interfaceFlags},
		{"interface_tag", interfaceTag},
		{"interface_mtu", interfaceMTU},
		{"interface_mac", interfaceMAC},
		{"interface_misc", interfaceMisc},
		{"interface_dump", interfaceDump},
		{"index_reuse", indexReuse},
		{"subif", subInterfaces},
		{"af_packet", afPackets},
		{"tap", taps},
	}
}

func mac(text string) ethernet_types.MacAddress {
	m, err := ethernet_types.ParseMacAddress(text)
	if err != nil {
		panic(err)
	}
	return m
}

func (s *script) loop() interface_types.InterfaceIndex {
	r := s.do(&interfaces.CreateLoopback{})
	return r.(*interfaces.CreateLoopbackReply).SwIfIndex
}

// loopUp returns a loopback that is up.
func (s *script) loopUp() interface_types.InterfaceIndex {
	i := s.loop()
	s.up(i)
	return i
}

func (s *script) up(i interface_types.InterfaceIndex) {
	s.do(&interfaces.SwInterfaceSetFlags{SwIfIndex: i, Flags: interface_types.IF_STATUS_API_FLAG_ADMIN_UP})
}

func (s *script) down(i interface_types.InterfaceIndex) {
	s.do(&interfaces.SwInterfaceSetFlags{SwIfIndex: i})
}

func (s *script) interfaces() {
	s.dump(&interfaces.SwInterfaceDump{SwIfIndex: interface_types.InterfaceIndex(none)})
}

func loopbacks(s *script) {
	s.interfaces()
	s.do(&interfaces.CreateLoopback{})
	s.do(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
	s.note("again")
	s.do(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 7})
	s.do(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 100000})
	s.do(&interfaces.CreateLoopbackInstance{MacAddress: mac("02:00:00:00:00:09")})
	s.interfaces()
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 1})
	s.note("gone")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 1})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 0})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 99})
	s.interfaces()
}

func interfaceFlags(s *script) {
	i := s.loop()
	s.up(i)
	s.up(i)
	s.interfaces()
	s.down(i)
	s.interfaces()
	s.up(0)
	s.interfaces()
	s.up(42)
	s.do(&interfaces.SwInterfaceSetFlags{SwIfIndex: i, Flags: interface_types.IF_STATUS_API_FLAG_LINK_UP})
	s.interfaces()
}

func interfaceTag(s *script) {
	i := s.loop()
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "one"})
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "two"})
	s.interfaces()
	s.do(&interfaces.SwInterfaceTagAddDel{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceTagAddDel{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i})
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: 9, Tag: "x"})
	s.interfaces()
	s.do(&interfaces.SwInterfaceTagAddDel{IsAdd: true, SwIfIndex: i, Tag: "stays?"})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.loop()
	s.interfaces()
}

func interfaceMTU(s *script) {
	i := s.loop()
	s.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: i, Mtu: []uint32{1500, 0, 0, 0}})
	s.interfaces()
	s.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: i, Mtu: []uint32{1400, 1300, 1290, 1200}})
	s.interfaces()
	s.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: 9, Mtu: []uint32{1400, 0, 0, 0}})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: i, Mtu: 2000})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 0, Mtu: 2000})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 9, Mtu: 2000})
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 5})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 2, Mtu: 2000})
	s.interfaces()
}

func interfaceMAC(s *script) {
	i := s.loop()
	s.do(&interfaces.SwInterfaceGetMacAddress{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: i, MacAddress: mac("02:00:00:00:00:01")})
	s.do(&interfaces.SwInterfaceGetMacAddress{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 9, MacAddress: mac("02:00:00:00:00:01")})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 0, MacAddress: mac("02:00:00:00:00:01")})
	s.interfaces()
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 5})
	s.do(&interfaces.SwInterfaceGetMacAddress{SwIfIndex: 2})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 2, MacAddress: mac("02:00:00:00:00:02")})
	s.interfaces()
}

func interfaceMisc(s *script) {
	i := s.loop()
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: i, PromiscOn: true})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 0, PromiscOn: true})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 9, PromiscOn: true})
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: i, Mode: interface_types.RX_MODE_API_INTERRUPT})
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 9, Mode: interface_types.RX_MODE_API_INTERRUPT})
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: i})
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(none)})
	s.do(&interfaces.SwInterfaceGetTable{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceGetTable{SwIfIndex: 9})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 1})
	s.do(&ip.IPTableAddDelV2{IsAdd: true, CreateMfib: true, Table: ip.IPTable{TableID: 1, Name: "one"}})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 1})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: i, VrfID: 1, IsIPv6: true})
	s.do(&interfaces.SwInterfaceSetTable{SwIfIndex: 9, VrfID: 1})
	s.do(&interfaces.SwInterfaceGetTable{SwIfIndex: i})
	s.do(&interfaces.SwInterfaceGetTable{SwIfIndex: i, IsIPv6: true})
	s.note("interface deleted and made again: which table?")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.loop()
	s.do(&interfaces.SwInterfaceGetTable{SwIfIndex: i})
}

func interfaceDump(s *script) {
	s.loop()
	s.do(&interfaces.CreateLoopbackInstance{IsSpecified: true, UserInstance: 12})
	s.dump(&interfaces.SwInterfaceDump{})
	s.dump(&interfaces.SwInterfaceDump{SwIfIndex: 2})
	s.dump(&interfaces.SwInterfaceDump{SwIfIndex: 3})
	s.dump(&interfaces.SwInterfaceDump{NameFilterValid: true, NameFilter: "loop1"})
	s.dump(&interfaces.SwInterfaceDump{NameFilterValid: true, NameFilter: "OOP"})
	s.dump(&interfaces.SwInterfaceDump{NameFilterValid: true, NameFilter: "none"})
	s.dump(&interfaces.SwInterfaceDump{NameFilterValid: true})
}

func indexReuse(s *script) {
	for range 4 {
		s.loop()
	}
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 1})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 3})
	for range 4 {
		s.loop()
	}
	s.interfaces()
}

func subInterfaces(s *script) {
	i := s.loop()
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 100})
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 100})
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 0})
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: i, VlanID: 5000})
	s.do(&interfaces.CreateVlanSubif{SwIfIndex: 9, VlanID: 1})
	s.do(&interfaces.CreateSubif{SwIfIndex: i, SubID: 200, OuterVlanID: 20, SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG | interface_types.SUB_IF_API_FLAG_EXACT_MATCH})
	s.do(&interfaces.CreateSubif{SwIfIndex: i, SubID: 201, OuterVlanID: 20, InnerVlanID: 30, SubIfFlags: interface_types.SUB_IF_API_FLAG_TWO_TAGS | interface_types.SUB_IF_API_FLAG_EXACT_MATCH})
	s.do(&interfaces.CreateSubif{SwIfIndex: i, SubID: 200, OuterVlanID: 21, SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG})
	s.do(&interfaces.CreateSubif{SwIfIndex: 9, SubID: 200, OuterVlanID: 21, SubIfFlags: interface_types.SUB_IF_API_FLAG_ONE_TAG})
	s.interfaces()
	s.note("flags of sub-interface and its parent")
	s.up(2)
	s.up(i)
	s.up(2)
	s.interfaces()
	s.down(i)
	s.interfaces()
	s.down(2)
	s.do(&interfaces.DeleteSubif{SwIfIndex: 3})
	s.do(&interfaces.DeleteSubif{SwIfIndex: 3})
	s.do(&interfaces.DeleteSubif{SwIfIndex: i})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	s.interfaces()
	s.note("parent deleted")
	s.do(&interfaces.DeleteLoopback{SwIfIndex: i})
	s.interfaces()
}

func afPackets(s *script) {
	ring := af_packet.AfPacketCreateV3{Mode: af_packet.AF_PACKET_API_MODE_ETHERNET, RxFrameSize: 2048, TxFrameSize: 2048,
		RxFramesPerBlock: 16, TxFramesPerBlock: 16, HwAddr: mac("02:00:00:00:00:11")}
	create := func(name string, change func(*af_packet.AfPacketCreateV3)) {
		q := ring
		q.HostIfName = name
		if change != nil {
			change(&q)
		}
		s.do(&q)
	}
	create("hv0", func(q *af_packet.AfPacketCreateV3) { q.Mode = 0 })
	create("hv0", nil)
	create("hv0", nil)
	create("hv1", func(q *af_packet.AfPacketCreateV3) { q.UseRandomHwAddr = true; q.NumRxQueues = 1; q.NumTxQueues = 1 })
	s.dump(&af_packet.AfPacketDump{})
	s.interfaces()
	s.up(1)
	s.interfaces()
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 1, Mode: interface_types.RX_MODE_API_INTERRUPT})
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 1, Mode: interface_types.RX_MODE_API_UNKNOWN})
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 1, Mode: interface_types.RX_MODE_API_POLLING, QueueIDValid: true, QueueID: 7})
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(none)})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 1, MacAddress: mac("02:00:00:00:00:12")})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 1, Mtu: 1400})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 1, PromiscOn: true})
	s.interfaces()
	s.down(1)
	s.interfaces()
	s.do(&af_packet.AfPacketDelete{HostIfName: "hv0"})
	s.do(&af_packet.AfPacketDelete{HostIfName: "hv0"})
	s.do(&af_packet.AfPacketDelete{HostIfName: "nope"})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 2})
	s.interfaces()
}

func taps(s *script) {
	s.do(&tapv2.TapCreateV3{ID: none, UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1, TxRingSz: 256, RxRingSz: 256, Tag: "pod-1\x00"})
	s.do(&tapv2.TapCreateV3{ID: 5, MacAddress: mac("02:00:00:00:00:21"), NumRxQueues: 1, NumTxQueues: 1, TxRingSz: 512, RxRingSz: 1024,
		HostIfNameSet: true, HostIfName: "myhost", HostMtuSet: true, HostMtuSize: 1450, HostMacAddrSet: true, HostMacAddr: mac("02:00:00:00:00:22")})
	s.do(&tapv2.TapCreateV3{ID: 5, UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1, TxRingSz: 256, RxRingSz: 256})
	s.do(&tapv2.TapCreateV3{ID: 6, UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1, TxRingSz: 256, RxRingSz: 256,
		HostNamespaceSet: true, HostNamespace: "no-such-namespace"})
	s.do(&tapv2.TapCreateV3{ID: 6, UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1, TxRingSz: 100, RxRingSz: 256})
	s.do(&tapv2.TapCreateV3{ID: 6, UseRandomMac: true, TapFlags: tapv2.TAP_API_FLAG_ATTACH})
	s.do(&tapv2.TapCreateV3{ID: none, UseRandomMac: true})
	s.dump(&tapv2.SwInterfaceTapV2Dump{SwIfIndex: interface_types.InterfaceIndex(none)})
	s.dump(&tapv2.SwInterfaceTapV2Dump{SwIfIndex: 2})
	s.interfaces()
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: interface_types.InterfaceIndex(none)})
	s.up(1)
	s.do(&interfaces.SwInterfaceSetRxMode{SwIfIndex: 1, Mode: interface_types.RX_MODE_API_ADAPTIVE})
	s.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 1, MacAddress: mac("02:00:00:00:00:23")})
	s.do(&interfaces.HwInterfaceSetMtu{SwIfIndex: 1, Mtu: 1400})
	s.do(&interfaces.SwInterfaceSetPromisc{SwIfIndex: 1, PromiscOn: true})
	s.down(1)
	s.interfaces()
	s.up(1)
	s.dump(&interfaces.SwInterfaceRxPlacementDump{SwIfIndex: 1})
	s.interfaces()
	s.do(&tapv2.TapDeleteV2{SwIfIndex: 2})
	s.do(&tapv2.TapDeleteV2{SwIfIndex: 2})
	s.do(&tapv2.TapDeleteV2{SwIfIndex: 0})
	s.do(&interfaces.DeleteLoopback{SwIfIndex: 1})
	s.interfaces()
	s.do(&tapv2.TapCreateV3{ID: none, UseRandomMac: true, NumRxQueues: 1, NumTxQueues: 1})
	s.interfaces()
}
