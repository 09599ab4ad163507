package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func deps(d ...string) *obj { return &obj{Deps: d} }

func expectOps(t *testing.T, got, want string) {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(want, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if want = strings.Join(lines, "\n"); got != want {
		t.Errorf("operations:\n%s\nwant:\n%s", got, want)
	}
}

func TestPendingUntilDependencyAppears(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	rec := r.must(update(kv("a/1", deps("b/1"))))
	r.expectState("a/1", Pending)
	if len(rec.Pending) != 1 || rec.Pending[0] != "a/1" || len(rec.Executed) != 0 {
		t.Errorf("record: %+v", rec)
	}
	if st := r.Status(Filter{Key: "a/1"}); len(st) != 1 || len(st[0].Waits) != 1 || st[0].Waits[0] != "b/1" {
		t.Errorf("status: %+v", st)
	}
	expectOps(t, r.ops(update(kv("b/1", &obj{}))), "create b/1\ncreate a/1")
	r.expectState("a/1", Configured)
	expectOps(t, r.ops(update(kv("b/1", nil))), "delete a/1\ndelete b/1")
	r.expectState("a/1", Pending)
	r.must(update(kv("a/1", nil)))
	if n := len(r.graph.nodes); n != 0 {
		t.Errorf("%d nodes left", n)
	}
}

// Dependencies may contradict ranks: c (95) is created first, because b (10) depends on it.
func TestOrderAndWaves(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	values := []txn.KV{
		kv("b/2", deps("c/1")), kv("a/1", deps("b/1")), kv("c/1", deps("a/1")), kv("b/1", &obj{}), kv("b/3", &obj{}),
		kv("a/2", &obj{}),
	}
	rec := r.must(update(values...))
	var got []string
	for _, op := range rec.Executed {
		got = append(got, fmt.Sprintf("%d %s %s", op.Wave, op.Action, op.Key))
	}
	expectOps(t, strings.Join(got, "\n"), `
		0 create b/1
		0 create b/3
		1 create a/2
		1 create a/1
		2 create c/1
		3 create b/2`)
	for i := range values {
		values[i].Value = nil
	}
	expectOps(t, r.ops(update(values...)), `
		delete a/2
		delete b/2
		delete b/3
		delete c/1
		delete a/1
		delete b/1`)
}

func TestRecreateCascadesUpdateDoesNot(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	p := &obj{Items: []item{{Name: "x"}, {Name: "y", Implied: true}}}
	r.must(update(kv("p/1", p), kv("c/1", deps("p/1")), kv("c/2", deps("item:p/1:x"))))
	p2 := *p
	p2.Rev = 1
	expectOps(t, r.ops(update(kv("p/1", &p2))), "update p/1")
	p3 := p2
	p3.Hard = 1
	rec := r.must(update(kv("p/1", &p3)))
	var got []string
	for _, op := range rec.Executed {
		got = append(got, string(op.Action)+" "+op.Key)
	}
	expectOps(t, strings.Join(got, "\n"), `
		delete c/1
		delete c/2
		delete item:p/1:x
		delete item:p/1:y
		delete p/1
		recreate p/1
		recreate item:p/1:y
		recreate item:p/1:x
		recreate c/1
		recreate c/2`)
}

func TestItems(t *testing.T) {
	for _, key := range []string{"p/1", "a/1"} { // with and without DeriveDiff
		t.Run(key, func(t *testing.T) {
			r := newRig(t, newMock(t), nil)
			x, y := item{Name: "x", Deps: []string{"b/1"}}, item{Name: "y"}
			expectOps(t, r.ops(update(kv(key, &obj{Items: []item{x, y}}))), "create "+key+"\ncreate item:"+key+":y")
			r.expectState("item:"+key+":x", Pending)
			r.expectState(key, Configured)
			expectOps(t, r.ops(update(kv("b/1", &obj{}))), "create b/1\ncreate item:"+key+":x")
			y.Rev = 1
			expectOps(t, r.ops(update(kv(key, &obj{Items: []item{x, y, {Name: "z"}}}))),
				"delete item:"+key+":y\ncreate item:"+key+":y\ncreate item:"+key+":z")
			expectOps(t, r.ops(update(kv(key, &obj{Items: []item{y}}))),
				"delete item:"+key+":x\ndelete item:"+key+":z")
			if d := r.Dump(Filter{Key: "item:" + key + ":y"}); len(d) != 1 || d[0].Parent != key {
				t.Errorf("dump: %+v", d)
			}
			expectOps(t, r.ops(update(kv(key, nil))), "delete item:"+key+":y\ndelete "+key)
		})
	}
}

// An item may move to another parent in the same transaction, in any order of the values.
func TestItemMoves(t *testing.T) {
	for _, order := range [][2]string{{"m/1", "m/2"}, {"m/2", "m/1"}} {
		m := newMock(t)
		s := New(Config{Backends: []Backend{m}}, quiet())
		k := m.nbDescriptor("m", "m/", 40)
		k.Derive = func(key string, v *obj, put func(kind, itemKey string, it any)) {
			for _, it := range v.Items {
				put("item", "item:"+it.Name, ownedItem{it, key})
			}
		}
		ik := m.derivedDescriptor("item", 50, false)
		ik.Equal = func(_ string, d, a ownedItem) bool { return d.parent == a.parent }
		if err := errors.Join(Register(s, k), Register(s, ik)); err != nil {
			t.Fatal(err)
		}
		r := startRig(t, s, m)
		r.must(update(kv("m/1", &obj{Items: []item{{Name: "x"}}}), kv("m/2", &obj{})))
		values := map[string]*obj{"m/1": {}, "m/2": {Items: []item{{Name: "x"}}}}
		expectOps(t, r.ops(update(kv(order[0], values[order[0]]), kv(order[1], values[order[1]]))),
			"delete item:x\ncreate item:x")
		if d := r.Dump(Filter{Key: "item:x"}); d[0].Parent != "m/2" {
			t.Errorf("parent is %s", d[0].Parent)
		}
		expectOps(t, r.ops(update(kv("m/1", nil))), "delete m/1")
		expectOps(t, r.ops(update(kv("m/2", nil))), "delete item:x\ndelete m/2")
	}
}

func TestImpliedByParent(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	v := &obj{Items: []item{{Name: "x", Implied: true}, {Name: "y", Implied: true, Deps: []string{"b/1"}},
		{Name: "z", Implied: true, Deps: []string{"b/2"}}}}
	r.must(update(kv("b/1", &obj{}), kv("b/2", deps("p/1")), kv("p/1", v), kv("c/1", deps("item:p/1:x"))))
	// x is removed with its parent, after the values that depend on it; so is y, before its own dependency; but z blocks b/2, which blocks the
	// parent.
	expectOps(t, r.ops(update(kv("p/1", nil), kv("b/1", nil), kv("b/2", nil), kv("c/1", nil))), `
		delete c/1
		delete item:p/1:z
		delete item:p/1:y
		delete item:p/1:x
		delete b/2
		delete b/1
		delete p/1`)
	r.expectThings()
	r.must(update(kv("b/1", &obj{}), kv("p/1", &obj{Items: v.Items[:2]}), kv("c/1", deps("item:p/1:x"))))
	expectOps(t, r.ops(update(kv("p/1", nil), kv("b/1", nil), kv("c/1", nil))), "delete c/1\ndelete p/1\ndelete b/1")
	r.expectThings()

	r.must(update(kv("p/1", &obj{Items: v.Items[:1]})))
	r.m.fault = func(action, key string) *fault { return &fault{err: errors.New("refused")} }
	if _, err := r.commit(update(kv("p/1", nil))); err == nil {
		t.Error("no error")
	}
	r.m.fault = nil
	r.expectThings("p/1", "item:p/1:x")
	expectOps(t, r.ops(update(kv("p/1", &obj{}))), "delete item:p/1:x")
}

func TestCycleStaysPending(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("a/1", deps("b/1")), kv("b/1", deps("a/1")), kv("c/1", deps("c/1"))))
	r.expectThings()
	for _, st := range r.Status(Filter{}) {
		if st.State != Pending || len(st.Cycle) == 0 {
			t.Errorf("status: %+v", st)
		}
	}
	expectOps(t, r.ops(update(kv("b/1", &obj{}))), "create b/1\ncreate a/1")
	expectOps(t, r.ops(update(kv("b/1", deps("a/1")))), "delete a/1\ndelete b/1")
	r.expectState("a/1", Pending)
	r.expectState("b/1", Pending)
}

func TestFailureLeavesTheRest(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.m.fault = func(action, key string) *fault {
		if key == "b/1" {
			return &fault{err: errors.New("refused")}
		}
		return nil
	}
	rec, err := r.commit(update(kv("b/1", &obj{}), kv("a/1", deps("b/1")), kv("a/2", &obj{}), kv("c/1", deps("a/1"))))
	var te *txn.Error
	if !errors.As(err, &te) || len(te.Failed) != 1 || te.Failed[0].Key != "b/1" || te.Failed[0].Retriable || !te.Escalate() {
		t.Fatalf("error: %v", err)
	}
	if len(rec.Planned) != 4 || len(rec.Executed) != 2 || len(rec.Pending) != 2 {
		t.Errorf("record: %s", rec)
	}
	r.expectThings("a/2")
	r.expectState("b/1", Failed)
	r.expectState("a/1", Pending)
	r.expectState("c/1", Pending)
	r.m.fault = nil
	r.must(update(kv("b/1", &obj{})))
	r.expectThings("a/1", "a/2", "b/1", "c/1")
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []*txn.Error
		r := newRig(t, newMock(t), func(c *Config) {
			c.Retry = RetryPolicy{First: time.Second, Max: 5 * time.Second, Attempts: 5}
			c.Report = func(_ *txn.Record, err *txn.Error) { reported = append(reported, err) }
		})
		var at []time.Duration
		start := time.Now()
		r.m.fault = func(action, key string) *fault {
			at = append(at, time.Since(start))
			return &fault{err: Retry(errors.New("busy"))}
		}
		_, err := r.commit(update(kv("b/1", &obj{}), kv("a/1", deps("b/1"))))
		var te *txn.Error
		if !errors.As(err, &te) || te.Escalate() {
			t.Fatalf("error: %v", err)
		}
		r.expectState("b/1", Retrying)
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 1, 3, 7, 12, 17}
		if len(at) != len(want) {
			t.Fatalf("tried at %v", at)
		}
		for i := range want {
			if at[i] != want[i]*time.Second {
				t.Errorf("tried at %v, want %v s", at, want)
				break
			}
		}
		r.expectState("b/1", Failed)
		if len(reported) != 1 || reported[0].Failed[0].Key != "b/1" {
			t.Errorf("reported: %v", reported)
		}

		if _, err = r.commit(update(kv("b/1", &obj{Rev: 1}))); err == nil {
			t.Error("no error")
		}
		r.m.sync(func() { r.m.fault = nil })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.expectThings("a/1", "b/1")
		r.expectState("b/1", Configured)

		r.m.fault = func(string, string) *fault { return &fault{err: Retry(errors.New("busy"))} }
		tx := update(kv("b/2", &obj{}))
		tx.NoRetry = true
		if _, err = r.commit(tx); !errors.As(err, &te) || !te.Escalate() {
			t.Errorf("error: %v", err)
		}
		r.m.sync(func() { r.m.fault = nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		r.expectState("b/2", Failed)
	})
}

// TestRetryOfOnePod: a value that fails because of its pod is retried as long as it fails, also if the error is final for other values, and is never
// reported.
func TestRetryOfOnePod(t *testing.T) {
	for name, err := range map[string]error{"temporary": Retry(errors.New("renamed")), "final": errors.New("foreign")} {
		t.Run(name, func(t *testing.T) { testRetryOfOnePod(t, PodOnly(err)) })
	}
}

func testRetryOfOnePod(t *testing.T, cause error) {
	synctest.Test(t, func(t *testing.T) {
		reports := 0
		r := newRig(t, newMock(t), func(c *Config) {
			c.Retry = RetryPolicy{First: time.Second, Max: 5 * time.Second, Attempts: 3}
			c.Report = func(*txn.Record, *txn.Error) { reports++ }
		})
		tries := 0
		r.m.fault = func(string, string) *fault {
			tries++
			return &fault{err: cause}
		}
		_, err := r.commit(update(kv("b/1", &obj{})))
		var te *txn.Error
		if !errors.As(err, &te) || te.Escalate() || !te.Failed[0].PodOnly {
			t.Fatalf("error: %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if tries < 12 || reports != 0 {
			t.Errorf("%d tries in a minute, %d reports", tries, reports)
		}
		r.expectState("b/1", Retrying)
		r.m.sync(func() { r.m.fault = nil })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		r.expectThings("b/1")

		r.m.fault = func(string, string) *fault { return &fault{err: cause} } // while the pod is deleted
		if _, err := r.commit(update(kv("b/1", nil))); !errors.As(err, &te) || te.Escalate() || !te.Failed[0].Retriable {
			t.Errorf("error: %v", err)
		}
		r.m.sync(func() { r.m.fault = nil })
		time.Sleep(6 * time.Second)
		synctest.Wait()
		r.expectThings()

		r.m.fault = func(string, string) *fault { return &fault{err: PodOnly(errors.New("foreign"))} }
		tx := update(kv("b/2", &obj{}))
		tx.NoRetry = true
		if _, err := r.commit(tx); !errors.As(err, &te) || te.Escalate() {
			t.Errorf("error: %v", err)
		}
		tries = 0
		r.m.fault = func(string, string) *fault {
			tries++
			return &fault{err: PodGone(cause)}
		}
		if _, err := r.commit(update(kv("b/3", &obj{}))); !errors.As(err, &te) || te.Escalate() || !te.Failed[0].PodOnly {
			t.Errorf("error: %v", err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if tries != 1 || reports != 0 {
			t.Errorf("the pod is gone: %d tries, %d reports", tries, reports)
		}
		r.expectState("b/3", Failed)
	})
}

func TestOutcomeUnknown(t *testing.T) {
	for _, done := range []bool{false, true} {
		for _, action := range []string{"create", "update", "delete"} {
			t.Run(fmt.Sprintf("%s done=%t", action, done), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testUnknown(t, action, done) })
			})
		}
	}
}

func testUnknown(t *testing.T, action string, done bool) {
	r := newRig(t, newMock(t), nil)
	lose := func(a, key string) *fault {
		if a == action && key == "a/1" {
			return &fault{err: OutcomeUnknown(errors.New("timeout")), effect: done}
		}
		return nil
	}
	final := kv("a/1", &obj{Rev: 1})
	switch action {
	case "create":
		r.m.fault = lose
	case "update":
		r.must(update(kv("a/1", &obj{})))
		r.m.fault = lose
	case "delete":
		r.must(update(kv("a/1", &obj{})))
		r.m.fault = lose
		final = kv("a/1", nil)
	}
	if _, err := r.commit(update(final, kv("c/1", deps("a/1")))); err == nil {
		t.Fatal("no error")
	}
	r.expectState("a/1", Unknown)
	r.expectState("c/1", Pending)
	r.m.sync(func() {
		r.m.fault, r.m.log = nil, nil
		if len(r.m.dumps) != 0 {
			t.Errorf("dumped %v", r.m.dumps)
		}
	})
	time.Sleep(2 * time.Second)
	synctest.Wait()
	r.check()
	r.m.sync(func() {}) // for the race detector
	if len(r.m.dumps) != 1 || r.m.dumps[0] != "a" {
		t.Errorf("dumped %v", r.m.dumps)
	}
	var want string
	if !done {
		want = action + " a/1\n"
	}
	if action != "delete" {
		want += "create c/1"
		r.expectState("a/1", Configured)
	}
	expectOps(t, strings.Join(r.m.log, "\n"), want)
}

// A failed update may have been done in part: the next operation comes after a dump.
func TestFailedUpdateIsDumped(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("a/1", &obj{})))
	r.m.fault = func(string, string) *fault { return &fault{err: errors.New("refused"), effect: true} }
	if _, err := r.commit(update(kv("a/1", &obj{Rev: 1}))); err == nil {
		t.Fatal("no error")
	}
	r.m.fault = nil
	expectOps(t, r.ops(update(kv("a/1", &obj{Rev: 1}))), "")
	r.expectState("a/1", Configured)
	if len(r.m.dumps) != 1 {
		t.Errorf("dumped %v", r.m.dumps)
	}
}

func TestBackendBug(t *testing.T) {
	m := newMock(t)
	s := New(Config{Backends: []Backend{m}}, quiet())
	k := m.nbDescriptor("a", "a/", 10)
	var kept *Op
	k.Create = func(op *Op, _ string, _ *obj) { kept = op }
	if err := Register(s, k); err != nil {
		t.Fatal(err)
	}
	r := startRig(t, s, m)
	_, err := r.commit(update(kv("a/1", &obj{})))
	if err == nil || !strings.Contains(err.Error(), "backend bug") {
		t.Errorf("error: %v", err)
	}
	r.expectState("a/1", Unknown)
	kept.Done(nil) // too late: it is only logged
	r.expectState("a/1", Unknown)
}

func TestRevert(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	old := &obj{Items: []item{{Name: "x"}}}
	r.must(update(kv("p/1", old), kv("b/1", &obj{}), kv("a/1", deps("b/1")), kv("a/9", deps("b/9"))))
	r.m.fault = func(action, key string) *fault {
		if key == "c/1" {
			return &fault{err: Retry(errors.New("busy"))}
		}
		return nil
	}
	before := r.m.actual()
	tx := update(kv("p/1", &obj{Rev: 1, Items: []item{{Name: "y"}}}), kv("b/1", nil), kv("b/2", &obj{}), kv("c/1", &obj{}))
	tx.Revert = true
	rec, err := r.commit(tx)
	var te *txn.Error
	if !errors.As(err, &te) || !te.Reverted || te.RevertErr != nil || len(te.Failed) != 1 || !rec.Reverted {
		t.Fatalf("error %v, record %s", err, rec)
	}
	if d := diff(r.m.actual(), before); d != "" {
		t.Errorf("not reverted:\n%s", d)
	}
	for _, st := range r.Status(Filter{}) {
		if st.RetryAt != nil {
			t.Errorf("a retry is left: %+v", st)
		}
	}
	r.m.fault = nil

	tx = update(kv("b/2", &obj{}), kv("a/2", deps("b/none")))
	tx.Revert = true
	if _, err = r.commit(tx); !errors.Is(err, errPending) {
		t.Errorf("error: %v", err)
	}
	if d := diff(r.m.actual(), before); d != "" {
		t.Errorf("not reverted:\n%s", d)
	}
	tx = update(kv("b/2", &obj{}), kv("a/9", &obj{Rev: 1, Deps: []string{"b/9"}})) // was pending before
	tx.Revert = true
	r.must(tx)
}

func TestRevertFails(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.m.fault = func(action, key string) *fault {
		if key == "a/1" || action == "delete" {
			return &fault{err: errors.New("refused")}
		}
		return nil
	}
	tx := update(kv("b/1", &obj{}), kv("a/1", &obj{}))
	tx.Revert = true
	_, err := r.commit(tx)
	var te *txn.Error
	if !errors.As(err, &te) || te.RevertErr == nil || !te.Escalate() {
		t.Fatalf("error: %v", err)
	}
}

func TestInvalid(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("a/1", &obj{})))
	bad := &obj{Rev: 1, Bad: true}
	_, err := r.commit(update(kv("a/1", bad), kv("a/2", &obj{}), kv("a/3", bad), kv("x/1", &obj{})))
	var te *txn.Error
	if !errors.As(err, &te) || len(te.Failed) != 3 || !strings.Contains(err.Error(), "a/1: bad: must not be set") {
		t.Fatalf("error: %v", err)
	}
	r.expectThings("a/1", "a/2") // the previous value stays
	r.expectState("a/1", Invalid)
	r.expectState("a/3", Invalid)
	if _, err = r.commit(&txn.Txn{Kind: txn.FullResync, Values: []txn.KV{kv("a/1", bad), kv("a/2", bad)}}); err == nil {
		t.Error("no error")
	}
	r.expectThings("a/1", "a/2")
	r.expectState("a/3", Nonexistent)
	r.must(update(kv("a/1", &obj{})))
	r.expectState("a/1", Configured)

	tx := update(kv("a/4", &obj{}), kv("a/5", bad))
	tx.Revert = true
	rec, err := r.commit(tx)
	if !errors.As(err, &te) || !te.Reverted || len(rec.Executed) != 0 {
		t.Errorf("error: %v", err)
	}
	r.expectThings("a/1", "a/2")

	if _, err = r.commit(update(kv("p/1", &obj{Items: []item{{Name: "x", Bad: true}, {Name: "y"}}}))); err == nil {
		t.Error("no error")
	}
	r.expectThings("a/1", "a/2", "item:p/1:y", "p/1")
	r.expectState("item:p/1:x", Invalid)
	_, err = r.commit(update(txn.KV{Key: "a/7", Value: (*obj)(nil)}))
	if err == nil || !strings.Contains(err.Error(), "nil pointer") {
		t.Errorf("error: %v", err)
	}
	if _, err = r.commit(update(kv("item:p/1:y", &obj{}))); err == nil {
		t.Error("items can be put")
	}
}
