package hnssvc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostsvc"
)

// Renderer is a renderer.ServiceRendererAPI.
type Renderer struct{ *hostsvc.Renderer }

var (
	_ renderer.ServiceRendererAPI   = Renderer{}
	_ renderer.LocalNodeIPsRenderer = Renderer{}
)

// New returns a renderer.
func New(deps hostsvc.Deps) Renderer { return Renderer{hostsvc.New(deps)} }

// AddService implements renderer.ServiceRendererAPI.
func (r Renderer) AddService(s *renderer.ContivService) error {
	return errors.Join(lacking(s), r.Renderer.AddService(s))
}

// UpdateService implements renderer.ServiceRendererAPI.
func (r Renderer) UpdateService(old, s *renderer.ContivService, others []*renderer.ContivService) error {
	return errors.Join(lacking(s), r.Renderer.UpdateService(old, s, others))
}

// Resync implements renderer.ServiceRendererAPI.
func (r Renderer) Resync(ev *renderer.ResyncEventData) error {
	errs := []error{r.Renderer.Resync(ev)}
	for _, s := range ev.Services {
		errs = append(errs, lacking(s))
	}
	return errors.Join(errs...)
}

// lacking returns an error that lists the features of a service that Windows' load balancers lack, or nil.
func lacking(s *renderer.ContivService) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.Ports)) {
		p := s.Ports[name]
		if p.Protocol != renderer.TCP && p.Protocol != renderer.UDP {
			errs = append(errs, fmt.Errorf("port %q: Windows nodes have no load balancer for %s; it is not served there", name, p.Protocol))
		}
		if backends := s.AllBackends(name); differ(backends) {
			errs = append(errs, fmt.Errorf("port %q: its pods have different target ports, and Windows nodes take one for all of them; "+
				"it is not served there: give all pods the same port", name))
		}
	}
	if s.SourceRangesSet {
		errs = append(errs, errors.New("loadBalancerSourceRanges: load balancers of Windows nodes cannot tell clients apart; those "+
			"addresses are not served there"))
	}
	return renderer.Refuse(s.ID, errors.Join(errs...))
}

// differ reports whether backends of one family have different ports.
func differ(list []*renderer.ServiceBackend) bool {
	ports := map[bool]uint16{}
	for _, b := range list {
		v6 := b.IP.To4() == nil
		if first, ok := ports[v6]; ok && first != b.Port {
			return true
		}
		ports[v6] = b.Port
	}
	return false
}
