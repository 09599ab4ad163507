package plugin_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
)

// TestUplinkModes: large packets and many connections pass when VPP polls the uplink, and when its worker threads share it.
func TestUplinkModes(t *testing.T) {
	for _, workers := range []int{0, 2} {
		for _, mode := range []string{"interrupt", "polling"} {
			if workers == 0 && mode == "interrupt" {
				continue // TestUplink
			}
			t.Run(fmt.Sprintf("workers=%d,%s", workers, mode), func(t *testing.T) {
				matrix.Only(t)
				one, two := uplinkRigsOf(t, uplinkOptions{workers: workers})
				a, b := one.tap("a", "gso"), two.tap("b", "gso")
				for _, end := range []struct{ own, other *rig }{{one, two}, {two, one}} {
					end.own.joinOver("VXLAN over IPv4", end.own.number(), end.other.number())
					end.own.cli("set interface rx-mode host-u0 %s", mode)
				}
				one.carryLoads(a, b, bulk.Load{Up: 1, Down: 1, Length: 8 << 20}, bulk.Load{Up: 32, Down: 32, Length: 256 << 10})
				for _, r := range []*rig{one, two} {
					if r.counter("contiv-uplink-input", "of several segments") == 0 {
						r.Errorf("rig %d: no large packet came in", r.number())
					}
					r.noneRefused()
					if n := r.counter("ethernet-input", "l3 mac mismatch"); n != 0 {
						r.Errorf("rig %d: %d frames came in that it had sent itself", r.number(), n)
					}
				}
				one.takeUplink(false) // VPP's own rings serve the queues again, with their threads and modes
				two.takeUplink(false)
				one.carrySome(a, b)
			})
		}
	}
}

// TestUplinkOwnSolicitations: VPP solicits machines on the uplink's network from its link-local address. If it received its own
// solicitation, it would store this address as a neighbour, and forward the answers in a loop until their hop limit is reached.
func TestUplinkOwnSolicitations(t *testing.T) {
	for _, workers := range []int{0, 2} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			matrix.Only(t, "workers=2")
			one, two := uplinkRigsOf(t, uplinkOptions{workers: workers})
			a := one.tap("a", "gso")
			for n := range 6 { // machines on the network, whose kernel answers
				addr := fmt.Sprintf("fd00:2::9%d", n)
				one.run(two.netns, "ip addr add "+addr+"/64 dev u0 nodad")
				one.run(two.netns, "ip -6 route replace fd00:1::/32 via fd00:2::1 dev u0")
				one.reach(a, netip.MustParseAddr(addr))
			}
			if n := one.counter("ip6-rewrite", "ttl") + one.counter("ip6-input", "ttl"); n != 0 {
				t.Errorf("the hop limit of %d packets has ended", n)
			}
			if own := one.counter("ethernet-input", "l3 mac mismatch"); own != 0 {
				t.Errorf("%d frames came in that VPP had sent itself", own)
			}
		})
	}
}

// run runs a command in a namespace.
func (r *rig) run(ns *netns.Namespace, command string) {
	r.Helper()
	f := strings.Fields(command)
	if _, err := ns.Run(r.Context(), f[0], f[1:]...); err != nil {
		r.Fatal(err)
	}
}

// TestUplinkVLAN: packets of a VLAN pass through an uplink, including large ones from a neighbour's kernel.
func TestUplinkVLAN(t *testing.T) {
	t.Run("between VPPs", func(t *testing.T) {
		one, two := uplinkRigs(t)
		a, b := one.tap("a", "gso"), two.tap("b", "gso")
		for n, r := range []*rig{one, two} {
			r.cli("create sub-interfaces host-u0 1")
			r.cli("set interface state host-u0.1 up")
			r.cli("set interface ip address host-u0.1 10.3.0.%d/24", n+1)
			r.cli("set interface ip address host-u0.1 fd00:3::%d/64", n+1)
			r.routeOver("10.3.0.%d", "fd00:3::%d", 2-n)
		}
		one.carrySome(a, b)
		one.noneRefused()
	})
	t.Run("from a kernel", func(t *testing.T) {
		r := offloadRig(t, "")
		up, b := r.veth("u"), r.tap("b", "gso")
		r.endpoint(up, contiv.CONTIV_ROLE_API_UPLINK)
		r.offloads(up, "on")
		r.reach(up, b.v4) // so that VPP's own hardware address is resolved
		r.cli("create sub-interfaces %s 1", up.device)
		r.cli("set interface state %s.1 up", up.device)
		r.cli("set interface ip address %s.1 10.1.77.1/24", up.device)
		r.cli("set interface ip address %s.1 fd00:1:77::1/64", up.device)
		for _, ip6 := range []bool{false, true} {
			r.inOrder(r, up, b, order{ip6: ip6, vlans: 1})
		}
		if r.counter("contiv-uplink-input", "of several segments") == 0 {
			r.Error("no large packet came in")
		}
	})
}

// TestUplinkMixed: the neighbour is a VPP without the plugin, as during an upgrade. It does not accept large packets, so it gets none, and
// data transfers work.
func TestUplinkMixed(t *testing.T) {
	for _, mode := range []string{"plain", "VXLAN over IPv4", "VXLAN over IPv6"} {
		t.Run(mode, func(t *testing.T) {
			matrix.Only(t)
			one, two := uplinkRigsOf(t, uplinkOptions{without: 2})
			a, b := one.tap("a", "gso"), two.tap("b", "")
			one.joinOver(mode, 1, 2)
			two.joinOver(mode, 2, 1)
			one.carrySome(a, b)
			if one.counter("contiv-offload-output", "cut into segments") == 0 {
				one.Error("nothing was cut")
			}
			if n := two.counter("af-packet-input", "partial"); n != 0 {
				two.Errorf("%d large packets came to the neighbour", n)
			}
		})
	}
}

// takeUplink makes the interface an uplink of the plugin, or removes it.
func (r *rig) takeUplink(is bool) {
	r.Helper()
	if up := r.index("host-u0"); is {
		r.endpoint(&port{Namespace: r.netns, index: up}, contiv.CONTIV_ROLE_API_UPLINK)
	} else {
		r.do(r.api.ContivEndpointDel(r.Context(), &contiv.ContivEndpointDel{SwIfIndex: up}))
	}
}
