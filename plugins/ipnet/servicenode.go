package ipnet

import (
	"net/netip"
	"slices"
)

// ServiceNode is the data of this node that service renderers need, for one address family.
type ServiceNode struct {
	// Address is the address of the main interface; it is invalid while the node has no such address.
	Address netip.Addr
	// HostLink is VPP's address on the link to the host, HostOwn is the host's address. LinuxIf is the logical name of the host's end.
	HostLink, HostOwn netip.Addr
	LinuxIf           string
	// Services holds the networks of cluster IPs.
	Services []netip.Prefix
	// MainVRF is VPP's table with the routes to the host and to other machines.
	MainVRF uint32
}

// ServiceNode describes this node; ok is false before the first resync, or if pods have no addresses of the family. Event loop only.
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
