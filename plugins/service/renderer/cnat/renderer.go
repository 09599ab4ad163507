package cnat

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/gate"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
)

// Txn is the transaction of the event that is being handled.
type Txn interface {
	Update(note string) api.UpdateOperations
	Resync() api.ResyncOperations
}

// Network tells how VPP is connected.
type Network interface {
	// CnatNode describes the node; false: there is nothing of the family.
	CnatNode(ipv6 bool) (ipnet.CnatNode, bool)
}

// Deps are what the renderer needs.
type Deps struct {
	NodeName string // two nodes use different backends of a service that has more of them than a translation can have
	Network  Network
	Txn      Txn
	Families renderer.Families // 0: IPv6
	// SetPlaces is called when something is new of what the host's own stack serves, by family; nil: it serves nothing.
	SetPlaces func(ipv6 bool, places hostend.Places)
	// SetAliases is called when something is new of what goes elsewhere for the host's own processes; nil: nothing does.
	SetAliases func(ipv6 bool, list []hostend.Alias)
	Log        *slog.Logger
}

// Renderer is the renderer. Its methods are called by the event loop only.
type Renderer struct {
	Deps
	*state
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
)

// state is what has been rendered.
type state struct {
	node      map[bool]ipnet.CnatNode // by ipv6; families that there are
	nodePorts []netip.Addr
	nodeIPs   *renderer.IPAddresses // of all nodes
	localIPs  *renderer.IPAddresses // of this one
	frontends renderer.Interfaces
	services  map[svcmodel.ID]*service
	places    map[vip]svcmodel.ID // services that have them
	fences    map[netip.Addr]int  // addresses that must not leave by the uplink, by number of services
	have      map[vip]*vpp_cnat.Translation
	gates     *gate.Gates
	byHost    map[vip]*restriction // what the host serves
	viaHost   map[netip.Addr]bool  // addresses of such places
	back      *gate.Gates          // for what the host hands back
	told      [2]hostend.Places    // what the host has been told, by family
	toldHost  [2]bool
	// aliases are where the host's own processes go, by place; hostAliases what the host has been told, by family.
	aliases     map[vip]netip.AddrPort
	hostAliases [2][]hostend.Alias
	toldAliases [2]bool
	before      map[svcmodel.ID]*service // those before a resync, while it lasts
}

// service is a service as it was rendered. A nil translation is one without backends.
type service struct {
	translations map[vip]*vpp_cnat.Translation
	drops        map[vip]bool // of those without backends: what is not rejected, but dropped
	restricted   map[vip]*restriction
	aliases      map[vip]netip.AddrPort
	fences       []netip.Addr
	closed       string // why an address is not served although it has backends, if one is not
}

// vip is what a client sends to.
type vip struct {
	addr  netip.Addr
	port  uint16
	proto renderer.ProtocolType
}

func (v vip) compare(o vip) int {
	return cmp.Or(v.addr.Compare(o.addr), cmp.Compare(v.port, o.port), cmp.Compare(v.proto, o.proto))
}

// New is a renderer without any state.
func New(deps Deps) *Renderer {
	if deps.Families == 0 {
		deps.Families = renderer.FamilyIPv6
	}
	return &Renderer{Deps: deps, state: newState()}
}

func newState() *state {
	return &state{
		node: map[bool]ipnet.CnatNode{}, nodeIPs: renderer.NewIPAddresses(), services: map[svcmodel.ID]*service{},
		places: map[vip]svcmodel.ID{}, fences: map[netip.Addr]int{}, have: map[vip]*vpp_cnat.Translation{},
		gates: gate.New(aclName), localIPs: renderer.NewIPAddresses(), byHost: map[vip]*restriction{},
		viaHost: map[netip.Addr]bool{}, back: gate.New(backACL), aliases: map[vip]netip.AddrPort{},
	}
}

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	before := r.services
	r.state = newState()
	r.before = before
	defer func() { r.before = nil }()
	for _, ipv6 := range []bool{false, true} {
		node, ok := r.Network.CnatNode(ipv6)
		if !ok || !r.Families.Has(ipv6) {
			continue
		}
		if node.MainVRF != 0 {
			return fmt.Errorf("cnat: mainVRFID is %d, and VPP's cnat knows table 0 only; set it to 0 in contiv.conf", node.MainVRF)
		}
		r.node[ipv6] = node
	}
	if len(r.node) == 0 {
		r.tellHost()
		return nil
	}
	out := &output{put: r.Txn.Resync().Put, remove: func(string) {}}
	r.nodeIPs, r.localIPs, r.frontends = ev.NodeIPs, ev.LocalNodeIPs, ev.FrontendIfs
	r.nodePorts = r.nodePortAddresses(ev.LocalNodeIPs)
	r.putNode(out)
	for name := range r.allInterfaces(r.frontends) {
		out.Put(r.iface(name))
	}
	vips := map[vip]bool{}
	for _, s := range ev.Services {
		r.take(out, s.ID, r.render(s), vips)
	}
	r.settle(out, vips)
	return errors.Join(out.errs...)
}

// output is the transaction, and what went wrong with it.
type output struct {
	put    func(key string, value proto.Message)
	remove func(key string)
	errs   []error
}

func (o *output) key(msg proto.Message) (string, bool) {
	key, err := nb.Key(msg)
	if err != nil {
		o.errs = append(o.errs, fmt.Errorf("cnat: northbound value without a key: %w", err))
	}
	return key, err == nil
}

// Put adds a value.
func (o *output) Put(msg proto.Message) {
	if key, ok := o.key(msg); ok {
		o.put(key, msg)
	}
}

// Remove removes the value that has the key of msg.
func (o *output) Remove(msg proto.Message) {
	if key, ok := o.key(msg); ok {
		o.remove(key)
	}
}

func (r *Renderer) update() *output {
	txn := r.Txn.Update("")
	return &output{put: txn.Put, remove: txn.Delete}
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
	if r.services[s.ID] == nil {
		return nil
	}
	out, vips := r.update(), map[vip]bool{}
	r.take(out, s.ID, &service{}, vips)
	delete(r.services, s.ID)
	r.settle(out, vips)
	return errors.Join(out.errs...)
}

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer.
func (r *Renderer) UpdateLocalNodeIPs(local *renderer.IPAddresses, npServices []*renderer.ContivService) error {
	r.localIPs = local
	r.tellHost()
	addrs := r.nodePortAddresses(local)
	if slices.Equal(addrs, r.nodePorts) {
		return nil
	}
	r.nodePorts = addrs
	return r.change(npServices)
}

// UpdateNodePortServices implements ServiceRendererAPI: node ports are served at this node's addresses only, but an external
// address that is a node's is not fenced.
func (r *Renderer) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, _ []*renderer.ContivService) error {
	if len(r.node) == 0 {
		return nil
	}
	out := r.update()
	before := r.nodeIPs
	r.nodeIPs = nodeIPs
	for addr := range r.fences {
		switch was, is := before.Contains(addr), nodeIPs.Contains(addr); {
		case was && !is:
			r.fence(addr, out.Put)
		case !was && is:
			r.fence(addr, out.Remove)
		}
	}
	vips := map[vip]bool{}
	for _, s := range r.services {
		for v := range s.restricted {
			if before.Contains(v.addr) != nodeIPs.Contains(v.addr) {
				vips[v] = true
			}
		}
	}
	r.settle(out, vips)
	return errors.Join(out.errs...)
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalFrontendIfs(_, now renderer.Interfaces) error {
	if len(r.node) == 0 {
		return nil
	}
	out := r.update()
	before, after := r.allInterfaces(r.frontends), r.allInterfaces(now)
	r.frontends = now
	for name := range before {
		if !after.Has(name) {
			out.Remove(r.iface(name))
		}
	}
	for name := range after {
		if !before.Has(name) {
			out.Put(r.iface(name))
		}
	}
	r.emitGates(out)
	return errors.Join(out.errs...)
}

// UpdateLocalBackendIfs implements ServiceRendererAPI: they are frontends, too.
func (r *Renderer) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error { return nil }

// change renders services that are new or changed.
func (r *Renderer) change(services []*renderer.ContivService) error {
	if len(r.node) == 0 || len(services) == 0 {
		return nil
	}
	out, vips := r.update(), map[vip]bool{}
	for _, s := range services {
		r.take(out, s.ID, r.render(s), vips)
	}
	r.settle(out, vips)
	return errors.Join(out.errs...)
}

// take takes a service in a new form, and notes the places that may have changed. No two services have one place
// (plugins/service/owners).
func (r *Renderer) take(out *output, id svcmodel.ID, now *service, vips map[vip]bool) {
	old := r.services[id]
	if old == nil {
		old = &service{}
	}
	for v := range old.translations {
		if _, still := now.translations[v]; !still && r.places[v] == id {
			delete(r.places, v)
		}
		vips[v] = true
	}
	for v := range now.translations {
		r.places[v] = id
		vips[v] = true
	}
	r.services[id] = now
	r.refence(out, old.fences, now.fences)
	if was := r.before[id]; now.closed != "" && now.closed != old.closed && (was == nil || was.closed != now.closed) {
		r.Log.Warn("a load balancer's address with loadBalancerSourceRanges is not served, since VPP's cnat cannot look who "+
			"sends; leave the ranges out, or use the service's other addresses", "service", id.String(), "why", now.closed)
	}
}

// settle puts what has changed of places.
func (r *Renderer) settle(out *output, vips map[vip]bool) {
	for v := range vips {
		var want *vpp_cnat.Translation
		if id, served := r.places[v]; served {
			owner := r.services[id]
			want = owner.translations[v]
			restricted := owner.restricted[v]
			if r.nodeIPs.Contains(v.addr) {
				restricted = nil // what is for a node's own address is not led elsewhere
			}
			r.setRestriction(v, restricted)
			r.setAlias(v, owner.aliases[v])
			r.gate(v, owner.drops[v] && restricted == nil)
		} else {
			r.setRestriction(v, nil)
			r.setAlias(v, netip.AddrPort{})
			r.gate(v, false)
		}
		switch have := r.have[v]; {
		case want == nil && have != nil:
			out.Remove(have)
			delete(r.have, v)
		case want != nil && (have == nil || !proto.Equal(want, have)):
			out.Put(want)
			r.have[v] = want
		}
	}
	r.emitGates(out)
	r.emitRestrictions(out)
	r.tellAliases()
}

func (r *Renderer) gate(v vip, drop bool) {
	p := gate.Place{Addr: v.addr, Port: v.port, Proto: v.proto}
	if drop {
		r.gates.Set(p, nil)
	} else {
		r.gates.Clear(p)
	}
}

// emitGates puts the ACL that drops what is neither translated nor rejected.
func (r *Renderer) emitGates(out *output) {
	r.gates.Emit(gate.Node{Interfaces: r.allInterfaces(r.frontends)}, out.Put, out.Remove)
}
