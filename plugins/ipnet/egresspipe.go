package ipnet

import (
	"net/netip"
	"slices"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// VPP's NAT translates the sources of packets that leave through an interface. With an overlay this interface is the uplink, where packets
// between pods are inside tunnels. Without an overlay the uplink also carries packets between pods without tunnels. So traffic of pods to
// the outside passes through a pipe before the main VRF, and NAT translates the packets that enter the pipe:
//
//	pod VRF  10.1.0.0/16, other nodes, services, the host --> main VRF --> uplink
//	         0.0.0.0/0 --> egressPipe (NAT) == egressPipeEnd --> main VRF --> uplink
//
// Only the first packet of a connection uses the pipe: for later packets NAT finds the session on the interface of the pod.

// piped reports whether traffic of pods to the outside passes through the pipe. The result does not depend on whether the node already has
// an address.
func (s *settings) piped() bool {
	return s.nat && s.translates && !s.pluginNAT && s.mainIf.InterfaceName != "" && s.transport.BVI() == "" && s.podGateway4().IsValid()
}

func (s *settings) podGateway4() netip.Addr { return s.podGateway(netip.IPv4Unspecified()) }

// egressPipe puts the pipe, the default route into it, and the routes that bypass it.
func (s *settings) egressPipe(v *values) {
	if !s.piped() {
		return
	}
	link := func(first string) *vpp_interfaces.Interface_Pipe {
		return &vpp_interfaces.Interface_Pipe{Pipe: &vpp_interfaces.PipeLink{FirstEnd: first}}
	}
	hostIf, _ := s.hostLinkNames()
	v.put(
		&vpp_interfaces.Interface{
			Name: egressPipe, Type: vpp_interfaces.Interface_PIPE, Enabled: true, Vrf: s.mainVRF, Link: link(""),
		},
		&vpp_interfaces.Interface{ // VPP accepts packets only on an interface with an address
			Name: egressPipeEnd, Type: vpp_interfaces.Interface_PIPE, Enabled: true, Vrf: s.mainVRF, Link: link(egressPipe),
			Unnumbered: &vpp_interfaces.Interface_Unnumbered{InterfaceWithIp: hostIf},
		},
	)
	v.route(s.podVRF, anyPrefix(netip.IPv4Unspecified()), netip.Addr{}, egressPipe)
	for _, p := range s.pastPipe() {
		v.interVRF(s.podVRF, p, s.mainVRF)
	}
}

// pastPipe returns the IPv4 networks that are not outside, except those of other nodes (peerPastPipe): those of the cluster, of this
// node, and those behind its other NICs, from which answers to the uplink's address would not return.
func (s *settings) pastPipe() []netip.Prefix {
	all := slices.Concat(s.cluster.Pods, s.cluster.VPPHost, s.cluster.Services)
	for _, p := range s.nodeIPs {
		all = append(all, ipaddr.HostPrefix(p.Addr()))
	}
	for _, addr := range s.hostIPs {
		all = append(all, ipaddr.HostPrefix(addr))
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

// peerPastPipe puts routes that bypass the pipe to the addresses of another node, including its host: pods reach these addresses with their
// own source address.
func (s *settings) peerPastPipe(v *values, p *transport.Node) {
	if !s.piped() {
		return
	}
	var seen []netip.Addr
	put := func(addr netip.Addr) {
		if addr.Is4() && !slices.Contains(seen, addr) {
			seen = append(seen, addr)
			v.interVRF(s.podVRF, ipaddr.HostPrefix(addr), s.mainVRF)
		}
	}
	for _, ip := range p.IPs {
		put(ip.Addr())
	}
	for _, addr := range p.MgmtIPs {
		put(addr)
	}
}
