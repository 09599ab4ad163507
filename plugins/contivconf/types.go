package contivconf

import (
	"net/netip"
	"slices"
)

// RxMode is the way in which VPP receives packets from an interface.
type RxMode string

// The modes. RxModeDefault leaves the choice to VPP.
const (
	RxModeDefault   RxMode = "default"
	RxModePolling   RxMode = "polling"
	RxModeInterrupt RxMode = "interrupt"
	RxModeAdaptive  RxMode = "adaptive"
)

// Transport is the way in which packets travel between nodes.
type Transport string

// The transports. TransportSRv6 is recognised but not supported yet, so a Config never has it.
const (
	TransportVXLAN     Transport = "vxlan"
	TransportNoOverlay Transport = "nooverlay"
	TransportSRv6      Transport = "srv6"
)

// Transports returns the valid values of nodeToNodeTransport.
func Transports() []string { return []string{string(TransportVXLAN), string(TransportNoOverlay)} }

// InterfaceConfig holds the options of interfaces.
type InterfaceConfig struct {
	// MTUSize is the MTU of pod interfaces and of the VPP–host link; 1450 leaves room for VXLAN on an Ethernet of 1500.
	MTUSize uint32 `json:"mtuSize"`
	// MTUIsDefault: nothing has set mtuSize, so that what the uplink carries may take its place.
	MTUIsDefault bool `json:"-"`
	// UseTAPInterfaces: TAPs for pods and for the VPP–host link; VETH pairs with AF_PACKET otherwise. When the option is not
	// set, TAPs are used if the node has /dev/vhost-net.
	UseTAPInterfaces    bool   `json:"useTAPInterfaces"`
	TAPInterfaceVersion uint8  `json:"tapInterfaceVersion"`
	TAPv2RxRingSize     uint16 `json:"tapv2RxRingSize"`
	TAPv2TxRingSize     uint16 `json:"tapv2TxRingSize"`
	Vmxnet3RxRingSize   uint16 `json:"vmxnet3RxRingSize"`
	Vmxnet3TxRingSize   uint16 `json:"vmxnet3TxRingSize"`
	InterfaceRxMode     RxMode `json:"interfaceRxMode"`
	// TCPChecksumOffloadDisabled: pods' kernels compute the checksums of what pods send.
	TCPChecksumOffloadDisabled bool `json:"tcpChecksumOffloadDisabled"`
	// EnableGSO: TAPs of pods and of the VPP–host link take packets larger than their MTU, with checksums still to be computed,
	// if VPP has the contiv plugin, which splits them where they leave.
	EnableGSO bool `json:"enableGSO"`
	// GSOIsDefault: neither enableGSO nor tcpChecksumOffloadDisabled asks for it, so a VPP without the plugin is no error.
	GSOIsDefault bool `json:"-"`
	// ChecksumsAreDefault: tcpChecksumOffloadDisabled is not set.
	ChecksumsAreDefault bool `json:"-"`
}

// RoutingConfig holds the options of routing.
type RoutingConfig struct {
	MainVRFID           uint32    `json:"mainVRFID"`
	PodVRFID            uint32    `json:"podVRFID"`
	NodeToNodeTransport Transport `json:"nodeToNodeTransport"`
	// VxlanVNI is the overlay's number, the same on all nodes. Windows takes 4096 to 65535.
	VxlanVNI uint32 `json:"vxlanVNI"`
	// RouteServiceCIDRToVPP makes Linux send traffic for services to VPP instead of leaving it to kube-proxy.
	RouteServiceCIDRToVPP bool `json:"routeServiceCIDRToVPP"`

	// Not supported yet: always false.
	UseSRv6ForServices                bool `json:"useSRv6ForServices"`
	UseSRv6ForServiceFunctionChaining bool `json:"useSRv6ForServiceFunctionChaining"`
	UseDX6ForSrv6NodetoNodeTransport  bool `json:"useDX6ForSrv6NodetoNodeTransport"`
}

// NeighborScanConfig holds the options of VPP's scan of IP neighbours.
type NeighborScanConfig struct {
	ScanIPNeighbors bool `json:"scanIPNeighbors"`
	// IPNeighborScanInterval and IPNeighborStaleThreshold are in minutes, as VPP takes them.
	IPNeighborScanInterval   uint8 `json:"ipNeighborScanInterval"`
	IPNeighborStaleThreshold uint8 `json:"ipNeighborStaleThreshold"`
}

// IPAMConfig holds the options of addressing, with contivCIDR already split. Every list has one element per family in use, IPv4
// before IPv6, unless stated otherwise. Family returns the values of one family.
type IPAMConfig struct {
	// UseExternalIPAM is not supported yet: always false.
	UseExternalIPAM bool
	// ContivCIDR is what the other networks were split from, in the families for which it was set; for information.
	ContivCIDR  []netip.Prefix
	ServiceCIDR []netip.Prefix
	// NodeInterconnectDHCP: nodes get their interconnect addresses by DHCP. A node's section may say otherwise, so ask
	// NodeConfig.MainVPPInterface.UseDHCP about this node.
	NodeInterconnectDHCP          bool
	PodSubnetCIDR                 []netip.Prefix
	PodSubnetOneNodePrefixLen     []int // in the order of PodSubnetCIDR
	VPPHostSubnetCIDR             []netip.Prefix
	VPPHostSubnetOneNodePrefixLen []int // in the order of VPPHostSubnetCIDR
	// NodeInterconnectCIDR is empty with NodeInterconnectDHCP.
	NodeInterconnectCIDR []netip.Prefix
	VxlanCIDR            []netip.Prefix
	// DefaultGateway has at most one address per family. It is the cluster-wide option, which is what keeps node addresses
	// off it; the gateway of this node is NodeConfig.Gateways.
	DefaultGateway []netip.Addr
}

// FamilyIPAM is IPAMConfig for one family. Options that are not configured have the zero value.
type FamilyIPAM struct {
	Version                       IPVersion
	ServiceCIDR                   netip.Prefix
	PodSubnetCIDR                 netip.Prefix
	PodSubnetOneNodePrefixLen     int
	VPPHostSubnetCIDR             netip.Prefix
	VPPHostSubnetOneNodePrefixLen int
	NodeInterconnectCIDR          netip.Prefix
	VxlanCIDR                     netip.Prefix
	DefaultGateway                netip.Addr
}

// Families returns the families in use, IPv4 before IPv6; it is never empty.
func (c IPAMConfig) Families() []IPVersion {
	families := make([]IPVersion, 0, len(c.PodSubnetCIDR))
	for _, p := range c.PodSubnetCIDR {
		families = append(families, VersionOf(p.Addr()))
	}
	return families
}

// Family returns the values of one family; ok is false if the family is not in use.
func (c IPAMConfig) Family(v IPVersion) (f FamilyIPAM, ok bool) {
	i := slices.IndexFunc(c.PodSubnetCIDR, func(p netip.Prefix) bool { return VersionOf(p.Addr()) == v })
	if i < 0 {
		return FamilyIPAM{}, false
	}
	f = FamilyIPAM{
		Version:                   v,
		PodSubnetCIDR:             c.PodSubnetCIDR[i],
		PodSubnetOneNodePrefixLen: c.PodSubnetOneNodePrefixLen[i],
		ServiceCIDR:               prefixOf(c.ServiceCIDR, v),
		VPPHostSubnetCIDR:         prefixOf(c.VPPHostSubnetCIDR, v),
		NodeInterconnectCIDR:      prefixOf(c.NodeInterconnectCIDR, v),
		VxlanCIDR:                 prefixOf(c.VxlanCIDR, v),
		DefaultGateway:            addrOf(c.DefaultGateway, v),
	}
	if j := slices.Index(c.VPPHostSubnetCIDR, f.VPPHostSubnetCIDR); j >= 0 {
		f.VPPHostSubnetOneNodePrefixLen = c.VPPHostSubnetOneNodePrefixLen[j]
	}
	return f, true
}

// VPPInterface is an interface of VPP that the configuration names.
type VPPInterface struct {
	// InterfaceName is VPP's name of the interface. For the main interface it may be empty: then it is the NIC that
	// NodeConfig.Uplink selects; if that selects none, the first NIC that VPP has by its start-up configuration and that is not
	// in OtherVPPInterfaces, or a loopback when there is none.
	InterfaceName string
	// IPs are the static addresses with their networks; at most one per family.
	IPs []netip.Prefix
	// UseDHCP: the addresses come from DHCP. It is false when there are static ones.
	UseDHCP bool
}

// NodeConfig is the configuration of this node.
type NodeConfig struct {
	NodeName string
	// MainVPPInterface connects the node to the others. With neither IPs nor UseDHCP, its addresses are those that ipam
	// computes from the node ID.
	MainVPPInterface VPPInterface
	// Uplink finds the main interface when MainVPPInterface has no name.
	Uplink             Uplink
	OtherVPPInterfaces []VPPInterface
	// Gateways are the default gateways, at most one per family.
	Gateways []netip.Addr
	// NatExternalTraffic: traffic of pods to the outside gets the node's address.
	NatExternalTraffic bool
	// EnablePacketTrace: VPP traces packets, for debugging.
	EnablePacketTrace bool
	// StealInterface is not supported yet: always empty.
	StealInterface string
}

// Gateway returns the default gateway of one family, if there is one.
func (c NodeConfig) Gateway(v IPVersion) (netip.Addr, bool) {
	gw := addrOf(c.Gateways, v)
	return gw, gw.IsValid()
}

func prefixOf(list []netip.Prefix, v IPVersion) netip.Prefix {
	for _, p := range list {
		if VersionOf(p.Addr()) == v {
			return p
		}
	}
	return netip.Prefix{}
}

func addrOf(list []netip.Addr, v IPVersion) netip.Addr {
	for _, a := range list {
		if VersionOf(a) == v {
			return a
		}
	}
	return netip.Addr{}
}
