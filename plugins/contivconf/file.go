package contivconf

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// File is contiv.conf as the operator wrote it. A nil (or empty) option is not set. The JSON tags are the option names; a tag
// "also" is another spelling, which contiv's documentation has.
type File struct {
	StealFirstNIC                *bool   `json:"stealFirstNIC,omitempty"`
	StealInterface               *string `json:"stealInterface,omitempty"`
	StnSocketFile                *string `json:"stnSocketFile,omitempty"`
	StnVersion                   *uint8  `json:"stnVersion,omitempty"`
	NatExternalTraffic           *bool   `json:"natExternalTraffic,omitempty"`
	EnablePacketTrace            *bool   `json:"enablePacketTrace,omitempty"`
	CrdNodeConfigurationDisabled *bool   `json:"crdNodeConfigurationDisabled,omitempty"`

	InterfaceOptions
	RoutingOptions
	NeighborScanOptions

	IPAMConfig IPAMOptions `json:"ipamConfig"`
	// MainVPPInterface finds the main interface of the nodes whose section names none.
	MainVPPInterface *UplinkOptions `json:"mainVPPInterface,omitempty"`
	NodeConfig       []NodeSection  `json:"nodeConfig,omitempty"`
}

// InterfaceOptions are the options of InterfaceConfig; they are at the top level of the file.
type InterfaceOptions struct {
	MTUSize                    *uint32 `json:"mtuSize,omitempty"`
	UseTAPInterfaces           *bool   `json:"useTAPInterfaces,omitempty" also:"UseTAPInterfaces"`
	TAPInterfaceVersion        *uint8  `json:"tapInterfaceVersion,omitempty" also:"TAPInterfaceVersion"`
	TAPv2RxRingSize            *uint16 `json:"tapv2RxRingSize,omitempty"`
	TAPv2TxRingSize            *uint16 `json:"tapv2TxRingSize,omitempty"`
	Vmxnet3RxRingSize          *uint16 `json:"vmxnet3RxRingSize,omitempty"`
	Vmxnet3TxRingSize          *uint16 `json:"vmxnet3TxRingSize,omitempty"`
	InterfaceRxMode            *string `json:"interfaceRxMode,omitempty"`
	TCPChecksumOffloadDisabled *bool   `json:"tcpChecksumOffloadDisabled,omitempty"`
	EnableGSO                  *bool   `json:"enableGSO,omitempty"`
}

// RoutingOptions are the options of RoutingConfig; they are at the top level of the file.
type RoutingOptions struct {
	MainVRFID                         *uint32 `json:"mainVRFID,omitempty"`
	PodVRFID                          *uint32 `json:"podVRFID,omitempty"`
	NodeToNodeTransport               *string `json:"nodeToNodeTransport,omitempty"`
	RouteServiceCIDRToVPP             *bool   `json:"routeServiceCIDRToVPP,omitempty"`
	UseSRv6ForServices                *bool   `json:"useSRv6ForServices,omitempty"`
	UseSRv6ForServiceFunctionChaining *bool   `json:"useSRv6ForServiceFunctionChaining,omitempty"`
	UseDX6ForSrv6NodetoNodeTransport  *bool   `json:"useDX6ForSrv6NodetoNodeTransport,omitempty"`
}

// NeighborScanOptions are the options of NeighborScanConfig; they are at the top level of the file.
type NeighborScanOptions struct {
	ScanIPNeighbors          *bool  `json:"scanIPNeighbors,omitempty"`
	IPNeighborScanInterval   *uint8 `json:"ipNeighborScanInterval,omitempty"`
	IPNeighborStaleThreshold *uint8 `json:"ipNeighborStaleThreshold,omitempty"`
}

// IPAMOptions is the section ipamConfig. Networks and addresses are lists separated by commas, one element per family.
type IPAMOptions struct {
	UseExternalIPAM               *bool        `json:"useExternalIPAM,omitempty"`
	ContivCIDR                    *string      `json:"contivCIDR,omitempty"`
	ServiceCIDR                   *string      `json:"serviceCIDR,omitempty"`
	NodeInterconnectDHCP          *bool        `json:"nodeInterconnectDHCP,omitempty"`
	PodSubnetCIDR                 *string      `json:"podSubnetCIDR,omitempty"`
	PodSubnetOneNodePrefixLen     *Lengths     `json:"podSubnetOneNodePrefixLen,omitempty"`
	VPPHostSubnetCIDR             *string      `json:"vppHostSubnetCIDR,omitempty"`
	VPPHostSubnetOneNodePrefixLen *Lengths     `json:"vppHostSubnetOneNodePrefixLen,omitempty"`
	NodeInterconnectCIDR          *string      `json:"nodeInterconnectCIDR,omitempty"`
	VxlanCIDR                     *string      `json:"vxlanCIDR,omitempty"`
	DefaultGateway                *string      `json:"defaultGateway,omitempty"`
	SRv6                          *SRv6Options `json:"srv6,omitempty"`
}

// SRv6Options is the section ipamConfig.srv6: recognised, but not supported yet.
type SRv6Options struct {
	ServicePolicyBSIDSubnetCIDR            *string `json:"servicePolicyBSIDSubnetCIDR,omitempty"`
	ServicePodLocalSIDSubnetCIDR           *string `json:"servicePodLocalSIDSubnetCIDR,omitempty"`
	ServiceHostLocalSIDSubnetCIDR          *string `json:"serviceHostLocalSIDSubnetCIDR,omitempty"`
	ServiceNodeLocalSIDSubnetCIDR          *string `json:"serviceNodeLocalSIDSubnetCIDR,omitempty"`
	NodeToNodePodLocalSIDSubnetCIDR        *string `json:"nodeToNodePodLocalSIDSubnetCIDR,omitempty"`
	NodeToNodeHostLocalSIDSubnetCIDR       *string `json:"nodeToNodeHostLocalSIDSubnetCIDR,omitempty"`
	NodeToNodePodPolicySIDSubnetCIDR       *string `json:"nodeToNodePodPolicySIDSubnetCIDR,omitempty"`
	NodeToNodeHostPolicySIDSubnetCIDR      *string `json:"nodeToNodeHostPolicySIDSubnetCIDR,omitempty"`
	SfcPolicyBSIDSubnetCIDR                *string `json:"sfcPolicyBSIDSubnetCIDR,omitempty"`
	SfcServiceFunctionSIDSubnetCIDR        *string `json:"sfcServiceFunctionSIDSubnetCIDR,omitempty"`
	SfcEndLocalSIDSubnetCIDR               *string `json:"sfcEndLocalSIDSubnetCIDR,omitempty"`
	SfcIDLengthUsedInSidForServiceFunction *uint8  `json:"sfcIDLengthUsedInSidForServiceFunction,omitempty"`
}

// UplinkOptions is the section mainVPPInterface: which NIC connects a node with the others. All that is set must hold.
type UplinkOptions struct {
	NamePattern  *string `json:"namePattern,omitempty"`
	Network      *string `json:"network,omitempty"`
	DefaultRoute *bool   `json:"defaultRoute,omitempty"`
	StandAlone   *bool   `json:"standAlone,omitempty"`
}

// NodeSection is one element of nodeConfig: what holds for the node called NodeName only.
type NodeSection struct {
	NodeName           *string            `json:"nodeName,omitempty"`
	MainVPPInterface   *InterfaceSection  `json:"mainVPPInterface,omitempty"`
	OtherVPPInterfaces []InterfaceSection `json:"otherVPPInterfaces,omitempty"`
	StealInterface     *string            `json:"stealInterface,omitempty"`
	Gateway            *string            `json:"gateway,omitempty"`
	NatExternalTraffic *bool              `json:"natExternalTraffic,omitempty"`
}

// InterfaceSection describes one interface in a NodeSection.
type InterfaceSection struct {
	InterfaceName *string `json:"interfaceName,omitempty"`
	IP            *string `json:"ip,omitempty"`
	UseDHCP       *bool   `json:"useDHCP,omitempty"`
}

// Lengths is a list of prefix lengths, one per family: 24, or "24,64".
type Lengths []int

// UnmarshalText reads a list separated by commas.
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

// MarshalJSON writes a number, or a string when there are several.
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
