package ipam

import (
	"net/netip"

	"contiv.dev/vswitch/plugins/podmanager"
)

// API is what other plugins use of ipam. Every method that derives an address returns one value per configured family
// (IPv4 before IPv6), so that dual-stack is the normal case and not a second code path. Only to be called from the event
// loop and not before the start-up resync.
type API interface {
	NodeSubnets
	PodAddresses
}

// NodeSubnets are the addresses derived from node IDs.
type NodeSubnets interface {
	// NodeIPs is the interconnect address of a node with its network, by node ID; empty with DHCP.
	NodeIPs(nodeID uint32) ([]netip.Prefix, error)
	// VxlanIPs is the address of a node's VXLAN BVI with its network.
	VxlanIPs(nodeID uint32) ([]netip.Prefix, error)
	// HostInterconnect gives the two ends of the VPP–host link of a node.
	HostInterconnect(nodeID uint32) ([]HostLink, error)
	// PodSubnets is the slice of the pod network which belongs to a node.
	PodSubnets(nodeID uint32) ([]PodSubnet, error)
	// ClusterSubnets are the networks that span all nodes.
	ClusterSubnets() ClusterSubnets
	// NodeIDOf is the node to which a pod address belongs.
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

// ClusterSubnets are the cluster-wide networks, one per family each.
type ClusterSubnets struct {
	Pods             []netip.Prefix
	VPPHost          []netip.Prefix
	NodeInterconnect []netip.Prefix
	Vxlan            []netip.Prefix
	Services         []netip.Prefix
}

// PodAddresses allocates this node's pod addresses.
type PodAddresses interface {
	// AllocatePodIPs gives the attachment one address of each family; the same ones if it has them already. ErrExhausted
	// says which subnet is full.
	AllocatePodIPs(id podmanager.AttachmentID) ([]netip.Addr, error)
	// ReleasePodIPs gives the addresses back; releasing what is not allocated is fine.
	ReleasePodIPs(id podmanager.AttachmentID)
	// PodIPs returns what is allocated to the attachment.
	PodIPs(id podmanager.AttachmentID) []netip.Addr
	// AttachmentOf finds the local attachment that has the address.
	AttachmentOf(ip netip.Addr) (podmanager.AttachmentID, bool)
}
