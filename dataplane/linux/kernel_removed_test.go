package intdataplane

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

// TestKernelRemovedRoutes: without an overlay, routes to other nodes that another program removes are restored at once, and not only by the
// periodic comparison, which is off here.
func TestKernelRemovedRoutes(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.run("ip", "link", "add", "up0", "type", "veth", "peer", "name", "peer0")
		n.run("ip", "link", "set", "peer0", "up")
		n.run("ip", "addr", "add", "192.0.2.1/24", "dev", "up0")
		n.run("ip", "addr", "add", "2001:db8:5::1/64", "dev", "up0", "nodad")
		n.run("ip", "link", "set", "up0", "up")
		n.apply(&proto.HostMetadataUpdate{Hostname: "node1", Ipv4Addr: "192.0.2.1", Ipv6Addr: "2001:db8:5::1"},
			remote("10.65.2.0/26", "node2", "192.0.2.2", proto.IPPoolType_NO_ENCAP),
			remote("10.65.3.0/26", "node3", "192.0.2.3", proto.IPPoolType_NO_ENCAP),
			remote("fd00:65:2::/122", "node2", "2001:db8:5::2", proto.IPPoolType_NO_ENCAP), &proto.InSync{})
		routes := func() (missing string) {
			for family, want := range map[string][]string{
				"-4": {"10.65.2.0/26 via 192.0.2.2", "10.65.3.0/26 via 192.0.2.3"}, "-6": {"fd00:65:2::/122 via 2001:db8:5::2"},
			} {
				shown := n.run("ip", family, "route", "show", "proto", "202")
				for _, w := range want {
					if !strings.Contains(shown, w) {
						missing += w + "; "
					}
				}
			}
			return missing
		}
		eventually(t, "the routes are programmed", func() bool { return routes() == "" })
		for range 2 {
			n.run("ip", "route", "del", "10.65.2.0/26")
			eventually(t, "an IPv4 route is restored", func() bool { return routes() == "" })
			n.run("ip", "-6", "route", "flush", "proto", "202")
			n.run("ip", "-4", "route", "flush", "proto", "202")
			eventually(t, "all routes are restored", func() bool { return routes() == "" })
		}
		// The driver's own removal is not undone.
		n.apply(&proto.RouteRemove{Dst: "10.65.3.0/26"})
		n.run("ip", "route", "del", "10.65.2.0/26")
		eventually(t, "the other route is restored", func() bool {
			return strings.Contains(n.run("ip", "route", "show", "proto", "202"), "10.65.2.0/26 via")
		})
		if shown := n.run("ip", "route", "show", "proto", "202"); strings.Contains(shown, "10.65.3.0/26") {
			t.Errorf("a removed route is back: %s", shown)
		}
	})
}
