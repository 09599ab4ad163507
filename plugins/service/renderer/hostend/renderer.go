package hostend

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Network tells how VPP is connected.
type Network interface {
	// CnatNode describes the node; false: there is nothing of the family.
	CnatNode(ipv6 bool) (ipnet.CnatNode, bool)
}

// End is what the host has to do for one family.
type End struct {
	TCP, UDP []uint16     // node ports
	At       []netip.Addr // addresses of the host where they are served
	To       netip.Addr   // VPP's address on the link
	// Own is the host's address on the link; what comes by it with Own as its source gets Alias.
	Own, Alias netip.Addr
}

// Place is an address and port with source ranges, which the host serves for cnat (renderer/cnat): it lets those through who
// may use it, and sends what they send to another place of the service.
type Place struct {
	At   netip.AddrPort
	UDP  bool
	To   netip.AddrPort
	From []netip.Prefix
	Own  bool // the host itself may use it
}

// Places are those of a family.
type Places struct {
	Via  netip.Addr // VPP's address on the link, to which the answers go
	List []Place
}

// Alias is an address and port for which the host's own processes go elsewhere (renderer/cnat).
type Alias struct {
	At  netip.AddrPort
	UDP bool
	To  netip.AddrPort
}

// Deps are what the renderer needs.
type Deps struct {
	Network  Network
	Families renderer.Families // that cnat serves
	// Set is called when something is new.
	Set func(ipv6 bool, end End)
}

// Renderer is the renderer. Its methods are called by the event loop only.
type Renderer struct {
	Deps
	families []*family
}

// family is the state of one family.
type family struct {
	ipv6  bool
	node  ipnet.CnatNode
	at    []netip.Addr
	ports map[svcmodel.ID][]hostPort // of services that have any
	told  *End
}

// hostPort is a node port.
type hostPort struct {
	proto renderer.ProtocolType
	port  uint16
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
)

// New is a renderer without any state.
func New(deps Deps) *Renderer { return &Renderer{Deps: deps} }

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	r.families = nil
	for _, ipv6 := range []bool{false, true} {
		node, ok := r.Network.CnatNode(ipv6)
		if !ok || !r.Families.Has(ipv6) || !node.HostLink.IsValid() {
			continue
		}
		f := &family{ipv6: ipv6, node: node, ports: map[svcmodel.ID][]hostPort{}}
		f.setAddresses(ev.LocalNodeIPs)
		for _, s := range ev.Services {
			f.set(s)
		}
		r.families = append(r.families, f)
	}
	r.tell()
	return nil
}

// setAddresses takes those of the node's addresses that the host has itself.
func (f *family) setAddresses(local *renderer.IPAddresses) {
	f.at = nil
	for _, addr := range local.Addrs() {
		if addr.Is6() == f.ipv6 && addr != f.node.HostLink && addr != f.node.Address {
			f.at = append(f.at, addr)
		}
	}
}

// set takes a new or changed service. One without addresses of the family has no node ports there.
func (f *family) set(s *renderer.ContivService) {
	delete(f.ports, s.ID)
	if !slices.ContainsFunc(s.ClusterIPs.Addrs(), func(a netip.Addr) bool { return a.Is6() == f.ipv6 }) {
		return
	}
	for _, p := range s.Ports {
		owned := s.Owns(renderer.NodePort(p.NodePort, p.Protocol, f.ipv6))
		if p.NodePort != 0 && owned && (p.Protocol == renderer.TCP || p.Protocol == renderer.UDP) {
			f.ports[s.ID] = append(f.ports[s.ID], hostPort{p.Protocol, p.NodePort})
		}
	}
}

// end is what the host has to do now.
func (f *family) end() End {
	out := End{At: f.at, To: f.node.HostLink, Own: f.node.HostOwn, Alias: f.node.Alias}
	all := map[hostPort]bool{}
	for _, ports := range f.ports {
		for _, p := range ports {
			all[p] = true
		}
	}
	for p := range maps.Keys(all) {
		if p.proto == renderer.UDP {
			out.UDP = append(out.UDP, p.port)
		} else {
			out.TCP = append(out.TCP, p.port)
		}
	}
	slices.Sort(out.TCP)
	slices.Sort(out.UDP)
	return out
}

// tell calls Set for families of which something is new.
func (r *Renderer) tell() {
	for _, f := range r.families {
		if end := f.end(); f.told == nil || !reflect.DeepEqual(*f.told, end) {
			f.told = &end
			r.Set(f.ipv6, end)
		}
	}
}

// change takes new or changed services.
func (r *Renderer) change(s *renderer.ContivService) error {
	touched := false
	for _, f := range r.families {
		before := f.ports[s.ID]
		f.set(s)
		touched = touched || len(before)+len(f.ports[s.ID]) > 0
	}
	if touched {
		r.tell()
	}
	return nil
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
	r.tell()
	return nil
}

// UpdateNodePortServices implements ServiceRendererAPI: other nodes' addresses do not matter.
func (r *Renderer) UpdateNodePortServices(*renderer.IPAddresses, []*renderer.ContivService) error {
	return nil
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }

// UpdateLocalBackendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }
