package ipnet

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
)

// NATNode describes this node; false before the first resync, or if pods have no IPv4. Event loop only.
func (n *IPNet) NATNode() (nodeinfo.NAT, bool) {
	s := n.settings
	if s == nil {
		return nodeinfo.NAT{}, false
	}
	node, _ := n.ServiceNode(false)
	out := nodeinfo.NAT{Node: node, Uplink: s.mainIf.InterfaceName, PodVRF: s.podVRF}
	for _, p := range s.podSubnets {
		if p.Subnet.Addr().Is4() {
			out.Loopback = p.NATLoopback
		}
	}
	if out.Exit = out.Uplink; s.piped() {
		out.Exit = egressPipe
	}
	out.Outside = s.nat && out.Uplink != "" && out.Address.IsValid()
	return out, out.Loopback.IsValid()
}

// NextHopTo returns how VPP reaches an address. Event loop only.
func (n *IPNet) NextHopTo(addr netip.Addr) nodeinfo.NextHop {
	s := n.settings
	if s == nil {
		return nodeinfo.NextHop{}
	}
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	overlay := s.transport.BVI() != ""
	switch {
	case in(s.local.Pods):
		return nodeinfo.NextHop{VRF: s.podVRF}
	case slices.Contains(s.hostIPs, addr), in(s.local.Hosts):
		return nodeinfo.NextHop{VRF: s.mainVRF, Masquerade: true}
	case overlay && (in(s.cluster.Pods) || in(s.cluster.VPPHost) || n.peers.reachedByOverlay(s, addr)):
		return nodeinfo.NextHop{VRF: s.podVRF}
	case in(s.cluster.Pods), in(s.cluster.VPPHost):
		return nodeinfo.NextHop{VRF: s.mainVRF}
	}
	return nodeinfo.NextHop{VRF: s.mainVRF, Masquerade: true}
}

// reachedByOverlay reports whether the main VRF has a route to addr by the overlay: transports route the addresses of other nodes' hosts
// through the pod VRF.
func (ps *peers) reachedByOverlay(s *settings, addr netip.Addr) bool {
	return ps.rendered[nb.RouteKeyFor("", s.mainVRF, ipaddr.HostPrefix(addr), netip.Addr{})] > 0
}
