package nat44

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestIPv6Refused: a service with addresses of IPv6 is refused with what to do about it, its IPv4 is served all the same, and clients
// of IPv6 are rejected by VPP.
func TestIPv6Refused(t *testing.T) {
	for what, ipv4 := range map[string]bool{"both families": true, "IPv6 alone": false} {
		w := newWorld(t)
		w.net.ipv6, w.net.off = true, !ipv4
		dual := svc("dual", "10.96.0.1", "10.1.1.2")
		dual.ClusterIPs = renderer.FromAddrs(netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:96::1"))
		four := svc("four", "10.96.0.2", "10.1.1.2")
		refused := func(step string, err error) {
			t.Helper()
			list, other := renderer.Refusals(err)
			if other != nil || len(list) != 1 || list[0].ID != dual.ID || !strings.Contains(list[0].Err.Error(), "contiv_plugin.so") {
				t.Errorf("%s, %s: refused %v, %v", what, step, list, other)
			}
		}
		ev := *w.ev
		ev.Services = []*renderer.ContivService{dual, four}
		refused("resync", w.r.Resync(&ev))
		refused("update", w.r.UpdateService(dual, dual, nil))
		if err := w.r.UpdateService(four, four, nil); err != nil {
			t.Errorf("%s, IPv4: %v", what, err)
		}
		if got := len(w.dnat("dual")) > 0; got != ipv4 {
			t.Errorf("%s: IPv4 is served: %t", what, got)
		}
		route, _ := w.out.state[nb.RouteKey(&vpp_l3.Route{DstNetwork: "fd00:96::/108"})].(*vpp_l3.Route)
		if route.GetType() != vpp_l3.Route_REJECT {
			t.Errorf("%s: cluster IPs end by %v", what, route)
		}
	}
}
