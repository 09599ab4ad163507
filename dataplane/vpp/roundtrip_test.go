package vpp

import (
	"testing"

	"google.golang.org/protobuf/proto"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

type values = []proto.Message

func loop(name, mac string, change ...func(*vpp_interfaces.Interface)) *vpp_interfaces.Interface {
	v := &vpp_interfaces.Interface{
		Name: name, Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, PhysAddress: mac,
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func withIP(addresses ...string) func(*vpp_interfaces.Interface) {
	return func(v *vpp_interfaces.Interface) { v.IpAddresses = addresses }
}

func inTable(vrf uint32) func(*vpp_interfaces.Interface) {
	return func(v *vpp_interfaces.Interface) { v.Vrf = vrf }
}

func unnumberedTo(from string) func(*vpp_interfaces.Interface) {
	return func(v *vpp_interfaces.Interface) {
		v.Unnumbered = &vpp_interfaces.Interface_Unnumbered{InterfaceWithIp: from}
	}
}

func tables(id uint32, label string) values {
	return values{
		&vpp_l3.VrfTable{Id: id, Protocol: vpp_l3.VrfTable_IPV4, Label: label + "-IPv4"},
		&vpp_l3.VrfTable{Id: id, Protocol: vpp_l3.VrfTable_IPV6, Label: label + "-IPv6"},
	}
}

func all(lists ...values) values {
	var v values
	for _, l := range lists {
		v = append(v, l...)
	}
	return v
}

func TestLoopback(t *testing.T) {
	long := "a-name-of-an-interface-that-is-longer-than-what-the-tag-of-an-interface-holds"
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			values{
				loop("loop1", "02:00:00:00:00:01", withIP("10.1.0.1/24", "fd00:1::1/64")),
				loop("loop2", "", func(v *vpp_interfaces.Interface) { v.Enabled, v.Mtu = false, 1450 }),
				loop(long, "02:00:00:00:00:03", withIP("10.3.0.1/24")),
			},
			values{ // another address, another MTU, up and down
				loop("loop1", "02:00:00:00:00:01", withIP("10.1.1.1/24", "10.1.2.1/24", "fd00:1::1/64"),
					func(v *vpp_interfaces.Interface) { v.Enabled = false }),
				loop("loop2", "", func(v *vpp_interfaces.Interface) { v.Mtu = 1400 }),
				loop(long+"2", "02:00:00:00:00:03", withIP("10.3.0.1/24")),
			},
			values{ // no MTU, another hardware address
				loop("loop1", "02:00:00:00:00:11", withIP("10.1.1.1/24")),
				loop("loop2", ""),
			},
		)
	})
}

func TestTablesOfInterfaces(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(tables(1, "pod"), tables(2, "other"), values{
				&vpp_l3.VrfTable{Id: 0, Protocol: vpp_l3.VrfTable_IPV4, Label: "main"},
				loop("gw", "02:00:00:00:01:01", inTable(1), withIP("10.1.0.1/24", "fd00:1::1/64")),
				loop("pod", "", inTable(1), unnumberedTo("gw")),
				loop("empty", "", inTable(2)),
			}),
			all(tables(1, "pod"), tables(2, "other"), values{ // move to another table with addresses
				loop("gw", "02:00:00:00:01:01", inTable(2), withIP("10.1.0.1/24", "fd00:1::1/64")),
				loop("pod", "", inTable(2), unnumberedTo("gw")),
				loop("empty", ""),
			}),
			all(tables(1, "renamed"), tables(2, "other"), values{ // the lender's addresses change
				loop("gw", "02:00:00:00:01:01", inTable(2), withIP("10.7.0.1/24")),
				loop("pod", "", inTable(2), unnumberedTo("gw")),
				loop("empty", "", inTable(1), withIP("10.7.0.1/24")),
			}),
			all(tables(1, "renamed"), values{
				loop("gw", "02:00:00:00:01:01", withIP("10.7.0.1/24")),
				loop("pod", "", withIP("10.8.0.1/24")),
			}),
		)
	})
}

func TestFlowHash(t *testing.T) {
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		hash := &vpp_l3.VrfTable_FlowHashSettings{UseSrcIp: true, Symmetric: true}
		roundTrip(t, g, Deps{},
			values{
				&vpp_l3.VrfTable{Id: 0, Protocol: vpp_l3.VrfTable_IPV6, FlowHashSettings: hash},
				&vpp_l3.VrfTable{Id: 7, Protocol: vpp_l3.VrfTable_IPV4, FlowHashSettings: hash},
			},
			values{&vpp_l3.VrfTable{Id: 7, Protocol: vpp_l3.VrfTable_IPV4}},
		)
	})
}

func TestRoutes(t *testing.T) {
	base := all(tables(1, "pod"), values{
		loop("a", "02:00:00:00:00:0a", withIP("10.1.0.1/24", "fd00:1::1/64")),
		loop("b", "02:00:00:00:00:0b", withIP("10.2.0.1/24")),
	})
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				&vpp_l3.Route{DstNetwork: "10.9.0.0/16", NextHopAddr: "10.1.0.2", OutgoingInterface: "a"},
				&vpp_l3.Route{DstNetwork: "10.9.0.0/16", NextHopAddr: "10.2.0.2", OutgoingInterface: "b", Weight: 3},
				&vpp_l3.Route{DstNetwork: "10.10.0.7/16", NextHopAddr: "10.1.0.3"},
				&vpp_l3.Route{DstNetwork: "10.11.0.0/16", OutgoingInterface: "b", Preference: 2},
				&vpp_l3.Route{DstNetwork: "FD00:9::/48", NextHopAddr: "FD00:1:0:0::2", OutgoingInterface: "a"},
				&vpp_l3.Route{DstNetwork: "0.0.0.0/0", NextHopAddr: "10.1.0.9", OutgoingInterface: "a"},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "0.0.0.0/0", Type: vpp_l3.Route_INTER_VRF},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "::/0", Type: vpp_l3.Route_INTER_VRF},
				&vpp_l3.Route{DstNetwork: "10.12.0.0/16", Type: vpp_l3.Route_INTER_VRF, ViaVrfId: 1},
				&vpp_l3.Route{DstNetwork: "10.14.0.0/16", Type: vpp_l3.Route_INTER_VRF, ViaVrfId: 1, NextHopAddr: "10.1.0.5"},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "10.13.0.0/16", Type: vpp_l3.Route_DROP},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "fd00:13::/32", Type: vpp_l3.Route_DROP},
				&vpp_l3.Route{DstNetwork: "10.96.0.0/12", Type: vpp_l3.Route_REJECT},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "10.15.0.1/32", NextHopAddr: "10.15.0.1", OutgoingInterface: "a"},
			}),
			all(base, values{ // one path removed, another weight, another type
				&vpp_l3.Route{DstNetwork: "10.9.0.0/16", NextHopAddr: "10.2.0.2", OutgoingInterface: "b", Weight: 7},
				&vpp_l3.Route{DstNetwork: "10.11.0.0/16", OutgoingInterface: "b"},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "0.0.0.0/0", Type: vpp_l3.Route_DROP},
				&vpp_l3.Route{VrfId: 1, DstNetwork: "10.13.0.0/16", Type: vpp_l3.Route_INTER_VRF},
			}),
			all(tables(1, "pod"), values{ // an interface is deleted, with its routes
				loop("b", "02:00:00:00:00:0b", withIP("10.2.0.1/24")),
				&vpp_l3.Route{DstNetwork: "10.9.0.0/16", NextHopAddr: "10.2.0.2", OutgoingInterface: "b", Weight: 7},
			}),
		)
	})
}

func TestNeighbours(t *testing.T) {
	base := values{loop("a", "02:00:00:00:00:0a", withIP("10.1.0.1/24", "fd00:1::1/64"))}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "10.1.0.2", PhysAddress: "02:00:00:00:00:02", Static: true},
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "10.1.0.3", PhysAddress: "02:00:00:00:00:03"},
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "FD00:1::2", PhysAddress: "02:00:00:00:00:0A", Static: true},
			}),
			all(base, values{
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "10.1.0.2", PhysAddress: "02:00:00:00:00:12", Static: true},
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "10.1.0.3", PhysAddress: "02:00:00:00:00:13", Static: true},
			}),
			all(base, values{
				&vpp_l3.ARPEntry{Interface: "a", IpAddress: "10.1.0.3", PhysAddress: "02:00:00:00:00:13"},
			}),
		)
	})
}

func TestProxyARPAndScan(t *testing.T) {
	base := all(tables(3, "three"), values{loop("a", ""), loop("b", "")})
	proxy := func(name, first, last string, vrf uint32) *vpp_l3.ProxyARP {
		return &vpp_l3.ProxyARP{
			Interfaces: []*vpp_l3.ProxyARP_Interface{{Name: name}},
			Ranges: []*vpp_l3.ProxyARP_Range{
				{FirstIpAddr: "10.0.0.1", LastIpAddr: "10.0.0.99"}, {FirstIpAddr: first, LastIpAddr: last, VrfId: vrf},
			},
		}
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				proxy("a", "10.0.1.0", "10.0.1.255", 3),
				&vpp_l3.IPScanNeighbor{Mode: vpp_l3.IPScanNeighbor_IPV4, ScanInterval: 1, StaleThreshold: 4},
			}),
			all(base, values{
				proxy("b", "10.0.2.0", "10.0.2.255", 0),
				&vpp_l3.IPScanNeighbor{Mode: vpp_l3.IPScanNeighbor_BOTH, StaleThreshold: 10},
			}),
			base,
		)
	})
}

func TestBridgeDomain(t *testing.T) {
	base := values{loop("bvi", "02:00:00:00:00:01", withIP("10.1.0.1/24")), loop("m1", ""), loop("m2", ""), loop("m3", "")}
	member := func(name string, shg uint32) *vpp_l2.BridgeDomain_Interface {
		return &vpp_l2.BridgeDomain_Interface{Name: name, SplitHorizonGroup: shg}
	}
	bvi := &vpp_l2.BridgeDomain_Interface{Name: "bvi", BridgedVirtualInterface: true}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				&vpp_l2.BridgeDomain{
					Name: "bd1", Forward: true, Interfaces: []*vpp_l2.BridgeDomain_Interface{bvi, member("m1", 1), member("m2", 1)},
				},
				&vpp_l2.BridgeDomain{Name: "bd2", Forward: true, Learn: true, Flood: true, UnknownUnicastFlood: true, MacAge: 5},
				&vpp_l2.FIBEntry{BridgeDomain: "bd1", PhysAddress: "02:00:00:00:AA:01", OutgoingInterface: "m1", StaticConfig: true},
				&vpp_l2.FIBEntry{BridgeDomain: "bd1", PhysAddress: "02:00:00:00:aa:02", OutgoingInterface: "m2", StaticConfig: true},
				&vpp_l2.FIBEntry{BridgeDomain: "bd2", PhysAddress: "02:00:00:00:aa:03", Action: vpp_l2.FIBEntry_DROP},
			}),
			all(base, values{ // flags, members and entries change
				&vpp_l2.BridgeDomain{
					Name: "bd1", Forward: true, Learn: true,
					Interfaces: []*vpp_l2.BridgeDomain_Interface{bvi, member("m2", 2), member("m3", 0)},
				},
				&vpp_l2.BridgeDomain{
					Name: "bd2", Forward: true, MacAge: 5, Interfaces: []*vpp_l2.BridgeDomain_Interface{member("m1", 0)},
				},
				&vpp_l2.FIBEntry{BridgeDomain: "bd1", PhysAddress: "02:00:00:00:aa:02", OutgoingInterface: "m3", StaticConfig: true},
				&vpp_l2.FIBEntry{BridgeDomain: "bd2", PhysAddress: "02:00:00:00:aa:03", OutgoingInterface: "m1", StaticConfig: true},
			}),
			all(base, values{&vpp_l2.BridgeDomain{Name: "bd1", Forward: true}}),
		)
	})
}

func TestBridgeARPTermination(t *testing.T) {
	bd := func(on bool, age uint32, table ...*vpp_l2.BridgeDomain_ArpTerminationEntry) values {
		return values{&vpp_l2.BridgeDomain{
			Name: "bd1", Forward: true, ArpTermination: on, MacAge: age, ArpTerminationTable: table,
		}}
	}
	entry := func(ip, mac string) *vpp_l2.BridgeDomain_ArpTerminationEntry {
		return &vpp_l2.BridgeDomain_ArpTerminationEntry{IpAddress: ip, PhysAddress: mac}
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			bd(true, 0, entry("10.1.0.9", "02:00:00:00:00:99"), entry("fd00::9", "02:00:00:00:00:98")),
			bd(false, 7, entry("10.1.0.9", "02:00:00:00:00:97")),
			bd(true, 0),
		)
	})
}

func TestXConnect(t *testing.T) {
	base := values{loop("a", ""), loop("b", ""), loop("c", "")}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{
				&vpp_l2.XConnectPair{ReceiveInterface: "a", TransmitInterface: "b"},
				&vpp_l2.XConnectPair{ReceiveInterface: "b", TransmitInterface: "a"},
			}),
			all(base, values{&vpp_l2.XConnectPair{ReceiveInterface: "a", TransmitInterface: "c"}}),
		)
	})
}

func TestVxlan(t *testing.T) {
	tunnel := func(name, dst string, vni, vrf uint32) *vpp_interfaces.Interface {
		return &vpp_interfaces.Interface{
			Name: name, Type: vpp_interfaces.Interface_VXLAN_TUNNEL, Enabled: true, Vrf: vrf,
			Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{SrcAddress: "10.1.0.1", DstAddress: dst, Vni: vni}},
		}
	}
	mcast := tunnel("mcast", "239.1.1.1", 12, 0)
	mcast.GetVxlan().Multicast = "uplink"
	six := tunnel("six", "", 13, 5)
	six.GetVxlan().SrcAddress, six.GetVxlan().DstAddress = "FD00::1", "fd00::2"
	base := all(tables(5, "outer"), values{loop("uplink", "", withIP("10.1.0.1/24"))})
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		roundTrip(t, g, Deps{},
			all(base, values{tunnel("vxlan2", "10.1.0.2", 10, 0), tunnel("vxlan3", "10.1.0.3", 10, 5), mcast, six}),
			all(base, values{tunnel("vxlan2", "10.1.0.2", 11, 0)}),
		)
	})
}

func TestSubInterface(t *testing.T) {
	sub := func(id uint32, change func(*vpp_interfaces.SubInterface)) *vpp_interfaces.Interface {
		s := &vpp_interfaces.SubInterface{ParentName: "parent", SubId: id}
		if change != nil {
			change(s)
		}
		return &vpp_interfaces.Interface{
			Name: "parent.x", Type: vpp_interfaces.Interface_SUB_INTERFACE, Enabled: true,
			Link: &vpp_interfaces.Interface_Sub{Sub: s},
		}
	}
	parent := loop("parent", "")
	bd := func(name string) *vpp_l2.BridgeDomain {
		return &vpp_l2.BridgeDomain{
			Name: name, Forward: true, Interfaces: []*vpp_l2.BridgeDomain_Interface{{Name: "parent.x"}},
		}
	}
	pop := func(s *vpp_interfaces.SubInterface) { s.TagRwOption = vpp_interfaces.SubInterface_POP1 }
	push := func(s *vpp_interfaces.SubInterface) {
		s.TagRwOption, s.PushDot1Q, s.Tag1 = vpp_interfaces.SubInterface_TRANSLATE11, true, 300
	}
	onVPP(t, vpptest.Options{}, func(t *testing.T, g *target) {
		withAddress := sub(100, nil)
		withAddress.IpAddresses = []string{"10.100.0.1/24"}
		roundTrip(t, g, Deps{},
			values{parent, withAddress},
			values{parent, sub(200, nil)},
			values{parent, sub(200, pop), bd("one")},
			values{parent, sub(200, pop), bd("two")}, // keeps its tag rewriting
			values{parent, sub(200, pop)},
			values{parent, sub(200, push)},
		)
	})
}
