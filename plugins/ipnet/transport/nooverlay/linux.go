package nooverlay

import (
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Linux renders plain routes for the Linux driver.
type Linux struct{}

var _ transport.Transport = Linux{}

// Node implements transport.Transport.
func (Linux) Node(l *transport.Local) []pb.Message {
	out := []pb.Message{transport.HostMetadata(&l.Node)}
	for _, own := range l.Pods {
		out = append(out, transport.OwnBlock(l, own, proto.IPPoolType_NO_ENCAP))
	}
	return out
}

// Peer implements transport.Transport.
func (Linux) Peer(l *transport.Local, p *transport.Node) []pb.Message {
	out := []pb.Message{transport.HostMetadata(p)}
	for _, dst := range slices.Concat(p.Pods, p.Hosts) {
		if transport.SameFamily(p.IPs, dst).IsValid() && transport.SameFamily(l.IPs, dst).IsValid() {
			out = append(out, transport.PeerBlock(p, dst, proto.IPPoolType_NO_ENCAP))
		}
	}
	return out
}

// Mesh implements transport.Transport: peers share no values.
func (Linux) Mesh(*transport.Local, []pb.Message, []*transport.Node, []*transport.Node) []pb.Message {
	return nil
}

// ViaVPP implements transport.Transport: there is no VPP.
func (Linux) ViaVPP(*transport.Local) []netip.Prefix { return nil }

// BVI implements transport.Transport.
func (Linux) BVI() string { return "" }

// Overhead implements transport.Transport.
func (Linux) Overhead(*transport.Local) int { return 0 }
