package intdataplane

import (
	"log/slog"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

var tunnels = Config{IPv6Enabled: true, RulesConfig: rules.Config{VXLANEnabled: true, IPIPEnabled: true}}

func vtep(node, mac, ip4, ip6, parent string) *proto.VXLANTunnelEndpointUpdate {
	return &proto.VXLANTunnelEndpointUpdate{Node: node, Mac: mac, Ipv4Addr: ip4, Ipv6Addr: ip6, ParentDeviceIp: parent}
}

var (
	ownVTEP  = vtep("node1", "66:00:00:00:00:01", "10.65.0.0", "fd00:65::", "192.0.2.1")
	peerVTEP = vtep("node2", "66:00:00:00:00:02", "10.65.1.0", "fd00:65:1::", "192.0.2.2")
)

func remote(dst, node, nodeIP string, pool proto.IPPoolType, change ...func(*proto.RouteUpdate)) *proto.RouteUpdate {
	r := &proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_REMOTE_WORKLOAD, Dst: dst, DstNodeName: node, DstNodeIp: nodeIP,
		IpPoolType: pool}
	for _, f := range change {
		f(r)
	}
	return r
}

func sameSubnet(r *proto.RouteUpdate) { r.SameSubnet = true }

func TestNodeRoutes(t *testing.T) {
	b := newBench(t, tunnels)
	b.must(ifAddrs("eth0", "192.0.2.1"), &proto.HostMetadataUpdate{Hostname: "node1", Ipv4Addr: "192.0.2.1"}, ownVTEP, peerVTEP,
		remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN),
		remote("fd00:65:1::/122", "node2", "2001:db8::2", proto.IPPoolType_VXLAN),
		remote("10.65.2.0/26", "node3", "192.0.2.3", proto.IPPoolType_VXLAN, sameSubnet),
		remote("10.65.3.0/26", "node4", "192.0.2.4", proto.IPPoolType_NO_ENCAP),
		remote("10.65.4.0/26", "node5", "192.0.2.5", proto.IPPoolType_IPIP),
		remote("10.65.9.0/26", "node1", "192.0.2.1", proto.IPPoolType_VXLAN), // this node itself
		&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_LOCAL_WORKLOAD, Dst: "10.65.0.0/26"},
		&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_LOCAL_WORKLOAD, Dst: "10.65.0.5/32"},
		&proto.RouteUpdate{Type: proto.RouteType_LOCAL_WORKLOAD, Dst: "fd00:65::/122"},
		&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_REMOTE_HOST, Dst: "192.0.2.2/32"},
		&proto.RouteUpdate{Dst: "nonsense"})
	want := []string{
		"blocks/10.65.0.0/26: 10.65.0.0/26 dev= mac= gw=invalid IP onlink=false type=1",
		"direct/10.65.2.0/26: 10.65.2.0/26 dev=eth0 mac= gw=192.0.2.3 onlink=false type=0",
		"direct/10.65.3.0/26: 10.65.3.0/26 dev=eth0 mac= gw=192.0.2.4 onlink=false type=0",
		"ipip/10.65.4.0/26: 10.65.4.0/26 dev=tunl0 mac= gw=192.0.2.5 onlink=true type=0",
		"vxlan/10.65.1.0/26: 10.65.1.0/26 dev=contiv-vxlan mac= gw=10.65.1.0 onlink=true type=0",
	}
	if got := b.routes[4].text(); got != strings.Join(want, "\n") {
		t.Errorf("IPv4:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	want6 := "blocks/fd00:65::/122: fd00:65::/122 dev= mac= gw=invalid IP onlink=false type=1\n" +
		"vxlan/fd00:65:1::/122: fd00:65:1::/122 dev=contiv-vxlan mac= gw=fd00:65:1:: onlink=true type=0"
	if got := b.routes[6].text(); got != want6 {
		t.Errorf("IPv6:\n%s\nwant:\n%s", got, want6)
	}
	b.must(&proto.RouteRemove{Dst: "10.65.1.0/26"}, &proto.RouteRemove{Dst: "10.65.0.0/26"},
		&proto.RouteRemove{Dst: "10.99.0.0/26"})
	if text := b.routes[4].text(); strings.Contains(text, "vxlan") || strings.Contains(text, "blocks") {
		t.Errorf("removed routes are left: %s", text)
	}
}

func TestNodeRoutesWait(t *testing.T) {
	b := newBench(t, tunnels)
	route := remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN)
	b.must(route)
	has := func() bool { return strings.Contains(b.routes[4].text(), "10.65.1.0/26") }
	if has() || b.d.dump().WaitingRoutes["10.65.1.0/26"] == "" {
		t.Errorf("without VTEPs: routes %q, waiting %v", b.routes[4].text(), b.d.dump().WaitingRoutes)
	}
	b.must(peerVTEP)
	if has() {
		t.Error("without the node's own VTEP")
	}
	b.must(ownVTEP)
	if !has() || len(b.d.dump().WaitingRoutes) > 0 {
		t.Errorf("with both VTEPs: routes %q, waiting %v", b.routes[4].text(), b.d.dump().WaitingRoutes)
	}
	b.must(&proto.VXLANTunnelEndpointRemove{Node: "node2"})
	if has() {
		t.Error("after the peer's VTEP went")
	}
	direct := remote("10.65.2.0/26", "node3", "192.0.2.3", proto.IPPoolType_NO_ENCAP)
	b.must(direct)
	if strings.Contains(b.routes[4].text(), "10.65.2.0/26") {
		t.Error("direct route before the uplink is known")
	}
	b.must(ifAddrs("eth3", "192.0.2.1"))
	if !strings.Contains(b.routes[4].text(), "10.65.2.0/26 dev=eth3") {
		t.Errorf("the VTEP's parent is the uplink: %s", b.routes[4].text())
	}
	off := newBench(t, both)
	off.must(route, ownVTEP, peerVTEP)
	if off.routes[4].text() != "" {
		t.Errorf("VXLAN routes without VXLANEnabled: %s", off.routes[4].text())
	}
}

// TestVXLANTunnelAddress: the configured address is the address of the own VTEP if its message has none, and never that of another node.
func TestVXLANTunnelAddress(t *testing.T) {
	nameless := vtep("node1", "66:00:00:00:00:01", "", "", "192.0.2.1")
	for text, want := range map[string]int{"": 0, "10.65.0.0": 1, "fd00:65::": 1} {
		config := tunnels
		if text != "" {
			config.RulesConfig.VXLANTunnelAddress = addr(text)
		}
		b := newBench(t, config)
		b.apply(nameless, vtep("node2", "66:00:00:00:00:02", "", "", "192.0.2.2"))
		if len(b.vxlan.local) != want || len(b.vxlan.others) > 0 || want == 1 && b.vxlan.local[0].TunnelAddr != addr(text) {
			t.Errorf("%q: %+v", text, b.vxlan)
		}
		b.apply(ownVTEP)
		if len(b.vxlan.local) != 2 {
			t.Errorf("%q: the message has addresses, and the VTEP is %+v", text, b.vxlan.local)
		}
	}
}

// apply sends messages and applies. Objects may be broken.
func (b *bench) apply(msgs ...any) {
	b.t.Helper()
	if err := b.step(msgs...); err != nil {
		b.t.Fatal(err)
	}
}

func TestVTEPs(t *testing.T) {
	b := newBench(t, tunnels)
	b.must(peerVTEP)
	if len(b.vxlan.local)+len(b.vxlan.others) > 0 {
		t.Errorf("without an own VTEP: %+v", b.vxlan)
	}
	b.apply(ownVTEP, vtep("bad", "zz", "10.0.0.1", "", "192.0.2.9"), vtep("bad2", "66:00:00:00:00:09", "", "", "192.0.2.9"))
	if len(b.vxlan.local) != 2 || len(b.vxlan.others) != 2 || b.vxlan.underlay != table.IPv4 {
		t.Fatalf("%+v, want two ends of each node, over IPv4", b.vxlan)
	}
	if got := b.vxlan.others[0]; got.Node != "node2" || got.TunnelAddr != addr("10.65.1.0") ||
		got.ParentAddr != addr("192.0.2.2") || got.MAC.String() != "66:00:00:00:00:02" {
		t.Errorf("other end: %+v", got)
	}
	b.must(&proto.VXLANTunnelEndpointRemove{Node: "node1"})
	if len(b.vxlan.local)+len(b.vxlan.others) > 0 {
		t.Errorf("after the own VTEP went: %+v", b.vxlan)
	}
	six := newBench(t, tunnels)
	six.must(&proto.VXLANTunnelEndpointUpdate{Node: "node1", MacV6: "66:00:00:00:00:01", Ipv6Addr: "fd00:65::",
		ParentDeviceIpv6: "2001:db8::1"})
	if six.vxlan.underlay != table.IPv6 || len(six.vxlan.local) != 1 {
		t.Errorf("a node with IPv6 only: %+v", six.vxlan)
	}
	off := newBench(t, both)
	off.must(ownVTEP, peerVTEP)
	if len(off.vxlan.local)+len(off.vxlan.others) > 0 || off.vxlan.applied != 1 {
		t.Errorf("without VXLANEnabled: %+v, want one apply that removes the device", off.vxlan)
	}
	off.must(ifUp("eth0", 1))
	if off.vxlan.applied != 1 {
		t.Errorf("without VXLANEnabled the device is looked at again and again: %d", off.vxlan.applied)
	}
}

// TestPeerOfAnotherFamily: a node without an address of the underlay's family is reported once, with the reason, and is in the dump, until it has one.
func TestPeerOfAnotherFamily(t *testing.T) {
	var log strings.Builder
	b := newBenchWith(t, tunnels, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, rulestest.New())
	six := vtep("node2", "66:00:00:00:00:02", "10.65.1.0", "fd00:65:1::", "")
	six.ParentDeviceIpv6 = "2001:db8::2"
	b.apply(ownVTEP, six)
	b.apply(pb.CloneOf(ownVTEP), pb.CloneOf(six)) // renders all again
	const reason = "it has no IPv4 address, and the VXLAN device of this node uses IPv4"
	if n := strings.Count(log.String(), "a node is not connected"); n != 1 || !strings.Contains(log.String(), reason) {
		t.Errorf("reported %d times:\n%s", n, log.String())
	}
	if got := b.d.dump().Broken["VTEP of node node2"]; !strings.Contains(got, reason) {
		t.Errorf("the dump says %q", got)
	}
	b.must(peerVTEP)
	if broken := b.d.dump().Broken; len(broken) > 0 {
		t.Errorf("the dump says %q", broken)
	}
}

// TestUnderlayMTU: a change of the underlay NIC's MTU causes a check of the VXLAN device, and so does a NIC that becomes the underlay; other
// links do not.
func TestUnderlayMTU(t *testing.T) {
	b := newBench(t, tunnels)
	b.must(ownVTEP, peerVTEP)
	for _, step := range []struct {
		what  string
		msg   any
		looks int
	}{
		{"a workload's MTU", &ifaceMTU{Name: "cali1", MTU: 9000}, 0},
		{"a container's MTU", &ifaceMTU{Name: "veth1234", MTU: 9000}, 0},
		{"another NIC's address", ifAddrs("eth1", "198.51.100.1"), 0},
		{"another NIC's MTU", &ifaceMTU{Name: "eth1", MTU: 9000}, 0},
		{"the underlay's MTU, before its address", &ifaceMTU{Name: "eth0", MTU: 9000}, 0},
		{"the underlay's address", ifAddrs("eth0", "192.0.2.1", "192.0.2.9"), 1},
		{"another address of the underlay", ifAddrs("eth0", "192.0.2.1"), 0},
		{"the underlay's MTU", &ifaceMTU{Name: "eth0", MTU: 1500}, 1},
		{"the underlay without address", ifAddrs("eth0"), 0},
		{"the former underlay's MTU", &ifaceMTU{Name: "eth0", MTU: 9000}, 0},
	} {
		before := b.vxlan.resyncs
		b.must(step.msg)
		if got := b.vxlan.resyncs - before; got != step.looks {
			t.Errorf("%s: %d looks at the VXLAN device, want %d", step.what, got, step.looks)
		}
	}
}

// TestVXLANReversePath: the VXLAN device accepts packets whose source is not routed into the tunnel, and other new interfaces keep the
// kernel's default.
func TestVXLANReversePath(t *testing.T) {
	const path = "net/ipv4/conf/contiv-vxlan/rp_filter"
	b := newBench(t, tunnels)
	b.must(peerVTEP)
	if value, wrote := b.sysctls.values[path]; wrote {
		t.Errorf("without a device: %s", value)
	}
	b.must(ownVTEP)
	for _, again := range []any{nil, ifUp("contiv-vxlan", 9)} {
		if again != nil {
			b.sysctls.values[path] = "1" // the kernel's default for a new device
			b.must(again)
		}
		if got := b.sysctls.values[path]; got != "2" {
			t.Errorf("%s is %q, want 2", path, got)
		}
	}
	if value, wrote := b.sysctls.values["net/ipv4/conf/default/rp_filter"]; wrote {
		t.Errorf("the default of new interfaces is set to %s", value)
	}
}

func TestNodeSets(t *testing.T) {
	config := tunnels
	config.ExternalNodesCidrs = []string{"198.51.100.0/24", "2001:db8:9::/48"}
	b := newBench(t, config)
	b.must(&proto.HostMetadataUpdate{Hostname: "node2", Ipv4Addr: "192.0.2.2"}, &proto.HostMetadataUpdate{Hostname: "node3",
		Ipv4Addr: "192.0.2.2"},
		&proto.HostMetadataUpdate{Hostname: "bad", Ipv4Addr: "nonsense"}, vtep("node4", "66:00:00:00:00:04", "10.65.4.0", "",
			"192.0.2.4"))
	if got, want := b.setText(4, "all-hosts-net"), "192.0.2.2/32/0:0 198.51.100.0/24/0:0"; got != want {
		t.Errorf("IPv4: %q, want %q", got, want)
	}
	if got, want := b.setText(6, "all-hosts-net"), "2001:db8:9::/48/0:0"; got != want {
		t.Errorf("IPv6: %q, want %q", got, want)
	}
	vxlan := func(src string) string {
		p := rulestest.Packet{In: "eth0", Src: addr(src), Dst: addr("192.0.2.1"), Proto: 17, DstPort: 4789}
		p.Local = append(p.Local, addr("192.0.2.1"))
		return b.verdict(p)
	}
	for src, want := range map[string]string{"192.0.2.2": "accept", "192.0.2.4": "accept", "198.51.100.7": "accept",
		"192.0.2.5": "drop"} {
		if got := vxlan(src); got != want {
			t.Errorf("VXLAN from %s: %s, want %s", src, got, want)
		}
	}
	b.must(&proto.HostMetadataRemove{Hostname: "node2"}, &proto.VXLANTunnelEndpointRemove{Node: "node4"})
	if vxlan("192.0.2.2") != "accept" || vxlan("192.0.2.4") != "drop" {
		t.Error("an address stays as long as one node has it, and no longer")
	}
	b.must(&proto.HostMetadataRemove{Hostname: "node3"})
	if vxlan("192.0.2.2") != "drop" {
		t.Error("an address is left")
	}
}
