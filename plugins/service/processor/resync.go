package processor

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/owners"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Snapshot is the complete input of a Processor at one moment.
type Snapshot struct {
	Services       iter.Seq[*model.Service]
	Slices         iter.Seq[*model.EndpointSlice]
	Zone           string
	Nodes          map[string][]netip.Addr // addresses by name of the node
	NodeInterfaces NodeInterfaces
	LocalPods      []LocalPod
}

// Resync replaces all state by the snapshot and resyncs the renderers. Services that have not changed keep their values, so that renderers
// can detect them by comparing pointers.
func (p *Processor) Resync(snap *Snapshot) error {
	before := p.services
	p.services = make(map[svcmodel.ID]*service, len(before))
	p.rendered, p.all = nil, nil
	p.withNodePorts, p.outside = nodePortServices{}, renderer.AddressIndex{}
	p.zone = snap.Zone
	p.nodes = newNodes(p.cfg)
	for name, addrs := range snap.Nodes {
		p.nodes.set(name, addrs)
	}
	p.ifs = newInterfaces()
	p.ifs.set(snap.NodeInterfaces, slices.Clone(snap.LocalPods))
	for object := range snap.Services {
		p.service(serviceID(object)).object = object
	}
	for slice := range snap.Slices {
		p.service(sliceOwner(slice)).setSlice(slice)
	}
	p.owners, p.apiServers = p.newOwners(), apiServers{}
	if s := p.services[apiService()]; s != nil {
		p.updateAPIServers(s)
	}
	fresh := make(map[svcmodel.ID]*computed, len(p.services))
	for id, s := range p.services {
		c := &computed{}
		c.base, c.local, c.localReady = p.compute(s)
		p.updateFrontends(s, c.base)
		fresh[id] = c
	}
	for id, s := range p.services {
		p.adopt(s, before[id], fresh[id])
	}
	for id, s := range before {
		if s.checked && (p.services[id] == nil || !p.services[id].checked) {
			p.health.Delete(id)
		}
		if now := p.services[id]; len(s.owned.problems) > 0 && p.cfg.Problems != nil && (now == nil || now.object == nil) {
			p.cfg.Problems.Delete(id)
		}
	}
	ev := p.resyncEvent()
	err := p.each(func(r renderer.ServiceRendererAPI) error { return r.Resync(ev) })
	for _, s := range p.services {
		if s.object != nil {
			p.reportProblems(s)
		}
	}
	return err
}

// computed is what compute returns.
type computed struct {
	base       *renderer.ContivService
	local      []netip.Addr
	localReady int
}

// adopt adds a service of a snapshot; old is its previous state, or nil.
func (p *Processor) adopt(s, old *service, c *computed) {
	s.owned.base, s.owned.lost = c.base, owners.FrontendsOf(p.owners.Lost(s.id))
	value := owners.Without(c.base, s.owned.lost)
	if old != nil {
		s.checked, s.answered, s.owned.problems = old.checked, old.answered, old.owned.problems
		if value != nil && old.value != nil && old.value.Equal(value) {
			value = old.value
		}
	}
	if value == nil || value.HealthCheckNodePort == 0 {
		s.checked = false // Resync removes the health checks of those that had one
	} else {
		p.reportHealth(s, value, c.localReady)
	}
	p.ifs.use(c.local, +1)
	s.local = c.local
	p.noteOutside(s, value)
	if value != nil {
		p.append(s, value)
	}
}

func (p *Processor) resyncEvent() *renderer.ResyncEventData {
	ev := renderer.NewResyncEventData()
	ev.NodeIPs, ev.LocalNodeIPs = p.nodes.all, p.nodes.local
	ev.Services = p.Services()
	ev.FrontendIfs, ev.BackendIfs = p.ifs.frontends(), p.ifs.backends()
	return ev
}

// String describes the complete input of renderers. It is the same after updates as after a resync.
func (p *Processor) String() string {
	var b strings.Builder
	ev := p.resyncEvent()
	fmt.Fprintf(&b, "zone %q nodes %s local %s\nfrontends %s\nbackends %s\n",
		p.zone, ev.NodeIPs, ev.LocalNodeIPs, ev.FrontendIfs, ev.BackendIfs)
	for _, s := range ev.Services {
		fmt.Fprintln(&b, s)
		for _, name := range slices.Sorted(maps.Keys(s.Reachable)) {
			fmt.Fprintf(&b, "  reachable %s %d\n", name, s.Reachable[name])
		}
	}
	return b.String()
}
