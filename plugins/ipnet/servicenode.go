package ipnet

import (
	"net/netip"
	"slices"
)

// ServiceNode is what renderers of services have to know of this node, for one family of addresses.
type ServiceNode struct {
	// Address is that of the main interface; invalid while the node has no such address.
	Address netip.Addr
	// HostLink is VPP's address on the link to the host, HostOwn the host's. LinuxIf is the logical name of the host's end.
	HostLink, HostOwn netip.Addr
	LinuxIf           string
	// Services are the networks of cluster IPs.
	Services []netip.Prefix
	// MainVRF is VPP's table in which the host and other machines are found.
	MainVRF uint32
}

// ServiceNode describes this node; false while nothing is known, or when pods have no addresses of the family. Event loop only.
func (n *IPNet) ServiceNode(ipv6 bool) (ServiceNode, bool) {
	s := n.settings
	if s == nil {
		return ServiceNode{}, false
	}
	out := ServiceNode{MainVRF: s.mainVRF}
	_, out.LinuxIf = s.hostLinkNames()
	for _, l := range s.hostLinks {
		if l.VPP.Addr().Is6() == ipv6 {
			out.HostLink, out.HostOwn = l.VPP.Addr(), l.Host.Addr()
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
	return out, slices.ContainsFunc(s.local.Pods, func(p netip.Prefix) bool { return p.Addr().Is6() == ipv6 })
}
