package intdataplane

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/nft/services"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// serviceProgrammer makes the kernel serve services. Set, Delete and SetPods only take notes.
type serviceProgrammer interface {
	Set(s *balance.Service)
	Delete(name string)
	SetPods(f table.Family, nets []netip.Prefix)
	// Render hands over what the table.Backend is to write, if that is how it is done.
	Render()
	// Apply writes the rest.
	Apply(ctx context.Context) table.Result
	Resync()
	Close() error
}

// nftServices has its own table.
type nftServices struct{ *services.Services }

// Render has nothing to hand over.
func (nftServices) Render() {}

// serviceManager takes messages about services, and about the nets that pods are in.
type serviceManager struct {
	to       serviceProgrammer // nil: there is none
	families []table.Family
	flows    *flowSweeper
	log      *slog.Logger

	services map[string]*balance.Service
	bad      map[string]error // services of which the message makes no sense
	pools    map[string]netip.Prefix
	dirty    bool // pools have changed
}

func newServiceManager(families []table.Family, to serviceProgrammer, flows *flowSweeper, log *slog.Logger) *serviceManager {
	return &serviceManager{families: families, to: to, flows: flows, log: log, services: map[string]*balance.Service{},
		bad: map[string]error{}, pools: map[string]netip.Prefix{}, dirty: true}
}

// OnUpdate takes *proto.BalancedServiceUpdate, *proto.BalancedServiceRemove, *proto.IPAMPoolUpdate and *proto.IPAMPoolRemove.
func (m *serviceManager) OnUpdate(msg any) {
	switch msg := msg.(type) {
	case *proto.BalancedServiceUpdate:
		m.update(msg)
	case *proto.BalancedServiceRemove:
		m.remove(balance.Name(msg))
	case *proto.IPAMPoolUpdate:
		delete(m.pools, msg.GetId())
		if net, err := rules.ParseNet(msg.GetPool().GetCidr()); err == nil { // else masqManager reports the error
			m.pools[msg.GetId()] = net
		}
		m.dirty = true
	case *proto.IPAMPoolRemove:
		delete(m.pools, msg.GetId())
		m.dirty = true
	}
}

func (m *serviceManager) update(msg *proto.BalancedServiceUpdate) {
	name := balance.Name(msg)
	s, err := balance.Parse(msg)
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
	s.Ports = slices.DeleteFunc(s.Ports, func(p balance.Port) bool { return !slices.Contains(m.families, p.Family) })
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

// CompleteDeferredWork hands over what concerns all services.
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

// apply writes. It comes behind the rules of the backend.
func (m *serviceManager) apply(ctx context.Context) table.Result {
	if m.to == nil {
		return table.Result{}
	}
	result := m.to.Apply(ctx)
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

// uninstall removes all that is programmed.
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
