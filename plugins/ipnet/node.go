package ipnet

import (
	"net/netip"
	"slices"
	"strings"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/ipaddr"
)

// node renders everything of this node that does not depend on pods or on other nodes.
func (vppWiring) node(s *settings) ([]value, error) {
	var v values
	s.vrfTables(&v)
	s.mainInterface(&v)
	s.hostInterconnect(&v)
	s.hostRoutes(&v)
	s.podGatewayLoopback(&v)
	s.betweenVRFs(&v)
	s.egressPipe(&v)
	s.neighborScan(&v)
	s.pluginNode(&v)
	return v.list, v.err
}

// vrfTables puts the main and the pod table for both families: an interface is bound to one table of each family.
func (s *settings) vrfTables(v *values) {
	for _, table := range []struct {
		id    uint32
		label string
	}{{s.mainVRF, vrfMain}, {s.podVRF, vrfPod}} {
		v.vrfTable(table.id, table.label)
	}
}

// mainIfName returns the logical name of the interface that connects this node with the others.
func (s *settings) mainIfName() string {
	if s.mainIf.InterfaceName != "" {
		return s.mainIf.InterfaceName
	}
	return loopbackNICName
}

// mainInterface puts the main NIC, or a loopback in its place, and the other configured NICs. The administrator sets the MTU of DPDK's
// NICs.
func (s *settings) mainInterface(v *values) {
	main := &vpp_interfaces.Interface{
		Name: s.mainIfName(), Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, Vrf: s.mainVRF,
		IpAddresses: prefixStrings(s.nodeIPs),
	}
	if s.mainIf.InterfaceName != "" {
		s.nic(main)
	}
	if main.SetDhcpClient = s.mainIf.UseDHCP; main.SetDhcpClient {
		main.IpAddresses = nil // VPP's DHCP client sets the leased address
	}
	v.put(main)
	for _, gw := range s.gateways {
		v.route(s.mainVRF, anyPrefix(gw), gw, main.Name)
	}
	for _, other := range s.otherIfs {
		ifc := &vpp_interfaces.Interface{
			Name: other.InterfaceName, Enabled: true, Vrf: s.mainVRF, IpAddresses: prefixStrings(other.IPs), SetDhcpClient: other.UseDHCP,
		}
		s.nic(ifc)
		v.put(ifc)
	}
}

// afPacketName is the prefix of the names of VPP's interfaces on Linux devices, also in contiv.conf: with "host-eth1", VPP shares eth1
// through an AF_PACKET socket, and the node needs neither DPDK nor hugepages.
const afPacketName = "host-"

// nic makes ifc the interface on a NIC: one of DPDK, unless its name has the prefix afPacketName. DPDK's NICs get their queues when VPP
// starts (vppsup), and VPP distributes these queues to its workers in turn.
func (s *settings) nic(ifc *vpp_interfaces.Interface) {
	ifc.Type, ifc.RxModes = vpp_interfaces.Interface_DPDK, s.rxModes()
	if device, ok := strings.CutPrefix(ifc.Name, afPacketName); ok {
		ifc.Type, ifc.RxPlacements = vpp_interfaces.Interface_AF_PACKET, s.placements()
		ifc.Link = &vpp_interfaces.Interface_Afpacket{Afpacket: &vpp_interfaces.AfpacketLink{HostIfName: device}}
		// The interface has its own MAC address, so that the host's stack ignores VPP's frames. The address is constant: with a new address
		// after each start of VPP, the other nodes would have invalid neighbour entries.
		ifc.PhysAddress = sharedNICMAC(s.nodeName, device).String()
		// VPP does not read the device's MTU, and does not detect that the kernel rejects longer packets.
		ifc.Mtu = s.nics[ifc.Name].MTU
	}
}

// podGatewayLoopback puts the loopback that owns the pods' gateway address; the pods' interfaces are unnumbered to it.
func (s *settings) podGatewayLoopback(v *values) {
	lo := &vpp_interfaces.Interface{
		Name: podGwLoopName, Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, Vrf: s.podVRF, Mtu: s.mtu,
	}
	for _, p := range s.podSubnets {
		lo.IpAddresses = append(lo.IpAddresses, ipaddr.HostPrefix(p.Gateway).String())
	}
	v.put(lo)
}

// betweenVRFs routes traffic of pods to the outside into the main VRF. The transport routes traffic from the main VRF to pods.
func (s *settings) betweenVRFs(v *values) {
	for _, p := range s.podSubnets {
		if p.Gateway.Is4() && s.piped() {
			continue // egressPipe
		}
		v.interVRF(s.podVRF, anyPrefix(p.Gateway), s.mainVRF)
	}
	v.put(s.transport.Node(&s.local)...)
}

// neighborScan makes VPP remove neighbours that have disappeared. This affects only neighbours on NICs, since our own are static.
func (s *settings) neighborScan(v *values) {
	if !s.scan.ScanIPNeighbors {
		return
	}
	mode := vpp_l3.IPScanNeighbor_IPV4
	if s.hasIPv6() {
		mode = vpp_l3.IPScanNeighbor_BOTH
	}
	v.put(&vpp_l3.IPScanNeighbor{
		Mode: mode, ScanInterval: uint32(s.scan.IPNeighborScanInterval),
		StaleThreshold: uint32(s.scan.IPNeighborStaleThreshold),
	})
}

// hasIPv6 reports whether a pod or a NIC of this node has IPv6.
func (s *settings) hasIPv6() bool {
	nets := slices.Clone(s.nodeIPs)
	for _, p := range s.podSubnets {
		nets = append(nets, p.Subnet)
	}
	for _, other := range s.otherIfs {
		nets = append(nets, other.IPs...)
	}
	return slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Addr().Is6() })
}
