package rendertest

import (
	"errors"
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/owners"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// Resolver passes services to a renderer as the processor does: each frontend belongs to one service, the first by name of those that name
// it. With it, tests of renderers can use services with conflicting frontends.
type Resolver struct {
	renderer.ServiceRendererAPI
	table    *owners.Table
	base     map[svcmodel.ID]*renderer.ContivService
	reported map[svcmodel.ID]*renderer.ContivService
}

// Resolve returns a Resolver that passes services to r.
func Resolve(r renderer.ServiceRendererAPI) *Resolver {
	out := &Resolver{ServiceRendererAPI: r}
	out.reset()
	return out
}

func (r *Resolver) reset() {
	r.base, r.reported = map[svcmodel.ID]*renderer.ContivService{}, map[svcmodel.ID]*renderer.ContivService{}
	r.table = owners.New(owners.Rules{
		IsNode: func(netip.Addr) bool { return false }, NodePortsAt: func() []netip.Addr { return nil },
		Reserved: func(renderer.Frontend) string { return "" },
	})
}

// AddService implements renderer.ServiceRendererAPI.
func (r *Resolver) AddService(s *renderer.ContivService) error { return r.set(s) }

// UpdateService implements renderer.ServiceRendererAPI.
func (r *Resolver) UpdateService(_, s *renderer.ContivService, _ []*renderer.ContivService) error {
	return r.set(s)
}

// DeleteService implements renderer.ServiceRendererAPI.
func (r *Resolver) DeleteService(s *renderer.ContivService, _ []*renderer.ContivService) error {
	affected := r.table.Delete(s.ID)
	reported := r.reported[s.ID]
	delete(r.base, s.ID)
	delete(r.reported, s.ID)
	if reported == nil {
		reported = s
	}
	err := r.ServiceRendererAPI.DeleteService(reported, nil)
	return errors.Join(err, r.settle(affected))
}

// Resync implements renderer.ServiceRendererAPI.
func (r *Resolver) Resync(ev *renderer.ResyncEventData) error {
	r.reset()
	for _, s := range ev.Services {
		r.base[s.ID] = s
		r.table.Put(owners.ServiceOf(s, "", 0))
	}
	now := *ev
	now.Services = nil
	for _, s := range ev.Services {
		r.reported[s.ID] = r.owned(s.ID)
		now.Services = append(now.Services, r.reported[s.ID])
	}
	return r.ServiceRendererAPI.Resync(&now)
}

// UpdateLocalNodeIPs implements renderer.LocalNodeIPsRenderer.
func (r *Resolver) UpdateLocalNodeIPs(local *renderer.IPAddresses, _ []*renderer.ContivService) error {
	if l, ok := r.ServiceRendererAPI.(renderer.LocalNodeIPsRenderer); ok {
		return l.UpdateLocalNodeIPs(local, r.withNodePorts())
	}
	return nil
}

// UpdateNodePortServices implements renderer.ServiceRendererAPI.
func (r *Resolver) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, _ []*renderer.ContivService) error {
	return r.ServiceRendererAPI.UpdateNodePortServices(nodeIPs, r.withNodePorts())
}

func (r *Resolver) withNodePorts() (out []*renderer.ContivService) {
	for _, s := range r.reported {
		if s.HasNodePort() {
			out = append(out, s)
		}
	}
	return out
}

func (r *Resolver) owned(id svcmodel.ID) *renderer.ContivService {
	return owners.Without(r.base[id], owners.FrontendsOf(r.table.Lost(id)))
}

func (r *Resolver) set(s *renderer.ContivService) error {
	affected := r.table.Put(owners.ServiceOf(s, "", 0))
	r.base[s.ID] = s
	var errs []error
	for _, id := range affected {
		both := slices.Concat(r.reported[id].Lost, owners.FrontendsOf(r.table.Lost(id)))
		slices.SortFunc(both, renderer.Frontend.Compare)
		errs = append(errs, r.lose(id, slices.Compact(both)))
	}
	old, now := r.reported[s.ID], r.owned(s.ID)
	if r.reported[s.ID] = now; old == nil {
		errs = append(errs, r.ServiceRendererAPI.AddService(now))
	} else {
		errs = append(errs, r.ServiceRendererAPI.UpdateService(old, now, nil))
	}
	return errors.Join(append(errs, r.settle(affected))...)
}

func (r *Resolver) settle(ids []svcmodel.ID) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, r.lose(id, owners.FrontendsOf(r.table.Lost(id))))
	}
	return errors.Join(errs...)
}

// lose updates the lost frontends of a service, if they have changed.
func (r *Resolver) lose(id svcmodel.ID, lost []renderer.Frontend) error {
	old := r.reported[id]
	if slices.Equal(old.Lost, lost) {
		return nil
	}
	r.reported[id] = owners.Without(r.base[id], lost)
	return r.ServiceRendererAPI.UpdateService(old, r.reported[id], nil)
}
