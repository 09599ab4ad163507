package nb

// Prefixes of the keys of configured objects. The name follows.
const (
	VppInterfacePrefix     = "config/vpp/v2/interfaces/"
	ARPPrefix              = "config/vpp/v2/arp/"
	RoutePrefix            = "config/vpp/v2/route/"
	VrfTablePrefix         = "config/vpp/v2/vrf-table/"
	BridgeDomainPrefix     = "config/vpp/l2/v2/bridge-domain/"
	FIBPrefix              = "config/vpp/l2/v2/fib/"
	XConnectPrefix         = "config/vpp/l2/v2/xconnect/"
	DNat44Prefix           = "config/vpp/nat/v2/dnat44/"
	Nat44InterfacePrefix   = "config/vpp/nat/v2/nat44-interface/"
	Nat44AddressPoolPrefix = "config/vpp/nat/v2/nat44-pool/"
	ACLPrefix              = "config/vpp/acls/v2/acl/"
	LinuxInterfacePrefix   = "config/linux/interfaces/v2/interface/"
	LinuxARPPrefix         = "config/linux/l3/v2/arp/"
	LinuxRoutePrefix       = "config/linux/l3/v2/route/"
)

// Keys of the singletons.
const (
	ProxyARPKey       = "config/vpp/v2/proxyarp-global"
	IPScanNeighborKey = "config/vpp/v2/ipscanneigh-global"
	Nat44GlobalKey    = "config/vpp/nat/v2/nat44-global"
)

// Prefixes of derived and status keys.
const (
	// InterfacePrefix is the prefix of every key derived from a VPP interface
	// in which the interface's name is the next part.
	InterfacePrefix             = "vpp/interface/"
	UnnumberedPrefix            = "vpp/interface/unnumbered/"
	BDPrefix                    = "vpp/bd/"
	ACLDerivedPrefix            = "vpp/acl/"
	ProxyARPInterfacePrefix     = "vpp/proxyarp/interface/"
	LinuxDerivedInterfacePrefix = "linux/interface/"
	LinuxInterfaceStatePrefix   = "linux/interface/state/"
	LinuxHostNamePrefix         = "linux/interface/host-name/"
	LinuxMicroservicePrefix     = "linux/microservice/"
	// InterfaceStatePrefix is the prefix of the interface states published in
	// etcd.
	InterfaceStatePrefix = "vpp/status/v2/interface/"
	// InterfaceErrorPrefix is the prefix of the interface errors published in
	// etcd.
	InterfaceErrorPrefix = "vpp/status/v2/interface/error/"
)

// Sources of an address, for InterfaceAddressKey and LinuxInterfaceAddressKey.
const (
	AddressStatic   = "static"
	AddressFromDHCP = "from_dhcp"
	AddressAllocRef = "alloc_ref"
	AddressExisting = "existing"
)

// AllocRefPrefix is the prefix of an address that is a reference,
// "alloc:<network>[/<interface>][/GW]".
const AllocRefPrefix = "alloc:"

// IP versions of an interface, for InterfaceVrfKey.
const (
	IPv4   = "v4"
	IPv6   = "v6"
	IPBoth = "both"
)

// Directions of an ACL, for ACLInterfaceKey.
const (
	Ingress = "ingress"
	Egress  = "egress"
)

// invalidPart replaces an empty name in a derived key.
const invalidPart = "<invalid>"
