package verdict

import (
	"fmt"
	"slices"

	"contiv.dev/vswitch/plugins/policy/model"
)

// State is the state of a renderer after some changes. It implements Compiled.
type State struct {
	Sets      map[model.SetID]Set
	Policies  map[model.PolicyID]model.Policy
	Endpoints map[model.EndpointID]model.Endpoint
}

// Set is a set with its members.
type Set struct {
	model.Set
	Members map[model.Member]bool
}

// NewState returns the state before the first change.
func NewState() *State {
	return &State{map[model.SetID]Set{}, map[model.PolicyID]model.Policy{}, map[model.EndpointID]model.Endpoint{}}
}

// Apply changes the state. The error describes how the change violates the rules of package model.
func (s *State) Apply(c model.Change) error {
	for _, n := range c.Sets {
		if _, there := s.Sets[n.ID]; there {
			return fmt.Errorf("set %s (%s) is new and there already", n.ID, n.Meaning)
		}
		s.Sets[n.ID] = Set{n, map[model.Member]bool{}}
	}
	for _, m := range c.Members {
		if err := s.members(m); err != nil {
			return err
		}
	}
	for _, p := range c.Policies {
		s.Policies[p.ID] = p
	}
	for _, e := range c.Endpoints {
		s.Endpoints[e.ID] = e
	}
	return s.gone(c)
}

func (s *State) members(c model.Members) error {
	set, known := s.Sets[c.Set]
	if !known {
		return fmt.Errorf("set %s has members and is not known", c.Set)
	}
	for _, m := range c.Added {
		if set.Members[m] {
			return fmt.Errorf("set %s (%s) has %v already", c.Set, set.Meaning, m)
		}
		set.Members[m] = true
	}
	for _, m := range c.Removed {
		if !set.Members[m] {
			return fmt.Errorf("set %s (%s) does not have %v", c.Set, set.Meaning, m)
		}
		delete(set.Members, m)
	}
	return nil
}

func (s *State) gone(c model.Change) error {
	for _, id := range c.EndpointsGone {
		if _, known := s.Endpoints[id]; !known {
			return fmt.Errorf("endpoint %s is gone and not known", id)
		}
		delete(s.Endpoints, id)
	}
	for _, id := range c.PoliciesGone {
		if _, known := s.Policies[id]; !known {
			return fmt.Errorf("%s is gone and not known", id)
		}
		delete(s.Policies, id)
	}
	for _, id := range c.SetsGone {
		if set, known := s.Sets[id]; !known || len(set.Members) > 0 {
			return fmt.Errorf("set %s is gone; known %t, members %v", id, known, set.Members)
		}
		delete(s.Sets, id)
	}
	return s.dangling()
}

// dangling returns an error if a reference is invalid.
func (s *State) dangling() error {
	for _, p := range s.Policies {
		for _, rules := range [][]model.Rule{p.Ingress, p.Egress} {
			for i := range rules {
				for id := range rules[i].Sets {
					if _, known := s.Sets[id]; !known {
						return fmt.Errorf("%s %s refers to set %s, which is not known", p.ID, rules[i].Origin, id)
					}
				}
			}
		}
	}
	for _, e := range s.Endpoints {
		for _, t := range slices.Concat(e.Ingress.Tiers, e.Egress.Tiers) {
			for _, id := range t.Policies {
				if _, known := s.Policies[id]; !known {
					return fmt.Errorf("endpoint %s refers to %s, which is not known", e.ID, id)
				}
			}
		}
	}
	return nil
}

// Policy implements Compiled.
func (s *State) Policy(id model.PolicyID) (model.Policy, bool) {
	p, known := s.Policies[id]
	return p, known
}

// Contains implements Compiled.
func (s *State) Contains(id model.SetID, m model.Member) bool {
	for have := range s.Sets[id].Members {
		if covers(have, m) {
			return true
		}
	}
	return false
}

func covers(have, m model.Member) bool {
	return have.Protocol == m.Protocol && have.Port == m.Port && have.Net.Bits() <= m.Net.Bits() && have.Net.Contains(m.Net.Addr())
}

// Allowed evaluates a connection from the view of this node: the egress of the sender and the ingress of the receiver, if they are
// endpoints. A pod that is not an endpoint belongs to another node. Traffic that is allowed without rules is not considered, except for a
// pod's traffic to itself.
func (s *State) Allowed(from, to model.EndpointID, p Packet) bool {
	if from == to && p.Source.IsValid() && p.Source == p.Dest {
		return true
	}
	if e, local := s.Endpoints[from]; local && Evaluate(s, e.Egress, false, p).Action != model.Allow {
		return false
	}
	if e, local := s.Endpoints[to]; local && Evaluate(s, e.Ingress, true, p).Action != model.Allow {
		return false
	}
	return true
}

var _ Compiled = (*State)(nil)
