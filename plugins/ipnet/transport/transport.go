package transport

import (
	"encoding/binary"
	"net"
	"net/netip"

	"google.golang.org/protobuf/proto"
)

// Node holds the data of a node, either this one or another. Lists of networks have one element per family in use.
type Node struct {
	ID      uint32
	Name    string
	IPs     []netip.Prefix // of its main interface, in the network that connects nodes
	MgmtIPs []netip.Addr   // other addresses of the host, as reported by Kubernetes
	Pods    []netip.Prefix // its slice of the pod network
	Hosts   []netip.Prefix // its VPP–host link
	Overlay []netip.Prefix // its address in the overlay, with the overlay's network
}

// Local is this node.
type Local struct {
	Node
	MainVRF, PodVRF uint32
	VNI             uint32 // of the overlay; 0: vxlan.VNI
	MainIf          string // logical name of the main interface in VPP
	PodMTU          uint32
	ClusterPods     []netip.Prefix // pod networks of the cluster
	ClusterHosts    []netip.Prefix // networks of all VPP–host links
}

// Transport renders one way of connecting nodes for one kind of dataplane. The values go into the node's transaction.
type Transport interface {
	// Node renders the values of this node that do not depend on peers.
	Node(l *Local) []proto.Message
	// Peer renders the values by which this node reaches one peer; none while the peer's address is not known.
	Peer(l *Local, p *Node) []proto.Message
	// Mesh renders the values that all peers share. before is the previous rendering, nil if there is none; the peers in left have been
	// removed since then, those in came have been added (a changed peer is in both). The cost is proportional to the change, except for
	// copying lists.
	Mesh(l *Local, before []proto.Message, left, came []*Node) []proto.Message
	// ViaVPP returns the networks that this node's host stack reaches through VPP.
	ViaVPP(l *Local) []netip.Prefix
	// BVI returns the logical name of the interface that faces the other nodes' overlay addresses; it is empty without an overlay.
	BVI() string
	// Overhead returns the number of bytes that the transport adds to a packet.
	Overhead(l *Local) int
}

// SameFamily returns the first prefix of p's family, or the zero Prefix if there is none.
func SameFamily(list []netip.Prefix, p netip.Prefix) netip.Prefix {
	for _, q := range list {
		if q.Addr().Is4() == p.Addr().Is4() {
			return q
		}
	}
	return netip.Prefix{}
}

// Underlay returns the pair of addresses by which two nodes reach each other: IPv4 before IPv6. ok is false if they have no family in
// common, or if one of them has no address yet.
func Underlay(l *Local, p *Node) (local, remote netip.Addr, ok bool) {
	for _, want4 := range []bool{true, false} {
		for _, mine := range l.IPs {
			if mine.Addr().Is4() != want4 {
				continue
			}
			if other := SameFamily(p.IPs, mine); other.IsValid() {
				return mine.Addr(), other.Addr(), true
			}
		}
	}
	return netip.Addr{}, netip.Addr{}, false
}

// MgmtOf returns the peer's host addresses that are not addresses of its main interface. The addresses of the main interface are reached
// without a tunnel: otherwise the tunnel would carry its own packets.
func MgmtOf(p *Node) []netip.Addr {
	var out []netip.Addr
next:
	for _, addr := range p.MgmtIPs {
		for _, ip := range p.IPs {
			if ip.Addr() == addr {
				continue next
			}
		}
		out = append(out, addr)
	}
	return out
}

// NodeMAC returns a deterministic MAC address: two bytes for its purpose, and the node ID, big-endian.
func NodeMAC(kind [2]byte, nodeID uint32) net.HardwareAddr {
	mac := make(net.HardwareAddr, 6)
	copy(mac, kind[:])
	binary.BigEndian.PutUint32(mac[2:], nodeID)
	return mac
}
