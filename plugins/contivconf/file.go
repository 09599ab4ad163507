package contivconf

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// File is contiv.conf as the operator wrote it. A nil (or empty) option is not set. The JSON tags are the option names; a tag
// "also" is another spelling, which contiv's documentation has; "default" and "doc" are for the reference (docs/configuration.md) and
// the chart's schema.
type File struct {
	StealFirstNIC                *bool   `json:"stealFirstNIC,omitempty" doc:"Not supported (STN). The agent rejects it."`
	StealInterface               *string `json:"stealInterface,omitempty" doc:"Not supported (STN). The agent rejects it."`
	StnSocketFile                *string `json:"stnSocketFile,omitempty" doc:"Not supported (STN). The agent rejects it."`
	StnVersion                   *uint8  `json:"stnVersion,omitempty" doc:"Not supported (STN). The agent rejects it."`
	NatExternalTraffic           *bool   `json:"natExternalTraffic,omitempty" default:"true" doc:"Pods that send to destinations outside of the cluster get the address of their node."`
	EnablePacketTrace            *bool   `json:"enablePacketTrace,omitempty" default:"false" doc:"VPP traces the first 1000 packets of each type of interface; see vppctl show trace."`
	CrdNodeConfigurationDisabled *bool   `json:"crdNodeConfigurationDisabled,omitempty" default:"true" doc:"Accepted for compatibility. Node configuration comes from this file only."`

	InterfaceOptions
	RoutingOptions
	NeighborScanOptions

	IPAMConfig IPAMOptions `json:"ipamConfig" doc:"Networks. A value has one element per address family, separated by commas. All values must have IPv4 and IPv6 in the same order."`
	// MainVPPInterface finds the main interface of the nodes whose section names none.
	MainVPPInterface *UplinkOptions `json:"mainVPPInterface,omitempty" doc:"The NIC that connects a node with the other nodes, for nodes whose section of nodeConfig has no NIC. All conditions that are set must hold."`
	NodeConfig       []NodeSection  `json:"nodeConfig,omitempty" doc:"Options of single nodes."`
}

// InterfaceOptions are the options of InterfaceConfig; they are at the top level of the file.
type InterfaceOptions struct {
	MTUSize                    *uint32 `json:"mtuSize,omitempty" default:"1450" doc:"MTU of pods and of the link between VPP and the host. If it is not set and the MTU of the uplink minus the overhead of the overlay is smaller, that value applies. With VXLAN the MTU of the uplink must be at least 50 larger than this value."`
	UseTAPInterfaces           *bool   `json:"useTAPInterfaces,omitempty" also:"UseTAPInterfaces" doc:"true: TAP interfaces connect VPP and pods. false: VETH pairs and AF_PACKET. Default: true on nodes with /dev/vhost-net."`
	TAPInterfaceVersion        *uint8  `json:"tapInterfaceVersion,omitempty" also:"TAPInterfaceVersion" default:"2" doc:"Version of TAP interfaces. Only 2 is supported."`
	TAPv2RxRingSize            *uint16 `json:"tapv2RxRingSize,omitempty" default:"256" doc:"Receive ring of TAP interfaces, for packets from pods: a power of two up to 32768. VPP keeps it full of buffers."`
	TAPv2TxRingSize            *uint16 `json:"tapv2TxRingSize,omitempty" default:"1024" doc:"Transmit ring of TAP interfaces, for packets to pods: a power of two up to 32768. VPP drops the packets of a burst that do not fit."`
	Vmxnet3RxRingSize          *uint16 `json:"vmxnet3RxRingSize,omitempty" doc:"Not supported (vmxnet3). The agent rejects other values than 1024."`
	Vmxnet3TxRingSize          *uint16 `json:"vmxnet3TxRingSize,omitempty" doc:"Not supported (vmxnet3). The agent rejects other values than 1024."`
	InterfaceRxMode            *string `json:"interfaceRxMode,omitempty" default:"default" doc:"How VPP receives packets: default, polling, interrupt, or adaptive (not if VPP has AF_PACKET interfaces)."`
	TCPChecksumOffloadDisabled *bool   `json:"tcpChecksumOffloadDisabled,omitempty" doc:"The kernel of a pod computes checksums. Default: the opposite of enableGSO. See ADR 13."`
	EnableGSO                  *bool   `json:"enableGSO,omitempty" doc:"Pods on TAP interfaces send packets larger than their MTU, which VPP's contiv plugin segments on output. Default: true on nodes whose VPP has the plugin. See ADR 13."`
}

// RoutingOptions are the options of RoutingConfig; they are at the top level of the file.
type RoutingOptions struct {
	MainVRFID                         *uint32 `json:"mainVRFID,omitempty" default:"0" doc:"VRF of the main interface in VPP."`
	PodVRFID                          *uint32 `json:"podVRFID,omitempty" default:"1" doc:"VRF of pods in VPP."`
	NodeToNodeTransport               *string `json:"nodeToNodeTransport,omitempty" default:"vxlan" doc:"How packets travel between nodes: vxlan, or nooverlay if all nodes are on one Ethernet network."`
	VxlanVNI                          *uint32 `json:"vxlanVNI,omitempty" default:"10" doc:"VXLAN network identifier of the overlay, the same on all nodes. A cluster with Windows nodes needs one from 4096 to 65535. A change disconnects the nodes until all of them have the new value."`
	RouteServiceCIDRToVPP             *bool   `json:"routeServiceCIDRToVPP,omitempty" default:"false" doc:"The host sends traffic for services to VPP, and kube-proxy does not process it."`
	UseSRv6ForServices                *bool   `json:"useSRv6ForServices,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	UseSRv6ForServiceFunctionChaining *bool   `json:"useSRv6ForServiceFunctionChaining,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	UseDX6ForSrv6NodetoNodeTransport  *bool   `json:"useDX6ForSrv6NodetoNodeTransport,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
}

// NeighborScanOptions are the options of NeighborScanConfig; they are at the top level of the file.
type NeighborScanOptions struct {
	ScanIPNeighbors          *bool  `json:"scanIPNeighbors,omitempty" default:"true" doc:"VPP checks periodically whether its neighbours still reply."`
	IPNeighborScanInterval   *uint8 `json:"ipNeighborScanInterval,omitempty" default:"1" doc:"Minutes between two checks of a neighbour."`
	IPNeighborStaleThreshold *uint8 `json:"ipNeighborStaleThreshold,omitempty" default:"4" doc:"Minutes after which VPP removes a neighbour that does not reply."`
}

// IPAMOptions is the section ipamConfig. Networks and addresses are lists separated by commas, one element per family.
type IPAMOptions struct {
	UseExternalIPAM               *bool        `json:"useExternalIPAM,omitempty" doc:"Not supported. The agent rejects it."`
	ContivCIDR                    *string      `json:"contivCIDR,omitempty" doc:"One network that is split into podSubnetCIDR, vppHostSubnetCIDR, nodeInterconnectCIDR and vxlanCIDR, instead of these four."`
	ServiceCIDR                   *string      `json:"serviceCIDR,omitempty" default:"10.96.0.0/12" doc:"Network of cluster IPs. Must equal --service-cluster-ip-range of the API server."`
	NodeInterconnectDHCP          *bool        `json:"nodeInterconnectDHCP,omitempty" default:"false" doc:"The VPP addresses of nodes come from DHCP instead of nodeInterconnectCIDR."`
	PodSubnetCIDR                 *string      `json:"podSubnetCIDR,omitempty" default:"10.1.0.0/16" doc:"Network of all pods. Must not overlap any other network to which pods or nodes send packets."`
	PodSubnetOneNodePrefixLen     *Lengths     `json:"podSubnetOneNodePrefixLen,omitempty" default:"24" doc:"Prefix length of each node's part of podSubnetCIDR."`
	VPPHostSubnetCIDR             *string      `json:"vppHostSubnetCIDR,omitempty" default:"172.30.0.0/16" doc:"Network of the links between VPP and the host, for all nodes."`
	VPPHostSubnetOneNodePrefixLen *Lengths     `json:"vppHostSubnetOneNodePrefixLen,omitempty" default:"24" doc:"Prefix length of each node's part of vppHostSubnetCIDR."`
	NodeInterconnectCIDR          *string      `json:"nodeInterconnectCIDR,omitempty" default:"192.168.16.0/24" doc:"Network of the addresses with which the VPPs of nodes reach each other."`
	VxlanCIDR                     *string      `json:"vxlanCIDR,omitempty" default:"192.168.30.0/24" doc:"Network of the VXLAN tunnel ends."`
	DefaultGateway                *string      `json:"defaultGateway,omitempty" doc:"Gateway to networks outside of the cluster. No node gets this address."`
	SRv6                          *SRv6Options `json:"srv6,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
}

// SRv6Options is the section ipamConfig.srv6: recognised, but not supported yet.
type SRv6Options struct {
	ServicePolicyBSIDSubnetCIDR            *string `json:"servicePolicyBSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	ServicePodLocalSIDSubnetCIDR           *string `json:"servicePodLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	ServiceHostLocalSIDSubnetCIDR          *string `json:"serviceHostLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	ServiceNodeLocalSIDSubnetCIDR          *string `json:"serviceNodeLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	NodeToNodePodLocalSIDSubnetCIDR        *string `json:"nodeToNodePodLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	NodeToNodeHostLocalSIDSubnetCIDR       *string `json:"nodeToNodeHostLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	NodeToNodePodPolicySIDSubnetCIDR       *string `json:"nodeToNodePodPolicySIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	NodeToNodeHostPolicySIDSubnetCIDR      *string `json:"nodeToNodeHostPolicySIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	SfcPolicyBSIDSubnetCIDR                *string `json:"sfcPolicyBSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	SfcServiceFunctionSIDSubnetCIDR        *string `json:"sfcServiceFunctionSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	SfcEndLocalSIDSubnetCIDR               *string `json:"sfcEndLocalSIDSubnetCIDR,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
	SfcIDLengthUsedInSidForServiceFunction *uint8  `json:"sfcIDLengthUsedInSidForServiceFunction,omitempty" doc:"Not supported (SRv6). The agent rejects it."`
}

// UplinkOptions is the section mainVPPInterface: the NIC that connects a node with the others. All options that are set must match.
type UplinkOptions struct {
	NamePattern  *string `json:"namePattern,omitempty" doc:"Kernel names of the NIC, separated by commas, with * and ?. VPP shares the NIC with the host."`
	Network      *string `json:"network,omitempty" doc:"The NIC that has an address in this network."`
	DefaultRoute *bool   `json:"defaultRoute,omitempty" default:"false" doc:"The NIC of the default route."`
	StandAlone   *bool   `json:"standAlone,omitempty" default:"false" doc:"There is only one node: VPP needs no NIC."`
}

// NodeSection is one element of nodeConfig: options that apply only to the node called NodeName.
type NodeSection struct {
	NodeName           *string            `json:"nodeName,omitempty" doc:"Name of the node in Kubernetes."`
	MainVPPInterface   *InterfaceSection  `json:"mainVPPInterface,omitempty" doc:"The NIC that connects this node with the other nodes."`
	OtherVPPInterfaces []InterfaceSection `json:"otherVPPInterfaces,omitempty" doc:"Additional NICs of VPP."`
	StealInterface     *string            `json:"stealInterface,omitempty" doc:"Not supported (STN). The agent rejects it."`
	Gateway            *string            `json:"gateway,omitempty" doc:"Gateway of this node to networks outside of the cluster."`
	NatExternalTraffic *bool              `json:"natExternalTraffic,omitempty" doc:"The top-level option of this name, for this node."`
}

// InterfaceSection describes one interface in a NodeSection.
type InterfaceSection struct {
	InterfaceName *string `json:"interfaceName,omitempty" doc:"Name of the NIC: that of a DPDK interface, or host-NIC (host-eth1) for VPP on a Linux NIC, or the kernel's name on the Linux dataplane."`
	IP            *string `json:"ip,omitempty" doc:"Static addresses with their prefix lengths, one per address family."`
	UseDHCP       *bool   `json:"useDHCP,omitempty" default:"false" doc:"The address comes from DHCP."`
}

// Lengths is a list of prefix lengths, one per family: 24, or "24,64".
type Lengths []int

// UnmarshalText parses a list separated by commas.
func (l *Lengths) UnmarshalText(text []byte) error {
	var out Lengths
	for part := range strings.SplitSeq(string(text), ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 8)
		if err != nil || n > 128 {
			return fmt.Errorf("%q is not a prefix length; write a number up to 128, or one per family such as \"24,64\"", text)
		}
		out = append(out, int(n))
	}
	*l = out
	return nil
}

// MarshalJSON writes a number, or a string if there are several.
func (l Lengths) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal(joinComma(l, strconv.Itoa))
}

func joinComma[T any](list []T, text func(T) string) string {
	parts := make([]string, 0, len(list))
	for _, v := range list {
		parts = append(parts, text(v))
	}
	return strings.Join(parts, ",")
}
