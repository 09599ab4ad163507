package ipnet

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipam"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/nodesync"
)

// settings holds all inputs of rendering. They are gathered once per resync, so that the render functions are pure.
type settings struct {
	nodeID   uint32
	nodeName string

	useTAP         bool
	rxRing, txRing uint32
	rxMode         contivconf.RxMode
	mtu            uint32 // of pods, unless their own network configuration sets another one
	fits           uint32 // the largest packet of a pod that fits into the uplink; 0: not known
	mtuFault       error  // why mtu differs from the configured value

	mainVRF, podVRF uint32
	routeServices   bool // Linux sends service traffic to VPP
	servesServices  bool // VPP serves services
	translates      bool // VPP has NAT44
	plugin          bool // VPP has our own plugin
	policy          bool // pods wait for their network policy
	hostForwards    bool // traffic that the host forwards to VPP gets sources that are not the node's
	hostByIPTables  bool // traffic of the host's own processes gets a dedicated source address
	pluginNAT       bool // our plugin translates sources
	workers         int  // of VPP; 0: its main thread moves packets
	gso             bool // TAPs take packets larger than their MTU
	scan            contivconf.NeighborScanConfig

	mainIf   contivconf.VPPInterface // as configured
	otherIfs []contivconf.VPPInterface
	gateways []netip.Addr
	nodeIPs  []netip.Prefix // of the main interface; empty before the DHCP lease

	nics map[string]NIC // Linux NICs behind configured interfaces, by the names of the interfaces

	hostLinks  []ipam.HostLink
	podSubnets []ipam.PodSubnet
	cluster    ipam.ClusterSubnets
	hostIPs    []netip.Addr // of the host's own interfaces

	nat       bool // traffic of pods to the outside gets the node's address
	wiring    wiring
	transport transport.Transport
	overlay   bool            // nodes have addresses in the overlay
	local     transport.Local // the data of this node for transports
}

// gather reads the inputs of rendering from the other plugins.
func (n *IPNet) gather() (*settings, error) {
	conf := n.ContivConf
	ifc, routing, node, ipamConf := conf.Interface(), conf.Routing(), conf.Node(), conf.IPAM()
	s := &settings{
		nodeID: n.NodeSync.GetNodeID(), nodeName: n.ServiceLabel.GetAgentLabel(),
		useTAP: ifc.UseTAPInterfaces, rxMode: ifc.InterfaceRxMode, mtu: ifc.MTUSize,
		rxRing: uint32(ifc.TAPv2RxRingSize), txRing: uint32(ifc.TAPv2TxRingSize),
		mainVRF: routing.MainVRFID, podVRF: routing.PodVRFID,
		routeServices: routing.RouteServiceCIDRToVPP || n.ServesServices, servesServices: n.ServesServices, translates: n.Dataplane == DataplaneVPP,
		nat: node.NatExternalTraffic, wiring: n.Dataplane.wiring(), scan: conf.NeighborScan(), mainIf: node.MainVPPInterface, otherIfs: node.OtherVPPInterfaces,
		gateways: node.Gateways, cluster: n.IPAM.ClusterSubnets(),
		overlay: routing.NodeToNodeTransport != contivconf.TransportNoOverlay, plugin: n.queryPlugin(),
	}
	s.pluginNAT = s.plugin && n.PluginNAT
	s.policy, s.hostForwards, s.hostByIPTables = n.Policy, n.HostForwards, n.HostByIPTables
	if n.Dataplane == DataplaneVPP && n.VPPPlugin != nil {
		s.workers = n.VPPPlugin.Workers()
	}
	var err error
	if s.gso, err = n.segmentation(ifc, s.plugin); err != nil {
		return nil, err
	}
	if err := n.findUplink(s, node); err != nil {
		return nil, err
	}
	if s.transport, err = n.Dataplane.transport(routing.NodeToNodeTransport); err != nil {
		return nil, err
	}
	if s.podSubnets, err = n.IPAM.PodSubnets(s.nodeID); err != nil {
		return nil, fmt.Errorf("pod subnet of this node: %w", err)
	}
	if s.hostLinks, err = n.IPAM.HostInterconnect(s.nodeID); err != nil {
		return nil, fmt.Errorf("VPP–host subnet of this node: %w", err)
	}
	if err := n.gatherNICs(s); err != nil {
		return nil, err
	}
	if s.nodeIPs, err = n.nodeIPs(s, ipamConf); err != nil {
		return nil, fmt.Errorf("interconnect address of this node: %w", err)
	}
	if s.hostIPs, err = n.dumpHostIPs(); err != nil {
		return nil, fmt.Errorf("addresses of the host: %w", err)
	}
	own := &nodesync.Node{ID: s.nodeID, Name: s.nodeName}
	if s.local.Node, err = n.transportNode(s, own, s.nodeIPs); err != nil {
		return nil, err
	}
	if err := n.checkMTU(s, ifc.MTUIsDefault); err != nil {
		return nil, err
	}
	s.local.VNI = routing.VxlanVNI
	s.local.MainVRF, s.local.PodVRF, s.local.MainIf, s.local.PodMTU = s.mainVRF, s.podVRF, s.mainIfName(), s.mtu
	s.local.ClusterPods, s.local.ClusterHosts = s.cluster.Pods, s.cluster.VPPHost
	return s, nil
}

// nic returns the Linux NIC behind a configured interface; on Linux, without a name, the NIC with the default route. A NIC of VPP that
// Linux does not see is the zero NIC.
func (n *IPNet) nic(name string) (NIC, error) {
	if n.LinuxNsPlugin == nil {
		return NIC{}, nil
	}
	if n.Dataplane == DataplaneVPP {
		device, ok := strings.CutPrefix(name, afPacketName)
		if !ok {
			return NIC{}, nil
		}
		name = device
	}
	nic, err := n.LinuxNsPlugin.NIC(name)
	if err != nil {
		return NIC{}, fmt.Errorf("NIC %s: %w", name, err)
	}
	return nic, nil
}

// gatherNICs reads the data of the configured NICs, by their names in VPP.
func (n *IPNet) gatherNICs(s *settings) (err error) {
	s.nics = map[string]NIC{}
	if s.nics[s.mainIf.InterfaceName], err = n.nic(s.mainIf.InterfaceName); err != nil {
		return err
	}
	for _, other := range s.otherIfs {
		if s.nics[other.InterfaceName], err = n.nic(other.InterfaceName); err != nil {
			return err
		}
	}
	return nil
}

// uplink returns the Linux NIC behind the main interface.
func (s *settings) uplink() NIC { return s.nics[s.mainIf.InterfaceName] }

// nodeIPs returns the configured addresses of the main interface, else the leased one, else those derived from the node ID. On Linux the
// operator configures the NICs: their current addresses are returned, first in each family the one that other nodes use. An agent that starts and has no lease yet uses the previous address
// of the node: without it the node would be disconnected for a moment.
func (n *IPNet) nodeIPs(s *settings, conf contivconf.IPAMConfig) ([]netip.Prefix, error) {
	switch {
	case n.Dataplane != DataplaneVPP:
		return n.keepInUse(s.uplink(), s.nodeName), nil
	case len(s.mainIf.IPs) > 0:
		return s.mainIf.IPs, nil
	case s.mainIf.UseDHCP:
		if n.leased.IsValid() {
			return []netip.Prefix{n.leased}, nil
		}
		// VPP's DHCP client leases IPv4 addresses only.
		return slices.DeleteFunc(n.published(s.nodeName), func(p netip.Prefix) bool { return !p.Addr().Is4() }), nil
	case len(conf.NodeInterconnectCIDR) == 0:
		return nil, nil
	}
	return n.IPAM.NodeIPs(s.nodeID)
}

// keepInUse returns the NIC's addresses. It moves the address of each family that the node has used so far to the front of its family, as
// long as the NIC has it and no better one: the tunnels of all other nodes lead to it. A virtual IP that the node uses while the NIC has lost
// its own address is left when that address returns. When the agent has just started, it is the one that was published: agents before this version
// published the lowest one first, and used it.
func (n *IPNet) keepInUse(nic NIC, name string) []netip.Prefix {
	var inUse []netip.Prefix
	if n.settings != nil {
		inUse = n.settings.nodeIPs
	} else { // the agent has just started: other nodes use what it published before
		inUse = n.published(name)
	}
	list := slices.Clone(nic.Addresses)
	for _, family := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		used := transport.SameFamily(inUse, ipaddr.HostPrefix(family))
		at := slices.IndexFunc(list, func(p netip.Prefix) bool { return p.Addr() == used.Addr() })
		if first := slices.Index(list, transport.SameFamily(list, ipaddr.HostPrefix(family))); at > first && first >= 0 && !slices.Contains(nic.Lesser, used.Addr()) {
			kept := list[at]
			copy(list[first+1:at+1], list[first:at])
			list[first] = kept
		}
	}
	return list
}

// published returns the addresses of this node as published to the other nodes.
func (n *IPNet) published(name string) []netip.Prefix {
	own := n.NodeSync.GetAllNodes()[name]
	if own == nil {
		return nil
	}
	var out []netip.Prefix
	for _, ip := range own.VppIPAddresses {
		out = append(out, netip.PrefixFrom(ip.Address, ip.Network.Bits()))
	}
	return out
}

// dumpHostIPs returns the host's addresses of both families, without duplicates.
func (n *IPNet) dumpHostIPs() ([]netip.Addr, error) {
	if n.hostIPsDump == nil {
		return nil, nil
	}
	ips, err := n.hostIPsDump()
	if err != nil {
		return nil, err
	}
	out := make([]netip.Addr, 0, len(ips))
	for _, ip := range ips {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, addr.Unmap())
		}
	}
	return out, nil
}

// podGateway returns the pod gateway of addr's family, or the zero address if the node has no pod subnet of that family.
func (s *settings) podGateway(addr netip.Addr) netip.Addr {
	for _, p := range s.podSubnets {
		if p.Gateway.Is4() == addr.Is4() {
			return p.Gateway
		}
	}
	return netip.Addr{}
}

// rxModes returns the configured rx mode, or none: then the dataplane chooses the mode by the kind of interface.
func (s *settings) rxModes() []*vpp_interfaces.Interface_RxMode {
	mode := vpp_interfaces.Interface_RxMode_UNKNOWN
	switch s.rxMode {
	case contivconf.RxModePolling:
		mode = vpp_interfaces.Interface_RxMode_POLLING
	case contivconf.RxModeInterrupt:
		mode = vpp_interfaces.Interface_RxMode_INTERRUPT
	case contivconf.RxModeAdaptive:
		mode = vpp_interfaces.Interface_RxMode_ADAPTIVE
	default:
		return nil
	}
	return []*vpp_interfaces.Interface_RxMode{{DefaultMode: true, Mode: mode}}
}

func (s *settings) tapLink(hostIfName string) *vpp_interfaces.TapLink {
	return &vpp_interfaces.TapLink{
		Version: 2, HostIfName: hostIfName, RxRingSize: s.rxRing, TxRingSize: s.txRing, EnableGso: s.gso,
	}
}

// toNetIP and toIPNet convert to the types of the documented API, which is older than netip.
func toNetIP(addr netip.Addr) net.IP { return addr.AsSlice() }

func toIPNet(p netip.Prefix) *net.IPNet {
	m := p.Masked()
	return &net.IPNet{IP: m.Addr().AsSlice(), Mask: net.CIDRMask(m.Bits(), m.Addr().BitLen())}
}
