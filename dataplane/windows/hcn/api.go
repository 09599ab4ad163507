package hcn

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Errors that callers distinguish.
var (
	ErrNotFound    = errors.New("HNS does not have the object")
	ErrExists      = errors.New("HNS has such an object already")
	ErrUnsupported = errors.New("this version of Windows cannot do it")
	ErrInvalid     = errors.New("HNS rejects the settings")
	// ErrNotWindows is what Open returns on other systems.
	ErrNotWindows = errors.New("this system has no Host Compute Network: it is a part of Windows")
)

// Features lists the features of a version of Windows; see hcsshim's versions of each.
type Features struct {
	RemoteSubnet, HostRoute, DSR, Slash32EndpointPrefixes, SessionAffinity, IPv6DualStack bool
	SetPolicy, VxlanPort, TierAcl, NetworkACL, NestedIpSet, ModifyLoadbalancer            bool
}

// SchemaVersion is a version of the schema. This package sends 2.0 only; see V2.
type SchemaVersion struct{ Major, Minor int }

// V2 is version 2.0 of the schema.
var V2 = SchemaVersion{Major: 2, Minor: 0}

// Policy is a policy of a network or an endpoint.
type Policy struct {
	Type     PolicyType
	Settings json.RawMessage `json:",omitempty"`
}

// PolicyType names the settings of a policy.
type PolicyType string

// Types of policies, and the type of their settings.
const (
	// Of endpoints.
	TypeACL            PolicyType = "ACL"             // ACLSettings
	TypeOutBoundNAT    PolicyType = "OutBoundNAT"     // OutboundNATSettings
	TypeSDNRoute       PolicyType = "SDNRoute"        // SDNRouteSettings
	TypePortMapping    PolicyType = "PortMapping"     // PortMappingSettings
	TypeProviderAddr   PolicyType = "ProviderAddress" // ProviderAddressSettings; networks have it, too
	TypeRemoteSubnet   PolicyType = "RemoteSubnetRoute"
	TypeVxlanPort      PolicyType = "VxlanPort"
	TypeHostRoute      PolicyType = "HostRoute" // no settings: the node reaches its own endpoints
	TypeNetAdapterName PolicyType = "NetAdapterName"
	TypeDrMacAddress   PolicyType = "DrMacAddress"
	// Of subnets.
	TypeVSID PolicyType = "VSID" // VSIDSettings
)

// NewPolicy returns a policy with settings, which may be nil.
func NewPolicy(kind PolicyType, settings any) (Policy, error) {
	if settings == nil {
		return Policy{Type: kind, Settings: json.RawMessage("{}")}, nil
	}
	raw, err := json.Marshal(settings)
	if err != nil {
		return Policy{}, fmt.Errorf("settings of policy %s: %w", kind, err)
	}
	return Policy{Type: kind, Settings: raw}, nil
}

// SettingsOf decodes the settings of the policies of a type.
func SettingsOf[T any](policies []Policy, kind PolicyType) ([]T, error) {
	var list []T
	for _, p := range policies {
		if p.Type != kind {
			continue
		}
		var settings T
		if err := json.Unmarshal(p.Settings, &settings); err != nil {
			return nil, fmt.Errorf("settings of policy %s: %w", kind, err)
		}
		list = append(list, settings)
	}
	return list, nil
}

// ACLSettings is a rule of an endpoint's access control list; hns.ACL is its typed form.
type ACLSettings struct {
	Protocols       string `json:",omitempty"` // one number; empty: any
	Action          string // "Allow", "Block"
	Direction       string // "In", "Out"
	LocalAddresses  string `json:",omitempty"` // prefixes with commas
	RemoteAddresses string `json:",omitempty"`
	LocalPorts      string `json:",omitempty"` // "80,8000-8100"
	RemotePorts     string `json:",omitempty"`
	RuleType        string `json:",omitempty"` // "Switch", "Host"
	Priority        uint16 `json:",omitempty"`
}

// OutboundNATSettings translates the source of packets that leave the endpoint to the node's address, except for the destinations in
// Exceptions.
type OutboundNATSettings struct {
	VirtualIP    string   `json:",omitempty"`
	Exceptions   []string `json:",omitempty"` // prefixes
	Destinations []string `json:",omitempty"`
	Flags        uint32   `json:",omitempty"`
}

// SDNRouteSettings routes a destination through the node (with NeedEncap, through its overlay).
type SDNRouteSettings struct {
	DestinationPrefix string `json:",omitempty"`
	NextHop           string `json:",omitempty"`
	NeedEncap         bool   `json:",omitempty"`
}

// PortMappingSettings maps a port of the node to the endpoint.
type PortMappingSettings struct {
	Protocol     uint32 `json:",omitempty"` // 6, 17
	InternalPort uint16 `json:",omitempty"`
	ExternalPort uint16 `json:",omitempty"`
	VIP          string `json:",omitempty"`
	Flags        uint32 `json:",omitempty"`
}

// ProviderAddressSettings is the node's address that carries the overlay.
type ProviderAddressSettings struct {
	ProviderAddress string `json:",omitempty"`
}

// RemoteSubnetSettings is another node's subnet on an overlay.
type RemoteSubnetSettings struct {
	DestinationPrefix string
	// IsolationID is the VNI: at least 4096, and at most 65535, because the field in Windows' API has 16 bits.
	IsolationID     uint16 `json:"IsolationId"`
	ProviderAddress string // the other node's address
	// DistributedRouterMacAddress is the MAC address of the other node's VXLAN device: "66-00-00-00-00-01".
	DistributedRouterMacAddress string
}

// VxlanPortSettings is the UDP port of an overlay; without it: 4789.
type VxlanPortSettings struct{ Port uint16 }

// NetAdapterNameSettings names the adapter that a network is bound to.
type NetAdapterNameSettings struct {
	NetworkAdapterName string `json:",omitempty"`
}

// DrMacAddressSettings is the MAC address of the network's router.
type DrMacAddressSettings struct {
	Address string `json:",omitempty"`
}

// VSIDSettings is a subnet's VNI.
type VSIDSettings struct {
	IsolationID uint32 `json:"IsolationId"`
}

// NetworkType is how a network is connected.
type NetworkType string

// Types of networks.
const (
	L2Bridge NetworkType = "L2Bridge"
	Overlay  NetworkType = "Overlay"
	NAT      NetworkType = "NAT"
)

// Route is a route of an endpoint or a subnet.
type Route struct {
	NextHop           string `json:",omitempty"`
	DestinationPrefix string `json:",omitempty"`
	Metric            uint16 `json:",omitempty"`
}

// Subnet is a subnet of a network. It needs a default route, whose next hop is the network's gateway.
type Subnet struct {
	IPAddressPrefix string   `json:"IpAddressPrefix,omitempty"`
	Policies        []Policy `json:",omitempty"` // TypeVSID
	Routes          []Route  `json:",omitempty"`
}

// IPAM configures the source of a network's addresses.
type IPAM struct {
	Type    string   `json:",omitempty"` // "Static"
	Subnets []Subnet `json:",omitempty"`
}

// MACRange is a range of MAC addresses, both ends inclusive: "0A-00-00-00-00-00".
type MACRange struct {
	StartMacAddress string `json:",omitempty"`
	EndMacAddress   string `json:",omitempty"`
}

// MACPool holds the ranges of a network's MAC addresses.
type MACPool struct {
	Ranges []MACRange `json:",omitempty"`
}

// DNS is the resolver configuration of an endpoint.
type DNS struct {
	Domain     string   `json:",omitempty"`
	Search     []string `json:",omitempty"`
	ServerList []string `json:",omitempty"`
	Options    []string `json:",omitempty"`
}

// Network is a network.
type Network struct {
	ID            string        `json:"ID,omitempty"`
	Name          string        `json:",omitempty"`
	Type          NetworkType   `json:",omitempty"`
	Policies      []Policy      `json:",omitempty"`
	MacPool       MACPool       `json:",omitempty"`
	DNS           DNS           `json:"Dns,omitempty"`
	IPAMs         []IPAM        `json:"Ipams,omitempty"`
	Flags         uint32        `json:",omitempty"`
	SchemaVersion SchemaVersion `json:",omitempty"`
}

// IPConfig is an address of an endpoint.
type IPConfig struct {
	IPAddress    string `json:"IpAddress,omitempty"`
	PrefixLength uint8  `json:",omitempty"`
}

// FlagRemote marks an endpoint of another node.
const FlagRemote = 1

// Endpoint is a network adapter of a container, or a remote endpoint that load balancers refer to.
type Endpoint struct {
	ID                   string        `json:"ID,omitempty"`
	Name                 string        `json:",omitempty"`
	HostComputeNetwork   string        `json:",omitempty"` // the network's ID
	HostComputeNamespace string        `json:",omitempty"` // the namespace's ID
	Policies             []Policy      `json:",omitempty"`
	IPConfigurations     []IPConfig    `json:"IpConfigurations,omitempty"`
	DNS                  DNS           `json:"Dns,omitempty"`
	Routes               []Route       `json:",omitempty"`
	MacAddress           string        `json:",omitempty"`
	Flags                uint32        `json:",omitempty"`
	SchemaVersion        SchemaVersion `json:",omitempty"`
}

// Types of namespaces.
const (
	NamespaceHost        = "Host"
	NamespaceHostDefault = "HostDefault"
	NamespaceGuest       = "Guest"
)

// Namespace is a network namespace, which the containers of a pod share.
type Namespace struct {
	ID string `json:"ID,omitempty"`
	// NamespaceID is the ID of the compartment.
	NamespaceID   uint32              `json:"NamespaceId,omitempty"`
	Type          string              `json:",omitempty"`
	Resources     []NamespaceResource `json:",omitempty"`
	SchemaVersion SchemaVersion       `json:",omitempty"`
}

// NamespaceResource is a container or an endpoint of a namespace: Data is {"ID": "…"}.
type NamespaceResource struct {
	Type string // "Container", "Endpoint"
	Data json.RawMessage
}

// Flags of load balancers.
const (
	LBFlagDSR  = 1 // direct server return
	LBFlagIPv6 = 2
)

// Flags of a load balancer's port.
const (
	LBPortILB            = 1
	LBPortLocalRoutedVIP = 2 // the node itself can reach the address
	LBPortUseMux         = 4
	LBPortPreserveDIP    = 8
)

// The ways in which a load balancer distributes connections.
const (
	LBDistributeConnections      = 0
	LBDistributeSourceIPProtocol = 1
	LBDistributeSourceIP         = 2 // session affinity
)

// LBPortMapping is a port of a load balancer.
type LBPortMapping struct {
	Protocol         uint32 `json:",omitempty"` // 6, 17
	InternalPort     uint16 `json:",omitempty"`
	ExternalPort     uint16 `json:",omitempty"`
	DistributionType uint32 `json:",omitempty"`
	Flags            uint32 `json:",omitempty"`
}

// LoadBalancer distributes the connections to its addresses among endpoints.
type LoadBalancer struct {
	ID string `json:"ID,omitempty"`
	// HostComputeEndpoints holds the IDs of the endpoints, at least one.
	HostComputeEndpoints []string `json:",omitempty"`
	// SourceVIP is the source address of connections that need an address of the node; on overlays.
	SourceVIP string `json:",omitempty"`
	// FrontendVIPs holds its addresses; none: those of the node (a node port).
	FrontendVIPs  []string        `json:",omitempty"`
	PortMappings  []LBPortMapping `json:",omitempty"`
	SchemaVersion SchemaVersion   `json:",omitempty"`
	Flags         uint32          `json:",omitempty"`
}
