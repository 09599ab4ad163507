package ipnet

import (
	"net/netip"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/ipam"
)

// The VPP plugin identifies the node by its addresses, and network policy never separates a node from its pods. So what the host forwards
// to VPP for others, under its own address, gets an address that is not the node's: host ports, node ports at the host's addresses, and
// whatever else masquerades on the host. All nodes route it to this one, since it is of the link's subnet.

// forwardedAs are the addresses behind the host's own on the link: the first for connections whose destination the host has changed, the
// second for others, the third for what the host's own processes send if the host has no nft. Invalid where the subnet has no room for them:
// it needs three bits.
func forwardedAs(l ipam.HostLink) (translated, masqueraded, self netip.Addr) {
	if l.Subnet.Addr().BitLen()-l.Subnet.Bits() < 3 {
		return netip.Addr{}, netip.Addr{}, netip.Addr{}
	}
	translated = l.Host.Addr().Next()
	masqueraded = translated.Next()
	return translated, masqueraded, masqueraded.Next()
}

// forwarded puts what the host does to such connections, and the way from VPP to these addresses: they are the host's neighbours on the
// link, by the host's own MAC. A VPP without the plugin enforces no policy: there the host's connections look as before.
func (s *settings) forwarded(v *values) {
	inVPP, _ := s.hostLinkNames()
	mac := nodeMAC(macHostLinkLinux, s.nodeID).String()
	for _, l := range s.hostLinks {
		translated, masqueraded, self := forwardedAs(l)
		f := &linux_nodeports.Forwarded{Device: HostInterconnectTAPinLinuxHostName, Own: l.Host.Addr().String()}
		if l.Host.Addr().Is6() {
			f.Family = linux_nodeports.Family_IPV6
		}
		switch {
		case translated.IsValid() && s.hostByIPTables:
			f.Translated, f.Self, f.Others = translated.String(), self.String(), s.othersThan(self)
		case translated.IsValid():
			f.Translated, f.Masqueraded = translated.String(), masqueraded.String()
		}
		for _, a := range []netip.Addr{translated, masqueraded, self} {
			if a.IsValid() {
				v.put(&vpp_l3.ARPEntry{Interface: inVPP, IpAddress: a.String(), PhysAddress: mac, Static: true})
			}
		}
		if s.hostForwards {
			v.put(f)
		}
	}
}

// othersThan are the node's own addresses of a family except one.
func (s *settings) othersThan(self netip.Addr) (others []string) {
	for _, text := range s.ownAddresses() {
		if a := netip.MustParseAddr(text); a != self && a.Is4() == self.Is4() {
			others = append(others, text)
		}
	}
	return others
}
