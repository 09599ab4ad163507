package kube

import (
	"sync"

	"contiv.dev/vswitch/internal/kube/model"
)

// internLimit bounds what an interner remembers. A cluster has as many places as nodes, times the hints in use.
const internLimit = 1 << 16

// interner makes equal places one: every endpoint has one, and a node has many endpoints.
type interner struct {
	mu     sync.Mutex
	places map[string]*model.Place // guarded by mu
}

// place is the one place that equals p.
func (in *interner) place(p *model.Place) *model.Place {
	key := p.Key()
	in.mu.Lock()
	defer in.mu.Unlock()
	if known := in.places[key]; known != nil {
		return known
	}
	if in.places == nil || len(in.places) >= internLimit {
		in.places = map[string]*model.Place{} // nodes that are long gone must not stay for good
	}
	in.places[key] = p
	return p
}

// slice interns the places of a slice that was just decoded.
func (in *interner) slice(s *model.EndpointSlice) {
	for i, p := range s.Places {
		s.Places[i] = in.place(p)
	}
}
