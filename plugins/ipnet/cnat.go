package ipnet

import (
	"net/netip"
	"slices"
)

// CnatNode is what VPP's cnat has to know of this node, for one family of addresses.
type CnatNode struct {
	// Address is that of the main interface; invalid while there is none.
	Address netip.Addr
	// HostLink is VPP's address on the link to the host. HostIf is the logical name of VPP's end, LinuxIf of the host's.
	HostLink        netip.Addr
	HostIf, LinuxIf string
	// HostOwn is the host's address on that link. Alias is an address that is nobody's, which the host routes to VPP.
	HostOwn, Alias netip.Addr
	// Outside are the logical names of the interfaces that lead to other machines, other nodes' pods included.
	Outside []string
	// Services are the networks of cluster IPs.
	Services []netip.Prefix
	// MainVRF is VPP's table in which the host and other machines are found.
	MainVRF uint32
}

// CnatNode describes this node; false while nothing is known, or when pods have no addresses of the family. Event loop only.
func (n *IPNet) CnatNode(ipv6 bool) (CnatNode, bool) {
	s := n.settings
	if s == nil {
		return CnatNode{}, false
	}
	out := CnatNode{MainVRF: s.mainVRF}
	out.HostIf, out.LinuxIf = s.hostLinkNames()
	for _, l := range s.hostLinks {
		if l.VPP.Addr().Is6() == ipv6 {
			out.HostLink, out.HostOwn = l.VPP.Addr(), l.Host.Addr()
		}
	}
	for _, p := range s.podSubnets {
		if p.Subnet.Addr().Is6() == ipv6 {
			out.Alias = p.NATLoopback
		}
	}
	for _, p := range s.nodeIPs {
		if p.Addr().Is6() == ipv6 && !out.Address.IsValid() {
			out.Address = p.Addr()
		}
	}
	for _, p := range s.cluster.Services {
		if p.Addr().Is6() == ipv6 {
			out.Services = append(out.Services, p)
		}
	}
	out.Outside = s.outsideIfs()
	pods := slices.ContainsFunc(s.local.Pods, func(p netip.Prefix) bool { return p.Addr().Is6() == ipv6 })
	return out, pods
}

// outsideIfs are the logical names of the interfaces that lead to other machines.
func (s *settings) outsideIfs() []string {
	out := []string{s.mainIfName()}
	if bvi := s.transport.BVI(); bvi != "" {
		out = append(out, bvi)
	}
	for _, other := range s.otherIfs {
		out = append(out, other.InterfaceName)
	}
	return out
}
