package contivconf

import "net/netip"

// IPVersion is an address family.
type IPVersion int

// The families.
const (
	IPv4 IPVersion = 4
	IPv6 IPVersion = 6
)

// String returns "IPv4" or "IPv6".
func (v IPVersion) String() string {
	if v == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// VersionOf returns the family of addr; an IPv4-mapped address is IPv4.
func VersionOf(addr netip.Addr) IPVersion {
	if addr.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// IPWithNetwork is an address together with its network.
type IPWithNetwork struct {
	Version IPVersion
	Address netip.Addr
	Network netip.Prefix
}

// IPsWithNetworks is a list of addresses.
type IPsWithNetworks []*IPWithNetwork

// API returns the configuration of this node: the file, the node's own section and the defaults, merged. It is thread-safe; the
// configuration does not change while the agent runs.
type API interface {
	// Interface returns MTU, TAP or VETH, rings, rx mode, GSO, checksums.
	Interface() InterfaceConfig
	// Routing returns VRF IDs and transport.
	Routing() RoutingConfig
	// IPAM returns the IPAM options, with contivCIDR already split.
	IPAM() IPAMConfig
	// Node returns the options of this node: main interface, gateway, other interfaces, NAT of external traffic.
	Node() NodeConfig
	// NeighborScan returns the options of the neighbour scan.
	NeighborScan() NeighborScanConfig
}
