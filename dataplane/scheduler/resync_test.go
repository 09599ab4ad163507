package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func full(values ...txn.KV) *txn.Txn { return &txn.Txn{Kind: txn.FullResync, Values: values} }

func TestFullResyncRepairs(t *testing.T) {
	m := newMock(t)
	m.things["b/1"] = thing{kind: "b", rev: 1}                       // not as desired
	m.things["b/2"] = thing{kind: "b"}                               // not desired
	m.things["c/2"] = thing{kind: "c", deps: []string{"b/2"}}        // not desired
	m.things["b/3"] = thing{kind: "b"}                               // as desired
	m.things["item:b/3:x"] = thing{kind: "item", parent: "b/3"}      // desired
	m.things["item:b/3:y"] = thing{kind: "item", parent: "b/3"}      // not desired any more
	m.things["item:b/2:z"] = thing{kind: "item", parent: "b/2"}      // removed before its parent
	m.things["foreign"] = thing{kind: "none of ours"}                // not dumped
	m.things["item:a/9:z"] = thing{kind: "item", rev: 1}             // its parent is gone
	m.things["a/4"] = thing{kind: "a", hard: 1, deps: []string(nil)} // to be created again
	r := newRig(t, m, nil)
	tx := full(kv("b/1", &obj{Rev: 2}), kv("b/3", &obj{Items: []item{{Name: "x"}}}), kv("a/4", &obj{}), kv("a/5", &obj{}))
	ops, err := r.Plan(context.Background(), tx)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(r.graph.nodes); n != 0 {
		t.Errorf("%d nodes after a dry run", n)
	}
	got := r.ops(tx)
	if len(ops) != strings.Count(got, "\n")+1 {
		t.Errorf("planned %v", ops)
	}
	expectOps(t, got, `
		delete c/2
		delete item:a/9:z
		delete item:b/2:z
		delete item:b/3:y
		delete a/4
		delete b/2
		update b/1
		create a/4
		create a/5`)
	expectOps(t, r.ops(tx), "")
	delete(m.things, "b/1")
	expectOps(t, r.ops(&txn.Txn{Kind: txn.UpstreamResync, Values: tx.Values}), "")
	expectOps(t, r.ops(&txn.Txn{Kind: txn.DownstreamResync}), "create b/1")
	expectOps(t, r.ops(&txn.Txn{Kind: txn.UpstreamResync, Values: tx.Values[1:3]}), "delete a/5\ndelete b/1")
}

func TestFailedDumpTouchesNothing(t *testing.T) {
	m := newMock(t)
	m.things["b/1"] = thing{kind: "b"}
	m.things["a/1"] = thing{kind: "a"}
	m.dumpErr = func(kind string) error {
		if kind == "b" {
			return errors.New("no such message")
		}
		return nil
	}
	r := newRig(t, m, nil)
	tx := full(kv("b/2", &obj{}), kv("a/2", &obj{}), kv("c/1", deps("b/2")))
	_, err := r.commit(tx)
	var te *txn.Error
	if !errors.As(err, &te) || !te.Escalate() || len(te.Failed) != 1 || te.Failed[0].Key != "b/" {
		t.Fatalf("error: %v", err)
	}
	r.expectThings("b/1", "a/1", "a/2") // a was repaired; b was not changed, and a/1 may be used by values that could not be dumped
	r.expectState("b/2", Unknown)
	r.expectState("c/1", Pending)
	if _, err = r.commit(update(kv("b/3", &obj{}))); !errors.As(err, &te) || te.Failed[0].Key != "b/3" {
		t.Errorf("error: %v", err)
	}
	r.expectThings("b/1", "a/1", "a/2")
	m.dumpErr = nil
	r.must(update(kv("b/3", nil), kv("a/3", deps("b/4")), kv("b/4", &obj{}))) // b/4 needs the dump, which finds b/1
	r.expectThings("a/1", "a/2", "a/3", "b/2", "b/4", "c/1")
	r.must(&txn.Txn{Kind: txn.DownstreamResync})
	r.expectThings("a/2", "a/3", "b/2", "b/4", "c/1")
}

// When a value is lost, values that use it and cannot be dumped are lost, too, and the state of the others that use it becomes unknown.
func TestLostDependency(t *testing.T) {
	m := newMock(t)
	m.noDump["item"] = true
	r := newRig(t, m, nil)
	r.must(update(kv("b/1", &obj{Items: []item{{Name: "x"}}}), kv("a/1", deps("b/1")), kv("c/1", deps("item:b/1:x"))))
	m.fault = func(action, key string) *fault {
		clear(m.things) // the dataplane restarts
		m.fault = nil
		return &fault{err: OutcomeUnknown(errors.New("disconnected"))}
	}
	if _, err := r.commit(update(kv("b/1", &obj{Rev: 1, Items: []item{{Name: "x"}}}))); err == nil {
		t.Fatal("no error")
	}
	expectOps(t, r.ops(update(kv("b/1", &obj{Rev: 2, Items: []item{{Name: "x"}}}))), `
		create b/1
		create a/1
		create item:b/1:x
		create c/1`)
	if got := strings.Join(m.dumps, " "); got != "b a c" && got != "b c a" {
		t.Errorf("dumped %s", got)
	}
}

func TestDumpBugs(t *testing.T) {
	m := newMock(t)
	s := New(Config{Backends: []Backend{m}}, quiet())
	a, b := m.nbDescriptor("a", "a/", 10), m.nbDescriptor("b", "b/", 20)
	var kept *DumpOp
	a.Dump = func(op *DumpOp, emit func(string, *obj)) { kept = op }
	b.Dump = func(op *DumpOp, emit func(string, *obj)) {
		if op.Context().Err() != nil {
			t.Error("context has ended")
		}
		op.EachDesired(func(key string, v any) { emit(key, v.(*obj)) })
		op.Done(nil)
		op.Done(nil)
		emit("b/2", &obj{})
	}
	if err := errors.Join(Register(s, a), Register(s, b)); err != nil {
		t.Fatal(err)
	}
	r := startRig(t, s, m)
	_, err := r.commit(full(kv("b/1", &obj{}), kv("a/1", &obj{})))
	if !errors.Is(err, errDumpBug) {
		t.Errorf("error: %v", err)
	}
	kept.Done(nil)
	r.expectThings()
	r.expectState("b/1", Configured)
	r.expectState("a/1", Unknown)
}

// A dump that emits keys of another kind changes nothing under these keys, whether they are in use or not, and fails no transaction: the dataplane may
// be at fault. The keys of derived items may begin with the prefix of their parents.
func TestDumpOfAnotherKindsKeys(t *testing.T) {
	m := newMock(t)
	var log strings.Builder
	s := New(Config{Backends: []Backend{m}}, slog.New(slog.NewTextHandler(&log, nil)))
	a, b := m.nbDescriptor("a", "a/", 10), m.nbDescriptor("b", "b/", 20)
	b.Dump = func(op *DumpOp, emit func(string, *obj)) {
		for _, key := range []string{"a/1", "a/2", "a/3", "item:a/1:x", "of no kind"} {
			emit(key, &obj{Rev: 7})
		}
		m.dump(op, "b", func(key string, v thing) { emit(key, &obj{Rev: v.rev}) })
	}
	own, wrong := m.derivedDescriptor("own", 30, false), false
	own.Dump = func(op *DumpOp, emit func(string, ownedItem)) {
		if wrong {
			emit("a/2", ownedItem{})
		}
		m.dump(op, "own", func(key string, v thing) { emit(key, ownedItem{parent: v.parent}) })
	}
	b.Derive = func(key string, _ *obj, put func(kind, itemKey string, it any)) {
		put("own", key+"/own", ownedItem{parent: key})
	}
	for _, err := range []error{Register(s, a), Register(s, b), Register(s, own), Register(s, m.derivedDescriptor("item", 65, false))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r := startRig(t, s, m)
	values := []txn.KV{kv("a/1", &obj{Items: []item{{Name: "x"}}}), kv("b/1", &obj{})}
	r.must(full(values...))
	for range 2 {
		log.Reset()
		if got := r.ops(full(values...)); got != "" {
			t.Errorf("operations: %s", got)
		}
		if n := strings.Count(log.String(), "keys of another kind"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, log.String())
		}
		values = append(values, kv("a/2", &obj{})) // a key that only the dump of b has contained so far
		r.must(update(values...))
	}
	r.expectThings("a/1", "a/2", "b/1", "b/1/own", "item:a/1:x")
	wrong = true // a bug of a descriptor, which no dataplane can cause
	if _, err := r.commit(full(values...)); err == nil || !strings.Contains(err.Error(), "dumped as kind own") {
		t.Errorf("error: %v", err)
	}
}

func TestPlanHasNoEffect(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	r.must(update(kv("p/1", &obj{Items: []item{{Name: "x"}}}), kv("c/1", deps("b/1"))))
	before := r.snapshot()
	ops, err := r.Plan(context.Background(), update(kv("b/1", &obj{}), kv("p/1", &obj{Hard: 1}), kv("b/7", nil)))
	if err != nil || len(ops) != 5 {
		t.Errorf("%v %v", ops, err)
	}
	if _, err = r.Plan(context.Background(), update(kv("b/1", &obj{Bad: true}), kv("b/2", &obj{}))); err == nil {
		t.Error("no error")
	}
	if _, err = r.Plan(context.Background(), update(kv("b/1", &obj{Items: []item{{Name: "y", Bad: true}}}))); err == nil {
		t.Error("no error")
	}
	r.check()
	if d := diff(r.snapshot(), before); d != "" {
		t.Error(d)
	}
	if len(r.m.log) != 2 || len(r.History(HistoryFilter{})) != 1 {
		t.Errorf("log %v", r.m.log)
	}
}

func TestCommitContextAndClose(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	ctx, cancel := context.WithCancel(context.Background())
	entered, leave := make(chan bool), make(chan bool)
	r.m.fault = func(action, key string) *fault {
		entered <- true
		<-leave
		return nil
	}
	var wg sync.WaitGroup
	var first, second error
	wg.Go(func() { _, first = r.Commit(ctx, update(kv("a/1", &obj{}))) })
	<-entered
	wg.Go(func() { _, second = r.Commit(context.Background(), update(kv("a/2", &obj{}))) })
	for queued := false; !queued; time.Sleep(time.Millisecond) {
		r.qmu.Lock()
		queued = len(r.queue) == 1
		r.qmu.Unlock()
	}
	cancel()
	wg.Go(func() { r.Close() })
	for closed := false; !closed; time.Sleep(time.Millisecond) {
		r.qmu.Lock()
		closed = r.closed
		r.qmu.Unlock()
	}
	if n := len(r.Dump(Filter{})); n != 1 { // readers do not wait for the dataplane
		t.Errorf("%d values", n)
	}
	close(leave)
	wg.Wait()
	if !errors.Is(first, context.Canceled) || !errors.Is(second, txn.ErrClosed) {
		t.Errorf("errors: %v; %v", first, second)
	}
	r.expectThings("a/1")
	if len(r.History(HistoryFilter{})) != 1 {
		t.Error("the abandoned transaction is not in the history")
	}
	if _, err := r.Commit(context.Background(), update()); !errors.Is(err, txn.ErrClosed) {
		t.Errorf("error: %v", err)
	}
	if _, err := r.Commit(ctx, update()); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	r.Close()
	if err := r.Start(); !errors.Is(err, txn.ErrClosed) {
		t.Errorf("error: %v", err)
	}
}

func TestReadersDuringCommits(t *testing.T) {
	r := newRig(t, newMock(t), nil)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r.Dump(Filter{})
				r.Status(Filter{States: []State{Pending}})
				r.Graph(Filter{KeyPrefix: "a/"})
				r.Counts()
				r.Stats()
				r.History(HistoryFilter{})
			}
		})
	}
	for i := range 200 {
		v := &obj{Rev: i, Hard: i / 3 % 2, Items: []item{{Name: "x"}, {Name: string(rune('a' + i%5))}}}
		tx := update(kv("p/1", v), kv("a/1", deps("b/1")), kv("b/1", &obj{}))
		if i%2 == 0 {
			tx.Values[2].Value = nil
		}
		if i%10 == 0 {
			tx.Kind = txn.FullResync
			tx.Values = tx.Values[:1]
		}
		if _, err := r.Commit(context.Background(), tx); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
}
