package nat44

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/ipnet/transport"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Names of the node's own values.
const (
	labelNode    = "node"     // DNat44 of the node's identities
	labelFence   = "address-" // of an external address's, before the address
	poolSelf     = "self"     // what a pod gets that reaches itself, or that comes from outside
	poolAbroad   = "abroad"   // what clients get towards backends that are not pods
	poolOutside  = "outside"  // what pods get towards the outside
	fenceVRFName = "natVRF"
	aclName      = "services-nat44"
)

// fenceVRF is a table in which there is nothing. A pool's address that is tied to it is no source.
const fenceVRF = 44044

const (
	anyVRF    = ^uint32(0)
	vxlanPort = 4789
)

// nodePortAddresses are the addresses at which node ports are served: the node's, and VPP's address on the link to the host, to
// which the host sends what it gets for node ports at its own addresses.
func (r *Renderer) nodePortAddresses(local *renderer.IPAddresses) []netip.Addr {
	out := slices.Clone(onlyIPv4(local))
	if r.node.HostLink.IsValid() && !slices.Contains(out, r.node.HostLink) {
		out = append(out, r.node.HostLink)
	}
	return out
}

// nodeValues are NAT itself, its pools and identities, and where the networks of cluster IPs end.
func (r *Renderer) nodeValues() []proto.Message {
	n := &r.node
	out := []proto.Message{
		&vpp_nat.Nat44Global{Forwarding: true},
		&vpp_nat.Nat44AddressPool{Name: poolSelf, VrfId: n.PodVRF, FirstIp: n.Loopback.String(), TwiceNat: true},
	}
	if n.Address.IsValid() {
		out = append(out, &vpp_nat.Nat44AddressPool{
			Name: poolAbroad, VrfId: n.MainVRF, FirstIp: n.Address.String(), TwiceNat: true,
		})
	}
	for _, p := range n.Services {
		out = append(out, reject(n.MainVRF, p))
	}
	if !n.Outside {
		return out
	}
	own := n.Address.String()
	return append(out,
		&vpp_nat.Nat44AddressPool{Name: poolOutside, VrfId: anyVRF, FirstIp: own},
		&vpp_nat.DNat44{Label: labelNode, IdMappings: append(identities(n.Address, n.MainVRF, n.PodVRF),
			// Besides, nothing that is translated may get the port of tunnels.
			&vpp_nat.DNat44_IdentityMapping{VrfId: n.MainVRF, IpAddress: own, Port: vxlanPort, Protocol: vpp_nat.DNat44_UDP})},
		&vpp_l3.VrfTable{Id: fenceVRF, Protocol: vpp_l3.VrfTable_IPV4, Label: fenceVRFName},
	)
}

func identities(addr netip.Addr, tables ...uint32) []*vpp_nat.DNat44_IdentityMapping {
	var out []*vpp_nat.DNat44_IdentityMapping
	for _, vrf := range tables {
		out = append(out, &vpp_nat.DNat44_IdentityMapping{VrfId: vrf, IpAddress: addr.String()})
	}
	return out
}

// reject is the end of a network. VPP 25.10 can tell the sender only from table 0.
func reject(vrf uint32, dst netip.Prefix) *vpp_l3.Route {
	end := vpp_l3.Route_REJECT
	if vrf != 0 {
		end = vpp_l3.Route_DROP
	}
	return &vpp_l3.Route{Type: end, VrfId: vrf, DstNetwork: dst.String()}
}

func bothWays(name string) *vpp_nat.Nat44Interface {
	return &vpp_nat.Nat44Interface{Name: name, NatInside: true, NatOutside: true}
}

func (r *Renderer) putInterface(name string) {
	if name != r.node.Uplink {
		r.put(bothWays(name))
	}
}

// putUplink: the uplink may be one that the configuration does not name, and then is not among the frontends. Unless what
// leaves by it is translated there it is one of the interfaces that translate both ways.
func (r *Renderer) putUplink() {
	n := &r.node
	if n.Outside {
		r.put(&vpp_nat.Nat44Interface{Name: n.Exit, OutputFeature: true})
	}
	if n.Uplink != "" && (!n.Outside || n.Exit != n.Uplink) {
		r.put(bothWays(n.Uplink))
	}
}

// fences are the addresses of a service that must not leave by the uplink, whether a port of theirs is served or not: external
// ones, and cluster IPs that are not where the configuration says that they are.
func (g *rendering) fences() []netip.Addr {
	out := slices.Clone(onlyIPv4(g.value.ExternalIPs))
	for _, addr := range onlyIPv4(g.value.ClusterIPs) {
		if !g.r.isService(addr) {
			out = append(out, addr)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

func (r *Renderer) isService(addr netip.Addr) bool {
	return slices.ContainsFunc(r.node.Services, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// refence counts the fences of a service that has changed; nil: there was or is none.
func (r *Renderer) refence(old, now *service) {
	var before, after []netip.Addr
	if old != nil {
		before = old.fences
	}
	if now != nil {
		after = now.fences
	}
	if slices.Equal(before, after) {
		return
	}
	for _, addr := range after {
		if r.fences[addr]++; r.fences[addr] == 1 {
			r.fence(addr, true)
		}
	}
	for _, addr := range before {
		if r.fences[addr]--; r.fences[addr] == 0 {
			delete(r.fences, addr)
			r.fence(addr, false)
		}
	}
}

// fence puts or removes what keeps an address, unless it is a node's: then it is in use.
func (r *Renderer) fence(addr netip.Addr, on bool) {
	if !r.nodeIPs.Contains(addr) {
		r.putFence(addr, on)
	}
}

func (r *Renderer) putFence(addr netip.Addr, on bool) {
	do := r.put
	if !on {
		do = r.remove
	}
	for _, msg := range r.fenceValues(addr) {
		do(msg)
	}
}

// fenceValues: the host sends what is for the address to VPP, where a route rejects what no port of the address takes. Where
// sources are translated on the way to the outside, the address is an identity, as answers with it leave untranslated, and in
// the pool, because VPP would otherwise think of packets to it that they leave (scenario nat_nodeport). VPP takes addresses of
// its pool for its own, but routes that it has been given come first.
func (r *Renderer) fenceValues(addr netip.Addr) []proto.Message {
	whole := netip.PrefixFrom(addr, addr.BitLen())
	var out []proto.Message
	if r.node.HostLink.IsValid() {
		out = append(out, &linux_l3.Route{
			OutgoingInterface: r.node.HostIf, Scope: linux_l3.Route_GLOBAL, DstNetwork: whole.String(),
			GwAddr: r.node.HostLink.String(),
		})
	}
	out = append(out, reject(r.node.MainVRF, whole))
	if !r.node.Outside {
		return out
	}
	if r.node.Exit != r.node.Uplink { // nothing could tell a pod whose packet has been translated that it is rejected
		out = append(out, transport.InterVRF(r.node.PodVRF, whole, r.node.MainVRF))
	}
	return append(out,
		&vpp_nat.Nat44AddressPool{Name: labelFence + addr.String(), VrfId: fenceVRF, FirstIp: addr.String()},
		&vpp_nat.DNat44{Label: labelFence + addr.String(), IdMappings: identities(addr, r.node.MainVRF, r.node.PodVRF)},
	)
}
