package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// obj is a northbound value of the mock dataplane.
type obj struct {
	*emptypb.Empty
	Rev   int // changed in place
	Hard  int // changed by deleting and creating
	Deps  []string
	Refs  []string
	Items []item
	Bad   bool // does not validate
}

// item is an item that a parent derives.
type item struct {
	Name    string
	Implied bool
	Rev     int
	Deps    []string
	Bad     bool
}

func itemKey(parent string, it item) string { return "item:" + parent + ":" + it.Name }

// thing is an object of the mock dataplane under a key.
type thing struct {
	kind      string
	rev, hard int
	deps      []string
	refs      []string
	parent    string
	implied   bool
}

func (t thing) String() string {
	return fmt.Sprintf("%s rev%d hard%d deps%v", t.kind, t.rev, t.hard, t.deps)
}

// fault replaces the result of an operation.
type fault struct {
	err    error
	effect bool // the operation was done nevertheless
}

// mock is a dataplane that keeps state and checks the order of operations. It is the backend of its scheduler.
type mock struct {
	t       testing.TB
	mu      sync.Mutex // taken by operations, and by tests that change the mock while retries may run
	things  map[string]thing
	queue   []func()
	log     []string // operations, with their outcome
	rnd     *rand.Rand
	fault   func(action, key string) *fault
	dumpErr func(kind string) error
	async   bool
	noDump  map[string]bool // kinds without a dump
	flushes int
	dumps   []string
	last    bool  // values of p and items are removed last
	peer    *peer // nil: it cannot be replaced
}

// replace replaces the present process by a new one, which has no state.
func (m *mock) replace() {
	n, _ := strconv.Atoi(m.peer.present)
	m.peer.present = strconv.Itoa(n + 1)
	m.things = map[string]thing{}
	m.log = append(m.log, "--- replaced by process "+m.peer.present)
}

// gone returns the error of a request to a process that no longer exists.
func (m *mock) gone() error {
	if m.peer == nil || m.peer.pinned == m.peer.present {
		return nil
	}
	return Retry(errors.New("not connected"))
}

func newMock(t testing.TB) *mock {
	return &mock{t: t, things: map[string]thing{}, noDump: map[string]bool{}, rnd: rand.New(rand.NewPCG(1, 2))}
}

func (m *mock) Flush(context.Context) {
	m.flushes++
	for len(m.queue) > 0 {
		q := m.queue
		m.queue = nil
		m.rnd.Shuffle(len(q), func(i, j int) { q[i], q[j] = q[j], q[i] })
		for _, f := range q {
			f()
		}
	}
}

// sync changes the mock while retries may run.
func (m *mock) sync(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// do carries out an operation, at once or when flushed.
func (m *mock) do(op *Op, action, key string, effect func()) {
	run := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		var f *fault
		if m.fault != nil {
			f = m.fault(action, key)
		}
		if err := m.gone(); err != nil {
			f = &fault{err: err}
		}
		if f == nil {
			m.log = append(m.log, action+" "+key)
			effect()
			op.Done(nil)
			return
		}
		m.log = append(m.log, action+" "+key+" ! "+f.err.Error())
		if f.effect {
			effect()
		}
		op.Done(f.err)
	}
	if m.async && m.rnd.IntN(4) > 0 {
		m.queue = append(m.queue, run)
		return
	}
	run()
}

func (m *mock) need(action, key string, t thing) {
	for _, d := range append(slices.Clone(t.deps), t.parent) {
		if _, ok := m.things[d]; !ok && d != "" {
			m.t.Errorf("%s %s, but %s is absent\n%s", action, key, d, m.trace())
		}
	}
}

func (m *mock) trace() string { return strings.Join(m.log[max(0, len(m.log)-600):], "\n") }

func (m *mock) create(op *Op, key string, t thing) {
	m.do(op, "create", key, func() {
		if _, ok := m.things[key]; ok {
			m.t.Errorf("create %s, which exists\n%s", key, m.trace())
		}
		m.need("create", key, t)
		m.things[key] = t
	})
}

func (m *mock) update(op *Op, key string, t thing) {
	m.do(op, "update", key, func() {
		if _, ok := m.things[key]; !ok {
			m.t.Errorf("update %s, which is absent\n%s", key, m.trace())
		}
		m.need("update", key, t)
		m.things[key] = t
	})
}

func (m *mock) remove(op *Op, key string) {
	m.do(op, "delete", key, func() {
		delete(m.things, key)
		for k, t := range m.things {
			if t.parent == key && t.implied {
				delete(m.things, k)
			}
		}
		for k, t := range m.things {
			if t.parent == key || slices.Contains(t.deps, key) {
				m.t.Errorf("delete %s, but %s uses it\n%s", key, k, m.trace())
			}
		}
	})
}

func (m *mock) dump(op *DumpOp, kind string, emit func(key string, t thing)) {
	run := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dumps = append(m.dumps, kind)
		err := m.gone()
		if err == nil && m.dumpErr != nil {
			err = m.dumpErr(kind)
		}
		for _, key := range slices.Sorted(maps.Keys(m.things)) {
			if t := m.things[key]; t.kind == kind {
				emit(key, t)
			}
		}
		op.Done(err)
	}
	if m.async {
		m.queue = append(m.queue, run)
		return
	}
	run()
}

func objThing(kind string, v *obj) thing {
	return thing{kind: kind, rev: v.Rev, hard: v.Hard, deps: v.Deps, refs: v.Refs}
}

// nbDescriptor returns a northbound kind of the mock.
func (m *mock) nbDescriptor(name, prefix string, rank int) Descriptor[*obj] {
	k := Descriptor[*obj]{
		Name: name, Prefix: prefix, Rank: rank, DeleteLast: m.last && name == "p",
		Validate: func(_ string, v *obj) error {
			if v.Bad {
				return errors.New("bad: must not be set")
			}
			return nil
		},
		Equal: func(_ string, d, a *obj) bool {
			return d.Rev == a.Rev && d.Hard == a.Hard && slices.Equal(d.Deps, a.Deps) && slices.Equal(d.Refs, a.Refs)
		},
		Deps: func(_ string, v *obj, add func(string)) {
			for _, d := range v.Deps {
				add(d)
			}
		},
		Refs: func(_ string, v *obj, add func(string)) {
			for _, ref := range v.Refs {
				add(ref)
			}
		},
		Create:    func(op *Op, key string, v *obj) { m.create(op, key, objThing(name, v)) },
		Update:    func(op *Op, key string, _, v *obj) { m.update(op, key, objThing(name, v)) },
		CanUpdate: func(_ string, a, d *obj) bool { return a.Hard == d.Hard },
		Delete:    func(op *Op, key string, _ *obj) { m.remove(op, key) },
		Derive: func(key string, v *obj, put func(kind, itemKey string, it any)) {
			for _, it := range v.Items {
				put(itemKind(it), itemKey(key, it), ownedItem{it, key})
			}
		},
	}
	if !m.noDump[name] {
		k.Dump = func(op *DumpOp, emit func(string, *obj)) {
			m.dump(op, name, func(key string, t thing) { emit(key, &obj{Rev: t.rev, Hard: t.hard, Deps: t.deps, Refs: t.refs}) })
		}
	}
	return k
}

func itemKind(it item) string {
	if it.Implied {
		return "implied"
	}
	return "item"
}

// ownedItem is an item with its owner.
type ownedItem struct {
	item
	parent string
}

func itemThing(kind string, v ownedItem) thing {
	return thing{kind: kind, rev: v.Rev, deps: v.Deps, parent: v.parent, implied: v.Implied}
}

// diffItems implements DeriveDiff.
func diffItems(key string, from, to *obj, put func(kind, itemKey string, it any), del func(string)) {
	old := map[string]item{}
	for _, it := range from.Items {
		old[it.Name] = it
	}
	for _, it := range to.Items {
		o, ok := old[it.Name]
		delete(old, it.Name)
		if !ok || o.Rev != it.Rev || o.Bad != it.Bad || !slices.Equal(o.Deps, it.Deps) {
			put(itemKind(it), itemKey(key, it), ownedItem{it, key})
		}
	}
	for _, it := range from.Items {
		if _, gone := old[it.Name]; gone {
			del(itemKey(key, it))
		}
	}
}

// derivedDescriptor returns a kind of items.
func (m *mock) derivedDescriptor(name string, rank int, implied bool) Descriptor[ownedItem] {
	k := Descriptor[ownedItem]{
		Name: name, Rank: rank, ImpliedByParent: implied, DeleteLast: m.last,
		Validate: func(_ string, v ownedItem) error {
			if v.Bad {
				return errors.New("bad: must not be set")
			}
			return nil
		},
		Equal: func(_ string, d, a ownedItem) bool { return d.Rev == a.Rev && slices.Equal(d.Deps, a.Deps) },
		Deps: func(_ string, v ownedItem, add func(string)) {
			for _, d := range v.Deps {
				add(d)
			}
		},
		Create: func(op *Op, key string, v ownedItem) { m.create(op, key, itemThing(name, v)) },
		Delete: func(op *Op, key string, _ ownedItem) { m.remove(op, key) },
		Parent: func(_ string, v ownedItem) string { return v.parent },
	}
	if implied { // the other kind has no update
		k.Update = func(op *Op, key string, _, v ownedItem) { m.update(op, key, itemThing(name, v)) }
	}
	if !m.noDump[name] {
		k.Dump = func(op *DumpOp, emit func(string, ownedItem)) {
			m.dump(op, name, func(key string, t thing) {
				emit(key, ownedItem{item{Rev: t.rev, Deps: t.deps, Implied: implied}, t.parent})
			})
		}
	}
	return k
}

// registerMock registers the mock's kinds: a (30), b (10), c (95), p (60, with DeriveDiff), and the items of all of them.
func registerMock(t testing.TB, s *Scheduler, m *mock) {
	t.Helper()
	p := m.nbDescriptor("p", "p/", 60)
	p.DeriveDiff = diffItems
	for _, err := range []error{
		Register(s, m.nbDescriptor("a", "a/", 30)), Register(s, m.nbDescriptor("b", "b/", 10)), Register(s, m.nbDescriptor("c", "c/", 95)),
		Register(s, p), Register(s, m.derivedDescriptor("item", 65, false)), Register(s, m.derivedDescriptor("implied", 50, true)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rig is a scheduler on a mock dataplane.
type rig struct {
	*Scheduler
	t testing.TB
	m *mock
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newRig starts a scheduler on m, which may have served another one before.
func newRig(t testing.TB, m *mock, change func(*Config)) *rig {
	t.Helper()
	cfg := Config{Backends: []Backend{m}}
	if change != nil {
		change(&cfg)
	}
	s := New(cfg, quiet())
	registerMock(t, s, m)
	return startRig(t, s, m)
}

// stop ends the scheduler before the end of the test, like a restart of the agent.
func (r *rig) stop() { r.Close() }

func kv(key string, v *obj) txn.KV {
	if v == nil {
		return txn.KV{Key: key}
	}
	return txn.KV{Key: key, Value: proto.Message(v)}
}

func update(values ...txn.KV) *txn.Txn { return &txn.Txn{Kind: txn.Update, Values: values} }

// commit applies a transaction and checks the graph; the test checks the error.
func (r *rig) commit(tx *txn.Txn) (*txn.Record, error) {
	r.t.Helper()
	rec, err := r.Commit(context.Background(), tx)
	r.check()
	return rec, err
}

func (r *rig) must(tx *txn.Txn) *txn.Record {
	r.t.Helper()
	rec, err := r.commit(tx)
	if err != nil {
		r.t.Fatalf("commit: %v", err)
	}
	return rec
}

// ops runs a transaction and returns the operations of the dataplane.
func (r *rig) ops(tx *txn.Txn) string {
	r.t.Helper()
	r.m.log = nil
	r.must(tx)
	return strings.Join(r.m.log, "\n")
}

func (r *rig) state(key string) State {
	for _, v := range r.Status(Filter{Key: key}) {
		return v.State
	}
	return Nonexistent
}

func (r *rig) expectState(key string, want State) {
	r.t.Helper()
	if got := r.state(key); got != want {
		r.t.Errorf("%s is %s, want %s", key, got, want)
	}
}

// expectThings compares the dataplane's keys.
func (r *rig) expectThings(keys ...string) {
	r.t.Helper()
	sort.Strings(keys)
	if got := slices.Sorted(maps.Keys(r.m.things)); !slices.Equal(got, keys) {
		r.t.Errorf("dataplane has %v, want %v", got, keys)
	}
}

func (r *rig) check() {
	r.t.Helper()
	r.mu.RLock()
	defer r.mu.RUnlock()
	if err := r.graph.check(); err != nil {
		r.t.Error(err)
	}
}

// check reports inconsistent links.
func (g *graph) check() error {
	users := map[*node]int32{}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for key, n := range g.nodes {
		if n.key != key {
			bad("%s is filed under %s", n.key, key)
		}
		if n.kind == nil && (len(n.rdeps) == 0 || len(n.edges) > 0) {
			bad("name %s: %d rdeps, %d edges", key, len(n.rdeps), len(n.edges))
		}
		if n.kind != nil && n.kind.nodes[n.kindPos] != n {
			bad("%s is not in the list of its kind", key)
		}
		if n.kind != nil && n.desired == nil && n.applied == nil && n.retry == nil && n.flags == 0 {
			bad("%s is of no use (%s)", key, n.state)
		}
		if n.flags&flagUnknown != 0 && n.applied == nil {
			bad("%s is unknown, but nothing may be there: %s %t %v", key, n.state, n.desired != nil, n.err)
		}
		for i := range n.edges {
			e := &n.edges[i]
			if e.to.rdeps[e.pos] != (rdep{n, int32(i)}) {
				bad("%s -> %s: broken back link", key, e.to.key)
			}
			if g.nodes[e.to.key] != e.to {
				bad("%s -> %s: forgotten node", key, e.to.key)
			}
			if e.bits&edgeHave != 0 {
				users[e.to]++
			}
			want, have := e.bits&edgeWant != 0, e.bits&edgeHave != 0
			if have && n.applied == nil || want && n.desired == nil && n.flags&flagInvalid == 0 {
				bad("%s -> %s: bits %b with desired %t, applied %t, flags %b, state %s", key, e.to.key, e.bits,
					n.desired != nil, n.applied != nil, n.flags, n.state)
			}
			if e.bits&(edgeWant|edgeHave) == 0 {
				bad("%s -> %s: useless edge", key, e.to.key)
			}
		}
	}
	for _, n := range g.nodes {
		if n.users != users[n] {
			bad("%s: %d users counted, %d found", n.key, n.users, users[n])
		}
	}
	return errors.Join(errs...)
}

// startRig starts a scheduler that has its own kinds.
func startRig(t testing.TB, s *Scheduler, m *mock) *rig {
	t.Helper()
	jobs := lifecycle.NewGroup(context.Background(), quiet())
	s.cfg.Jobs = jobs
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	r := &rig{Scheduler: s, t: t, m: m}
	t.Cleanup(func() {
		s.Close()
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		select {
		case err := <-jobs.Failed():
			t.Error(err)
		default:
		}
	})
	return r
}
