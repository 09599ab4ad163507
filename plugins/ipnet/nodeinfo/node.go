package nodeinfo

import "net/netip"

// Node is the data of this node that service renderers need, for one address family.
type Node struct {
	// Address is the address of the main interface; it is invalid while the node has no such address.
	Address netip.Addr
	// HostLink is VPP's address on the link to the host, HostOwn is the host's address. LinuxIf is the logical name of the host's end.
	HostLink, HostOwn netip.Addr
	LinuxIf           string
	// Services holds the networks of cluster IPs.
	Services []netip.Prefix
	// MainVRF is VPP's table with the routes to the host and to other machines.
	MainVRF uint32
}

// NAT describes this node for address translation by VPP. All addresses are IPv4.
type NAT struct {
	Node
	// Uplink is the logical name of the main NIC; empty if the node has no NIC.
	Uplink string
	// Outside: packets that pods send to the outside by the uplink get the source Address.
	Outside bool
	// Exit is the logical name of the interface whose output translates them: the uplink, or a pipe before it.
	Exit string
	// Loopback is an address of this node's pod network that no pod gets.
	Loopback netip.Addr
	// PodVRF is VPP's table with the routes to pods.
	PodVRF uint32
}

// NextHop describes how VPP reaches an address.
type NextHop struct {
	// VRF is the table that has the route to the address, and to whose interfaces its replies come.
	VRF uint32
	// Masquerade: replies from the address to a pod or to the host may bypass this VPP, so VPP has to translate the client's address.
	Masquerade bool
}
