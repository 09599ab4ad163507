package scheduler

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// world is the desired state, as the random test computes it.
type world struct {
	rnd     *rand.Rand
	desired map[string]*obj
	cycles  bool
}

const worldSize = 7

func (w *world) key() string {
	return string("abcp"[w.rnd.IntN(4)]) + "/" + string(rune('0'+w.rnd.IntN(worldSize)))
}

// dep returns a random dependency of key: mostly one that cannot lead back to key.
func (w *world) dep(key string) string {
	for {
		d := w.key()
		if w.rnd.IntN(4) == 0 {
			d = itemKey(d, item{Name: string(rune('x' + w.rnd.IntN(3)))})
		}
		if w.cycles || order(d) < order(key) {
			return d
		}
		if w.rnd.IntN(3) == 0 {
			return "b/none"
		}
	}
}

// order orders the keys such that dependencies on smaller keys never form a cycle; the order is opposite to that of ranks.
func order(key string) string {
	if i := len("item:"); len(key) > i && key[:i] == "item:" {
		key = key[i:]
	}
	return key[2:3] + key[:1]
}

func (w *world) deps(key string) []string {
	var deps []string
	for range max(0, w.rnd.IntN(5)-2) {
		deps = append(deps, w.dep(key))
	}
	return deps
}

func (w *world) value(key string) *obj {
	v := &obj{Rev: w.rnd.IntN(3), Hard: w.rnd.IntN(2), Deps: w.deps(key)}
	for _, name := range []string{"x", "y", "z"} {
		if w.rnd.IntN(3) == 0 {
			it := item{Name: name, Implied: name == "z" || name == "y" && key[2]%2 == 0, Rev: w.rnd.IntN(2)}
			if w.rnd.IntN(2) == 0 {
				it.Deps = []string{w.dep(key)}
			}
			v.Items = append(v.Items, it)
		}
	}
	return v
}

// vary returns a value with a small change.
func (w *world) vary(key string, v *obj) *obj {
	c := *v
	switch w.rnd.IntN(5) {
	case 0:
		c.Rev++
	case 1:
		c.Hard++
	case 2:
		c.Deps = w.deps(key)
	case 3:
		c.Items = w.value(key).Items
	case 4:
		return v
	}
	return &c
}

// step returns a random transaction and the world after it.
func (w *world) step() (tx *txn.Txn, next map[string]*obj) {
	next = maps.Clone(w.desired)
	tx = &txn.Txn{Kind: txn.Update, Revert: w.rnd.IntN(5) == 0}
	switch w.rnd.IntN(12) {
	case 0:
		tx.Kind = txn.FullResync
	case 1:
		tx.Kind = txn.UpstreamResync
	case 2:
		return &txn.Txn{Kind: txn.DownstreamResync}, next
	}
	for range 1 + w.rnd.IntN(6) {
		key := w.key()
		old := next[key]
		switch {
		case old != nil && w.rnd.IntN(3) == 0:
			delete(next, key)
			tx.Values = append(tx.Values, kv(key, nil))
		case old != nil && w.rnd.IntN(2) == 0:
			next[key] = w.vary(key, old)
			tx.Values = append(tx.Values, kv(key, next[key]))
		default:
			next[key] = w.value(key)
			tx.Values = append(tx.Values, kv(key, next[key]))
		}
	}
	if tx.Kind != txn.Update {
		tx.Values = nil
		for _, key := range slices.Sorted(maps.Keys(next)) {
			tx.Values = append(tx.Values, kv(key, next[key]))
		}
	}
	return tx, next
}

// expected returns the smallest set of values whose dependencies are in the set.
func expected(desired map[string]*obj) map[string]string {
	all := map[string]thing{}
	for key, v := range desired {
		all[key] = objThing(key[:1], v)
		for _, it := range v.Items {
			all[itemKey(key, it)] = itemThing(itemKind(it), ownedItem{it, key})
		}
	}
	out := map[string]string{}
	for changed := true; changed; {
		changed = false
		for key, t := range all {
			ok := out[key] == ""
			for _, d := range append(slices.Clone(t.deps), t.parent) {
				ok = ok && (d == "" || out[d] != "")
			}
			if ok {
				out[key] = t.String()
				changed = true
			}
		}
	}
	return out
}

func (m *mock) actual() map[string]string {
	out := map[string]string{}
	for key, t := range m.things {
		out[key] = t.String()
	}
	return out
}

func diff(got, want map[string]string) string {
	var s string
	for k, v := range want {
		if got[k] != v {
			s += fmt.Sprintf("  %s: got %q, want %q\n", k, got[k], v)
		}
	}
	for k, v := range got {
		if want[k] == "" {
			s += fmt.Sprintf("  %s: got %q, want nothing\n", k, v)
		}
	}
	return s
}

// faultPlan injects faults at random.
type faultPlan struct {
	ops, dumps float64
	fatal      bool // some faults are not retriable
}

func (f faultPlan) arm(m *mock) {
	m.fault = func(string, string) *fault {
		if m.rnd.Float64() >= f.ops {
			return nil
		}
		switch m.rnd.IntN(5) {
		case 0:
			return &fault{err: Retry(errors.New("busy"))}
		case 4:
			return &fault{err: Retry(Lost(errors.New("not found"), slices.Sorted(maps.Keys(m.things))...))}
		case 1:
			if f.fatal {
				return &fault{err: errors.New("refused")}
			}
			return &fault{err: Retry(errors.New("busy"))}
		case 2:
			return &fault{err: OutcomeUnknown(errors.New("lost request"))}
		}
		return &fault{err: OutcomeUnknown(errors.New("lost reply")), effect: true}
	}
	m.dumpErr = func(string) error {
		if m.rnd.Float64() < f.dumps {
			return Retry(errors.New("no dump"))
		}
		return nil
	}
}

// replaceSometimes replaces the process now, or at one of the next operations.
func (m *mock) replaceSometimes() {
	if m.rnd.IntN(8) == 0 {
		m.replace()
	}
	at, before := m.rnd.IntN(100), m.fault
	m.fault = func(action, key string) *fault {
		if at--; at == 0 {
			m.replace()
		}
		return before(action, key)
	}
}

func disarm(m *mock) { m.sync(func() { m.fault, m.dumpErr = nil, nil }) }

type randomRun struct {
	seed   uint64
	steps  int
	faults faultPlan
	cycles bool
	noDump []string // kinds without a dump
	// replaced: the dataplane's process is sometimes replaced, between two transactions or during one
	replaced bool
	last     bool // deletes of some kinds come last
}

func (c randomRun) run(t *testing.T) {
	m := newMock(t)
	m.rnd = rand.New(rand.NewPCG(c.seed, 1))
	m.async, m.last = c.seed%3 != 0, c.last
	for _, k := range c.noDump {
		m.noDump[k] = true
	}
	w := &world{rnd: rand.New(rand.NewPCG(c.seed, 2)), desired: map[string]*obj{}, cycles: c.cycles}
	if c.replaced {
		m.peer = &peer{present: "1"}
	}
	r := newRig(t, m, func(cfg *Config) {
		cfg.Retry.Attempts = -1
		if m.peer != nil {
			cfg.Backends = append(cfg.Backends, m.peer)
		}
	})
	healthy := c.faults.ops == 0 && c.faults.dumps == 0 && !c.replaced
	resync := c.faults.fatal || c.faults.dumps > 0 || c.replaced
	for i := range c.steps {
		if !healthy {
			m.sync(func() { c.faults.arm(m) })
		}
		if c.replaced {
			m.sync(func() { m.replaceSometimes() })
		}
		tx, next := w.step()
		m.sync(func() { m.note(i, tx) })
		if w.rnd.IntN(3) == 0 {
			c.checkPlan(r, tx)
		}
		_, err := r.commit(tx)
		var te *txn.Error
		var replaced *peerReplacedError
		switch {
		case err == nil:
			w.desired = next
		case !errors.As(err, &te) && errors.As(err, &replaced): // the transaction was not started
		case !errors.As(err, &te):
			t.Fatal(err)
		case !te.Reverted:
			w.desired = next
		}
		if healthy {
			if d := diff(m.actual(), expected(w.desired)); d != "" {
				t.Fatalf("after step %d:\n%s\n%s", i, d, m.trace())
			}
		}
		if w.rnd.IntN(3) == 0 {
			time.Sleep(time.Duration(w.rnd.IntN(5000)) * time.Millisecond)
			synctest.Wait()
			r.check()
		}
		if t.Failed() {
			t.Fatalf("failed at step %d\n%s", i, m.trace())
		}
	}
	disarm(m)
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if resync {
		r.must(&txn.Txn{Kind: txn.DownstreamResync})
	}
	c.finish(t, r, w)
}

// note writes a transaction to the log.
func (m *mock) note(i int, tx *txn.Txn) {
	m.log = append(m.log, fmt.Sprintf("--- %d: %s revert=%t", i, tx.Kind, tx.Revert))
	for _, x := range tx.Values {
		if v, ok := x.Value.(*obj); ok {
			m.log = append(m.log, fmt.Sprintf("    put %s rev%d hard%d %v %v", x.Key, v.Rev, v.Hard, v.Deps, v.Items))
		}
	}
}

// checkPlan checks that a dry run has no effect.
func (c randomRun) checkPlan(r *rig, tx *txn.Txn) {
	before := r.snapshot()
	n := len(r.m.log)
	if _, err := r.Plan(r.t.Context(), tx); err != nil {
		var te *txn.Error
		if !errors.As(err, &te) {
			r.t.Error(err)
		}
	}
	r.check()
	if len(r.m.log) != n {
		r.t.Errorf("a dry run did something:\n%s", r.m.trace())
	}
	if d := diff(r.snapshot(), before); d != "" {
		r.t.Errorf("a dry run of %s changed the graph:\n%s", tx.Kind, d)
	}
}

// snapshot returns the whole visible state of a scheduler.
func (r *rig) snapshot() map[string]string {
	out := map[string]string{}
	for _, v := range r.Dump(Filter{}) {
		out[v.Key] = fmt.Sprintf("%s %p %p", v.State, v.Desired, v.Applied)
	}
	for _, v := range r.Status(Filter{}) {
		out[v.Key] += fmt.Sprint(v.Error, v.Waits, v.Retries, v.RetryAt)
	}
	for _, v := range r.Graph(Filter{}) {
		out[v.Key] += fmt.Sprint(v.Parent, v.Deps)
	}
	return out
}

// finish checks the final state: it is as desired, equal to that of a new scheduler, and no operation is left to do, for this scheduler and for
// a restarted one.
func (c randomRun) finish(t *testing.T, r *rig, w *world) {
	want := expected(w.desired)
	if d := diff(r.m.actual(), want); d != "" {
		t.Fatalf("in the end:\n%s\n%s", d, r.m.trace())
	}
	for _, v := range r.Status(Filter{}) {
		expect := Pending
		if want[v.Key] != "" {
			expect = Configured
		}
		if v.State != expect {
			t.Errorf("%s is %s, want %s (%s)", v.Key, v.State, expect, v.Error)
		}
	}
	full := &txn.Txn{Kind: txn.FullResync}
	for _, key := range slices.Sorted(maps.Keys(w.desired)) {
		full.Values = append(full.Values, kv(key, w.desired[key]))
	}
	fresh := newRig(t, newMock(t), nil)
	fresh.must(full)
	if d := diff(fresh.m.actual(), want); d != "" {
		t.Errorf("a fresh scheduler:\n%s", d)
	}
	if ops := r.ops(full); ops != "" {
		t.Errorf("full resync without a change:\n%s", ops)
	}
	r.stop()
	if len(c.noDump) == 0 {
		again := newRig(t, r.m, nil)
		if ops := again.ops(full); ops != "" {
			t.Errorf("restart without a change:\n%s", ops)
		}
	}
}

func TestRandom(t *testing.T) {
	runs := 150
	if n := os.Getenv("SCHEDULER_SEEDS"); n != "" { // for a longer search
		var err error
		if runs, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		runs = 40
	}
	for _, c := range []struct {
		name string
		run  randomRun
	}{
		{"healthy", randomRun{steps: 40}},
		{"healthy with cycles", randomRun{steps: 40, cycles: true}},
		{"retriable faults", randomRun{steps: 30, faults: faultPlan{ops: 0.2}}},
		{"retriable faults with cycles", randomRun{steps: 30, faults: faultPlan{ops: 0.2}, cycles: true}},
		{"all faults", randomRun{steps: 30, faults: faultPlan{ops: 0.2, dumps: 0.2, fatal: true}}},
		{"heavy faults", randomRun{steps: 30, faults: faultPlan{ops: 0.6, dumps: 0.3, fatal: true}, cycles: true}},
		{"replaced", randomRun{steps: 30, replaced: true}},
		{"replaced with all faults", randomRun{steps: 30, faults: faultPlan{ops: 0.2, dumps: 0.2, fatal: true}, replaced: true}},
		{"deletes last", randomRun{steps: 40, last: true}},
		{"deletes last with all faults and cycles", randomRun{steps: 30, faults: faultPlan{ops: 0.2, dumps: 0.2, fatal: true}, cycles: true, last: true}},
		{"retriable faults without dumps", randomRun{steps: 30, faults: faultPlan{ops: 0.2}, noDump: []string{"item", "c"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := range runs {
				c.run.seed = uint64(seed)
				synctest.Test(t, c.run.run)
				if t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
