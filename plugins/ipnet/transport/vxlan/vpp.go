package vxlan

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	vpp_l2 "contiv.dev/vswitch/dataplane/nb/vpp/l2"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/transport"
)

// VPP renders the mesh for VPP.
type VPP struct{}

var _ transport.Transport = VPP{}

// Node implements transport.Transport. The main VRF sends all packets for pods or VPP–host links of any node into the pod VRF, which has
// the routes to the nodes. Packets for addresses that no node owns are dropped there, so that they cannot loop through the default route.
func (VPP) Node(l *transport.Local) []proto.Message {
	bvi := &vpp_interfaces.Interface{
		Name: BVI, Type: vpp_interfaces.Interface_SOFTWARE_LOOPBACK, Enabled: true, Vrf: l.PodVRF, Mtu: l.PodMTU,
		PhysAddress: MAC(l.ID).String(),
	}
	for _, p := range l.Overlay {
		bvi.IpAddresses = append(bvi.IpAddresses, p.String())
	}
	out := []proto.Message{bvi}
	for _, own := range l.Hosts {
		out = append(out, transport.InterVRF(l.PodVRF, own, l.MainVRF))
	}
	for _, aggregate := range slices.Concat(l.ClusterPods, l.ClusterHosts) {
		if slices.Contains(l.Hosts, aggregate) {
			continue // a cluster of one node: the aggregate is this node's own link
		}
		out = append(out, transport.InterVRF(l.MainVRF, aggregate, l.PodVRF), transport.Drop(l.PodVRF, aggregate))
	}
	return out
}

// Peer implements transport.Transport.
func (VPP) Peer(l *transport.Local, p *transport.Node) []proto.Message {
	src, dst, ok := transport.Underlay(l, p)
	if !ok {
		return nil
	}
	mac, tunnel := MAC(p.ID).String(), tunnelName(p.ID)
	out := []proto.Message{
		&vpp_interfaces.Interface{
			Name: tunnel, Type: vpp_interfaces.Interface_VXLAN_TUNNEL, Enabled: true, Vrf: l.MainVRF,
			Link: &vpp_interfaces.Interface_Vxlan{Vxlan: &vpp_interfaces.VxlanLink{
				SrcAddress: src.String(), DstAddress: dst.String(), Vni: vniOf(l),
			}},
		},
		&vpp_l2.FIBEntry{PhysAddress: mac, BridgeDomain: bridgeDomain, OutgoingInterface: tunnel, StaticConfig: true},
	}
	for _, overlay := range p.Overlay {
		via := overlay.Addr()
		out = append(out, &vpp_l3.ARPEntry{Interface: BVI, IpAddress: via.String(), PhysAddress: mac, Static: true})
		for _, dst := range slices.Concat(p.Pods, p.Hosts) {
			if dst.Addr().Is4() == via.Is4() {
				out = append(out, transport.Route(l.PodVRF, dst, via, BVI))
			}
		}
		for _, addr := range transport.MgmtOf(p) {
			if addr.Is4() == via.Is4() {
				out = append(out, transport.Route(l.PodVRF, ipaddr.HostPrefix(addr), via, BVI),
					transport.InterVRF(l.MainVRF, ipaddr.HostPrefix(addr), l.PodVRF))
			}
		}
	}
	return out
}

// Mesh implements transport.Transport: it renders the bridge domain, whose members are the tunnels. Members are in the order of node IDs,
// independent of the order of arrival.
func (VPP) Mesh(l *transport.Local, before []proto.Message, left, came []*transport.Node) []proto.Message {
	members := []*vpp_l2.BridgeDomain_Interface{{Name: BVI, BridgedVirtualInterface: true}}
	if len(before) == 1 {
		members = slices.Clone(before[0].(*vpp_l2.BridgeDomain).GetInterfaces())
	}
	for _, p := range left {
		if i, found := findMember(members, tunnelName(p.ID)); found {
			members = slices.Delete(members, i, i+1)
		}
	}
	for _, p := range came {
		if _, _, ok := transport.Underlay(l, p); !ok {
			continue
		}
		if i, found := findMember(members, tunnelName(p.ID)); !found {
			members = slices.Insert(members, i, &vpp_l2.BridgeDomain_Interface{
				Name: tunnelName(p.ID), SplitHorizonGroup: splitHorizon,
			})
		}
	}
	return []proto.Message{&vpp_l2.BridgeDomain{Name: bridgeDomain, Forward: true, Interfaces: members}}
}

// findMember returns the position of a tunnel among the members after the BVI. Names differ only in a number without leading zeros, so the
// shorter name is the smaller one.
func findMember(members []*vpp_l2.BridgeDomain_Interface, name string) (int, bool) {
	i, found := slices.BinarySearchFunc(members[1:], name, func(m *vpp_l2.BridgeDomain_Interface, name string) int {
		return cmp.Or(cmp.Compare(len(m.GetName()), len(name)), cmp.Compare(m.GetName(), name))
	})
	return i + 1, found
}

// ViaVPP implements transport.Transport.
func (VPP) ViaVPP(l *transport.Local) []netip.Prefix {
	return slices.Concat(l.ClusterPods, l.ClusterHosts)
}

// BVI implements transport.Transport.
func (VPP) BVI() string { return BVI }

// Overhead implements transport.Transport.
func (VPP) Overhead(l *transport.Local) int { return overhead(l) }
