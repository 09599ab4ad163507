package ipam

import (
	"net/netip"

	"contiv.dev/vswitch/plugins/podmanager"
)

// API is the interface of ipam for other plugins. Every method that derives an address returns one value per configured family (IPv4 before
// IPv6), so that dual-stack is the normal case and not a second code path. The methods may be called only from the event loop and not
// before the start-up resync.
type API interface {
	NodeSubnets
	PodAddresses
}

// NodeSubnets returns the addresses that are derived from node IDs.
type NodeSubnets interface {
	// NodeIPs returns the interconnect address of a node with its network; empty with DHCP.
	NodeIPs(nodeID uint32) ([]netip.Prefix, error)
	// VxlanIPs returns the address of a node's VXLAN BVI with its network.
	VxlanIPs(nodeID uint32) ([]netip.Prefix, error)
	// HostInterconnect returns the two ends of the VPP–host link of a node.
	HostInterconnect(nodeID uint32) ([]HostLink, error)
	// PodSubnets returns the slice of the pod network that belongs to a node.
	PodSubnets(nodeID uint32) ([]PodSubnet, error)
	// ClusterSubnets returns the networks that span all nodes.
	ClusterSubnets() ClusterSubnets
	// NodeIDOf returns the ID of the node to which a pod address belongs.
	NodeIDOf(podIP netip.Addr) (nodeID uint32, ok bool)
}

// HostLink is the VPP–host link of one node in one family.
type HostLink struct {
	Subnet netip.Prefix // 172.30.<id>.0/24
	VPP    netip.Prefix // .1
	Host   netip.Prefix // .2
}

// PodSubnet is one node's slice of the pod network in one family.
type PodSubnet struct {
	Subnet      netip.Prefix // 10.1.<id>.0/24
	Gateway     netip.Addr   // .1
	NATLoopback netip.Addr   // last unicast address, .254
}

// ClusterSubnets holds the cluster-wide networks, each with one element per family.
type ClusterSubnets struct {
	Pods             []netip.Prefix
	VPPHost          []netip.Prefix
	NodeInterconnect []netip.Prefix
	Vxlan            []netip.Prefix
	Services         []netip.Prefix
}

// PodAddresses allocates this node's pod addresses.
type PodAddresses interface {
	// AllocatePodIPs allocates one address of each family for the attachment, or returns those that it already has. ErrExhausted contains
	// the subnet that is full.
	AllocatePodIPs(id podmanager.AttachmentID) ([]netip.Addr, error)
	// ReleasePodIPs releases the addresses; it is not an error if none are allocated.
	ReleasePodIPs(id podmanager.AttachmentID)
	// PodIPs returns the addresses that are allocated to the attachment.
	PodIPs(id podmanager.AttachmentID) []netip.Addr
	// AttachmentOf returns the local attachment that has the address.
	AttachmentOf(ip netip.Addr) (podmanager.AttachmentID, bool)
}
