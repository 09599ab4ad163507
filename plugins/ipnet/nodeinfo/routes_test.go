package nodeinfo

import (
	"net/netip"
	"testing"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// TestReject: the sender gets an ICMP error where VPP can send one, and in no table is the packet forwarded.
func TestReject(t *testing.T) {
	dst := netip.MustParsePrefix("10.96.0.0/12")
	for vrf, want := range map[uint32]vpp_l3.Route_RouteType{0: vpp_l3.Route_REJECT, 1: vpp_l3.Route_DROP} {
		if r := (Node{MainVRF: vrf}).Reject(dst); r.Type != want || r.VrfId != vrf || r.DstNetwork != "10.96.0.0/12" {
			t.Errorf("table %d: %v", vrf, r)
		}
	}
}

// TestFromHost: the route is for the one address, in both families.
func TestFromHost(t *testing.T) {
	node := Node{LinuxIf: "vpp1", HostLink: netip.MustParseAddr("172.30.1.1")}
	for addr, want := range map[string]string{"192.0.2.1": "192.0.2.1/32", "fd00:96::1": "fd00:96::1/128"} {
		r := node.FromHost(netip.MustParseAddr(addr))
		if r.DstNetwork != want || r.GwAddr != "172.30.1.1" || r.OutgoingInterface != "vpp1" {
			t.Errorf("%s: %v", addr, r)
		}
	}
}
