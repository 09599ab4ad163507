package nb

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"testing"

	"google.golang.org/protobuf/proto"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	linux_namespace "contiv.dev/vswitch/dataplane/nb/linux/namespace"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
)

// TestKey compares the keys of every kind with vpp-agent's templates, and
// checks that New returns the message of each key.
func TestKey(t *testing.T) {
	tests := []struct {
		m    proto.Message
		want string
	}{
		{&vpp_interfaces.Interface{Name: "tap0"}, "config/vpp/v2/interfaces/tap0"},
		{&vpp_interfaces.Interface{Name: "GigabitEthernet0/8/0"}, "config/vpp/v2/interfaces/GigabitEthernet0/8/0"},
		{&vpp_interfaces.Interface{Name: "a//b/"}, "config/vpp/v2/interfaces/a/b"},
		{&vpp_interfaces.Interface{Name: "a/.b"}, "config/vpp/v2/interfaces/a/.b"},
		{&vpp_l2.BridgeDomain{Name: "vxlanBD"}, "config/vpp/l2/v2/bridge-domain/vxlanBD"},
		{&vpp_l2.FIBEntry{BridgeDomain: "vxlanBD", PhysAddress: "12:2b:00:00:00:01"},
			"config/vpp/l2/v2/fib/vxlanBD/mac/12:2b:00:00:00:01"},
		{&vpp_l2.XConnectPair{ReceiveInterface: "in", TransmitInterface: "out"}, "config/vpp/l2/v2/xconnect/in"},
		{&vpp_l3.ARPEntry{Interface: "tap0", IpAddress: "10.1.1.2"}, "config/vpp/v2/arp/tap0/10.1.1.2"},
		{&vpp_l3.ARPEntry{Interface: "tap0", IpAddress: "fe80::2"}, "config/vpp/v2/arp/tap0/fe80::2"},
		{&vpp_l3.VrfTable{}, "config/vpp/v2/vrf-table/id/0/protocol/IPV4"},
		{&vpp_l3.VrfTable{Id: 1, Protocol: vpp_l3.VrfTable_IPV6}, "config/vpp/v2/vrf-table/id/1/protocol/IPV6"},
		{&vpp_l3.VrfTable{Id: 1, Protocol: 7}, "config/vpp/v2/vrf-table/id/1/protocol/7"},
		{&vpp_l3.ProxyARP{}, "config/vpp/v2/proxyarp-global"},
		{&vpp_l3.IPScanNeighbor{}, "config/vpp/v2/ipscanneigh-global"},
		{&vpp_nat.Nat44Global{}, "config/vpp/nat/v2/nat44-global"},
		{&vpp_nat.DNat44{Label: "default/web"}, "config/vpp/nat/v2/dnat44/default/web"},
		{&vpp_nat.Nat44Interface{Name: "tap0"}, "config/vpp/nat/v2/nat44-interface/tap0"},
		{&vpp_nat.Nat44AddressPool{Name: "snat", FirstIp: "192.0.2.1"}, "config/vpp/nat/v2/nat44-pool/snat"},
		{&vpp_nat.Nat44AddressPool{FirstIp: "192.0.2.1"}, "config/vpp/nat/v2/nat44-pool/vrf/0/address/192.0.2.1"},
		{&vpp_nat.Nat44AddressPool{FirstIp: "192.0.2.1", LastIp: "192.0.2.1"},
			"config/vpp/nat/v2/nat44-pool/vrf/0/address/192.0.2.1"},
		{&vpp_nat.Nat44AddressPool{VrfId: 4294967295, FirstIp: "192.0.2.1", LastIp: "192.0.2.9"},
			"config/vpp/nat/v2/nat44-pool/vrf/4294967295/address/192.0.2.1-192.0.2.9"},
		{&vpp_acl.ACL{Name: "acl-1"}, "config/vpp/acls/v2/acl/acl-1"},
		{&linux_interfaces.Interface{Name: "pod-eth0"}, "config/linux/interfaces/v2/interface/pod-eth0"},
		{&linux_l3.ARPEntry{Interface: "pod-eth0", IpAddress: "10.1.1.1"}, "config/linux/l3/v2/arp/pod-eth0/10.1.1.1"},
		{&linux_l3.Route{DstNetwork: "10.1.1.1/24", OutgoingInterface: "pod-eth0"},
			"config/linux/l3/v2/route/10.1.1.0/24/pod-eth0"},
		{&linux_l3.Route{DstNetwork: "FD00::1/64", OutgoingInterface: "pod-eth0"},
			"config/linux/l3/v2/route/fd00::/64/pod-eth0"},
		{&linux_l3.Route{DstNetwork: "alloc:net/if/GW", OutgoingInterface: "pod-eth0"},
			"config/linux/l3/v2/route/alloc:net/if/GW/pod-eth0"},
		{&linux_l3.Route{DstNetwork: "0.0.0.0/0"}, "config/linux/l3/v2/route/0.0.0.0/0"},
	}
	for _, tt := range tests {
		checkKey(t, tt.m, tt.want)
	}
}

func TestRouteKey(t *testing.T) {
	tests := []struct {
		r    *vpp_l3.Route
		want string
	}{
		{&vpp_l3.Route{DstNetwork: "10.1.2.3/16", NextHopAddr: "192.168.1.1", OutgoingInterface: "tap0", VrfId: 1},
			"config/vpp/v2/route/if/tap0/vrf/1/dst/10.1.0.0/16/gw/192.168.1.1"},
		{&vpp_l3.Route{DstNetwork: "10.1.2.3/32"}, "config/vpp/v2/route/vrf/0/dst/10.1.2.3/32"},
		{&vpp_l3.Route{DstNetwork: "0.0.0.0/0", NextHopAddr: "10.0.0.1"},
			"config/vpp/v2/route/vrf/0/dst/0.0.0.0/0/gw/10.0.0.1"},
		{&vpp_l3.Route{DstNetwork: "2001:DB8:0::1/64", OutgoingInterface: "Gi0/8/0", NextHopAddr: "fe80::1"},
			"config/vpp/v2/route/if/Gi0/8/0/vrf/0/dst/2001:db8::/64/gw/fe80::1"},
		{&vpp_l3.Route{DstNetwork: "::/0"}, "config/vpp/v2/route/vrf/0/dst/::/0"},
		// Not an address with a mask: used unchanged.
		{&vpp_l3.Route{DstNetwork: "10.1.2.3"}, "config/vpp/v2/route/vrf/0/dst/10.1.2.3"},
		{&vpp_l3.Route{DstNetwork: "10.1.2.3/33", NextHopAddr: "10.0.0.1"},
			"config/vpp/v2/route/vrf/0/dst/10.1.2.3/33/gw/10.0.0.1"},
		{&vpp_l3.Route{DstNetwork: "alloc:net1/tap0", VrfId: 2}, "config/vpp/v2/route/vrf/2/dst/alloc:net1/tap0"},
		{&vpp_l3.Route{}, "config/vpp/v2/route/vrf/0/dst"},
		// The gateway is not normalised.
		{&vpp_l3.Route{DstNetwork: "::/0", NextHopAddr: "FE80::1"}, "config/vpp/v2/route/vrf/0/dst/::/0/gw/FE80::1"},
	}
	for _, tt := range tests {
		checkKey(t, tt.r, tt.want)
		if got := joinedRouteKey(tt.r); got != tt.want {
			t.Errorf("joinedRouteKey(%v) = %q, want %q", tt.r, got, tt.want)
		}
		dst, err := netip.ParsePrefix(tt.r.DstNetwork)
		if err != nil {
			continue
		}
		gw, _ := netip.ParseAddr(tt.r.NextHopAddr)
		if gw.IsValid() && gw.String() != tt.r.NextHopAddr {
			continue
		}
		if got := RouteKeyFor(tt.r.OutgoingInterface, tt.r.VrfId, dst, gw); got != tt.want {
			t.Errorf("RouteKeyFor(%v) = %q, want %q", tt.r, got, tt.want)
		}
	}
	if got, want := RouteVrfPrefix(7), "config/vpp/v2/route/vrf/7/"; got != want {
		t.Errorf("RouteVrfPrefix(7) = %q, want %q", got, want)
	}
}

// joinedRouteKey builds a route's key in the slow way that the grammar
// describes.
func joinedRouteKey(r *vpp_l3.Route) string {
	name := ""
	if r.OutgoingInterface != "" {
		name += "if/" + r.OutgoingInterface + "/"
	}
	name += fmt.Sprintf("vrf/%d/dst/", r.VrfId)
	if _, n, err := net.ParseCIDR(r.DstNetwork); err == nil {
		name += n.String() + "/"
	} else {
		name += r.DstNetwork + "/"
	}
	if r.NextHopAddr != "" {
		name += "gw/" + r.NextHopAddr
	}
	return path.Join(RoutePrefix, name)
}

func FuzzRouteKey(f *testing.F) {
	f.Add("", uint32(0), "10.1.2.3/16", "10.0.0.1")
	f.Add("a//b", uint32(1), "fd00::1/64", "")
	f.Add("../x", uint32(2), "alloc:x/./y/", "./")
	f.Fuzz(func(t *testing.T, outIf string, vrf uint32, dst, gw string) {
		if p, err := netip.ParsePrefix(dst); err == nil && p.Addr().Is4In6() {
			t.Skip("net and netip print ::ffff:a.b.c.d differently")
		}
		if _, err := netip.ParsePrefix(dst); err != nil {
			if _, _, err := net.ParseCIDR(dst); err == nil {
				t.Skip("net takes masks with leading zeros")
			}
		}
		r := &vpp_l3.Route{OutgoingInterface: outIf, VrfId: vrf, DstNetwork: dst, NextHopAddr: gw}
		if got, want := RouteKey(r), joinedRouteKey(r); got != want {
			t.Errorf("RouteKey(%v) = %q, want %q", r, got, want)
		}
	})
}

func checkKey(t *testing.T, m proto.Message, want string) {
	t.Helper()
	got, err := Key(m)
	if err != nil || got != want {
		t.Errorf("Key(%v) = %q, %v, want %q", m, got, err, want)
		return
	}
	back, err := New(got)
	if err != nil {
		t.Errorf("New(%q): %v", got, err)
		return
	}
	if kindOf(back) != kindOf(m) {
		t.Errorf("New(%q) is a %s, want a %s", got, kindOf(back), kindOf(m))
	}
}

func TestKeyErrors(t *testing.T) {
	for _, m := range []proto.Message{
		nil,
		&vpp_interfaces.InterfaceState{Name: "tap0"},
		&vpp_nat.Nat44VrfTable{},
		&linux_namespace.NetNamespace{},
		&vpp_interfaces.Interface{},
		(*vpp_interfaces.Interface)(nil),
		&vpp_interfaces.Interface{Name: "../arp/tap0"},
		&vpp_l3.Route{OutgoingInterface: "../../../arp/x"},
		&vpp_acl.ACL{Name: "/"},
	} {
		if key, err := Key(m); err == nil {
			t.Errorf("Key(%v) = %q, want an error", m, key)
		}
	}
	for _, key := range []string{
		"", "config/vpp/v2/interfaces", "config/vpp/v2/interfaces/", "config/vpp/v2/span/a/to/b",
		"vpp/interface/tap0/rx-modes", "config/vpp/v2/proxyarp-global/", "/vnf-agent/n1/config/vpp/v2/interfaces/a",
	} {
		if m, err := New(key); err == nil {
			t.Errorf("New(%q) = %s, want an error", key, kindOf(m))
		}
	}
}

func TestDerivedKeys(t *testing.T) {
	tests := []struct{ got, want string }{
		{InterfaceStateKey("tap0"), "vpp/status/v2/interface/tap0"},
		{InterfaceErrorKey("tap0"), "vpp/status/v2/interface/error/tap0"},
		{InterfaceAddressKey("tap0", AddressStatic, "10.1.1.1/24"), "vpp/interface/tap0/address/static/10.1.1.1/24"},
		{InterfaceAddressKey("tap0", AddressFromDHCP, "fd00::1/64"), "vpp/interface/tap0/address/from_dhcp/fd00::1/64"},
		{InterfaceAddressKey("tap0", AddressStatic, "alloc:net"), "vpp/interface/tap0/address/alloc_ref/alloc:net"},
		{InterfaceAddressKey("", AddressExisting, "1.1.1.1/8"), "vpp/interface/<invalid>/address/existing/1.1.1.1/8"},
		{InterfaceAddressKeyPrefix("tap0"), "vpp/interface/tap0/address/"},
		{InterfaceVrfKey("tap0", 1, IPv4), "vpp/interface/tap0/vrf/1/ip-version/v4"},
		{InterfaceVrfKey("tap0", 0, IPBoth), "vpp/interface/tap0/vrf/0/ip-version/both"},
		{InterfaceVrfKeyPrefix("tap0"), "vpp/interface/tap0/vrf/"},
		{InterfaceInheritedVrfKey("tap0", "loop0"), "vpp/interface/tap0/vrf/from-interface/loop0"},
		{UnnumberedKey("tap0"), "vpp/interface/unnumbered/tap0"},
		{LinkStateKey("tap0", true), "vpp/interface/tap0/link-state/UP"},
		{LinkStateKey("tap0", false), "vpp/interface/tap0/link-state/DOWN"},
		{LinkStateKeyPrefix("tap0"), "vpp/interface/tap0/link-state/"},
		{HasIPAddressKey("tap0"), "vpp/interface/tap0/has-IP-address"},
		{RxModesKey("tap0"), "vpp/interface/tap0/rx-modes"},
		{RxPlacementKey("tap0", 3), "vpp/interface/tap0/rx-placement/queue/3"},
		{BDInterfaceKey("bd", "tap0"), "vpp/bd/bd/interface/tap0"},
		{BDInterfaceKeyPrefix("bd"), "vpp/bd/bd/interface/"},
		{ACLInterfaceKey("acl", Ingress, "tap0"), "vpp/acl/acl/interface/ingress/tap0"},
		{ACLInterfaceKey("acl", Egress, "Gi0/8/0"), "vpp/acl/acl/interface/egress/Gi0/8/0"},
		{ProxyARPInterfaceKey("tap0"), "vpp/proxyarp/interface/tap0"},
		{LinuxInterfaceStateKey("eth0", true), "linux/interface/state/eth0/UP"},
		{LinuxInterfaceStateKey("eth0", false), "linux/interface/state/eth0/DOWN"},
		{LinuxInterfaceAddressKey("eth0", AddressStatic, "10.1.1.2/32"), "linux/interface/eth0/address/static/10.1.1.2/32"},
		{LinuxInterfaceAddressKeyPrefix("eth0"), "linux/interface/eth0/address/"},
		{LinuxHostNameKey("eth0"), "linux/interface/host-name/eth0"},
		{LinuxMicroserviceKey("ms"), "linux/microservice/ms"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestKeysAllocateOnce(t *testing.T) {
	route := benchRoute()
	dst, gw := netip.MustParsePrefix("10.1.2.0/24"), netip.MustParseAddr("192.168.16.2")
	pool := &vpp_nat.Nat44AddressPool{FirstIp: "192.0.2.1", LastIp: "192.0.2.9"}
	name := "tap-vpp2-0123456789ab"
	var sink string
	for what, f := range map[string]func(){
		"VppInterfaceKey":     func() { sink = VppInterfaceKey(name) },
		"FIBKey":              func() { sink = FIBKey(name, "12:2b:00:00:00:01") },
		"RouteKey":            func() { sink = RouteKey(route) },
		"RouteKeyFor":         func() { sink = RouteKeyFor(name, 1, dst, gw) },
		"VrfTableKey":         func() { sink = VrfTableKey(1, vpp_l3.VrfTable_IPV6) },
		"Nat44AddressPoolKey": func() { sink = Nat44AddressPoolKey(pool) },
		"LinuxRouteKey":       func() { sink = LinuxRouteKey("10.1.2.3/24", name) },
		"InterfaceAddressKey": func() { sink = InterfaceAddressKey(name, AddressStatic, "10.1.1.1/24") },
		"InterfaceVrfKey":     func() { sink = InterfaceVrfKey(name, 1, IPv4) },
		"LinkStateKey":        func() { sink = LinkStateKey(name, true) },
		"Key":                 func() { sink, _ = Key(route) },
	} {
		if n := testing.AllocsPerRun(100, f); n > 1 {
			t.Errorf("%s allocates %v times, want once (%q)", what, n, sink)
		}
	}
}

func benchRoute() *vpp_l3.Route {
	return &vpp_l3.Route{
		VrfId: 1, DstNetwork: "10.1.2.0/24", NextHopAddr: "192.168.16.2", OutgoingInterface: "vxlanBVI",
	}
}

func BenchmarkRouteKey(b *testing.B) {
	r := benchRoute()
	b.ReportAllocs()
	for b.Loop() {
		RouteKey(r)
	}
}

func BenchmarkRouteKeyFor(b *testing.B) {
	dst, gw := netip.MustParsePrefix("10.1.2.0/24"), netip.MustParseAddr("192.168.16.2")
	b.ReportAllocs()
	for b.Loop() {
		RouteKeyFor("vxlanBVI", 1, dst, gw)
	}
}

func BenchmarkVppInterfaceKey(b *testing.B) {
	name := "tap-vpp2-0123456789ab"
	b.ReportAllocs()
	for b.Loop() {
		VppInterfaceKey(name)
	}
}
