package compiler

import "iter"

// podSet is a set of pods. Most sets have few members: up to smallSet members are stored in a list.
type podSet struct {
	list []*pod
	more map[*pod]struct{} // nil while list is in use
}

const smallSet = 8

func (s *podSet) len() int { return len(s.list) + len(s.more) }

func (s *podSet) add(p *pod) (added bool) {
	if s.has(p) {
		return false
	}
	if s.more == nil && len(s.list) < smallSet {
		s.list = append(s.list, p)
		return true
	}
	if s.more == nil {
		s.more = make(map[*pod]struct{}, 2*smallSet)
		for _, q := range s.list {
			s.more[q] = struct{}{}
		}
		s.list = nil
	}
	s.more[p] = struct{}{}
	return true
}

func (s *podSet) remove(p *pod) (removed bool) {
	if s.more != nil {
		_, removed = s.more[p]
		delete(s.more, p)
		return removed
	}
	for i, q := range s.list {
		if q == p {
			last := len(s.list) - 1
			s.list[i], s.list[last] = s.list[last], nil
			s.list = s.list[:last]
			return true
		}
	}
	return false
}

func (s *podSet) has(p *pod) bool {
	if s.more != nil {
		_, is := s.more[p]
		return is
	}
	for _, q := range s.list {
		if q == p {
			return true
		}
	}
	return false
}

// all yields the pods in no order. The set must not change during the iteration.
func (s *podSet) all() iter.Seq[*pod] {
	return func(yield func(*pod) bool) {
		for _, p := range s.list {
			if !yield(p) {
				return
			}
		}
		for p := range s.more {
			if !yield(p) {
				return
			}
		}
	}
}
