package vxlan

import (
	"cmp"
	"net"
	"strconv"

	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Names and numbers of the overlay of the default pod network.
const (
	VNI          = 10 // unless contiv.conf sets another VNI
	BVI          = "vxlanBVI"
	bridgeDomain = "vxlanBD"
	splitHorizon = 1
)

// vniOf returns the VNI, which is the same on all nodes.
func vniOf(l *transport.Local) uint32 { return cmp.Or(l.VNI, VNI) }

// tunnelName returns the logical name of the tunnel to a node.
func tunnelName(nodeID uint32) string {
	return "vxlan-default-" + strconv.FormatUint(uint64(nodeID), 10)
}

// MAC returns the MAC address of a node's BVI.
func MAC(nodeID uint32) net.HardwareAddr { return transport.NodeMAC([2]byte{0x12, 0x2b}, nodeID) }

// Header sizes. The outer Ethernet header, or its replacement, does not count towards the MTU; the inner Ethernet header does.
const (
	overheadIPv4 = 20 + 8 + 8 + 14
	overheadIPv6 = 40 + 8 + 8 + 14
)

// overhead returns the number of bytes that a tunnel adds to a packet: the size for IPv4 if the node has an IPv4 address or none at all,
// else the size for IPv6.
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
