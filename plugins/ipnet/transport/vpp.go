package transport

import (
	"net/netip"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// Route returns a VPP route via gw out of an interface; an invalid gw means directly connected.
func Route(vrf uint32, dst netip.Prefix, gw netip.Addr, outIf string) *vpp_l3.Route {
	r := &vpp_l3.Route{VrfId: vrf, DstNetwork: dst.String(), OutgoingInterface: outIf}
	if gw.IsValid() {
		r.NextHopAddr = gw.String()
	}
	return r
}

// InterVRF returns a VPP route that continues the lookup in another table.
func InterVRF(from uint32, dst netip.Prefix, to uint32) *vpp_l3.Route {
	return &vpp_l3.Route{Type: vpp_l3.Route_INTER_VRF, VrfId: from, DstNetwork: dst.String(), ViaVrfId: to}
}

// Drop returns a VPP route that drops packets.
func Drop(vrf uint32, dst netip.Prefix) *vpp_l3.Route {
	return &vpp_l3.Route{Type: vpp_l3.Route_DROP, VrfId: vrf, DstNetwork: dst.String()}
}
