package ipset

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// fakeKernel keeps sets in memory and injects faults.
type fakeKernel struct {
	t    *testing.T
	sets map[string]*fakeSet
	max  int // maximum number of sets; 0: any

	refuse    func(q *request) error // error of a single request
	lose      int                    // number of the next exchanges that end half-way with an error
	failLists int
	cutLists  int // number of the next member listings that end half-way with an error
	exchanges int
}

type fakeSet struct {
	head    header
	members map[member]bool
	inUse   bool
}

func (k *fakeKernel) close() error { return nil }

func (k *fakeKernel) exchange(reqs []request) ([]error, error) {
	k.exchanges++
	cut := len(reqs)
	if k.lose > 0 {
		k.lose--
		cut /= 2
	}
	errs := make([]error, len(reqs))
	for i := range reqs[:cut] {
		errs[i] = k.one(&reqs[i])
	}
	if cut < len(reqs) {
		return nil, fmt.Errorf("injected: %w", unix.ENOBUFS)
	}
	return errs, nil
}

func (k *fakeKernel) one(q *request) error {
	if k.refuse != nil {
		if err := k.refuse(q); err != nil {
			return err
		}
	}
	s := k.sets[q.name]
	if (s != nil) == (q.op == opCreate) {
		if s != nil {
			return Errno(unix.EEXIST)
		}
		return errNoEntry
	}
	switch q.op {
	case opCreate:
		if k.max > 0 && len(k.sets) >= k.max {
			return errMaxSets
		}
		if len(q.name) > maxName || q.head.max == 0 || q.head.typ == "" {
			k.t.Errorf("bad request %+v", q)
		}
		k.sets[q.name] = &fakeSet{head: q.head, members: map[member]bool{}}
	case opDestroy:
		if s.inUse {
			return errBusy
		}
		delete(k.sets, q.name)
	case opFlush:
		clear(s.members)
	case opSwap:
		o := k.sets[q.other]
		if o == nil {
			return errExistName2
		}
		if o.head.typ != s.head.typ || o.head.family != s.head.family {
			return errTypeMismatch
		}
		*s, *o = fakeSet{o.head, o.members, s.inUse}, fakeSet{s.head, s.members, o.inUse}
	case opAdd:
		for _, m := range q.members {
			if !s.members[m] && len(s.members) >= s.head.max {
				return errHashFull
			}
			s.members[m] = true
		}
	case opDel:
		for _, m := range q.members {
			delete(s.members, m)
		}
	}
	return nil
}

func (k *fakeKernel) headers(each func(header)) error {
	if k.failLists > 0 {
		k.failLists--
		return errors.New("injected")
	}
	for name, s := range k.sets {
		h := s.head
		h.name = name
		each(h)
	}
	return nil
}

func (k *fakeKernel) members(name string, each func(member)) error {
	s := k.sets[name]
	if s == nil {
		return errNoEntry
	}
	n := 0
	for m := range s.members {
		if n++; k.cutLists > 0 && n > len(s.members)/2 {
			break
		}
		each(m)
	}
	if k.cutLists > 0 {
		k.cutLists--
		return errors.New("injected: listing ends in the middle")
	}
	return nil
}

func newFake(t *testing.T) (*fakeKernel, *Sets) {
	t.Helper()
	k := &fakeKernel{t: t, sets: map[string]*fakeSet{}}
	s, err := newSets(Config{Log: slog.New(slog.DiscardHandler)}, k)
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

func (k *fakeKernel) expect(name string, want ...table.Member) {
	k.t.Helper()
	s := k.sets[name]
	if s == nil || len(s.members) != len(want) {
		k.t.Fatalf("%s is %+v, want %d members", name, s, len(want))
	}
	for _, w := range want {
		c, _, err := convert(4, table.SetIP, w)
		if err != nil || !s.members[c] {
			k.t.Fatalf("%s lacks %v", name, w.Net)
		}
	}
}

// An exchange whose result is unknown is an error; the next apply reads the kernel's state and completes the change.
func TestLostExchange(t *testing.T) {
	k, s := newFake(t)
	for i := range 6 {
		s.Replace(4, table.Set{ID: fmt.Sprint(i), Type: table.SetIP}, numbered(0, 10))
	}
	k.lose = 1
	if r := s.ApplyUpdates(); !errors.Is(r.Err, unix.ENOBUFS) || !s.Pending() {
		t.Fatalf("result %+v", r)
	}
	k.failLists = 1
	if r := s.ApplyUpdates(); r.Err == nil {
		t.Fatal("a failed listing is no error")
	}
	k.cutLists = 1
	if r := s.ApplyUpdates(); r.Err == nil {
		t.Fatal("a listing that ends in the middle is no error")
	}
	apply(t, s)
	for i := range 6 {
		k.expect(fmt.Sprint("cv40", i), numbered(0, 10)...)
	}
	if r := apply(t, s); r.Writes != 0 || s.Pending() {
		t.Errorf("wrote %d more", r.Writes)
	}
}

// A set that cannot be created, filled or rebuilt does not affect the others, keeps its content and is retried.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refuse func(q *request) error
		usable bool // if it is new
	}{
		"create": {func(q *request) error {
			if q.op == opCreate && (q.name == "cv40bad" || q.name[3] == 't') {
				return errMaxSets
			}
			return nil
		}, false},
		"add": {func(q *request) error {
			if q.op == opAdd && (q.name == "cv40bad" || q.name[3] == 't') {
				return errHashFull
			}
			return nil
		}, true},
		"swap": {func(q *request) error {
			if q.op == opSwap {
				return errTypeMismatch
			}
			return nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k, s := newFake(t)
			for round, had := range []int{0, 5, 2000} { // 2000: rebuilt under a temporary name
				if had > 0 {
					s.Replace(4, table.Set{ID: "bad", Type: table.SetIP}, numbered(0, had))
					apply(t, s)
				}
				k.refuse = c.refuse
				goal := numbered(100_000, 100_000+max(10, 2*had))
				s.Replace(4, table.Set{ID: "bad", Type: table.SetIP}, goal)
				s.Replace(4, table.Set{ID: "good", Type: table.SetIP}, numbered(0, round+3))
				for range 2 {
					r := s.ApplyUpdates()
					if r.Err != nil {
						t.Fatalf("result %+v", r)
					}
					k.expect("cv40good", numbered(0, round+3)...)
					if len(r.Broken) == 0 { // the rejected requests were not needed
						k.expect("cv40bad", goal...)
						continue
					}
					if s.Usable(4, "bad") != (had > 0 || c.usable) {
						t.Errorf("usable: %v", s.Usable(4, "bad"))
					}
					if had > 0 || c.usable {
						k.expect("cv40bad", numbered(0, had)...)
					}
				}
				k.refuse = nil
				apply(t, s)
				k.expect("cv40bad", goal...)
				if len(k.sets) != 2 {
					t.Errorf("left over: %v", k.sets)
				}
			}
		})
	}
}

// Random edits, faults and changes by other programs end in the same state as one replacement by the result.
func TestRandomFaults(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 4))
	k, s := newFake(t)
	desired := map[string]map[table.Member]bool{}
	maxes := map[string]int{}
	for range 6000 {
		id := fmt.Sprint(rnd.IntN(5))
		switch f := rnd.IntN(20); {
		case f == 0:
			s.Delete(4, id)
			delete(desired, id)
		case f < 3 || desired[id] == nil:
			from := rnd.IntN(20)
			members := numbered(from, from+rnd.IntN(40))
			desired[id] = map[table.Member]bool{}
			for _, m := range members {
				desired[id][m] = true
			}
			maxes[id] = 20 + 20*rnd.IntN(3)
			s.Replace(4, table.Set{ID: id, Type: table.SetIP, Max: maxes[id]}, members)
		case f < 12:
			i, j := rnd.IntN(50), rnd.IntN(50)
			s.Change(4, id, numbered(i, i+2), numbered(j, j+3))
			for _, m := range numbered(i, i+2) {
				desired[id][m] = true
			}
			for _, m := range numbered(j, j+3) {
				delete(desired[id], m)
			}
		case f == 12:
			k.lose = 1
		case f == 13:
			k.failLists = rnd.IntN(2)
		case f == 14:
			for _, v := range k.sets {
				v.inUse = rnd.IntN(2) == 0
			}
		case f == 15:
			delete(k.sets, "cv40"+id)
			s.Resync()
		default:
			s.ApplyUpdates()
			s.ApplyDestroys()
		}
	}
	for _, v := range k.sets {
		v.inUse = false
	}
	k.lose, k.failLists = 0, 0
	s.Resync()
	r := s.ApplyUpdates()
	if d := s.ApplyDestroys(); r.Err != nil || d.Err != nil {
		t.Fatalf("apply: %v, %v", r.Err, d.Err)
	}
	if len(k.sets) != len(desired) {
		t.Errorf("%d sets, want %d", len(k.sets), len(desired))
	}
	for id, members := range desired {
		if len(members) > maxes[id] {
			if r.Broken["set v4 "+id] == nil {
				t.Errorf("%s has too many members and is not broken", id)
			}
			continue
		}
		list := []table.Member{}
		for m := range members {
			list = append(list, m)
		}
		k.expect("cv40"+id, list...)
	}
}

// Destroys that take long are spread over several calls.
func TestSlowDestroys(t *testing.T) {
	k, s := newFake(t)
	now := time.Unix(1e9, 0)
	s.now = func() time.Time { return now }
	for i := range 10 {
		s.Replace(4, table.Set{ID: fmt.Sprint(i), Type: table.SetIP}, nil)
	}
	apply(t, s)
	for i := range 10 {
		s.Delete(4, fmt.Sprint(i))
	}
	k.refuse = func(q *request) error {
		if q.op == opDestroy {
			now = now.Add(40 * time.Millisecond)
		}
		return nil
	}
	var took []time.Duration
	for {
		start := now
		r := s.ApplyDestroys()
		took = append(took, now.Sub(start))
		if r.Again == 0 {
			break
		}
	}
	if slices.Max(took) > 150*time.Millisecond || len(k.sets) != 0 || len(took) < 3 {
		t.Errorf("calls took %v, %d sets left", took, len(k.sets))
	}
}

// Invalid answers of the kernel do not cause a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte{4, 0, 1, 0, 255, 255, 8, 128})
	f.Add([]byte{16, 0, 8, 128, 12, 0, 7, 128, 8, 0, 1, 64, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, b []byte) {
		parseHeader(b)
		parseMembers(b, func(member) {})
		errorLine(b)
	})
}
