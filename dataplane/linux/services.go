package intdataplane

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// serviceProgrammer programs services in the kernel. Set, Delete and SetPods only record the change.
type serviceProgrammer interface {
	Set(s *lb.Service)
	Delete(name string)
	SetPods(f table.Family, nets []netip.Prefix)
	// Render passes chains and sets to the table.Backend, if the programmer uses it.
	Render()
	// Apply writes everything else.
	Apply(ctx context.Context) table.Result
	Resync()
	Close() error
}

// nftServices programs services in its own table.
type nftServices struct{ *services.Services }

// Render does nothing.
func (nftServices) Render() {}

// serviceManager handles messages about services, and about the subnets of pods.
type serviceManager struct {
	to       serviceProgrammer // nil: services are not programmed
	families []table.Family
	flows    *flowSweeper
	log      *slog.Logger

	services map[string]*lb.Service
	bad      map[string]error // services with an invalid message
	pools    map[string]netip.Prefix
	dirty    bool // pools have changed
}

func newServiceManager(families []table.Family, to serviceProgrammer, flows *flowSweeper, log *slog.Logger) *serviceManager {
	return &serviceManager{families: families, to: to, flows: flows, log: log, services: map[string]*lb.Service{},
		bad: map[string]error{}, pools: map[string]netip.Prefix{}, dirty: true}
}

// OnUpdate takes *proto.BalancedServiceUpdate, *proto.BalancedServiceRemove, *proto.IPAMPoolUpdate and *proto.IPAMPoolRemove.
func (m *serviceManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.BalancedServiceUpdate:
		m.update(msg)
	case *proto.BalancedServiceRemove:
		m.remove(lb.Name(msg))
	case *proto.IPAMPoolUpdate:
		delete(m.pools, msg.GetId())
		if net, err := rules.ParseNet(msg.GetPool().GetCidr()); err == nil { // masqManager reports a parse error
			m.pools[msg.GetId()] = net
		}
		m.dirty = true
	case *proto.IPAMPoolRemove:
		delete(m.pools, msg.GetId())
		m.dirty = true
	}
}

func (m *serviceManager) update(msg *proto.BalancedServiceUpdate) {
	name := lb.Name(msg)
	s, err := lb.Parse(msg)
	if err == nil && m.to == nil {
		err = fmt.Errorf("this driver has no programmer for services")
	}
	if err != nil {
		m.log.Error("a service is not served", "service", name, "error", err)
		m.remove(name)
		m.bad[name] = err
		return
	}
	delete(m.bad, name)
	s.Ports = slices.DeleteFunc(s.Ports, func(p lb.Port) bool { return !slices.Contains(m.families, p.Family) })
	m.flows.compare(m.services[name], s)
	m.services[name] = s
	m.to.Set(s)
}

func (m *serviceManager) remove(name string) {
	delete(m.bad, name)
	if old := m.services[name]; old != nil {
		m.flows.compare(old, nil)
		delete(m.services, name)
		m.to.Delete(name)
	}
}

// CompleteDeferredWork passes on what concerns all services.
func (m *serviceManager) CompleteDeferredWork() error {
	if m.to == nil {
		return nil
	}
	if m.dirty {
		m.dirty = false
		for _, f := range m.families {
			var nets []netip.Prefix
			for _, net := range m.pools {
				if familyOf(net.Addr()) == f {
					nets = append(nets, net)
				}
			}
			m.to.SetPods(f, nets)
		}
	}
	m.to.Render()
	return nil
}

// apply writes the services. It runs after the rules of the backend are written.
func (m *serviceManager) apply(ctx context.Context) table.Result {
	if m.to == nil {
		return table.Result{}
	}
	result := m.to.Apply(ctx)
	if result.Repaired {
		m.suspectAll()
	}
	if result.Err == nil {
		m.flows.sweep()
	}
	for name, err := range m.bad {
		if result.Broken == nil {
			result.Broken = map[string]error{}
		}
		result.Broken["service "+name] = err
	}
	return result
}

// suspectAll makes the next sweep check the connections of all services: the kernel does not translate those that were opened while rules
// were missing.
func (m *serviceManager) suspectAll() {
	for _, s := range m.services {
		m.flows.compare(nil, s)
	}
}

// uninstall removes all services from the kernel.
func (m *serviceManager) uninstall(ctx context.Context) error {
	if m.to == nil {
		return nil
	}
	for name := range m.services {
		m.to.Delete(name)
	}
	m.to.Render()
	return m.to.Apply(ctx).Err
}

func (m *serviceManager) close() error {
	if m.to == nil {
		return nil
	}
	return m.to.Close()
}
