package ipnet

import (
	"net/netip"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/ipam"
)

// The VPP plugin identifies the node by its addresses, and network policy never separates a node from its pods. Therefore traffic of other
// senders that the host forwards to VPP under its own address gets an address that is not the node's: traffic to host ports, to node ports
// at the host's addresses, and all other traffic that the host masquerades. All nodes route this address to this node, since it belongs to
// the link's subnet.

// forwardedAs returns the addresses that follow the host's own address on the link: the first is for connections whose destination the host
// has changed, the second for other connections, the third for traffic of the host's own processes if the host has no nft. They are invalid
// if the subnet has no room for them: it needs three bits.
func forwardedAs(l ipam.HostLink) (translated, masqueraded, self netip.Addr) {
	if l.Subnet.Addr().BitLen()-l.Subnet.Bits() < 3 {
		return netip.Addr{}, netip.Addr{}, netip.Addr{}
	}
	translated = l.Host.Addr().Next()
	masqueraded = translated.Next()
	return translated, masqueraded, masqueraded.Next()
}

// forwarded puts the rules of the host for such connections, and the routes from VPP to these addresses: VPP reaches them as neighbours on
// the link with the host's own MAC address. A VPP without the plugin enforces no policy: there the source addresses of the host's
// connections remain unchanged.
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

// othersThan returns the node's own addresses of self's family, except self.
func (s *settings) othersThan(self netip.Addr) (others []string) {
	for _, text := range s.ownAddresses() {
		if a := netip.MustParseAddr(text); a != self && a.Is4() == self.Is4() {
			others = append(others, text)
		}
	}
	return others
}
