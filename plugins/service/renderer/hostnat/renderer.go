package hostnat

import (
	"cmp"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/output"
)

// Network reports how VPP is connected.
type Network interface {
	// ServiceNode describes the node; false: there is nothing of the family.
	ServiceNode(ipv6 bool) (nodeinfo.Node, bool)
}

// Deps are the dependencies and settings of the renderer.
type Deps struct {
	Network  Network
	Txn      output.Txn
	Families renderer.Families // that VPP serves
	Device   string            // the host's end of its link to VPP
	// KeepsClients is set if VPP serves connections that the host forwards with the address of the client, and answers through the host, as our
	// plugin does.
	KeepsClients bool
}

// Renderer renders the node ports that the host redirects to VPP. Only the event loop calls its methods.
type Renderer struct {
	Deps
	families []*family
}

// family is the state of one family.
type family struct {
	ipv6  bool
	node  nodeinfo.Node
	at    []netip.Addr
	ports map[renderer.ServiceID][]hostPort // of services that have any
	users map[hostPort]int                  // the number of services that have the port; has no zero values
	keeps bool                              // Deps.KeepsClients
	put   *linux_nodeports.NodePorts        // nil: none
	stale bool                              // put may differ from value
}

// hostPort is a node port.
type hostPort struct {
	proto renderer.ProtocolType
	port  uint16
	local bool // externalTrafficPolicy Local: backends of this node, which see the client
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
)

// New returns a renderer without state.
func New(deps Deps) *Renderer { return &Renderer{Deps: deps} }

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	r.families = nil
	for _, ipv6 := range []bool{false, true} {
		node, ok := r.Network.ServiceNode(ipv6)
		if !ok || !r.Families.Has(ipv6) || !node.HostLink.IsValid() {
			continue
		}
		f := &family{ipv6: ipv6, node: node, ports: map[renderer.ServiceID][]hostPort{}, users: map[hostPort]int{}, keeps: r.KeepsClients}
		f.setAddresses(ev.LocalNodeIPs)
		for _, s := range ev.Services {
			f.set(s)
		}
		r.families = append(r.families, f)
	}
	if len(r.families) == 0 {
		return nil
	}
	return r.emit(output.Resync(r.Txn), r.differences())
}

// setAddresses stores the addresses of the node that are addresses of the host.
func (f *family) setAddresses(local *renderer.IPAddresses) {
	f.at, f.stale = nil, true
	for _, addr := range local.Addrs() {
		if addr.Is6() == f.ipv6 && addr != f.node.HostLink && addr != f.node.Address {
			f.at = append(f.at, addr)
		}
	}
}

// protocols are those of node ports. SCTP is served by our plugin only.
var protocols = map[renderer.ProtocolType]linux_nodeports.NodePorts_Protocol{
	renderer.TCP: linux_nodeports.NodePorts_TCP, renderer.UDP: linux_nodeports.NodePorts_UDP, renderer.SCTP: linux_nodeports.NodePorts_SCTP,
}

// set replaces the node ports of a new or changed service. A service without addresses of the family has none.
func (f *family) set(s *renderer.ContivService) {
	before, now := f.ports[s.ID], f.portsOf(s)
	if slices.Equal(before, now) {
		return
	}
	if f.ports[s.ID] = now; len(now) == 0 {
		delete(f.ports, s.ID)
	}
	for _, p := range now { // first, so that the count of a port that stays does not become zero
		f.use(p, +1)
	}
	for _, p := range before {
		f.use(p, -1)
	}
}

// portsOf returns the node ports of a service, sorted.
func (f *family) portsOf(s *renderer.ContivService) (out []hostPort) {
	if !slices.ContainsFunc(s.ClusterIPs.Addrs(), func(a netip.Addr) bool { return a.Is6() == f.ipv6 }) {
		return nil
	}
	for _, p := range s.Ports {
		owned := s.Owns(renderer.NodePort(p.NodePort, p.Protocol, f.ipv6))
		if _, known := protocols[p.Protocol]; p.NodePort != 0 && owned && known && (p.Protocol != renderer.SCTP || f.keeps) {
			out = append(out, hostPort{p.Protocol, p.NodePort, s.TrafficPolicy == renderer.NodeLocal})
		}
	}
	slices.SortFunc(out, func(a, b hostPort) int {
		return cmp.Or(cmp.Compare(a.proto, b.proto), cmp.Compare(a.port, b.port))
	})
	return out
}

// use adds n to the number of services that have a port. The value changes only if the first service gets the port or the last one loses it.
func (f *family) use(p hostPort, n int) {
	before := f.users[p]
	if f.users[p] = before + n; before+n == 0 {
		delete(f.users, p)
	}
	f.stale = f.stale || (before == 0) != (before+n == 0)
}

// value returns the desired rules of the host, or nil if there are none.
func (f *family) value(device string) *linux_nodeports.NodePorts {
	if len(f.users) == 0 || len(f.at) == 0 {
		return nil
	}
	v := &linux_nodeports.NodePorts{To: f.node.HostLink.String(), Device: device}
	if f.ipv6 {
		v.Family = linux_nodeports.Family_IPV6
	}
	for _, a := range f.at {
		v.Addresses = append(v.Addresses, a.String())
	}
	for p := range f.users {
		v.Ports = append(v.Ports, &linux_nodeports.NodePorts_Port{Protocol: protocols[p.proto], Port: uint32(p.port), KeepClient: p.local && f.keeps})
	}
	slices.SortFunc(v.Ports, func(a, b *linux_nodeports.NodePorts_Port) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	return v
}

// difference is a family whose value differs from what was put; a nil value means that there is none.
type difference struct {
	family *family
	value  *linux_nodeports.NodePorts
}

// differences computes the values of the families that may differ.
func (r *Renderer) differences() (out []difference) {
	for _, f := range r.families {
		if !f.stale {
			continue
		}
		f.stale = false
		if v := f.value(r.Device); (v == nil) != (f.put == nil) || v != nil && !proto.Equal(v, f.put) {
			out = append(out, difference{f, v})
		}
	}
	return out
}

// emit puts and removes what differs.
func (r *Renderer) emit(out *output.Writer, list []difference) error {
	for _, d := range list {
		if d.value == nil {
			out.Remove(d.family.put)
		} else {
			out.Put(d.value)
		}
		d.family.put = d.value
	}
	return out.Err()
}

// update emits what an event has changed. Without a difference the event has no transaction.
func (r *Renderer) update() error {
	list := r.differences()
	if len(list) == 0 {
		return nil
	}
	return r.emit(output.Update(r.Txn), list)
}

// change renders a new or changed service.
func (r *Renderer) change(s *renderer.ContivService) error {
	for _, f := range r.families {
		f.set(s)
	}
	return r.update()
}

// AddService implements ServiceRendererAPI.
func (r *Renderer) AddService(s *renderer.ContivService) error { return r.change(s) }

// UpdateService implements ServiceRendererAPI.
func (r *Renderer) UpdateService(_, s *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.change(s)
}

// DeleteService implements ServiceRendererAPI.
func (r *Renderer) DeleteService(s *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.change(&renderer.ContivService{ID: s.ID})
}

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer.
func (r *Renderer) UpdateLocalNodeIPs(local *renderer.IPAddresses, _ []*renderer.ContivService) error {
	for _, f := range r.families {
		f.setAddresses(local)
	}
	return r.update()
}

// UpdateNodePortServices implements ServiceRendererAPI: other nodes' addresses do not matter.
func (r *Renderer) UpdateNodePortServices(*renderer.IPAddresses, []*renderer.ContivService) error {
	return nil
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }

// UpdateLocalBackendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }
