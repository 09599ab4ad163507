package kube

import (
	"sync"

	"contiv.dev/vswitch/internal/kube/model"
)

// internLimit bounds the entries of an interner. A cluster has as many places as nodes, times the hints in use.
const internLimit = 1 << 16

// interner replaces equal places with one object: every endpoint has a place, and a node has many endpoints.
type interner struct {
	mu     sync.Mutex
	places map[string]*model.Place // guarded by mu
}

// place returns the shared object that equals p.
func (in *interner) place(p *model.Place) *model.Place {
	key := p.Key()
	in.mu.Lock()
	defer in.mu.Unlock()
	if known := in.places[key]; known != nil {
		return known
	}
	if in.places == nil || len(in.places) >= internLimit {
		in.places = map[string]*model.Place{} // places of nodes that no longer exist must not stay forever
	}
	in.places[key] = p
	return p
}

// slice interns the places of a slice that has just been decoded.
func (in *interner) slice(s *model.EndpointSlice) {
	for i, p := range s.Places {
		s.Places[i] = in.place(p)
	}
}
