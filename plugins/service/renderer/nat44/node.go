package nat44

import (
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Names of the node's own values.
const (
	labelNode      = "node"       // DNat44 of the node's identities
	labelReject    = "address-"   // prefix of the label of an external address; the address follows
	poolSelf       = "self"       // source of a pod that reaches itself, and of clients from outside
	poolMasquerade = "masquerade" // source of clients towards backends that are not pods
	poolOutside    = "outside"    // source of pods towards the outside
	emptyVRFName   = "natVRF"
	aclName        = "services-nat44"
)

// emptyVRF is a table without routes. VPP never selects a pool address that belongs to this table as a source.
const emptyVRF = 44044

const (
	anyVRF    = ^uint32(0)
	vxlanPort = 4789
)

// nodePortAddresses returns the addresses at which node ports are served: the node's addresses, and VPP's address on the link to the host,
// to which the host redirects packets for node ports at its own addresses.
func (r *Renderer) nodePortAddresses(local *renderer.IPAddresses) []netip.Addr {
	out := slices.Clone(onlyIPv4(local))
	if r.node.HostLink.IsValid() && !slices.Contains(out, r.node.HostLink) {
		out = append(out, r.node.HostLink)
	}
	return out
}

// nodeValues returns NAT itself, its pools and identity mappings, and the routes that reject unused cluster IPs.
func (r *Renderer) nodeValues() []proto.Message {
	n := &r.node
	out := []proto.Message{
		&vpp_nat.Nat44Global{Forwarding: true},
		&vpp_nat.Nat44AddressPool{Name: poolSelf, VrfId: n.PodVRF, FirstIp: n.Loopback.String(), TwiceNat: true},
	}
	if n.Address.IsValid() {
		out = append(out, &vpp_nat.Nat44AddressPool{
			Name: poolMasquerade, VrfId: n.MainVRF, FirstIp: n.Address.String(), TwiceNat: true,
		})
	}
	for _, p := range n.Services {
		out = append(out, n.Reject(p))
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
		&vpp_l3.VrfTable{Id: emptyVRF, Protocol: vpp_l3.VrfTable_IPV4, Label: emptyVRFName},
	)
}

func identities(addr netip.Addr, tables ...uint32) []*vpp_nat.DNat44_IdentityMapping {
	var out []*vpp_nat.DNat44_IdentityMapping
	for _, vrf := range tables {
		out = append(out, &vpp_nat.DNat44_IdentityMapping{VrfId: vrf, IpAddress: addr.String()})
	}
	return out
}

func bothWays(name string) *vpp_nat.Nat44Interface {
	return &vpp_nat.Nat44Interface{Name: name, NatInside: true, NatOutside: true}
}

func (r *Renderer) putInterface(name string) {
	if name != r.node.Uplink {
		r.out.Put(bothWays(name))
	}
}

// putUplink enables NAT on the uplink. The configuration may not name the uplink, and then it is not among the frontends. Unless packets that
// leave by the uplink are translated there, it translates in both directions like the other interfaces.
func (r *Renderer) putUplink() {
	n := &r.node
	if n.Outside {
		r.out.Put(&vpp_nat.Nat44Interface{Name: n.Exit, OutputFeature: true})
	}
	if n.Uplink != "" && (!n.Outside || n.Exit != n.Uplink) {
		r.out.Put(bothWays(n.Uplink))
	}
}

// rejects returns the addresses of a service whose packets must not leave by the uplink, whether a port of the address is served or not:
// external addresses, and cluster IPs outside of the configured service networks.
func (g *rendering) rejects() []netip.Addr {
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

// updateRejects counts the rejected addresses of a service that has changed. old is nil for a new service, now for a deleted one.
func (r *Renderer) updateRejects(old, now *service) {
	var before, after []netip.Addr
	if old != nil {
		before = old.rejects
	}
	if now != nil {
		after = now.rejects
	}
	if slices.Equal(before, after) {
		return
	}
	for _, addr := range after {
		if r.rejects[addr]++; r.rejects[addr] == 1 {
			r.reject(addr, true)
		}
	}
	for _, addr := range before {
		if r.rejects[addr]--; r.rejects[addr] == 0 {
			delete(r.rejects, addr)
			r.reject(addr, false)
		}
	}
}

// reject puts or removes the values that reject an address, unless it is an address of a node: the node uses it.
func (r *Renderer) reject(addr netip.Addr, on bool) {
	if !r.nodeIPs.Contains(addr) {
		r.putReject(addr, on)
	}
}

func (r *Renderer) putReject(addr netip.Addr, on bool) {
	do := r.out.Put
	if !on {
		do = r.out.Remove
	}
	for _, msg := range r.rejectValues(addr) {
		do(msg)
	}
}

// rejectValues returns the values that reject an address. The host routes the address to VPP, where a route rejects packets that no port of
// the address serves. Where VPP translates sources on the way to the outside, the address is also an identity mapping, because answers from
// it leave untranslated, and in the pool, because VPP would otherwise treat packets to it as packets that leave (scenario nat_nodeport). VPP
// treats addresses of its pool as its own, but configured routes take precedence.
func (r *Renderer) rejectValues(addr netip.Addr) []proto.Message {
	whole := netip.PrefixFrom(addr, addr.BitLen())
	var out []proto.Message
	if r.node.HostLink.IsValid() {
		out = append(out, r.node.FromHost(addr))
	}
	out = append(out, r.node.Reject(whole))
	if !r.node.Outside {
		return out
	}
	if r.node.Exit != r.node.Uplink { // a pod whose packet has been translated would get no ICMP error
		out = append(out, r.node.FromPods(whole))
	}
	return append(out,
		&vpp_nat.Nat44AddressPool{Name: labelReject + addr.String(), VrfId: emptyVRF, FirstIp: addr.String()},
		&vpp_nat.DNat44{Label: labelReject + addr.String(), IdMappings: identities(addr, r.node.MainVRF, r.node.PodVRF)},
	)
}
