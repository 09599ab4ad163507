package ipset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

const (
	// A set with at least rebuildMin differing members, if these are more than half of all, is rebuilt and swapped in.
	rebuildMin = 1024
	// destroyBudget is how long ApplyDestroys destroys sets before it leaves the rest for later.
	destroyBudget = 100 * time.Millisecond
	// A set that cannot be destroyed is retried destroyTries times, then at the next Resync.
	destroyTries = 20
	// destroyAgain is the delay before ApplyDestroys should be called again: nf_tables releases sets shortly after its commit.
	destroyAgain = 100 * time.Millisecond
)

// Result is the outcome of an apply. See table.Result.
type Result struct {
	Err    error
	Broken map[string]error
	Again  time.Duration
	Writes int
	// Repaired is set if members that another program had added or removed were repaired.
	Repaired bool
}

func (r *Result) broken(m *set, err error) {
	if r.Broken == nil {
		r.Broken = map[string]error{}
	}
	r.Broken[m.object()] = err
}

// ApplyUpdates creates sets and changes their members. After an Err the kernel's state is unknown; the next call reads it.
func (s *Sets) ApplyUpdates() Result {
	writes := 0
	for attempt := 0; ; attempt++ {
		r, stale := s.update()
		writes += r.Writes
		if stale && attempt < 2 {
			continue // another program has created or destroyed one of our sets
		}
		r.Writes = writes
		if r.Err == nil {
			r.Repaired, s.foreign = s.foreign && writes > 0, false
		}
		s.metrics.counts(len(s.have), len(s.have)+s.others)
		return r
	}
}

// update is one attempt. stale is true if a set's existence in the kernel contradicted the recorded state.
func (s *Sets) update() (r Result, stale bool) {
	maps.Copy(s.dirty, s.broken)
	clear(s.broken)
	if err := s.sync(); err != nil {
		s.invalidate()
		return Result{Err: err}, false
	}
	j := s.plan(&r)
	if err := j.run(&r); err != nil {
		s.invalidate()
		r.Err = fmt.Errorf("program sets: %w", err)
	}
	return r, j.stale
}

// sync reads the unknown parts of the kernel's state.
func (s *Sets) sync() error {
	if !s.listed {
		if err := s.list(); err != nil {
			return err
		}
	}
	for _, m := range s.sorted() {
		h, ok := s.have[m.name]
		before := m.before
		switch {
		case m.known && ok:
		case !ok, !m.fits(h):
			m.empty()
		default:
			if err := s.compare(m); err != nil {
				return err
			}
		}
		s.foreign = s.foreign || before != nil && !before.is(m)
		m.before = nil
		if s.right(m) {
			delete(s.dirty, m)
		}
	}
	return nil
}

// right reports whether the kernel has the set as desired.
func (s *Sets) right(m *set) bool {
	h, ok := s.have[m.name]
	return ok && m.fits(h) && h.max == m.max && !m.pending()
}

// list reads the list of the kernel's sets. Our sets that are desired become unknown; our others are doomed.
func (s *Sets) list() error {
	s.have, s.others, s.doomed = map[string]header{}, 0, map[string]int{}
	err := s.kernel.headers(func(h header) {
		if mine, _ := ours(h.name); mine {
			s.have[h.name] = h
			s.doomed[h.name] = 0
		} else {
			s.others++
		}
	})
	s.metrics.call(1, err)
	if err != nil {
		return err
	}
	for _, m := range s.sets {
		before := m.recorded()
		m.invalidate()
		s.name(m)
		m.before = before
		s.dirty[m] = struct{}{}
	}
	s.listed = true
	return nil
}

// compare reads the set's members. A second read, for the members that the kernel lacks, is done only if there are any.
func (s *Sets) compare(m *set) error {
	m.invalidate()
	seen, surplus := 0, map[member]struct{}{}
	err := s.members(m, func(x member) {
		if _, ok := m.members[x]; ok {
			seen++
		} else {
			surplus[x] = struct{}{}
		}
	})
	lacks := map[member]struct{}{}
	if err == nil && seen != len(m.members) {
		for x := range m.members {
			lacks[x] = struct{}{}
		}
		err = s.members(m, func(x member) { delete(lacks, x) })
	}
	if errors.Is(err, errNoEntry) {
		delete(s.have, m.name)
		m.empty()
		return nil
	}
	if err == nil {
		m.known, m.surplus, m.lacks = true, surplus, lacks
	}
	return err
}

func (s *Sets) members(m *set, each func(member)) error {
	err := s.kernel.members(m.name, each)
	s.metrics.call(1, err)
	return err
}

// exchange calls kernel.exchange and counts.
func (s *Sets) exchange(reqs []request) ([]error, error) {
	if len(reqs) == 0 {
		return nil, nil
	}
	errs, err := s.kernel.exchange(reqs)
	lines := 0
	for i := range reqs {
		lines += max(1, len(reqs[i].members))
	}
	s.metrics.call(lines, errors.Join(append(errs, err)...))
	return errs, err
}

// destroyable reports whether ApplyDestroys has sets to destroy.
func (s *Sets) destroyable() bool {
	for _, tries := range s.doomed {
		if tries < destroyTries {
			return true
		}
	}
	return false
}

// ApplyDestroys destroys sets that are no longer desired. It must be called after the rules that referred to them were removed.
func (s *Sets) ApplyDestroys() Result {
	var r Result
	if !s.listed || !s.destroyable() {
		return r
	}
	var names []string
	for name, tries := range s.doomed {
		if tries < destroyTries {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	start := s.now()
	for batch := 1; len(names) > 0; {
		began := s.now()
		n := min(batch, len(names))
		if err := s.destroy(names[:n], &r); err != nil {
			s.invalidate()
			r.Err = fmt.Errorf("destroy sets: %w", err)
			return r
		}
		names = names[n:]
		switch now := s.now(); {
		case now.Sub(start) >= destroyBudget:
			names = nil
		case now.Sub(began) < destroyBudget/20:
			batch *= 2
		default:
			batch = 1
		}
	}
	if s.destroyable() {
		r.Again = destroyAgain
	}
	s.metrics.counts(len(s.have), len(s.have)+s.others)
	return r
}

func (s *Sets) destroy(names []string, r *Result) error {
	reqs := make([]request, len(names))
	for i, name := range names {
		reqs[i] = request{op: opDestroy, name: name}
	}
	errs, err := s.exchange(reqs)
	if err != nil {
		return err
	}
	for i, name := range names {
		if errs[i] != nil && !errors.Is(errs[i], errNoEntry) {
			s.doomed[name]++
			s.log.Debug("set cannot be destroyed yet", "set", name, "error", errs[i])
			if s.doomed[name] == destroyTries {
				s.log.Warn("set is not used by us any more but cannot be destroyed", "set", name, "error", errs[i])
			}
			continue
		}
		delete(s.doomed, name)
		delete(s.have, name)
		r.Writes++
	}
	return nil
}

// tempName returns a name that no set has.
func (s *Sets) tempName(f table.Family) string {
	for {
		s.temps++
		name := fmt.Sprintf("%s%d", tempPrefix(f), s.temps)
		if _, ok := s.have[name]; !ok {
			return name
		}
	}
}
