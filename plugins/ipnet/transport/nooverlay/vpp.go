package nooverlay

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// VPP renders plain routes for VPP.
type VPP struct{}

var _ transport.Transport = VPP{}

// Node implements transport.Transport. The main VRF, which has the routes to nodes, forwards packets for this node's pods to the pod VRF.
// The pod VRF drops packets that belong to no pod.
func (VPP) Node(l *transport.Local) []proto.Message {
	var out []proto.Message
	for _, own := range l.Pods {
		out = append(out, transport.InterVRF(l.MainVRF, own, l.PodVRF), transport.Drop(l.PodVRF, own))
	}
	return out
}

// Peer implements transport.Transport.
func (VPP) Peer(l *transport.Local, p *transport.Node) []proto.Message {
	var out []proto.Message
	for _, dst := range slices.Concat(p.Pods, p.Hosts) {
		out = appendVia(out, l, p, dst)
	}
	for _, addr := range transport.MgmtOf(p) {
		out = appendVia(out, l, p, ipaddr.HostPrefix(addr))
	}
	return out
}

// appendVia adds the route to dst via the peer's address of the same family, if both nodes have an address of that family.
func appendVia(out []proto.Message, l *transport.Local, p *transport.Node, dst netip.Prefix) []proto.Message {
	via := transport.SameFamily(p.IPs, dst)
	if !via.IsValid() || !transport.SameFamily(l.IPs, dst).IsValid() {
		return out
	}
	return append(out, transport.Route(l.MainVRF, dst, via.Addr(), l.MainIf))
}

// Mesh implements transport.Transport: peers share no values.
func (VPP) Mesh(*transport.Local, []proto.Message, []*transport.Node, []*transport.Node) []proto.Message {
	return nil
}

// ViaVPP implements transport.Transport.
func (VPP) ViaVPP(l *transport.Local) []netip.Prefix {
	return slices.Concat(l.ClusterPods, l.ClusterHosts)
}

// BVI implements transport.Transport.
func (VPP) BVI() string { return "" }

// Overhead implements transport.Transport.
func (VPP) Overhead(*transport.Local) int { return 0 }
