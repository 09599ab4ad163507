package vppsvc

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/output"
)

// Network describes how VPP is connected.
type Network interface {
	// ServiceNode describes the node in a family; false if the node has no addresses of the family.
	ServiceNode(ipv6 bool) (nodeinfo.Node, bool)
	// NextHopTo returns how VPP reaches an address.
	NextHopTo(addr netip.Addr) nodeinfo.NextHop
}

// Deps holds the dependencies of the renderer.
type Deps struct {
	Network Network
	Txn     output.Txn
}

// Renderer renders services for our VPP plugin. Only the event loop calls its methods.
type Renderer struct {
	Deps
	*state
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
	_ renderer.NodesRenderer        = (*Renderer)(nil)
)

// state holds what has been rendered.
type state struct {
	nodes     [2]nodeinfo.Node // IPv4, IPv6
	families  renderer.Families
	nodePorts []netip.Addr
	nodeIPs   *renderer.IPAddresses // of all nodes
	local     *renderer.IPAddresses // of this node
	services  map[renderer.ServiceID]*service
	addresses map[netip.Addr]int // of services, by number of services
	outside   renderer.AddressIndex
	limited   map[renderer.ServiceID]struct{} // services with source ranges
	out       *output.Writer                  // of the event
}

// service is a rendered service.
type service struct {
	value     *renderer.ContivService
	values    map[string]proto.Message // by key
	addresses []netip.Addr
	outside   []netip.Addr // addresses of backends whose next hop may change with a node, sorted
	err       error
}

func newService(value *renderer.ContivService) *service {
	return &service{value: value, values: map[string]proto.Message{}}
}

func (s *service) put(msg proto.Message) {
	key, err := nb.Key(msg)
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("service %s: northbound value without a key: %w", s.value.ID, err))
		return
	}
	s.values[key] = msg
}

// New returns a renderer without state.
func New(deps Deps) *Renderer { return &Renderer{Deps: deps, state: newState()} }

func newState() *state {
	return &state{
		nodeIPs: renderer.NewIPAddresses(), local: renderer.NewIPAddresses(),
		services: map[renderer.ServiceID]*service{}, addresses: map[netip.Addr]int{},
		outside: renderer.AddressIndex{}, limited: map[renderer.ServiceID]struct{}{},
	}
}

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	r.state = newState()
	for i, v6 := range []bool{false, true} {
		if node, ok := r.Network.ServiceNode(v6); ok {
			r.nodes[i] = node
			r.families |= renderer.FamilyOf(v6)
		}
	}
	if r.families == 0 {
		return nil
	}
	r.out = output.Resync(r.Txn)
	r.nodeIPs, r.local = ev.NodeIPs, ev.LocalNodeIPs
	r.nodePorts = r.nodePortAddresses(ev.LocalNodeIPs)
	r.putNode()
	for _, s := range ev.Services {
		r.out.Fail(r.renderService(s))
	}
	return r.out.Err()
}

// putNode puts routes that reject the networks of cluster IPs: packets to an address without a service do not leave the node.
func (r *Renderer) putNode() {
	for i, v6 := range []bool{false, true} {
		if !r.families.Has(v6) {
			continue
		}
		for _, p := range r.nodes[i].Services {
			r.out.Put(r.nodes[i].Reject(p))
		}
	}
}

// nodePortAddresses returns the addresses at which node ports are served: the node's addresses, and VPP's address on the link to the host,
// to which the host redirects packets for node ports at its own addresses.
func (r *Renderer) nodePortAddresses(local *renderer.IPAddresses) []netip.Addr {
	out := slices.DeleteFunc(slices.Clone(local.Addrs()), func(a netip.Addr) bool { return !r.families.Has(a.Is6()) })
	for _, n := range r.nodes {
		if n.HostLink.IsValid() && !slices.Contains(out, n.HostLink) {
			out = append(out, n.HostLink)
		}
	}
	return out
}

// withHost adds the host's address on its link to VPP to source ranges that contain an address of the node: for users the host is the node.
func (r *Renderer) withHost(ranges []netip.Prefix, v6 bool) []netip.Prefix {
	host := r.nodes[0].HostOwn
	if v6 {
		host = r.nodes[1].HostOwn
	}
	out := slices.Clone(ranges)
	for _, own := range r.local.Addrs() {
		if host.IsValid() && slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(own) }) {
			out = append(out, ipaddr.HostPrefix(host))
			break
		}
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int { return a.Compare(b) })
	return slices.Compact(out)
}

// renderService renders a new or changed service and puts what differs from its last rendering.
func (r *Renderer) renderService(value *renderer.ContivService) error {
	now, old := r.render(value), r.services[value.ID]
	r.services[value.ID] = now
	if value.SourceRangesSet {
		r.limited[value.ID] = struct{}{}
	} else {
		delete(r.limited, value.ID)
	}
	r.replace(value.ID, old, now)
	return now.err
}

// replace puts the new values of a service and removes the values that it no longer has. old is nil for a new service, now for a deleted one.
func (r *Renderer) replace(id renderer.ServiceID, old, now *service) {
	old, now = cmp.Or(old, &service{}), cmp.Or(now, &service{})
	before, after := old.values, now.values
	addrsBefore, addrsAfter := old.addresses, now.addresses
	r.outside.Move(id, old.outside, now.outside)
	for key, msg := range before {
		if after[key] == nil {
			r.out.Remove(msg)
		}
	}
	for key, msg := range after {
		if have := before[key]; have == nil || !proto.Equal(have, msg) {
			r.out.Put(msg)
		}
	}
	if slices.Equal(addrsBefore, addrsAfter) {
		return
	}
	for _, addr := range addrsAfter {
		if r.addresses[addr]++; r.addresses[addr] == 1 {
			r.close(addr, true)
		}
	}
	for _, addr := range addrsBefore {
		if r.addresses[addr]--; r.addresses[addr] == 0 {
			delete(r.addresses, addr)
			r.close(addr, false)
		}
	}
}

// close closes the ports of a service address that no service has, unless it is an address of a node. It also makes the host route the
// address to VPP, unless the address is in the networks of cluster IPs: the host routes these to VPP in any case.
func (r *Renderer) close(addr netip.Addr, on bool) {
	if r.isNode(addr) {
		return
	}
	r.putClosed(addr, on)
}

func (r *Renderer) putClosed(addr netip.Addr, on bool) {
	do := r.out.Put
	if !on {
		do = r.out.Remove
	}
	do(closed(addr))
	node := r.nodes[0]
	if addr.Is6() {
		node = r.nodes[1]
	}
	if slices.ContainsFunc(node.Services, func(p netip.Prefix) bool { return p.Contains(addr) }) || !node.HostLink.IsValid() {
		return
	}
	do(node.FromHost(addr))
}

func (r *Renderer) isNode(addr netip.Addr) bool {
	return r.nodeIPs.Contains(addr) || slices.Contains(r.nodePorts, addr)
}

// AddService implements ServiceRendererAPI.
func (r *Renderer) AddService(s *renderer.ContivService) error {
	return r.change([]*renderer.ContivService{s})
}

// UpdateService implements ServiceRendererAPI.
func (r *Renderer) UpdateService(_, s *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.change([]*renderer.ContivService{s})
}

// change renders services that are new or changed.
func (r *Renderer) change(services []*renderer.ContivService) error {
	if r.families == 0 {
		return nil
	}
	r.out = output.Update(r.Txn)
	for _, s := range services {
		r.out.Fail(r.renderService(s))
	}
	return r.out.Err()
}

// DeleteService implements ServiceRendererAPI.
func (r *Renderer) DeleteService(s *renderer.ContivService, _ []*renderer.ContivService) error {
	old := r.services[s.ID]
	if old == nil {
		return nil
	}
	r.out = output.Update(r.Txn)
	delete(r.services, s.ID)
	delete(r.limited, s.ID)
	r.replace(s.ID, old, nil)
	return r.out.Err()
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI: interfaces are the plugin's endpoints already (ipnet).
func (r *Renderer) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }

// UpdateLocalBackendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }
