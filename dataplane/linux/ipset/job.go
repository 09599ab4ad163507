package ipset

import (
	"errors"
	"maps"
	"math/bits"
	"slices"

	"golang.org/x/sys/unix"
)

// work holds what one apply does for one set: the requests first, then second, but second only if all of first succeeded.
type work struct {
	set    *set
	temp   string // the name under which the set is rebuilt, "" if it is not
	create bool   // the set is created
	broken error  // the set is created empty, or remains unchanged

	first, second []request
	made          bool // create was done
	err           error
}

// job is one apply, with the work for all sets that need it.
type job struct {
	*Sets
	works []*work
	stale bool
}

// plan computes the work for each dirty set.
func (s *Sets) plan(r *Result) *job {
	j := &job{Sets: s}
	for _, m := range s.sorted() {
		w := &work{set: m, broken: m.impossible()}
		if w.broken != nil {
			r.broken(m, w.broken)
			if kernelType(m.typ) == "" {
				s.stuck(m)
				continue
			}
		}
		w.decide(s)
		j.works = append(j.works, w)
	}
	return j
}

// stuck removes a set from this apply; the next apply retries.
func (s *Sets) stuck(m *set) {
	delete(s.dirty, m)
	s.broken[m] = struct{}{}
}

// decide chooses between creating, rebuilding and changing the set.
func (w *work) decide(s *Sets) {
	m := w.set
	h, exists := s.have[m.name]
	switch {
	case !exists:
		w.create = true
		w.first = []request{w.createRequest(m.name)}
		if w.broken == nil {
			w.add(m.name, slices.Collect(maps.Keys(m.members)))
		}
	case w.broken != nil:
	case h.max != m.max, m.worthRebuilding():
		w.temp = s.tempName(m.family)
		w.first = []request{w.createRequest(w.temp)}
		w.add(w.temp, slices.Collect(maps.Keys(m.members)))
		w.second = []request{{op: opSwap, name: w.temp, other: m.name}, {op: opDestroy, name: w.temp}}
	default:
		w.add(m.name, slices.Collect(maps.Keys(m.lacks)))
		if len(m.surplus) > 0 {
			w.second = []request{w.change(opDel, m.name, slices.Collect(maps.Keys(m.surplus)))}
		}
	}
}

// worthRebuilding reports whether most of the set changes, or there is no room to add before removing.
func (m *set) worthRebuilding() bool {
	changes, inKernel := len(m.lacks)+len(m.surplus), len(m.members)-len(m.lacks)+len(m.surplus)
	return inKernel+len(m.lacks) > m.max || changes >= rebuildMin && inKernel > 0 && changes > len(m.members)/2
}

func (w *work) createRequest(name string) request {
	m := w.set
	n := len(m.members)
	if w.broken != nil {
		n = 0
	}
	size := 64 // the minimum that the kernel accepts; the set grows automatically
	if n > 2*size {
		size = 1 << bits.Len(uint(n/2-1))
	}
	head := header{name: name, typ: kernelType(m.typ), family: m.family, max: m.max}
	return request{op: opCreate, name: name, head: head, typ: m.typ, hashSize: size}
}

func (w *work) change(o op, name string, members []member) request {
	return request{op: o, name: name, head: header{family: w.set.family}, typ: w.set.typ, members: members}
}

func (w *work) add(name string, members []member) {
	if len(members) > 0 {
		w.first = append(w.first, w.change(opAdd, name, members))
	}
}

// run executes the two rounds, and a third that reverts the first for sets where it failed.
func (j *job) run(r *Result) error {
	if err := j.round(r, func(w *work) []request { return w.first }); err != nil {
		return err
	}
	err := j.round(r, func(w *work) []request {
		if w.err != nil {
			return nil
		}
		return w.second
	})
	if err != nil {
		return err
	}
	if err := j.round(r, (*work).undo); err != nil {
		return err
	}
	for _, w := range j.works {
		j.settle(w, r)
	}
	return nil
}

// round sends the requests of each work, and records their effects and each work's first error.
func (j *job) round(r *Result, requests func(*work) []request) error {
	var reqs []request
	var owners []*work
	for _, w := range j.works {
		for _, q := range requests(w) {
			reqs = append(reqs, q)
			owners = append(owners, w)
		}
	}
	errs, err := j.exchange(reqs)
	if err != nil {
		return err
	}
	for i, w := range owners {
		if errs[i] == nil {
			r.Writes += max(1, len(reqs[i].members))
			j.done(&reqs[i])
			w.made = w.made || reqs[i].op == opCreate
			continue
		}
		if w.err == nil && reqs[i].op != opDestroy {
			w.err = errs[i]
		}
		j.failed(&reqs[i], errs[i])
	}
	return nil
}

// done records a request's effect on the list of sets.
func (j *job) done(q *request) {
	switch q.op {
	case opCreate:
		j.have[q.name] = q.head
	case opDestroy:
		delete(j.have, q.name)
		delete(j.doomed, q.name)
	case opSwap:
		j.have[q.name], j.have[q.other] = j.have[q.other], j.have[q.name]
	}
}

// failed records what an error implies about the list of sets.
func (j *job) failed(q *request, err error) {
	switch {
	case q.op == opCreate && errors.Is(err, unix.EEXIST):
		j.stale, j.listed = true, false
	case q.op == opSwap && errors.Is(err, errNoEntry):
		j.stale, j.listed = true, false
	case errors.Is(err, errNoEntry):
		j.stale = true
		delete(j.have, q.name)
	case q.op == opDestroy:
		j.doomed[q.name] = 0 // destroyed later
	}
}

// undo returns the requests that revert the first round if it failed: a new set is emptied, a temporary one destroyed, added members
// are removed. The next apply reads these sets again, and so finds out whether this has worked.
func (w *work) undo() []request {
	switch {
	case w.err == nil, (w.create || w.temp != "") && !w.made:
		return nil
	case w.temp != "":
		return []request{{op: opDestroy, name: w.temp}}
	case w.create:
		return []request{{op: opFlush, name: w.set.name}}
	case len(w.first) > 0:
		return []request{w.change(opDel, w.set.name, w.first[0].members)}
	}
	return nil
}

// settle records the resulting state of the set.
func (j *job) settle(w *work, r *Result) {
	m := w.set
	delete(j.dirty, m)
	switch {
	case w.err != nil:
		r.broken(m, w.err)
		m.invalidate()
		j.broken[m] = struct{}{}
	case w.broken != nil:
		if w.create {
			m.empty()
		}
		j.broken[m] = struct{}{}
	default:
		m.synced()
	}
}
