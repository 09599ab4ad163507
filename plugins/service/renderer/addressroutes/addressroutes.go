package addressroutes

import (
	"net/netip"

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// Reject returns VPP's route that rejects packets to a network in the table vrf. VPP 25.10 can send the ICMP error only from table 0; in other
// tables the route drops the packets.
func Reject(vrf uint32, dst netip.Prefix) *vpp_l3.Route {
	action := vpp_l3.Route_REJECT
	if vrf != 0 {
		action = vpp_l3.Route_DROP
	}
	return &vpp_l3.Route{Type: action, VrfId: vrf, DstNetwork: dst.String()}
}

// ToVPP returns the host's route that sends packets to addr by the interface iface, its end of the link to VPP, to VPP's address there.
func ToVPP(iface string, vpp, addr netip.Addr) *linux_l3.Route {
	return &linux_l3.Route{
		OutgoingInterface: iface, Scope: linux_l3.Route_GLOBAL, GwAddr: vpp.String(),
		DstNetwork: netip.PrefixFrom(addr, addr.BitLen()).String(),
	}
}
