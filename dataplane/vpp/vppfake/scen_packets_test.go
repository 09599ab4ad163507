package vppfake_test

import (
	"slices"

	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/pg"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

func packetScenarios() []packetScenario {
	return append(slices.Concat(natPacketScenarios(), aclPacketScenarios(),
		errorScenarios(), reuseScenarios(), contivPacketScenarios()), []packetScenario{
		{"routed", routedPackets},
		{"routed6", routedPackets6},
		{"vrf", vrfPackets},
		{"adjacency", adjacencyPackets},
		{"arp", arpPackets},
		{"proxy_arp", proxyARPPackets},
		{"bridged", bridgedPackets},
		{"bvi", bviPackets},
		{"pod", podPackets},
		{"vxlan", vxlanPackets},
		{"subif", subifPackets},
		{"mtu", mtuPackets},
		{"xconnect", xconnectPackets},
		{"reuse", reusePackets},
		{"unnumbered", unnumberedPackets},
	}...)
}

func (ps *packetScript) host(i index, ip string, n int) {
	m := hostMAC(n)
	ps.neighbor(true, i, ip, m.String(), ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC)
}

func routedPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.addr(3, "10.3.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.host(3, "10.3.0.2", 3)
	ps.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2))
	ps.route(true, 0, "10.50.7.0/24", via("10.3.0.2", 3))
	ps.route(true, 0, "10.50.7.7/32", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	ps.route(true, 0, "10.51.0.0/16", via("10.50.1.1", 0))
	ps.route(true, 0, "10.52.0.0/16", via("10.52.0.1", 0))
	ps.route(true, 0, "10.53.0.0/16", via("10.2.0.77", 2))
	ps.route(true, 0, "10.54.0.0/16", fibPath{typ: fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH})
	backup := via("10.3.0.2", 3)
	backup.pref = 1
	ps.route(true, 0, "10.55.0.0/16", via("10.2.0.2", 2), backup)
	for _, dst := range []string{"10.2.0.2", "10.2.0.3", "10.50.1.1", "10.50.7.1", "10.50.7.7", "10.51.0.1", "10.52.0.9", "10.53.0.1", "10.54.0.1",
		"10.55.0.1", "10.1.0.1", "10.2.0.1", "10.2.0.0", "10.2.0.255", "10.99.0.1", "10.1.0.2", "255.255.255.255"} {
		ps.send(0, udp(1, 0, "10.1.0.2", dst))
	}
	p := udp(1, 0, "10.1.0.2", "10.2.0.2")
	p.TTL = 1
	ps.send(0, p)
	p.TTL = 2
	ps.send(0, p)
	ps.note("wrong MAC, tcp, no address on the interface")
	ps.send(0, udp(1, 1, "10.1.0.2", "10.2.0.2"))
	p = udp(1, 0, "10.1.0.2", "10.2.0.2")
	p.Proto = vppfake.ProtoTCP
	ps.send(0, p)
	ps.send(3, udp(4, 3, "10.1.0.2", "10.2.0.2"))
	ps.note("link down: the backup takes over")
	ps.down(2)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.55.0.1"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.1.1"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.2.0.2"))
}

func routedPackets6(ps *packetScript) {
	ps.addr(1, "fd00:1::1/64")
	ps.addr(2, "fd00:2::1/64")
	ps.host(1, "fd00:1::2", 1)
	ps.host(2, "fd00:2::2", 2)
	ps.route(true, 0, "fd00:50::/32", via("fd00:2::2", 2))
	ps.route(true, 0, "fd00:50:7::/48", fibPath{typ: fib_types.FIB_API_PATH_TYPE_DROP})
	for _, dst := range []string{"fd00:2::2", "fd00:2::3", "fd00:50::1", "fd00:50:7::1", "fd00:99::1", "fd00:1::1"} {
		ps.send(0, udp(1, 0, "fd00:1::2", dst))
	}
	ps.send(2, udp(3, 2, "fd00:1::2", "fd00:2::2"))
}

func vrfPackets(ps *packetScript) {
	ps.table(1, false)
	ps.table(2, false)
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: 1, VrfID: 1})
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: 2, VrfID: 2})
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.addr(3, "10.3.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.host(3, "10.3.0.2", 3)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.2.0.2"))
	ps.note("lookup in the other tables")
	ps.route(true, 1, "0.0.0.0/0", fibPath{table: 0})
	ps.route(true, 0, "10.2.0.0/16", fibPath{table: 2})
	ps.route(true, 2, "10.1.0.0/16", fibPath{table: 1})
	ps.send(0, udp(1, 0, "10.1.0.2", "10.2.0.2"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.3.0.2"))
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.0.2"))
	ps.send(1, udp(2, 1, "10.2.0.2", "10.3.0.2"))
	ps.send(2, udp(3, 2, "10.3.0.2", "10.1.0.2"))
	ps.note("next hop in another table")
	ps.route(true, 1, "10.60.0.0/16", fibPath{nh: "10.3.0.2", table: 0})
	ps.send(0, udp(1, 0, "10.1.0.2", "10.60.0.1"))
}

func adjacencyPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(1, "10.1.0.2", 1)
	ps.note("a neighbour outside the subnet, and on the wrong link")
	ps.host(2, "10.77.0.2", 2)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.77.0.2"))
	ps.host(2, "10.1.0.9", 3)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.1.0.9"))
	ps.note("a host route makes it a neighbour")
	ps.route(true, 0, "10.77.0.2/32", via("10.77.0.2", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.77.0.2"))
	ps.route(true, 0, "10.78.0.0/24", via("", 2))
	ps.host(2, "10.78.0.5", 4)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.78.0.5"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.78.0.6"))
	ps.route(true, 0, "10.79.0.9/32", via("", 2))
	ps.host(2, "10.79.0.9", 5)
	ps.send(0, udp(1, 0, "10.1.0.2", "10.79.0.9"))
}

func arpPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	for _, target := range []string{"10.1.0.1", "10.1.0.7", "10.2.0.1", "10.2.0.7", "10.99.0.1", "10.1.0.2"} {
		ps.send(0, arpRequest(1, "10.1.0.2", target))
	}
	ps.send(0, arpRequest(1, "10.99.0.2", "10.1.0.1"))
	ps.send(0, arpRequest(1, "10.1.0.1", "10.1.0.1"))
	ps.send(0, arpRequest(1, "10.1.0.3", "10.1.0.3"))
	ps.send(2, arpRequest(1, "10.1.0.2", "10.1.0.1"))
	p := arpRequest(1, "10.1.0.2", "10.1.0.1")
	p.EthSrc = hostMAC(9)
	ps.send(0, p)
	ps.note("after a neighbour entry for the target, for the sender")
	ps.host(1, "10.1.0.2", 1)
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.1"))
	ps.host(1, "10.1.0.7", 7)
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.7"))
	ps.note("unnumbered")
	ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: 1, UnnumberedSwIfIndex: 3, IsAdd: true})
	ps.send(2, arpRequest(3, "10.1.0.30", "10.1.0.1"))
	ps.send(2, arpRequest(3, "10.88.0.30", "10.1.0.1"))
	ps.route(true, 0, "10.88.0.30/32", via("10.88.0.30", 3))
	ps.send(2, arpRequest(3, "10.88.0.30", "10.1.0.1"))
	ps.send(2, arpRequest(3, "10.88.0.30", "10.2.0.1"))
}

func proxyARPPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: arp.ProxyArp{Low: ip4("10.1.0.10"), Hi: ip4("10.1.0.20")}})
	ps.do(&arp.ProxyArpAddDel{IsAdd: true, Proxy: arp.ProxyArp{Low: ip4("10.99.0.0"), Hi: ip4("10.99.0.255")}})
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.15"))
	ps.do(&arp.ProxyArpIntfcEnableDisable{SwIfIndex: 1, Enable: true})
	for _, target := range []string{"10.1.0.9", "10.1.0.10", "10.1.0.20", "10.1.0.21", "10.99.0.77", "10.1.0.1"} {
		ps.send(0, arpRequest(1, "10.1.0.2", target))
	}
	ps.send(0, arpRequest(1, "10.77.0.2", "10.99.0.77"))
	ps.send(1, arpRequest(1, "10.2.0.2", "10.99.0.77"))
	ps.host(1, "10.1.0.11", 3)
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.11"))
}

func bridgedPackets(ps *packetScript) {
	ps.do(&l2.BridgeDomainAddDelV2{IsAdd: true, BdID: 7, Forward: true})
	for n := range 4 {
		ps.bridge(index(n+1), 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	}
	frame := func(from, to int) vppfake.Packet {
		p := udp(from, 0, "10.1.0.2", "10.1.0.3")
		p.EthDst = hostMAC(to)
		return p
	}
	ps.note("no flooding, no learning")
	ps.send(0, frame(1, 2))
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.3"))
	mac2 := hostMAC(2)
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: mac2, BdID: 7, SwIfIndex: 2, StaticMac: true})
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: hostMAC(3), BdID: 7, SwIfIndex: index(none), StaticMac: true, FilterMac: true})
	ps.send(0, frame(1, 2))
	ps.send(1, frame(2, 1))
	ps.send(1, frame(1, 2))
	ps.send(0, frame(1, 3))
	ps.note("split horizon")
	ps.bridge(1, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	ps.bridge(2, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	ps.send(0, frame(1, 2))
	ps.send(2, frame(3, 2))
	ps.note("flooding")
	ps.do(&l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_FLOOD})
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.3"))
	ps.send(2, arpRequest(3, "10.1.0.2", "10.1.0.3"))
	ps.send(0, frame(1, 4))
	ps.do(&l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_UU_FLOOD})
	ps.send(0, frame(1, 4))
	ps.note("learning")
	ps.do(&l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_LEARN})
	ps.send(3, frame(4, 2))
	ps.send(2, frame(3, 4))
	ps.note("port down")
	ps.down(2)
	ps.send(2, frame(3, 2))
	ps.note("port left, row left behind")
	ps.up(2)
	ps.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: 2, BdID: 7})
	ps.send(2, frame(3, 2))
}

func bviPackets(ps *packetScript) {
	ps.bd(7)
	loop := ps.loopUp()
	bviMAC := mac("de:ad:00:00:00:00")
	ps.bridge(loop, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	ps.bridge(1, 7, l2.L2_API_PORT_TYPE_NORMAL, 0)
	ps.addr(loop, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(loop, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: hostMAC(1), BdID: 7, SwIfIndex: 1, StaticMac: true})
	p := udp(1, 0, "10.1.0.2", "10.2.0.2")
	ps.send(0, p)
	p.EthDst = bviMAC
	ps.send(0, p)
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.0.2"))
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.0.3"))
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.1"))
	ps.do(&l2.BridgeFlags{BdID: 7, IsSet: true, Flags: l2.BRIDGE_API_FLAG_FLOOD})
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.1"))
	ps.note("bvi down")
	ps.down(loop)
	ps.send(0, p)
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.0.2"))
}

// podPackets configures a pod as contiv does: its interface borrows a loopback's address, and a host route and a static neighbour lead to it.
func podPackets(ps *packetScript) {
	ps.table(1, false)
	loop := ps.loopUp()
	ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: loop, VrfID: 1})
	ps.addr(loop, "10.1.1.1/32")
	for n := index(1); n <= 2; n++ {
		ps.do(&interfaces.SwInterfaceSetTable{SwIfIndex: n, VrfID: 1})
		ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: loop, UnnumberedSwIfIndex: n, IsAdd: true})
	}
	ps.route(true, 1, "10.1.1.2/32", via("10.1.1.2", 1))
	ps.route(true, 1, "10.1.1.3/32", via("10.1.1.3", 2))
	ps.host(1, "10.1.1.2", 1)
	ps.host(2, "10.1.1.3", 2)
	ps.send(0, arpRequest(1, "10.1.1.2", "10.1.1.1"))
	ps.send(0, udp(1, 0, "10.1.1.2", "10.1.1.3"))
	ps.send(1, udp(2, 1, "10.1.1.3", "10.1.1.2"))
	ps.send(0, udp(1, 0, "10.1.1.2", "10.1.1.4"))
	ps.note("out to the node's own table")
	ps.addr(3, "192.168.0.1/24")
	ps.host(3, "192.168.0.9", 3)
	ps.route(true, 1, "0.0.0.0/0", fibPath{table: 0})
	ps.route(true, 0, "10.1.1.0/24", fibPath{table: 1})
	ps.send(0, udp(1, 0, "10.1.1.2", "192.168.0.9"))
	ps.send(2, udp(3, 2, "192.168.0.9", "10.1.1.2"))
	ps.send(2, udp(3, 2, "192.168.0.9", "10.1.1.7"))
	ps.note("pod goes: neighbour and route first, then the interface")
	ps.down(1)
	ps.send(2, udp(3, 2, "192.168.0.9", "10.1.1.2"))
}

func vxlanPackets(ps *packetScript) {
	ps.addr(1, "192.168.16.1/24")
	ps.host(1, "192.168.16.2", 1)
	ps.host(1, "192.168.16.3", 2)
	ps.do(tunnel("192.168.16.1", "192.168.16.2", 10))
	ps.do(tunnel("192.168.16.1", "192.168.16.3", 10))
	ps.bd(7)
	loop := ps.loopUp()
	ps.bridge(loop, 7, l2.L2_API_PORT_TYPE_BVI, 0)
	ps.bridge(5, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	ps.bridge(6, 7, l2.L2_API_PORT_TYPE_NORMAL, 1)
	ps.addr(loop, "192.168.30.1/24")
	remote2, remote3 := mac("1a:2b:3c:4d:5e:02"), mac("1a:2b:3c:4d:5e:03")
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: remote2, BdID: 7, SwIfIndex: 5, StaticMac: true})
	ps.do(&l2.L2fibAddDel{IsAdd: true, Mac: remote3, BdID: 7, SwIfIndex: 6, StaticMac: true})
	ps.neighbor(true, loop, "192.168.30.2", remote2.String(), ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC)
	ps.neighbor(true, loop, "192.168.30.3", remote3.String(), ip_neighbor.IP_API_NEIGHBOR_FLAG_STATIC)
	ps.addr(2, "10.1.1.1/24")
	ps.host(2, "10.1.1.2", 5)
	ps.route(true, 0, "10.1.2.0/24", via("192.168.30.2", uint32(loop)))
	ps.route(true, 0, "10.1.3.0/24", via("192.168.30.3", uint32(loop)))
	ps.send(1, udp(5, 1, "10.1.1.2", "10.1.2.9"))
	ps.send(1, udp(5, 1, "10.1.1.2", "10.1.3.9"))
	ps.note("back")
	wrap := func(from string, vni uint32, dstMAC, srcMAC vppfake.MAC, dst string) vppfake.Packet {
		inner := udp(1, 0, "10.1.2.9", dst)
		inner.EthDst, inner.EthSrc, inner.TTL = dstMAC, srcMAC, 63
		p := udp(1, 0, from, "192.168.16.1")
		p.DstPort, p.SrcPort, p.VXLAN = 4789, 0, &vppfake.VXLAN{VNI: vni, Inner: inner}
		return p
	}
	bvi := mac("de:ad:00:00:00:00")
	ps.send(0, wrap("192.168.16.2", 10, bvi, remote2, "10.1.1.2"))
	ps.send(0, wrap("192.168.16.2", 11, bvi, remote2, "10.1.1.2"))
	ps.send(0, wrap("192.168.16.9", 10, bvi, remote2, "10.1.1.2"))
	ps.note("tunnel to tunnel is split horizon")
	ps.send(0, wrap("192.168.16.2", 10, remote3, remote2, "10.1.3.2"))
	ps.note("underlay neighbour missing, tunnel out of the bridge, tunnel down")
	ps.neighbor(false, 1, "192.168.16.3", "00:00:00:00:00:00", 0)
	ps.send(1, udp(5, 1, "10.1.1.2", "10.1.3.9"))
	ps.do(&l2.SwInterfaceSetL2Bridge{RxSwIfIndex: 5, BdID: 7})
	ps.send(0, wrap("192.168.16.2", 10, bvi, remote2, "10.1.1.2"))
	ps.send(1, udp(5, 1, "10.1.1.2", "10.1.2.9"))
}

func subifPackets(ps *packetScript) {
	ps.do(&interfaces.CreateVlanSubif{SwIfIndex: 1, VlanID: 100})
	ps.do(&interfaces.CreateVlanSubif{SwIfIndex: 1, VlanID: 200})
	ps.up(5)
	ps.addr(5, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(5, "10.1.0.2", 1)
	ps.host(2, "10.2.0.2", 2)
	p := udp(1, 0, "10.1.0.2", "10.2.0.2")
	ps.send(0, p)
	p.VLAN = []uint16{100}
	ps.send(0, p)
	p.VLAN = []uint16{200}
	ps.send(0, p)
	p.VLAN = []uint16{300}
	ps.send(0, p)
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.0.2"))
	query := arpRequest(1, "10.1.0.2", "10.1.0.1")
	query.VLAN = []uint16{100}
	ps.send(0, query)
}

// reusePackets deletes an interface whose index the next one reuses, and tests the neighbours and routes.
func reusePackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(2, "10.2.0.2", 2)
	ps.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2))
	ps.route(true, 0, "10.51.0.0/16", via("10.2.0.2", 0))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
	ps.do(&pg.PgDeleteInterface{SwIfIndex: 2})
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.2.0.2"))
	ps.do(&pg.PgCreateInterfaceV3{InterfaceID: 1})
	ps.do(&interfaces.SwInterfaceSetMacAddress{SwIfIndex: 2, MacAddress: portMAC(1)})
	ps.up(2)
	ps.addr(2, "10.2.0.1/24")
	ps.send(0, udp(1, 0, "10.1.0.2", "10.2.0.2"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.51.0.1"))
	ps.note("the route again: it stays dead, and so does another with the same path")
	ps.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
	ps.route(true, 0, "10.52.0.0/16", via("10.2.0.2", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.52.0.1"))
	ps.note("another next hop, more paths")
	ps.host(2, "10.2.0.3", 3)
	ps.route(true, 0, "10.53.0.0/16", via("10.2.0.3", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.53.0.1"))
	ps.multi(true, 0, "10.50.0.0/16", via("10.2.0.3", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
	ps.note("deleted and added")
	ps.route(false, 0, "10.50.0.0/16")
	ps.route(false, 0, "10.52.0.0/16")
	ps.route(true, 0, "10.50.0.0/16", via("10.2.0.2", 2))
	ps.send(0, udp(1, 0, "10.1.0.2", "10.50.0.1"))
}

// unnumberedPackets tests a borrower of addresses whose lender is set down and deleted.
func unnumberedPackets(ps *packetScript) {
	loop := ps.loopUp()
	ps.addr(loop, "10.1.1.1/24")
	ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: loop, UnnumberedSwIfIndex: 1, IsAdd: true})
	ps.addr(2, "10.2.0.1/24")
	ps.host(2, "10.2.0.2", 2)
	ps.note("neighbour within the lender's prefix, without a route")
	ps.host(1, "10.1.1.2", 1)
	ps.send(1, udp(2, 1, "10.2.0.2", "10.1.1.2"))
	ps.send(0, udp(1, 0, "10.1.1.2", "10.2.0.2"))
	ps.send(0, arpRequest(1, "10.1.1.2", "10.1.1.1"))
	ps.note("lender down")
	ps.down(loop)
	ps.send(0, udp(1, 0, "10.1.1.2", "10.2.0.2"))
	ps.send(0, arpRequest(1, "10.1.1.2", "10.1.1.1"))
	ps.note("no longer borrowing")
	ps.up(loop)
	ps.do(&interfaces.SwInterfaceSetUnnumbered{SwIfIndex: loop, UnnumberedSwIfIndex: 1})
	ps.send(0, udp(1, 0, "10.1.1.2", "10.2.0.2"))
}

func mtuPackets(ps *packetScript) {
	ps.addr(1, "10.1.0.1/24")
	ps.addr(2, "10.2.0.1/24")
	ps.host(2, "10.2.0.2", 2)
	ps.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1000, 0, 0, 0}})
	for _, size := range []int{972, 973} {
		p := udp(1, 0, "10.1.0.2", "10.2.0.2")
		p.Size, p.DF = size, true
		ps.send(0, p)
	}
	ps.do(&interfaces.SwInterfaceSetMtu{SwIfIndex: 2, Mtu: []uint32{1000, 800, 0, 0}})
	for _, size := range []int{772, 773} {
		p := udp(1, 0, "10.1.0.2", "10.2.0.2")
		p.Size, p.DF = size, true
		ps.send(0, p)
	}
}

func xconnectPackets(ps *packetScript) {
	ps.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: 1, TxSwIfIndex: 2, Enable: true})
	p := udp(1, 0, "10.1.0.2", "10.2.0.2")
	p.EthDst = hostMAC(2)
	ps.send(0, p)
	ps.send(1, p)
	ps.do(&l2.SwInterfaceSetL2Xconnect{RxSwIfIndex: 2, TxSwIfIndex: 1, Enable: true})
	ps.send(1, p)
	ps.send(0, arpRequest(1, "10.1.0.2", "10.1.0.3"))
	ps.down(2)
	ps.send(0, p)
}
