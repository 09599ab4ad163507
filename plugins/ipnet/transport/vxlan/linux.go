package vxlan

import (
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// Linux renders the mesh for the Linux driver, which programs the VXLAN device, its neighbours, forwarding entries and routes.
type Linux struct{}

var _ transport.Transport = Linux{}

// Node implements transport.Transport.
func (Linux) Node(l *transport.Local) []pb.Message {
	out := []pb.Message{transport.HostMetadata(&l.Node)}
	if len(l.IPs) > 0 {
		out = append(out, vtep(&l.Node, l.IPs))
	}
	for _, own := range l.Pods {
		out = append(out, transport.OwnBlock(l, own, proto.IPPoolType_VXLAN))
	}
	return out
}

// Peer implements transport.Transport.
func (Linux) Peer(l *transport.Local, p *transport.Node) []pb.Message {
	_, remote, ok := transport.Underlay(l, p)
	if !ok {
		return nil
	}
	out := []pb.Message{transport.HostMetadata(p), vtep(p, []netip.Prefix{ipaddr.HostPrefix(remote)})}
	for _, dst := range slices.Concat(p.Pods, p.Hosts) {
		out = append(out, transport.PeerBlock(p, dst, proto.IPPoolType_VXLAN))
	}
	// A host's own traffic to pods on other nodes has the host's overlay address as source; answers need a route to it.
	for _, overlay := range p.Overlay {
		out = append(out, transport.PeerBlock(p, ipaddr.HostPrefix(overlay.Addr()), proto.IPPoolType_VXLAN))
	}
	return out
}

// vtep returns the tunnel endpoint of a node: its overlay addresses, and the underlay addresses at which it is reached.
func vtep(n *transport.Node, underlay []netip.Prefix) *proto.VXLANTunnelEndpointUpdate {
	mac := MAC(n.ID).String()
	u := &proto.VXLANTunnelEndpointUpdate{Node: n.Name, Mac: mac, MacV6: mac}
	for _, p := range n.Overlay {
		if p.Addr().Is4() {
			u.Ipv4Addr = p.Addr().String()
		} else {
			u.Ipv6Addr = p.Addr().String()
		}
	}
	for _, p := range underlay {
		if p.Addr().Is4() && u.ParentDeviceIp == "" {
			u.ParentDeviceIp = p.Addr().String()
		} else if !p.Addr().Is4() && u.ParentDeviceIpv6 == "" {
			u.ParentDeviceIpv6 = p.Addr().String()
		}
	}
	return u
}

// Mesh implements transport.Transport: the driver computes the shared values.
func (Linux) Mesh(*transport.Local, []pb.Message, []*transport.Node, []*transport.Node) []pb.Message {
	return nil
}

// ViaVPP implements transport.Transport: there is no VPP.
func (Linux) ViaVPP(*transport.Local) []netip.Prefix { return nil }

// BVI implements transport.Transport.
func (Linux) BVI() string { return "" }

// Overhead implements transport.Transport.
func (Linux) Overhead(l *transport.Local) int { return overhead(l) }
