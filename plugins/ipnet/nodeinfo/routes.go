package nodeinfo

import (
	"net/netip"

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Reject returns VPP's route that rejects packets to a network in the main table. VPP 25.10 can send the ICMP error only from table 0; in
// other tables the route drops the packets.
func (n Node) Reject(dst netip.Prefix) *vpp_l3.Route {
	action := vpp_l3.Route_REJECT
	if n.MainVRF != 0 {
		action = vpp_l3.Route_DROP
	}
	return &vpp_l3.Route{Type: action, VrfId: n.MainVRF, DstNetwork: dst.String()}
}

// FromHost returns the host's route that sends packets to addr by its end of the link to VPP, to VPP's address there.
func (n Node) FromHost(addr netip.Addr) *linux_l3.Route {
	return &linux_l3.Route{
		OutgoingInterface: n.LinuxIf, Scope: linux_l3.Route_GLOBAL, GwAddr: n.HostLink.String(),
		DstNetwork: ipaddr.HostPrefix(addr).String(),
	}
}

// FromPods returns VPP's route that looks up a network in the main table for packets of pods.
func (n NAT) FromPods(dst netip.Prefix) *vpp_l3.Route {
	return transport.InterVRF(n.PodVRF, dst, n.MainVRF)
}
