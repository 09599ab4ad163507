package transport

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/proto"
)

// OwnBlock returns the route for a prefix of this node's own pods: packets to unused addresses of the prefix must not leave the node.
func OwnBlock(l *Local, dst netip.Prefix, pool proto.IPPoolType) *proto.RouteUpdate {
	return &proto.RouteUpdate{
		Types: proto.RouteUpdate_TYPES_LOCAL_WORKLOAD, IpPoolType: pool, Dst: dst.String(), DstNodeName: l.Name,
	}
}

// PeerBlock returns the route for a prefix of a peer, via the peer's address of the same family, or of the other family if there is none.
func PeerBlock(p *Node, dst netip.Prefix, pool proto.IPPoolType) *proto.RouteUpdate {
	via := SameFamily(p.IPs, dst)
	if !via.IsValid() && len(p.IPs) > 0 {
		via = p.IPs[0]
	}
	r := &proto.RouteUpdate{
		Types: proto.RouteUpdate_TYPES_REMOTE_WORKLOAD, IpPoolType: pool, Dst: dst.String(), DstNodeName: p.Name,
	}
	if via.IsValid() {
		r.DstNodeIp = via.Addr().String()
	}
	return r
}

// HostMetadata returns the value that informs the driver that a node belongs to the cluster.
func HostMetadata(n *Node) *proto.HostMetadataUpdate {
	m := &proto.HostMetadataUpdate{Hostname: n.Name}
	for _, p := range n.IPs {
		switch {
		case p.Addr().Is4() && m.Ipv4Addr == "":
			m.Ipv4Addr = p.Addr().String()
		case !p.Addr().Is4() && m.Ipv6Addr == "":
			m.Ipv6Addr = p.Addr().String()
		}
	}
	return m
}
