package cnat

import (
	"maps"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Addresses that nobody has (RFC 6666, RFC 7600); VPP rejects what is routed by way of them.
const (
	rejection6 = "100::1"
	rejection4 = "192.0.0.8"
)

const aclName = "services-cnat"

func rejectionFor(ipv6 bool) string {
	if ipv6 {
		return rejection6
	}
	return rejection4
}

// byRejection is the route of a network that is rejected.
func byRejection(dst netip.Prefix) *vpp_l3.Route {
	return &vpp_l3.Route{DstNetwork: dst.String(), NextHopAddr: rejectionFor(dst.Addr().Is6())}
}

// putNode puts what does not depend on services.
func (r *Renderer) putNode(out *output) {
	source := &vpp_cnat.SourceNAT{}
	for ipv6, node := range r.node {
		at := netip.MustParseAddr(rejectionFor(ipv6))
		out.Put(&vpp_l3.Route{Type: vpp_l3.Route_REJECT, DstNetwork: netip.PrefixFrom(at, at.BitLen()).String()})
		for _, p := range node.Services {
			out.Put(byRejection(p))
		}
		own := node.Address
		if !own.IsValid() {
			own = node.HostLink // enough for pods that reach themselves
		}
		switch {
		case !own.IsValid():
		case ipv6:
			source.Ipv6Address = own.String()
		default:
			source.Ipv4Address = own.String()
		}
	}
	if source.Ipv4Address != "" || source.Ipv6Address != "" {
		out.Put(source)
	}
}

// nodePortAddresses are the addresses at which node ports are served: the node's, and VPP's address on the link to the host, to
// which the host sends what it gets for node ports at its own addresses.
func (r *Renderer) nodePortAddresses(local *renderer.IPAddresses) []netip.Addr {
	var out []netip.Addr
	for _, addr := range local.Addrs() {
		if r.serves(addr) {
			out = append(out, addr)
		}
	}
	for _, node := range r.node {
		if node.HostLink.IsValid() {
			out = append(out, node.HostLink)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// serves says whether addresses of this family are ours.
func (r *Renderer) serves(addr netip.Addr) bool {
	_, ok := r.node[addr.Is6()]
	return ok
}

// allInterfaces are the frontends and those of the node's, of which the configuration may not name all.
func (r *Renderer) allInterfaces(frontends renderer.Interfaces) renderer.Interfaces {
	all := renderer.NewInterfaces()
	maps.Copy(all, frontends)
	for _, node := range r.node {
		for _, name := range append([]string{node.HostIf}, node.Outside...) {
			if name != "" {
				all[name] = struct{}{}
			}
		}
	}
	return all
}

// iface is an interface's part. What is not the node's is a pod's.
func (r *Renderer) iface(name string) *vpp_cnat.Interface {
	v := &vpp_cnat.Interface{Name: name, Role: vpp_cnat.Interface_POD}
	for ipv6, node := range r.node {
		v.Ipv4, v.Ipv6 = v.Ipv4 || !ipv6, v.Ipv6 || ipv6
		switch {
		case name == node.HostIf:
			v.Role = vpp_cnat.Interface_HOST
		case slices.Contains(node.Outside, name):
			v.Role = vpp_cnat.Interface_OUTSIDE
		}
	}
	return v
}

// refence counts the fences of a service that has changed.
func (r *Renderer) refence(out *output, before, after []netip.Addr) {
	if slices.Equal(before, after) {
		return
	}
	for _, addr := range after {
		if r.fences[addr]++; r.fences[addr] == 1 && !r.nodeIPs.Contains(addr) {
			r.fence(addr, out.Put)
		}
	}
	for _, addr := range before {
		if r.fences[addr]--; r.fences[addr] > 0 {
			continue
		}
		delete(r.fences, addr)
		if !r.nodeIPs.Contains(addr) {
			r.fence(addr, out.Remove)
		}
	}
}

// fence does something with the routes of an address: VPP rejects what is not translated, and the host sends it to VPP.
func (r *Renderer) fence(addr netip.Addr, do func(proto.Message)) {
	whole := netip.PrefixFrom(addr, addr.BitLen())
	reject := byRejection(whole)
	reject.Preference = 1 // a route to the host goes before it: kernel.go
	do(reject)
	if node := r.node[addr.Is6()]; node.HostLink.IsValid() {
		do(&linux_l3.Route{
			OutgoingInterface: node.LinuxIf, Scope: linux_l3.Route_GLOBAL, DstNetwork: whole.String(), GwAddr: node.HostLink.String(),
		})
	}
}
