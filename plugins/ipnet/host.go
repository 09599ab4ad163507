package ipnet

import (
	"net/netip"
	"slices"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/ipaddr"
)

// hostLinkNames returns the logical names of the two ends of the VPP–host link.
func (s *settings) hostLinkNames() (inVPP, inLinux string) {
	if s.useTAP {
		return HostInterconnectTAPinVPPLogicalName, HostInterconnectTAPinLinuxLogicalName
	}
	return hostAfPacketInVPP, hostVethInLinux
}

// hostIf implements wiring.
func (vppWiring) hostIf(s *settings) string {
	name, _ := s.hostLinkNames()
	return name
}

// hostInterconnect renders the link between VPP and the host's network stack.
func (s *settings) hostInterconnect(v *values) {
	inVPP, inLinux := s.hostLinkNames()
	vppMAC, hostMAC := nodeMAC(macHostLinkVPP, s.nodeID).String(), nodeMAC(macHostLinkLinux, s.nodeID).String()
	var vppIPs, hostIPs []string
	for _, l := range s.hostLinks {
		vppIPs, hostIPs = append(vppIPs, l.VPP.String()), append(hostIPs, l.Host.String())
	}
	vppIf := &vpp_interfaces.Interface{
		Name: inVPP, Enabled: true, PhysAddress: vppMAC, IpAddresses: vppIPs, Vrf: s.mainVRF, Mtu: s.mtu, RxModes: s.rxModes(),
	}
	linuxIf := &linux_interfaces.Interface{
		Name: inLinux, HostIfName: HostInterconnectTAPinLinuxHostName, Enabled: true, PhysAddress: hostMAC,
		IpAddresses: hostIPs, Mtu: s.mtu,
	}
	if s.useTAP {
		vppIf.Type, vppIf.RxPlacements = vpp_interfaces.Interface_TAP, s.placements()
		vppIf.Link = &vpp_interfaces.Interface_Tap{Tap: s.tapLink(HostInterconnectTAPinLinuxHostName)}
		linuxIf.Type = linux_interfaces.Interface_TAP_TO_VPP
		linuxIf.Link = &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: inVPP}}
	} else {
		vppIf.Type, vppIf.RxPlacements = vpp_interfaces.Interface_AF_PACKET, s.placements()
		vppIf.Link = &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{LinuxInterface: hostVethInVPP}}
		linuxIf.Type = linux_interfaces.Interface_VETH
		linuxIf.Link = vethTo(hostVethInVPP)
		v.put(&linux_interfaces.Interface{
			Name: hostVethInVPP, Type: linux_interfaces.Interface_VETH, HostIfName: hostVethInVPPName, Enabled: true,
			Mtu: s.mtu, Link: vethTo(inLinux),
		})
	}
	v.put(vppIf, linuxIf)
	for _, l := range s.hostLinks {
		v.put(
			&vpp_l3.ARPEntry{Interface: inVPP, IpAddress: l.Host.Addr().String(), PhysAddress: hostMAC, Static: true},
			&linux_l3.ARPEntry{Interface: inLinux, IpAddress: l.VPP.Addr().String(), HwAddress: vppMAC},
		)
	}
}

// hostRoutes renders the routes of VPP and of the host to the networks of the other.
func (s *settings) hostRoutes(v *values) {
	inVPP, inLinux := s.hostLinkNames()
	for _, l := range s.hostLinks {
		vppIP, hostIP := l.VPP.Addr(), l.Host.Addr()
		towardsVPP := familyOnly(s.transport.ViaVPP(&s.local), vppIP)
		if s.routeServices {
			towardsVPP = append(towardsVPP, familyOnly(s.cluster.Services, vppIP)...)
		}
		if s.servesServices {
			towardsVPP = append(towardsVPP, familyOnly(s.behindUplink(), vppIP)...)
		}
		for _, dst := range towardsVPP {
			if dst == l.Subnet {
				continue // a cluster of one node: connected
			}
			v.linuxRoute(dst, vppIP, inLinux)
		}
		for _, addr := range s.hostIPs {
			if addr.Is4() == hostIP.Is4() {
				v.route(s.mainVRF, ipaddr.HostPrefix(addr), hostIP, inVPP)
			}
		}
	}
}

// behindUplink returns the networks of the main interface. Where the host is in such a network itself, it returns only VPP's address
// instead of the network. Node ports are served at VPP's address. VPP, of this node and of others, also uses such an address as source when
// it forwards a client's packet to the host, and the host could not route the answer without this.
func (s *settings) behindUplink() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range s.nodeIPs {
		switch {
		case slices.Contains(s.hostIPs, p.Addr()):
		case slices.ContainsFunc(s.hostIPs, p.Contains):
			out = append(out, ipaddr.HostPrefix(p.Addr()))
		default:
			out = append(out, p.Masked())
		}
	}
	return out
}

// familyOnly returns the prefixes of addr's family.
func familyOnly(ps []netip.Prefix, addr netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range ps {
		if p.Addr().Is4() == addr.Is4() {
			out = append(out, p)
		}
	}
	return out
}
