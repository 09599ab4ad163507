package contivconf

import "net/netip"

// IPVersion is an address family.
type IPVersion int

// The families.
const (
	IPv4 IPVersion = 4
	IPv6 IPVersion = 6
)

// String is "IPv4" or "IPv6".
func (v IPVersion) String() string {
	if v == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// VersionOf is the family of addr; an IPv4-mapped address is IPv4.
func VersionOf(addr netip.Addr) IPVersion {
	if addr.Unmap().Is4() {
		return IPv4
	}
	return IPv6
}

// IPWithNetwork is an address together with the network it is in.
type IPWithNetwork struct {
	Version IPVersion
	Address netip.Addr
	Network netip.Prefix
}

// IPsWithNetworks is a list of addresses.
type IPsWithNetworks []*IPWithNetwork

// API answers what the configuration of this node is: the file, the node's own section and defaults merged. Thread-safe;
// the configuration does not change while the agent runs.
type API interface {
	// Interface options: MTU, TAP or VETH, rings, rx mode, GSO, checksums.
	Interface() InterfaceConfig
	// Routing options: VRF IDs, transport.
	Routing() RoutingConfig
	// IPAM options with contivCIDR already split.
	IPAM() IPAMConfig
	// Node is what holds for this very node: main interface, gateway, other interfaces, NAT of external traffic.
	Node() NodeConfig
	// NeighborScan options.
	NeighborScan() NeighborScanConfig
}
