package ipnet

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/nb"
)

// NATNode describes this node for address translation by VPP. All addresses are IPv4.
type NATNode struct {
	// Uplink is the logical name of the main NIC; empty: there is none.
	Uplink string
	// Address is the address of the main interface; invalid while there is none.
	Address netip.Addr
	// Outside: packets that pods send to the outside by the uplink get the source Address.
	Outside bool
	// Exit is the logical name of the interface whose output translates them: the uplink, or a pipe before it (outside.go).
	Exit string
	// Loopback is an address of this node's pod network that no pod gets.
	Loopback netip.Addr
	// HostLink is VPP's address on the link to the host, HostIf the logical name of the host's end.
	HostLink netip.Addr
	HostIf   string
	// Host is the host's address there, the source of what it sends to services.
	Host netip.Addr
	// Services are the networks of cluster IPs.
	Services []netip.Prefix
	// MainVRF and PodVRF are VPP's tables.
	MainVRF, PodVRF uint32
}

// NextHop describes how VPP reaches an address.
type NextHop struct {
	// VRF is the table that has the route to the address, and to whose interfaces its replies come.
	VRF uint32
	// Masquerade: replies from the address to a pod or to the host may bypass this VPP, so VPP has to translate the client's address.
	Masquerade bool
}

// NATNode describes this node; false before the first resync, or if pods have no IPv4. Event loop only.
func (n *IPNet) NATNode() (NATNode, bool) {
	s := n.settings
	if s == nil {
		return NATNode{}, false
	}
	out := NATNode{Uplink: s.mainIf.InterfaceName, MainVRF: s.mainVRF, PodVRF: s.podVRF}
	for _, p := range s.podSubnets {
		if p.Subnet.Addr().Is4() {
			out.Loopback = p.NATLoopback
		}
	}
	for _, l := range s.hostLinks {
		if l.VPP.Addr().Is4() {
			out.HostLink, out.Host = l.VPP.Addr(), l.Host.Addr()
			_, out.HostIf = s.hostLinkNames()
		}
	}
	for _, p := range s.nodeIPs {
		if p.Addr().Is4() && !out.Address.IsValid() {
			out.Address = p.Addr()
		}
	}
	for _, p := range s.cluster.Services {
		if p.Addr().Is4() {
			out.Services = append(out.Services, p)
		}
	}
	if out.Exit = out.Uplink; s.piped() {
		out.Exit = outsidePipe
	}
	out.Outside = s.nat && out.Uplink != "" && out.Address.IsValid()
	return out, out.Loopback.IsValid()
}

// NextHopTo returns how VPP reaches an address. Event loop only.
func (n *IPNet) NextHopTo(addr netip.Addr) NextHop {
	s := n.settings
	if s == nil {
		return NextHop{}
	}
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
	}
	overlay := s.transport.BVI() != ""
	switch {
	case in(s.local.Pods):
		return NextHop{VRF: s.podVRF}
	case slices.Contains(s.hostIPs, addr), in(s.local.Hosts):
		return NextHop{VRF: s.mainVRF, Masquerade: true}
	case overlay && (in(s.cluster.Pods) || in(s.cluster.VPPHost) || n.peers.reachedByOverlay(s, addr)):
		return NextHop{VRF: s.podVRF}
	case in(s.cluster.Pods), in(s.cluster.VPPHost):
		return NextHop{VRF: s.mainVRF}
	}
	return NextHop{VRF: s.mainVRF, Masquerade: true}
}

// reachedByOverlay reports whether the main VRF has a route to addr by the overlay: transports route the addresses of other nodes' hosts
// through the pod VRF.
func (ps *peers) reachedByOverlay(s *settings, addr netip.Addr) bool {
	return ps.wanted[nb.RouteKeyFor("", s.mainVRF, hostPrefix(addr), netip.Addr{})] > 0
}
