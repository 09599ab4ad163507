package vxlan

import (
	"cmp"
	"net"
	"strconv"

	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Names and numbers of the overlay of the default pod network.
const (
	VNI          = 10 // unless contiv.conf has another
	BVI          = "vxlanBVI"
	bridgeDomain = "vxlanBD"
	splitHorizon = 1
)

// vniOf is the VNI that all nodes have.
func vniOf(l *transport.Local) uint32 { return cmp.Or(l.VNI, VNI) }

// tunnelName is the logical name of the tunnel to a node.
func tunnelName(nodeID uint32) string {
	return "vxlan-default-" + strconv.FormatUint(uint64(nodeID), 10)
}

// MAC is the MAC address of a node's BVI.
func MAC(nodeID uint32) net.HardwareAddr { return transport.NodeMAC([2]byte{0x12, 0x2b}, nodeID) }

// Header sizes: outer Ethernet or what it replaces is not counted in the MTU, the inner Ethernet header is.
const (
	overheadIPv4 = 20 + 8 + 8 + 14
	overheadIPv6 = 40 + 8 + 8 + 14
)

// overhead is by how much a tunnel makes a packet longer; that of IPv6 when any of the node's addresses would be used so.
func overhead(l *transport.Local) int {
	for _, p := range l.IPs {
		if p.Addr().Is4() {
			return overheadIPv4
		}
	}
	if len(l.IPs) == 0 {
		return overheadIPv4
	}
	return overheadIPv6
}
