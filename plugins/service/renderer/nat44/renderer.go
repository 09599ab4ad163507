package nat44

import (
	"log/slog"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/output"
	"contiv.dev/vswitch/plugins/service/renderer/sourceranges"
)

// Network reports how VPP is connected.
type Network interface {
	// NATNode describes the node; false: there is no IPv4.
	NATNode() (nodeinfo.NAT, bool)
	// ServiceNode describes the node for a family; false: there is nothing of the family.
	ServiceNode(ipv6 bool) (nodeinfo.Node, bool)
	// NextHopTo returns how VPP reaches an address.
	NextHopTo(addr netip.Addr) nodeinfo.NextHop
}

// Deps are what the renderer needs.
type Deps struct {
	NodeName string // two nodes use different backends of a service that has more of them than VPP can take
	Network  Network
	Txn      output.Txn
	Log      *slog.Logger
}

// Renderer is the renderer. Its methods are called by the event loop only.
type Renderer struct {
	Deps
	*state
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
	_ renderer.NodesRenderer        = (*Renderer)(nil)
)

// state is what has been rendered.
type state struct {
	node      nodeinfo.NAT
	on        bool // the node has IPv4, and is known
	nodePorts []netip.Addr
	nodeIPs   *renderer.IPAddresses // of all nodes
	local     *renderer.IPAddresses // of this node
	acl       *sourceranges.ACL
	frontends renderer.Interfaces
	services  map[renderer.ServiceID]*service
	before    map[renderer.ServiceID]*service // those before a resync, while it lasts
	places    map[external]renderer.ServiceID // services that have them
	watched
	hasIPv6 bool           // pods have addresses of IPv6, which nothing serves
	out     *output.Writer // of the event
}

// watched are addresses that node events may concern.
type watched struct {
	rejects map[netip.Addr]int    // that must not leave by the uplink, by number of services
	outside renderer.AddressIndex // services by the addresses of backends that are not pods
}

// service is a service as it was rendered.
type service struct {
	value    *renderer.ContivService
	mappings []mapping
	rejects  []netip.Addr
	outside  []netip.Addr    // of backends that are not pods, sorted
	sctp     bool            // a port is not served, since NAT does not balance its protocol
	dnat     *vpp_nat.DNat44 // nil: none
}

// New is a renderer without any state.
func New(deps Deps) *Renderer {
	return &Renderer{Deps: deps, state: newState()}
}

func newState() *state {
	return &state{
		nodeIPs: renderer.NewIPAddresses(), services: map[renderer.ServiceID]*service{},
		places: map[external]renderer.ServiceID{}, acl: sourceranges.New(aclName),
		watched: watched{rejects: map[netip.Addr]int{}, outside: renderer.AddressIndex{}},
	}
}

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	before := r.services
	r.state = newState()
	r.before = before
	defer func() { r.before = nil }()
	r.out = output.Resync(r.Txn)
	r.closeIPv6()
	r.out.Fail(r.refuseIPv6(ev.Services))
	if r.node, r.on = r.Network.NATNode(); !r.on {
		return r.out.Err()
	}
	r.nodeIPs, r.local, r.frontends = ev.NodeIPs, ev.LocalNodeIPs, ev.FrontendIfs
	r.nodePorts = r.nodePortAddresses(ev.LocalNodeIPs)
	for _, msg := range r.nodeValues() {
		r.out.Put(msg)
	}
	for name := range r.frontends {
		r.putInterface(name)
	}
	r.putUplink()
	for _, s := range ev.Services {
		r.renderService(s)
	}
	for _, s := range r.services {
		r.emit(s)
	}
	r.emitACL()
	return r.out.Err()
}

// AddService implements ServiceRendererAPI.
func (r *Renderer) AddService(s *renderer.ContivService) error {
	return r.change([]*renderer.ContivService{s})
}

// UpdateService implements ServiceRendererAPI.
func (r *Renderer) UpdateService(_, s *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.change([]*renderer.ContivService{s})
}

// DeleteService implements ServiceRendererAPI.
func (r *Renderer) DeleteService(s *renderer.ContivService, _ []*renderer.ContivService) error {
	if !r.on {
		return nil
	}
	r.out = output.Update(r.Txn)
	old := r.services[s.ID]
	if old == nil {
		return nil
	}
	delete(r.services, s.ID)
	r.release(s.ID, old)
	if old.dnat != nil {
		r.out.Remove(old.dnat)
	}
	r.emitACL()
	return r.out.Err()
}

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer.
func (r *Renderer) UpdateLocalNodeIPs(local *renderer.IPAddresses, npServices []*renderer.ContivService) error {
	if !r.on {
		return nil
	}
	r.local = local
	addrs := r.nodePortAddresses(local)
	if slices.Equal(addrs, r.nodePorts) {
		return nil
	}
	r.nodePorts = addrs
	return r.change(npServices)
}

// UpdateNodePortServices implements ServiceRendererAPI: node ports are served at this node's addresses only, but an external
// address that is a node's is not rejected.
func (r *Renderer) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, _ []*renderer.ContivService) error {
	if !r.on {
		return nil
	}
	r.out = output.Update(r.Txn)
	before := r.nodeIPs
	r.nodeIPs = nodeIPs
	for _, addr := range before.Differing(nodeIPs) {
		if r.rejects[addr] > 0 {
			r.putReject(addr, !nodeIPs.Contains(addr))
		}
	}
	return r.out.Err()
}

// UpdateNodes implements NodesRenderer: another table may lead to backends that are not pods.
func (r *Renderer) UpdateNodes(addrs []netip.Addr) error {
	if !r.on {
		return nil
	}
	var affected []*renderer.ContivService
	for _, id := range r.outside.At(addrs) {
		affected = append(affected, r.services[id].value)
	}
	return r.change(affected)
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalFrontendIfs(_, now renderer.Interfaces) error {
	if !r.on {
		return nil
	}
	r.out = output.Update(r.Txn)
	before := r.frontends
	r.frontends = now
	for name := range before {
		if !now.Has(name) && name != r.node.Uplink {
			r.out.Remove(bothWays(name))
		}
	}
	for name := range now {
		if !before.Has(name) {
			r.putInterface(name)
		}
	}
	r.emitACL()
	return r.out.Err()
}

// UpdateLocalBackendIfs implements ServiceRendererAPI: they are frontends, too.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }

// change renders services that are new or changed.
func (r *Renderer) change(services []*renderer.ContivService) error {
	if !r.on {
		return r.refuseIPv6(services)
	}
	r.out = output.Update(r.Txn)
	r.out.Fail(r.refuseIPv6(services))
	for _, s := range services {
		r.renderService(s)
		r.emit(r.services[s.ID])
	}
	r.emitACL()
	return r.out.Err()
}

// emit puts the value of a service, if it is not the one that is there.
func (r *Renderer) emit(s *service) {
	if s == nil {
		return
	}
	now := r.dnat(s)
	if now != nil {
		if err := output.Check(now); err != nil {
			r.out.Fail(renderer.Refuse(s.value.ID, err))
			now = nil
		}
	}
	switch {
	case now == nil && s.dnat != nil:
		r.out.Remove(s.dnat)
	case now != nil && (s.dnat == nil || !proto.Equal(now, s.dnat)):
		r.out.Put(now)
	}
	s.dnat = now
}
