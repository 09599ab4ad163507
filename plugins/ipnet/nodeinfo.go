package ipnet

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
)

// ServiceNode describes this node; ok is false before the first resync, or if pods have no addresses of the family. Event loop only.
func (n *IPNet) ServiceNode(ipv6 bool) (nodeinfo.Node, bool) {
	s := n.settings
	if s == nil {
		return nodeinfo.Node{}, false
	}
	out := nodeinfo.Node{MainVRF: s.mainVRF}
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
