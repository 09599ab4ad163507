package nooverlay

import (
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	windows_hns "contiv.dev/vswitch/dataplane/nb/windows/hns"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Windows renders routes of the node itself: the node's L2 bridge has the pods' gateway, and the node forwards.
type Windows struct{ Linux }

var _ transport.Transport = Windows{}

// Peer implements transport.Transport.
func (Windows) Peer(l *transport.Local, p *transport.Node) []pb.Message {
	out := []pb.Message{transport.HostMetadata(p)}
	for _, dst := range slices.Concat(p.Pods, p.Hosts) {
		via := transport.SameFamily(p.IPs, dst)
		if via == (netip.Prefix{}) || !transport.SameFamily(l.IPs, dst).IsValid() {
			continue
		}
		out = append(out, &windows_hns.HostRoute{Destination: dst.String(), NextHop: via.Addr().String()})
	}
	return out
}
