package ipnet

import (
	"net/netip"
	"slices"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// VPP's NAT translates sources of what leaves by an interface. With an overlay that is the uplink, where packets between pods are inside of
// tunnels. Without one the uplink carries these as they are; so what pods send to the outside goes through a pipe before the main VRF, and
// NAT translates what enters the pipe:
//
//	pod VRF  10.1.0.0/16, other nodes, services, the host --> main VRF --> uplink
//	         0.0.0.0/0 --> outsidePipe (NAT) == outsidePipeEnd --> main VRF --> uplink
//
// Only the first packet of a connection goes that way: NAT has the sessions of the others where they come from the pod.

// piped reports whether what pods send to the outside goes through a pipe. It does not depend on the node having an address yet.
func (s *settings) piped() bool {
	return s.nat && s.translates && !s.pluginNAT && s.mainIf.InterfaceName != "" && s.transport.BVI() == "" && s.podGateway4().IsValid()
}

func (s *settings) podGateway4() netip.Addr { return s.podGateway(netip.IPv4Unspecified()) }

// outsidePipe puts the pipe, the default route into it, and what goes past it.
func (s *settings) outsidePipe(v *values) {
	if !s.piped() {
		return
	}
	link := func(first string) *vpp_interfaces.Interface_Pipe {
		return &vpp_interfaces.Interface_Pipe{Pipe: &vpp_interfaces.PipeLink{FirstEnd: first}}
	}
	hostIf, _ := s.hostLinkNames()
	v.put(
		&vpp_interfaces.Interface{
			Name: outsidePipe, Type: vpp_interfaces.Interface_PIPE, Enabled: true, Vrf: s.mainVRF, Link: link(""),
		},
		&vpp_interfaces.Interface{ // VPP takes packets only where there is an address
			Name: outsidePipeEnd, Type: vpp_interfaces.Interface_PIPE, Enabled: true, Vrf: s.mainVRF, Link: link(outsidePipe),
			Unnumbered: &vpp_interfaces.Interface_Unnumbered{InterfaceWithIp: hostIf},
		},
	)
	v.route(s.podVRF, anyPrefix(netip.IPv4Unspecified()), netip.Addr{}, outsidePipe)
	for _, p := range s.pastPipe() {
		v.interVRF(s.podVRF, p, s.mainVRF)
	}
}

// pastPipe are the IPv4 networks that are not outside, apart from those of other nodes (peerPastPipe): of the cluster, of this
// node, and those behind its other NICs, by which answers would not find the uplink's address.
func (s *settings) pastPipe() []netip.Prefix {
	all := slices.Concat(s.cluster.Pods, s.cluster.VPPHost, s.cluster.Services)
	for _, p := range s.nodeIPs {
		all = append(all, hostPrefix(p.Addr()))
	}
	for _, addr := range s.hostIPs {
		all = append(all, hostPrefix(addr))
	}
	for _, other := range s.otherIfs {
		all = append(all, other.IPs...)
	}
	var out []netip.Prefix
	for _, p := range all {
		if p = p.Masked(); p.Addr().Is4() && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// peerPastPipe puts the addresses of another node, its host's among them: pods reach them with their own address.
func (s *settings) peerPastPipe(v *values, p *transport.Node) {
	if !s.piped() {
		return
	}
	var seen []netip.Addr
	put := func(addr netip.Addr) {
		if addr.Is4() && !slices.Contains(seen, addr) {
			seen = append(seen, addr)
			v.interVRF(s.podVRF, hostPrefix(addr), s.mainVRF)
		}
	}
	for _, ip := range p.IPs {
		put(ip.Addr())
	}
	for _, addr := range p.MgmtIPs {
		put(addr)
	}
}
