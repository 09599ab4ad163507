package processor

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/owners"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Config holds the settings that do not change while the agent runs.
type Config struct {
	// NodeName is the name of this node in Kubernetes.
	NodeName string
	// IgnoreExternalIPs turns spec.externalIPs off, with which any user that may create services can redirect traffic to any address
	// (CVE-2020-8554). Addresses of load balancers are still served.
	IgnoreExternalIPs bool
	// NodePortAddresses are the networks in which a node's address must be to accept traffic for node ports; empty: all addresses do.
	NodePortAddresses []netip.Prefix
	// PodNetworks are the networks of pods, in which no node has an address. Without them a change of a node's addresses is more expensive.
	PodNetworks []netip.Prefix
	// ReservedNetworks are networks in which no service may have an external address.
	ReservedNetworks []netip.Prefix
	// ReservedNodePorts are ports that no service may have by naming a node's address as an external one.
	ReservedNodePorts []NodePort
	// ReservedAddresses are more networks in which no service may have an external address, as the operator has configured.
	ReservedAddresses []netip.Prefix
	// Etcd are the endpoints of the cluster database. No service may have their addresses as external ones, or, if an address is a node's,
	// this port there.
	Etcd []netip.AddrPort
	// Problems receives the parts of services that are not served; may be nil.
	Problems Problems
}

// HealthChecks receives the number of local endpoints of services whose endpoints load balancers check.
type HealthChecks interface {
	// Set starts or updates the health check of the service on the node's port.
	Set(id svcmodel.ID, port uint16, localEndpoints int)
	// Delete ends the health check of the service.
	Delete(id svcmodel.ID)
}

// Processor holds the state of services. Its methods are not safe for concurrent use.
type Processor struct {
	cfg       Config
	health    HealthChecks // nil: there are no health checks
	renderers []renderer.ServiceRendererAPI

	services map[svcmodel.ID]*service
	rendered []*service // services that renderers have, in no order
	all      []*renderer.ContivService
	// withNodePorts holds those of rendered that have node ports.
	withNodePorts nodePortServices
	outside       renderer.AddressIndex // of backends that may be at a node's address
	zone          string
	nodes         nodes
	ifs           interfaces
	scratch       scratch

	owners     *owners.Table
	apiServers apiServers
}

// service is one service, or endpoint slices whose service does not exist yet.
type service struct {
	id       svcmodel.ID
	object   *model.Service         // nil: there are only endpoints
	slices   []*model.EndpointSlice // by name
	value    *renderer.ContivService
	index    int          // in Processor.rendered and all, if value is not nil
	nodePort int          // in Processor.withNodePorts, if it has node ports
	outside  []netip.Addr // of backends that may be at a node's address, sorted
	local    []netip.Addr // addresses of backends that are local pods, sorted
	checked  bool         // HealthChecks has the service
	answered answer       // the data that HealthChecks has of it
	owned    owned

	tooMany         int  // the number of frontends that it names, if this is too many to serve it
	tooManyBackends int  // the number of backends that it has, if this is too many to serve it
	badName         bool // it is not served because its name is invalid
}

type answer struct {
	port  uint16
	local int
}

// New returns a Processor without any state. health may be nil.
func New(cfg Config, health HealthChecks) *Processor {
	p := &Processor{
		cfg: cfg, health: health, services: map[svcmodel.ID]*service{},
		nodes: newNodes(cfg), ifs: newInterfaces(), apiServers: apiServers{}, outside: renderer.AddressIndex{},
	}
	p.owners = p.newOwners()
	return p
}

func (p *Processor) newOwners() *owners.Table {
	return owners.New(owners.Rules{
		IsNode:      func(a netip.Addr) bool { return p.nodes.has(a) },
		NodePortsAt: func() []netip.Addr { return p.nodes.local.Addrs() },
		Reserved:    p.reserved,
	})
}

// RegisterRenderer adds a renderer. All renderers must be added before the first change.
func (p *Processor) RegisterRenderer(r renderer.ServiceRendererAPI) {
	p.renderers = append(p.renderers, r)
}

// Services returns the services that renderers have, sorted by ID.
func (p *Processor) Services() []*renderer.ContivService {
	out := slices.Clone(p.all)
	slices.SortFunc(out, func(a, b *renderer.ContivService) int { return a.ID.Compare(b.ID) })
	return out
}

// UpdateService adds or changes a service. change describes the result; it is empty if nothing has changed.
func (p *Processor) UpdateService(object *model.Service) (change string, err error) {
	s := p.service(serviceID(object))
	s.object = object
	return p.refresh(s)
}

// DeleteService removes a service.
func (p *Processor) DeleteService(id svcmodel.ID) (change string, err error) {
	s := p.services[id]
	if s == nil {
		return "", nil
	}
	s.object = nil
	return p.refresh(s)
}

// UpdateSlice applies a change of a slice; prev is nil if it is new, next is nil if it has been deleted.
func (p *Processor) UpdateSlice(prev, next *model.EndpointSlice) (change string, err error) {
	var changes []string
	var errs []error
	if prev != nil && (next == nil || sliceOwner(prev) != sliceOwner(next)) {
		if s := p.services[sliceOwner(prev)]; s != nil {
			s.removeSlice(prev)
			text, err := p.refresh(s)
			changes, errs = append(changes, text), append(errs, err)
		}
	}
	if next != nil {
		s := p.service(sliceOwner(next))
		s.setSlice(next)
		text, err := p.refresh(s)
		changes, errs = append(changes, text), append(errs, err)
	}
	return joinChanges(changes), errors.Join(errs...)
}

// SetZone sets the topology zone of this node.
func (p *Processor) SetZone(zone string) (change string, err error) {
	if p.zone == zone {
		return "", nil
	}
	p.zone = zone
	text, err := p.refreshEach(slices.Collect(maps.Keys(p.services)))
	return joinChanges([]string{"zone " + zone, text}), err
}

func serviceID(object *model.Service) svcmodel.ID {
	return svcmodel.ID{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func sliceOwner(slice *model.EndpointSlice) svcmodel.ID {
	return svcmodel.ID{Namespace: slice.GetNamespace(), Name: slice.GetService()}
}

func joinChanges(changes []string) string {
	return strings.Join(slices.DeleteFunc(changes, func(s string) bool { return s == "" }), "; ")
}

func (p *Processor) service(id svcmodel.ID) *service {
	s := p.services[id]
	if s == nil {
		s = &service{id: id}
		p.services[id] = s
	}
	return s
}

func (s *service) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.slices, name, func(e *model.EndpointSlice, name string) int {
		return strings.Compare(e.GetName(), name)
	})
}

func (s *service) setSlice(slice *model.EndpointSlice) {
	i, found := s.find(slice.GetName())
	if found {
		s.slices[i] = slice
		return
	}
	s.slices = slices.Insert(s.slices, i, slice)
}

func (s *service) removeSlice(slice *model.EndpointSlice) {
	if i, found := s.find(slice.GetName()); found {
		s.slices = slices.Delete(s.slices, i, i+1)
	}
}

// refresh recomputes a service and sends the differences to renderers: first the services that have lost frontends by the change, then the
// service itself, then the services that have gained frontends.
func (p *Processor) refresh(s *service) (change string, err error) {
	if s.object == nil && len(s.slices) == 0 {
		delete(p.services, s.id)
	}
	moved := p.updateAPIServers(s)
	base, local, localReady := p.compute(s)
	affected := p.updateFrontends(s, base)
	if len(moved) > 0 {
		affected = append(affected, p.owners.AtAddresses(moved)...)
	}
	err = p.releaseLost(affected)
	change, own := p.report(s, base, local, localReady)
	p.reportProblems(s)
	err = errors.Join(err, own, p.settle(affected))
	return describeChange(change, affected), err
}

// report sends the current value of a service to renderers.
func (p *Processor) report(s *service, base *renderer.ContivService, local []netip.Addr, localReady int) (change string, err error) {
	p.reportHealth(s, base, localReady)
	before := p.ifs.backends()
	p.ifs.use(s.local, -1)
	p.ifs.use(local, +1)
	s.local = local
	p.noteOutside(s, base)
	s.owned.base, s.owned.lost = base, owners.FrontendsOf(p.owners.Lost(s.id))
	value := owners.Without(base, s.owned.lost)
	old := s.value
	if old != nil && value != nil && old.Equal(value) {
		return "", nil
	}
	s.owned.refusals = nil
	after := p.ifs.backends()
	if value == nil {
		change, err = p.remove(s)
		return change, errors.Join(err, p.reportBackends(before, after))
	}
	err = p.reportBackends(before, after)
	if old == nil {
		p.append(s, value)
		return "add service " + s.id.String(), errors.Join(err, p.each(func(r renderer.ServiceRendererAPI) error {
			return r.AddService(value)
		}))
	}
	p.replace(s, value)
	others := p.others(s)
	return "update service " + s.id.String(), errors.Join(err, p.each(func(r renderer.ServiceRendererAPI) error {
		return r.UpdateService(old, value, others)
	}))
}

// remove deletes a service from the renderers, if they have it.
func (p *Processor) remove(s *service) (change string, err error) {
	old := s.value
	if old == nil {
		return "", nil
	}
	others := p.others(s) // s is the last one now
	p.withNodePorts.set(s, nil)
	s.value = nil
	p.rendered[s.index], p.all[s.index] = nil, nil
	p.rendered, p.all = p.rendered[:s.index], p.all[:s.index]
	return "delete service " + s.id.String(), p.each(func(r renderer.ServiceRendererAPI) error {
		return r.DeleteService(old, others)
	})
}

// each calls all renderers, even if one returns an error. Services that a renderer refuses are recorded and do not count as an error.
func (p *Processor) each(call func(r renderer.ServiceRendererAPI) error) error {
	var errs []error
	for _, r := range p.renderers {
		refused, err := renderer.Refusals(call(r))
		errs = append(errs, err)
		for _, one := range refused {
			if s := p.services[one.ID]; s != nil {
				s.owned.refusals = append(s.owned.refusals, one.Err.Error())
			}
		}
	}
	return errors.Join(errs...)
}

func (p *Processor) reportHealth(s *service, value *renderer.ContivService, localReady int) {
	if p.health == nil {
		return
	}
	if value == nil || value.HealthCheckNodePort == 0 {
		if s.checked {
			p.health.Delete(s.id)
		}
		s.checked = false
		return
	}
	now := answer{value.HealthCheckNodePort, localReady}
	if !s.checked || s.answered != now {
		p.health.Set(s.id, now.port, now.local)
	}
	s.checked, s.answered = true, now
}

// refreshEach recomputes services.
func (p *Processor) refreshEach(ids []svcmodel.ID) (change string, err error) {
	var errs []error
	n := 0
	for _, id := range ids {
		s := p.services[id]
		if s == nil || s.object == nil {
			continue
		}
		text, err := p.refresh(s)
		if text != "" {
			n++
		}
		errs = append(errs, err)
	}
	if n > 0 {
		change = fmt.Sprintf("%d services changed", n)
	}
	return change, errors.Join(errs...)
}
