package choice

import (
	"errors"
	"net/netip"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// Deps are the dependencies of the choice.
type Deps struct {
	// HasPlugin reports whether VPP has the plugin.
	HasPlugin func() bool
	// With are the renderers for a VPP with the plugin, Without those for others.
	With, Without []renderer.ServiceRendererAPI
}

// Renderer passes calls to the chosen renderers. Only the event loop calls its methods.
type Renderer struct {
	Deps
	chosen []renderer.ServiceRendererAPI // nil before the first resync
}

var (
	_ renderer.ServiceRendererAPI   = (*Renderer)(nil)
	_ renderer.LocalNodeIPsRenderer = (*Renderer)(nil)
	_ renderer.NodesRenderer        = (*Renderer)(nil)
)

// New returns a Renderer that has not chosen yet; it chooses in Resync.
func New(deps Deps) *Renderer { return &Renderer{Deps: deps} }

// Resync implements ServiceRendererAPI.
func (r *Renderer) Resync(ev *renderer.ResyncEventData) error {
	r.chosen = r.Without
	if r.HasPlugin() {
		r.chosen = r.With
	}
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.Resync(ev) })
}

func (r *Renderer) each(call func(renderer.ServiceRendererAPI) error) error {
	var errs []error
	for _, c := range r.chosen {
		errs = append(errs, call(c))
	}
	return errors.Join(errs...)
}

// AddService implements ServiceRendererAPI.
func (r *Renderer) AddService(s *renderer.ContivService) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.AddService(s) })
}

// UpdateService implements ServiceRendererAPI.
func (r *Renderer) UpdateService(old, now *renderer.ContivService, others []*renderer.ContivService) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.UpdateService(old, now, others) })
}

// DeleteService implements ServiceRendererAPI.
func (r *Renderer) DeleteService(s *renderer.ContivService, others []*renderer.ContivService) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.DeleteService(s, others) })
}

// UpdateNodePortServices implements ServiceRendererAPI.
func (r *Renderer) UpdateNodePortServices(nodeIPs *renderer.IPAddresses, services []*renderer.ContivService) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.UpdateNodePortServices(nodeIPs, services) })
}

// UpdateLocalFrontendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalFrontendIfs(old, now renderer.Interfaces) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.UpdateLocalFrontendIfs(old, now) })
}

// UpdateLocalBackendIfs implements ServiceRendererAPI.
func (r *Renderer) UpdateLocalBackendIfs(old, now renderer.Interfaces) error {
	return r.each(func(c renderer.ServiceRendererAPI) error { return c.UpdateLocalBackendIfs(old, now) })
}

// UpdateLocalNodeIPs implements LocalNodeIPsRenderer.
func (r *Renderer) UpdateLocalNodeIPs(local *renderer.IPAddresses, services []*renderer.ContivService) error {
	return r.each(func(c renderer.ServiceRendererAPI) error {
		if l, ok := c.(renderer.LocalNodeIPsRenderer); ok {
			return l.UpdateLocalNodeIPs(local, services)
		}
		return nil
	})
}

// UpdateNodes implements NodesRenderer.
func (r *Renderer) UpdateNodes(addrs []netip.Addr) error {
	return r.each(func(c renderer.ServiceRendererAPI) error {
		if n, ok := c.(renderer.NodesRenderer); ok {
			return n.UpdateNodes(addrs)
		}
		return nil
	})
}
