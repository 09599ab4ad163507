package ipnet

import (
	"net"
	"net/netip"

	linux_interfaces "contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	linux_namespace "contiv.dev/vswitch/dataplane/nb/linux/namespace"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/podmanager"
)

// podLink holds the data of one attachment from which its values are rendered.
type podLink struct {
	attachment *podmanager.Attachment
	names      podIfNames
	addrs      []netip.Addr // one per family
	mac        net.HardwareAddr
	peerMAC    net.HardwareAddr // of the other end of the pod's link
	mtu        uint32
	values     []value
}

// newPodLink renders the wiring of one attachment.
func (s *settings) newPodLink(a *podmanager.Attachment, addrs []netip.Addr) (*podLink, error) {
	mac := podMAC(a.ID)
	p := &podLink{attachment: a, addrs: addrs, mac: mac, peerMAC: peerMAC(mac), mtu: uint32(a.MTU)}
	p.names = s.wiring.names(s, p)
	if p.mtu == 0 {
		p.mtu = s.mtu
	}
	var v values
	s.wiring.pod(s, &v, p)
	p.values = v.list
	return p, v.err
}

func (p *podLink) keys() []string {
	keys := make([]string, len(p.values))
	for i, v := range p.values {
		keys[i] = v.key
	}
	return keys
}

func (p *podLink) namespace() *linux_namespace.NetNamespace {
	return &linux_namespace.NetNamespace{Type: linux_namespace.NetNamespace_FD, Reference: p.attachment.Netns}
}

func (p *podLink) podAddresses() []string {
	out := make([]string, len(p.addrs))
	for i, addr := range p.addrs {
		out[i] = ipaddr.HostPrefix(addr).String()
	}
	return out
}

// names implements wiring.
func (vppWiring) names(s *settings, p *podLink) podIfNames {
	return podNames(p.attachment.ID, s.useTAP)
}

// pod implements wiring: the pod's interface is in the pod VRF, unnumbered, with a static neighbour and a route per address.
func (vppWiring) pod(s *settings, v *values, p *podLink) {
	s.podLoopback(v, p)
	defer s.podNamespace(v, p)
	if s.useTAP {
		s.podTAP(v, p)
	} else {
		s.podVETH(v, p)
	}
	s.podEndpoint(v, p)
	for _, addr := range p.addrs {
		v.put(&vpp_l3.ARPEntry{Interface: p.names.vpp, IpAddress: addr.String(), PhysAddress: p.mac.String(), Static: true})
		v.route(s.podVRF, ipaddr.HostPrefix(addr), addr, p.names.vpp)
	}
}

// podLoopback brings up the pod's own lo.
func (s *settings) podLoopback(v *values, p *podLink) {
	v.put(&linux_interfaces.Interface{
		Name: p.names.loop, Type: linux_interfaces.Interface_LOOPBACK, Namespace: p.namespace(), Enabled: true,
	})
}

// vppPodInterface returns the properties of VPP's interface that both ways of wiring share.
func (s *settings) vppPodInterface(p *podLink) *vpp_interfaces.Interface {
	return &vpp_interfaces.Interface{
		Name: p.names.vpp, Enabled: true, PhysAddress: p.peerMAC.String(), Mtu: p.mtu, Vrf: s.podVRF,
		Unnumbered: &vpp_interfaces.Interface_Unnumbered{InterfaceWithIp: podGwLoopName},
		RxModes:    s.rxModes(), UpAfter: s.upAfter(p.names.vpp),
	}
}

func (s *settings) podTAP(v *values, p *podLink) {
	tap := s.vppPodInterface(p)
	tap.Type, tap.RxPlacements = vpp_interfaces.Interface_TAP, s.placements()
	// The Linux end is made in the pod's namespace, because moving a device there takes longer than making it (docs/adr/0005).
	link := s.tapLink(p.attachment.ID.IfName)
	link.ToMicroservice = p.attachment.Netns
	tap.Link = &vpp_interfaces.Interface_Tap{Tap: link}
	v.put(tap, &linux_interfaces.Interface{
		Name: p.names.linux, Type: linux_interfaces.Interface_TAP_TO_VPP, Namespace: p.namespace(),
		HostIfName: p.attachment.ID.IfName, Enabled: true, IpAddresses: p.podAddresses(),
		PhysAddress: p.mac.String(), Mtu: p.mtu,
		Link: &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: p.names.vpp}},
	})
}

func (s *settings) podVETH(v *values, p *podLink) {
	// One queue, which VPP assigns to its workers in turn: each further queue would cost 19 MB.
	afpacket := s.vppPodInterface(p)
	afpacket.Type = vpp_interfaces.Interface_AF_PACKET
	afpacket.Link = &vpp_interfaces.Interface_Afpacket{
		Afpacket: &vpp_interfaces.AfpacketLink{LinuxInterface: p.names.linuxPeer},
	}
	v.put(&linux_interfaces.Interface{
		Name: p.names.linux, Type: linux_interfaces.Interface_VETH, Namespace: p.namespace(),
		HostIfName: p.attachment.ID.IfName, Enabled: true, IpAddresses: p.podAddresses(),
		PhysAddress: p.mac.String(), Mtu: p.mtu, Link: vethTo(p.names.linuxPeer),
	}, &linux_interfaces.Interface{
		Name: p.names.linuxPeer, Type: linux_interfaces.Interface_VETH, HostIfName: p.names.hostDev, Enabled: true, Mtu: p.mtu,
		Link: vethTo(p.names.linux),
	}, afpacket)
}

// podNamespace puts the values inside the pod.
func (s *settings) podNamespace(v *values, p *podLink) {
	for _, addr := range p.addrs {
		s.podNamespaceFamily(v, p, addr)
	}
}

// podNamespaceFamily puts the values of one family inside the pod: they are static, so that nothing has to be resolved at run time. A pod may have an address
// of a family that the node's configuration no longer has: it has no gateway, so there are no routes.
func (s *settings) podNamespaceFamily(v *values, p *podLink, addr netip.Addr) {
	gw := s.podGateway(addr)
	if !gw.IsValid() {
		return
	}
	v.put(
		&linux_l3.ARPEntry{Interface: p.names.linux, IpAddress: gw.String(), HwAddress: p.peerMAC.String()},
		&linux_l3.Route{OutgoingInterface: p.names.linux, Scope: linux_l3.Route_LINK, DstNetwork: ipaddr.HostPrefix(gw).String()},
	)
	v.linuxRoute(anyPrefix(gw), gw, p.names.linux)
}

// vethTo returns the link of a veth end. Checksum offload is off: otherwise VPP's af_packet receives packets whose checksum is never filled
// in.
func vethTo(peer string) *linux_interfaces.Interface_Veth {
	return &linux_interfaces.Interface_Veth{Veth: &linux_interfaces.VethLink{
		PeerIfName: peer, TxChecksumOffloading: linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED,
	}}
}

// fill writes the wiring into the event; the CNI result is made from the event.
func (s *settings) fill(ev *podmanager.AddPod, p *podLink) {
	ev.Interfaces = []podmanager.PodInterface{{
		Name: p.attachment.ID.IfName, MAC: p.mac.String(), MTU: int(p.mtu), Sandbox: p.attachment.Netns,
	}}
	ev.IPs, ev.Routes = nil, nil
	for _, addr := range p.addrs {
		gw := s.podGateway(addr)
		ev.IPs = append(ev.IPs, podmanager.PodIP{Address: ipaddr.HostPrefix(addr), Gateway: gw, Interface: 0})
		if !gw.IsValid() {
			continue // see podNamespaceFamily
		}
		ev.Routes = append(ev.Routes, podmanager.PodRoute{Dst: anyPrefix(addr), GW: gw})
	}
}
