package vpp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/af_packet"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/tapv2"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/nb/vpp/l2"
	"contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

func mustPrefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestTags(t *testing.T) {
	for _, n := range []int{1, 59, 60, 61, 63, 64, 200} {
		name := strings.Repeat("x", n)
		long := longNames{}
		long.add(name)
		for _, tag := range []string{tagOf(name), nicTagOf(name)} {
			if len(tag) > tagMax {
				t.Errorf("name of %d: tag of %d", n, len(tag))
			}
			short, ours := nameOfTag(tag)
			if !ours || long.full(short) != name {
				t.Errorf("name of %d: back as %q", n, long.full(short))
			}
		}
	}
	if tagOf(strings.Repeat("x", 100)+"a") == tagOf(strings.Repeat("x", 100)+"b") {
		t.Error("two long names have one tag")
	}
	for _, tag := range []string{"", PoolTagPrefix + "tap", "other", "CV:x"} {
		if name, ours := nameOfTag(tag); ours {
			t.Errorf("tag %q is ours: %q", tag, name)
		}
	}
	if isNICTag(tagOf("p:x")) {
		t.Error("the name p:x makes a NIC")
	}
}

func edit[M proto.Message](m M, change func(M)) M {
	m = proto.Clone(m).(M)
	change(m)
	return m
}

// Everything that VPP would refuse or die of is refused before, by the name of the field.
func TestValidateInterface(t *testing.T) {
	k := newKinds(Deps{})
	base := loop("l", "02:00:00:00:00:01", withIP("10.1.0.1/24"))
	tapBase, vx := tap("t"), &vpp_interfaces.Interface{
		Name: "v", Type: vpp_interfaces.Interface_VXLAN_TUNNEL,
		Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{SrcAddress: "10.0.0.1", DstAddress: "10.0.0.2", Vni: 10}},
	}
	sub := &vpp_interfaces.Interface{
		Name: "s", Type: vpp_interfaces.Interface_SUB_INTERFACE,
		Link: &vpp_interfaces.Interface_Sub{Sub: &vpp_interfaces.SubInterface{ParentName: "l", SubId: 5}},
	}
	mem, af := memifOf("m", "/run/m.sock", 1, true), afPacket("a", "eth0")
	type change = func(*vpp_interfaces.Interface)
	for _, c := range []struct {
		field string
		base  *vpp_interfaces.Interface
		do    change
	}{
		{"", base, func(*vpp_interfaces.Interface) {}}, {"", tapBase, func(*vpp_interfaces.Interface) {}},
		{"", vx, func(*vpp_interfaces.Interface) {}}, {"", sub, func(*vpp_interfaces.Interface) {}},
		{"", mem, func(*vpp_interfaces.Interface) {}}, {"", af, func(*vpp_interfaces.Interface) {}},
		{"name", base, func(v *vpp_interfaces.Interface) { v.Name = "" }},
		{"type", base, func(v *vpp_interfaces.Interface) { v.Type = vpp_interfaces.Interface_BOND_INTERFACE }},
		{"type", base, func(v *vpp_interfaces.Interface) { v.Type = vpp_interfaces.Interface_UNDEFINED_TYPE }},
		{"phys_address", base, func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00" }},
		{"phys_address", base, func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00:00:00:00:00:01" }},
		{"mtu", base, func(v *vpp_interfaces.Interface) { v.Mtu = 20 }},
		{"mtu", base, func(v *vpp_interfaces.Interface) { v.Mtu = 70000 }},
		{"set_dhcp_client", base, func(v *vpp_interfaces.Interface) {
			v.SetDhcpClient, v.IpAddresses = true, []string{"10.1.0.1/24"}
		}},
		{"ip6_nd", base, func(v *vpp_interfaces.Interface) {
			v.Ip6Nd = &vpp_interfaces.Interface_IP6ND{AddressAutoconfig: true}
		}},
		{"ip_addresses[0]", base, withIP("10.1.0.1")}, {"ip_addresses[0]", base, withIP("10.1.0.1/33")},
		{"ip_addresses[1]", base, withIP("10.1.0.1/24", "10.1.0.1/24")}, {"ip_addresses[0]", base, withIP("alloc:net")},
		{"ip_addresses[0]", base, withIP("fe80::1/64")}, {"ip_addresses[0]", base, withIP("::ffff:10.1.0.1/120")},
		{"ip_addresses[0]", base, withIP("224.0.0.1/24")}, {"ip_addresses", base, unnumberedTo("other")},
		{"unnumbered.interface_with_ip", loop("l", ""), unnumberedTo("l")},
		{"unnumbered.interface_with_ip", loop("l", ""), unnumberedTo("")},
		{"tap.host_if_name", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "longer-than-15-chars" }},
		{"tap.rx_ring_size", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().RxRingSize = 100 }},
		{"tap.tx_ring_size", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().TxRingSize = 1 << 16 }},
		{"tap.enable_gso", tapBase, func(v *vpp_interfaces.Interface) { v.GetTap().EnableGso, v.GetTap().EnableTunnel = true, true }},
		{"mtu", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().LinuxInterface, v.Mtu = "veth", 1921 }},
		{"", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().LinuxInterface, v.Mtu = "veth", 1920 }},
		{"", af, func(v *vpp_interfaces.Interface) { v.Mtu = 9000 }},
		{"afpacket.host_if_name", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().HostIfName = "" }},
		{"afpacket.host_if_name", af, func(v *vpp_interfaces.Interface) { v.GetAfpacket().HostIfName = "longer-than-15-chars" }},
		{"rx_modes[0].mode", af, func(v *vpp_interfaces.Interface) {
			v.RxModes = []*vpp_interfaces.Interface_RxMode{{Mode: vpp_interfaces.Interface_RxMode_ADAPTIVE}}
		}},
		{"rx_modes[0].mode", tapBase, func(v *vpp_interfaces.Interface) { v.RxModes = []*vpp_interfaces.Interface_RxMode{{}} }},
		{"rx_placements[1].queue", tapBase, func(v *vpp_interfaces.Interface) {
			v.RxPlacements = []*vpp_interfaces.Interface_RxPlacement{{Queue: 1}, {Queue: 1}}
		}},
		{"vxlan.vni", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Vni = 1 << 24 }},
		{"vxlan.vni", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Vni = 0 }},
		{"vxlan.src_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().SrcAddress = "10.0.0.1/24" }},
		{"vxlan.dst_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "fd00::1" }},
		{"vxlan.dst_address", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "10.0.0.1" }},
		{"vxlan.multicast", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().DstAddress = "239.0.0.1" }},
		{"vxlan.gpe", vx, func(v *vpp_interfaces.Interface) { v.GetVxlan().Gpe = &vpp_interfaces.VxlanLink_Gpe{} }},
		{"pipe.first_end", pipeEndOf("p", ""), func(v *vpp_interfaces.Interface) { v.GetPipe().FirstEnd = "p" }},
		{"phys_address", pipeEndOf("p", ""), func(v *vpp_interfaces.Interface) { v.PhysAddress = "02:00:00:00:00:01" }},
		{"sub.parent_name", sub, func(v *vpp_interfaces.Interface) { v.GetSub().ParentName = "" }},
		{"sub.parent_name", sub, func(v *vpp_interfaces.Interface) { v.GetSub().ParentName = "s" }},
		{"sub.sub_id", sub, func(v *vpp_interfaces.Interface) { v.GetSub().SubId = 4095 }},
		{"sub.tag_rw_option", sub, func(v *vpp_interfaces.Interface) {
			v.GetSub().TagRwOption = vpp_interfaces.SubInterface_POP2
		}},
		{"memif.socket_filename", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().SocketFilename = "m.sock" }},
		{"memif.socket_filename", mem, func(v *vpp_interfaces.Interface) {
			v.GetMemif().SocketFilename = "/" + strings.Repeat("x", 107)
		}},
		{"memif.secret", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().Secret = strings.Repeat("x", 24) }},
		{"memif.ring_size", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().RingSize = 1000 }},
		{"memif.rx_queues", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().RxQueues = 256 }},
		{"memif.mode", mem, func(v *vpp_interfaces.Interface) { v.GetMemif().Mode = vpp_interfaces.MemifLink_PUNT_INJECT }},
	} {
		checkFault(t, c.field, k.validateInterface(edit(c.base, c.do)))
	}
}

// checkFault wants one fault, and that it names the field.
func checkFault(t *testing.T, field string, err error) {
	t.Helper()
	switch {
	case field == "" && err != nil:
		t.Errorf("refused: %v", err)
	case field != "" && err == nil:
		t.Errorf("%s: not refused", field)
	case field != "" && !strings.HasPrefix(err.Error(), field+": "):
		t.Errorf("%s: refused with %v", field, err)
	}
}

func TestValidateOthers(t *testing.T) {
	k := newKinds(Deps{})
	route := &vpp_l3.Route{DstNetwork: "10.0.0.0/8", NextHopAddr: "10.1.0.1"}
	for _, c := range []struct {
		field string
		do    func(*vpp_l3.Route)
	}{
		{"", func(*vpp_l3.Route) {}},
		{"dst_network", func(v *vpp_l3.Route) { v.DstNetwork = "10.0.0.0" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "fd00::1" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "gateway" }},
		{"next_hop_addr", func(v *vpp_l3.Route) { v.NextHopAddr = "" }},
		{"via_vrf_id", func(v *vpp_l3.Route) { v.Type, v.NextHopAddr = vpp_l3.Route_INTER_VRF, "" }},
		{"outgoing_interface", func(v *vpp_l3.Route) {
			v.Type, v.ViaVrfId, v.OutgoingInterface = vpp_l3.Route_INTER_VRF, 1, "x"
		}},
		{"weight", func(v *vpp_l3.Route) { v.Weight = 256 }},
		{"preference", func(v *vpp_l3.Route) { v.Preference = 256 }},
		{"type", func(v *vpp_l3.Route) { v.Type = 9 }},
	} {
		checkFault(t, c.field, validateRoute(edit(route, c.do)))
	}
	bd := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: []*vpp_l2.BridgeDomain_Interface{
		{Name: "a", BridgedVirtualInterface: true}, {Name: "b"},
	}}
	for _, c := range []struct {
		field string
		do    func(*vpp_l2.BridgeDomain)
	}{
		{"", func(*vpp_l2.BridgeDomain) {}},
		{"name", func(v *vpp_l2.BridgeDomain) { v.Name = "" }},
		{"mac_age", func(v *vpp_l2.BridgeDomain) { v.MacAge = 256 }},
		{"interfaces[1].bridged_virtual_interface", func(v *vpp_l2.BridgeDomain) {
			v.Interfaces[1].BridgedVirtualInterface = true
		}},
		{"interfaces[1].name", func(v *vpp_l2.BridgeDomain) { v.Interfaces[1].Name = "" }},
		{"interfaces[0].split_horizon_group", func(v *vpp_l2.BridgeDomain) { v.Interfaces[0].SplitHorizonGroup = 300 }},
		{"arp_termination_table[0].ip_address", func(v *vpp_l2.BridgeDomain) {
			v.ArpTerminationTable = []*vpp_l2.BridgeDomain_ArpTerminationEntry{{PhysAddress: "02:00:00:00:00:01"}}
		}},
	} {
		checkFault(t, c.field, k.validateBridge(edit(bd, c.do)))
	}
	checkFault(t, "protocol", k.validateTable("", &vpp_l3.VrfTable{Protocol: 3}))
	checkFault(t, "id", k.validateTable("", &vpp_l3.VrfTable{Id: none}))
	checkFault(t, "interface", validateNeighbour(&vpp_l3.ARPEntry{IpAddress: "10.0.0.1", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "ip_address", validateNeighbour(&vpp_l3.ARPEntry{Interface: "x", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "phys_address", validateNeighbour(&vpp_l3.ARPEntry{Interface: "x", IpAddress: "10.0.0.1"}))
	checkFault(t, "outgoing_interface", validateFIB(&vpp_l2.FIBEntry{BridgeDomain: "b", PhysAddress: "02:00:00:00:00:01"}))
	checkFault(t, "ranges[0].last_ip_addr", validateProxyARP(&vpp_l3.ProxyARP{
		Ranges: []*vpp_l3.ProxyARP_Range{{FirstIpAddr: "10.0.0.2", LastIpAddr: "10.0.0.1"}},
	}))
}

func members(n int) []*vpp_l2.BridgeDomain_Interface {
	var all []*vpp_l2.BridgeDomain_Interface
	for i := range n {
		all = append(all, &vpp_l2.BridgeDomain_Interface{Name: fmt.Sprintf("if%d", i)})
	}
	return all
}

func TestDiffBridge(t *testing.T) {
	list := members(5)
	from := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: list}
	changed := &vpp_l2.BridgeDomain_Interface{Name: "if1", SplitHorizonGroup: 1}
	copied := members(5)
	for _, c := range []struct {
		to       []*vpp_l2.BridgeDomain_Interface
		put, del []string
	}{
		{list, nil, nil},
		{copied, nil, nil},
		{append(slices.Clone(list), &vpp_l2.BridgeDomain_Interface{Name: "new"}), []string{"new"}, nil},
		{list[1:], nil, []string{"if0"}},
		{nil, nil, []string{"if0", "if1", "if2", "if3", "if4"}},
		{[]*vpp_l2.BridgeDomain_Interface{list[4], list[3], list[2], list[1], list[0]}, nil, nil},
		{[]*vpp_l2.BridgeDomain_Interface{list[0], changed, list[2], list[3], list[4]}, []string{"if1"}, nil},
		{[]*vpp_l2.BridgeDomain_Interface{list[0], list[4], {Name: "x"}}, []string{"x"}, []string{"if1", "if2", "if3"}},
	} {
		var put, del []string
		diffBridge("", from, &vpp_l2.BridgeDomain{Name: "bd", Interfaces: c.to},
			func(_, key string, _ any) { put = append(put, strings.TrimPrefix(key, nb.BDInterfaceKeyPrefix("bd"))) },
			func(key string) { del = append(del, strings.TrimPrefix(key, nb.BDInterfaceKeyPrefix("bd"))) })
		slices.Sort(del)
		if !slices.Equal(put, c.put) || !slices.Equal(del, c.del) {
			t.Errorf("put %v del %v, want %v %v", put, del, c.put, c.del)
		}
	}
}

// One member more of 2000 costs microseconds.
func BenchmarkAddMember(b *testing.B) {
	k := newKinds(Deps{})
	list := members(2000)
	from := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: list}
	to := &vpp_l2.BridgeDomain{Name: "bd", Interfaces: append(slices.Clone(list), &vpp_l2.BridgeDomain_Interface{Name: "new"})}
	puts := 0
	for b.Loop() {
		if err := k.validateBridge(to); err != nil {
			b.Fatal(err)
		}
		diffBridge("", from, to, func(string, string, any) { puts++ }, func(string) { b.Fatal("deleted") })
	}
	if puts != b.N {
		b.Fatalf("%d puts", puts)
	}
}

func TestRxModes(t *testing.T) {
	const poll, intr, adapt = interface_types.RX_MODE_API_POLLING, interface_types.RX_MODE_API_INTERRUPT, interface_types.RX_MODE_API_ADAPTIVE
	dumped := ifRxModes{Dumped: true, Queues: []queueMode{{0, poll}, {1, intr}}}
	for _, c := range []struct {
		want ifRxModes
		same bool
	}{
		{ifRxModes{}, true},
		{ifRxModes{All: intr}, false},
		{ifRxModes{All: intr, Queues: []queueMode{{0, poll}}}, true},
		{ifRxModes{Queues: []queueMode{{1, adapt}}}, false},
		{ifRxModes{All: interface_types.RX_MODE_API_DEFAULT}, true},
		{ifRxModes{Queues: []queueMode{{7, adapt}}}, true}, // no such queue yet
	} {
		if c.want.sameAs(dumped) != c.same {
			t.Errorf("%v: %t", c.want, !c.same)
		}
	}
	if n := len(ifRxModes{All: intr, Queues: []queueMode{{0, poll}}}.requests(1)); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestScan(t *testing.T) {
	for _, v := range []*vpp_l3.IPScanNeighbor{
		{}, {Mode: vpp_l3.IPScanNeighbor_IPV4, StaleThreshold: 4}, {Mode: vpp_l3.IPScanNeighbor_IPV6, StaleThreshold: 1},
		{Mode: vpp_l3.IPScanNeighbor_BOTH},
	} {
		back := scanOf(scanAge(v, false), scanAge(v, true))
		if scanAge(back, false) != scanAge(v, false) || scanAge(back, true) != scanAge(v, true) {
			t.Errorf("%v came back as %v", v, back)
		}
	}
}

func TestIndex(t *testing.T) {
	x := NewIndex()
	x.add(&ifEntry{name: "a", index: 1, kind: kindTap, hostDev: "dev"})
	x.add(&ifEntry{name: "b", index: 2, kind: kindTap, hostDev: "dev2", moved: true})
	if i, ok := x.IfIndex("a"); i != 1 || !ok {
		t.Errorf("index %d %t", i, ok)
	}
	if dev, inPlace, ok := x.TapPlace("a"); dev != "dev" || inPlace || !ok {
		t.Errorf("device %q %t %t", dev, inPlace, ok)
	}
	if _, inPlace, ok := x.TapPlace("b"); !inPlace || !ok {
		t.Error("a device in a pod")
	}
	x.add(&ifEntry{name: "c", index: 1}) // VPP has used the number again
	if _, ok := x.IfIndex("a"); ok {
		t.Error("a is still there")
	}
	x.remove("c")
	if _, ok := x.NameByIndex(1); ok {
		t.Error("number 1 is still there")
	}
	x.addBD("one", x.freeBD())
	x.addBD("two", x.freeBD())
	x.removeBD("one")
	if id := x.freeBD(); id != 1 {
		t.Errorf("free bridge domain %d", id)
	}
	n := 0
	for range x.Interfaces() {
		n++
	}
	if n != 1 {
		t.Errorf("%d interfaces", n)
	}
}

func TestShortNamespace(t *testing.T) {
	for path, want := range map[string]string{
		"/var/run/netns/cni-1": "cni-1", "/run/netns/x": "x", "/proc/12/ns/net": "/proc/12/ns/net", "": "",
		"/run/netns/a/b": "/run/netns/a/b",
	} {
		if got := shortNamespace(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	end := tapEnd{namespace: "/" + strings.Repeat("x", 70), device: "eth0"}
	if err := end.addTo(TapRequest(TapSpec{}, "d", "t")); err == nil {
		t.Error("a path that VPP would cut was taken")
	}
}

func TestErrors(t *testing.T) {
	refused := &conn.RetvalError{Message: "tap_create_v3", Retval: int32(api.SYSCALL_ERROR_1)}
	err := ifObject("create", "pod").wrap(explainTap(refused))
	if !strings.Contains(err.Error(), "create interface pod") || !strings.Contains(err.Error(), "/dev/vhost-net") {
		t.Error(err)
	}
	if !conn.IsRetval(err, api.SYSCALL_ERROR_1) {
		t.Error("the cause is lost")
	}
	var got error
	done := join(3, func(err error) { got = err })
	done(nil)
	done(refused)
	if got != nil {
		t.Error("ended early")
	}
	done(nil)
	if !errors.Is(got, refused) {
		t.Errorf("joined error %v", got)
	}
}

func TestEqualInterfaces(t *testing.T) {
	device := func(l string) (string, bool) { return "dev-" + l, l != "unknown" }
	k := newKinds(Deps{LinuxDevice: device})
	kind := k.interfaceKind()
	af := func(dev, linux string) *vpp_interfaces.Interface {
		v := afPacket("a", dev)
		v.GetAfpacket().LinuxInterface = linux
		return v
	}
	for i, c := range []struct {
		desired, applied *vpp_interfaces.Interface
		same             bool
	}{
		{loop("l", ""), loop("l", "02:00:00:00:00:01"), true},
		{loop("l", "02:00:00:00:00:0A"), loop("l", "02:00:00:00:00:0a"), true},
		{loop("l", "02:00:00:00:00:02"), loop("l", "02:00:00:00:00:01"), false},
		{loop("l", ""), tap("l"), false},
		{af("", "x"), af("dev-x", ""), true},
		{af("", "x"), af("dev-y", ""), false},
		{af("", "unknown"), af("dev-y", ""), true},
		{af("", "x"), af("", "y"), false},
		{tap("t"), edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "any" }), true},
		{edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().HostIfName = "vpp1" }), tap("t"), true}, // inside a pod
		{tap("t"), edit(tap("t"), func(v *vpp_interfaces.Interface) { v.GetTap().EnableGso = true }), false},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 1500 }), true},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 1900 }), true},
		{af("eth0", ""), edit(af("eth0", ""), func(v *vpp_interfaces.Interface) { v.Mtu = 9000 }), false}, // other rings
		{memifOf("m", "/s", 1, true), edit(memifOf("m", "/s", 1, true), func(v *vpp_interfaces.Interface) {
			v.GetMemif().Secret, v.GetMemif().RingSize = unknownText, unknownNumber
		}), true},
		{memifOf("m", "/s", 1, true), edit(memifOf("m", "/s", 1, true), func(v *vpp_interfaces.Interface) {
			v.GetMemif().Secret = "other"
		}), false},
	} {
		if kind.Equal("", c.desired, c.applied) != c.same {
			t.Errorf("case %d: %t", i, !c.same)
		}
	}
}

// TestAfPacketRings: a frame to the kernel has room for whatever VPP may copy into it, and one from it for a packet of the MTU with
// two VLAN tags and what the kernel puts before it.
func TestAfPacketRings(t *testing.T) {
	const kernel, headers, tunnel = 82, 14 + 8, 70
	for _, mtu := range []uint32{576, 1450, 1500, 1920, 1921, 8950, 9000, 9216, 65535} {
		req := AfPacketRequest("eth0", mtu, DefaultAfPacketRings())
		if req.TxFrameSize < 65535+headers+tunnel+kernel {
			t.Errorf("MTU %d: frames to the kernel have %d bytes", mtu, req.TxFrameSize)
		}
		if req.RxFrameSize < mtu+headers+kernel {
			t.Errorf("MTU %d: frames from the kernel have %d bytes", mtu, req.RxFrameSize)
		}
		if req.Flags&af_packet.AF_PACKET_API_FLAG_CKSUM_GSO != 0 {
			t.Error("VPP takes in what it cannot cut up")
		}
		for _, ring := range []uint32{req.RxFrameSize * req.RxFramesPerBlock, req.TxFrameSize * req.TxFramesPerBlock} {
			if ring%4096 != 0 {
				t.Errorf("MTU %d: a ring of %d bytes is not made of whole pages", mtu, ring)
			}
		}
	}
	if tap := TapRequest(TapSpec{}, "t", ""); tap.TapFlags&(tapv2.TAP_API_FLAG_GSO|tapv2.TAP_API_FLAG_CSUM_OFFLOAD) != 0 {
		t.Error("a TAP has offloads")
	}
	if tap := TapRequest(TapSpec{GSO: true}, "t", ""); tap.TapFlags&tapv2.TAP_API_FLAG_GSO == 0 {
		t.Error("a TAP lacks offloads")
	}
}
