package ipnet

import (
	"net/netip"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
)

// renderNode renders everything of this node that does not depend on pods or on other nodes.
func (s *settings) renderNode() ([]value, error) {
	var v values
	s.vrfTables(&v)
	s.mainInterface(&v)
	s.hostInterconnect(&v)
	s.hostRoutes(&v)
	s.podGatewayLoopback(&v)
	s.interVRFRoutes(&v)
	s.neighborScan(&v)
	return v.list, v.err
}

// vrfTables puts the main and the pod table in both families: an interface is bound to a table of each.
func (s *settings) vrfTables(v *values) {
	for _, table := range []struct {
		id    uint32
		label string
	}{{s.mainVRF, vrfMain}, {s.podVRF, vrfPod}} {
		v.put(
			&vpp_l3.VrfTable{Id: table.id, Protocol: vpp_l3.VrfTable_IPV4, Label: table.label + "-IPv4"},
			&vpp_l3.VrfTable{Id: table.id, Protocol: vpp_l3.VrfTable_IPV6, Label: table.label + "-IPv6"},
		)
	}
}

// mainIfName is the logical name of the interface that connects this node with the others.
func (s *settings) mainIfName() string {
	if s.mainIf.InterfaceName != "" {
		return s.mainIf.InterfaceName
	}
	return loopbackNICName
}

// mainInterface puts the main NIC, or a loopback in its place, and the other configured NICs. The MTU of physical NICs is
// the administrator's.
func (s *settings) mainInterface(v *values) {
	main := &vpp_interfaces.Interface{
		Name: s.mainIfName(), Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, Vrf: s.mainVRF,
		IpAddresses: prefixStrings(s.nodeIPs),
	}
	if s.mainIf.InterfaceName != "" {
		main.Type = vpp_interfaces.Interface_DPDK
		main.RxModes = s.rxModes()
		main.SetDhcpClient = s.mainIf.UseDHCP
	}
	v.put(main)
	for _, gw := range s.gateways {
		v.route(s.mainVRF, anyPrefix(gw), gw, main.Name)
	}
	for _, other := range s.otherIfs {
		v.put(&vpp_interfaces.Interface{
			Name: other.InterfaceName, Type: vpp_interfaces.Interface_DPDK, Enabled: true, Vrf: s.mainVRF,
			IpAddresses: prefixStrings(other.IPs), SetDhcpClient: other.UseDHCP, RxModes: s.rxModes(),
		})
	}
}

// podGatewayLoopback puts the loopback which owns the pods' gateway address and lends it to their interfaces.
func (s *settings) podGatewayLoopback(v *values) {
	lo := &vpp_interfaces.Interface{
		Name: podGwLoopName, Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, Vrf: s.podVRF, Mtu: s.mtu,
	}
	for _, p := range s.podSubnets {
		lo.IpAddresses = append(lo.IpAddresses, hostPrefix(p.Gateway).String())
	}
	v.put(lo)
}

// interVRFRoutes connects the pod VRF with the main VRF. With an overlay the main VRF sends everything that belongs to pods
// or to VPP–host links of any node into the pod VRF, which knows the nodes; what no node owns is dropped there, so that it
// cannot loop through the default route.
func (s *settings) interVRFRoutes(v *values) {
	for _, p := range s.podSubnets {
		v.interVRF(s.podVRF, anyPrefix(p.Gateway), s.mainVRF)
		if !s.overlay {
			v.interVRF(s.mainVRF, p.Subnet, s.podVRF)
			v.drop(s.podVRF, p.Subnet)
		}
	}
	if !s.overlay {
		return
	}
	for _, l := range s.hostLinks {
		v.interVRF(s.podVRF, l.Subnet, s.mainVRF)
	}
	for _, aggregates := range [][]netip.Prefix{s.cluster.Pods, s.cluster.VPPHost} {
		for _, dst := range aggregates {
			if !s.ownHostSubnet(dst) {
				v.interVRF(s.mainVRF, dst, s.podVRF)
				v.drop(s.podVRF, dst)
			}
		}
	}
}

// ownHostSubnet is true when an aggregate is no larger than this node's slice of it (a cluster of one node).
func (s *settings) ownHostSubnet(dst netip.Prefix) bool {
	for _, l := range s.hostLinks {
		if l.Subnet == dst {
			return true
		}
	}
	return false
}

// neighborScan makes VPP forget neighbours that have gone; only those of NICs, since ours are static.
func (s *settings) neighborScan(v *values) {
	if !s.scan.ScanIPNeighbors {
		return
	}
	v.put(&vpp_l3.IPScanNeighbor{
		Mode: vpp_l3.IPScanNeighbor_IPV4, ScanInterval: uint32(s.scan.IPNeighborScanInterval),
		StaleThreshold: uint32(s.scan.IPNeighborStaleThreshold),
	})
}
