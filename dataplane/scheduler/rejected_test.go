package scheduler

import (
	"errors"
	"testing"

	"contiv.dev/vswitch/dataplane/txn"
)

// blindRig returns a rig whose kind a has a field, Rev, that a dump cannot read.
func blindRig(t *testing.T, m *mock) *rig {
	t.Helper()
	const unreadable = -1
	s := New(Config{Backends: []Backend{m}}, quiet())
	d := m.nbDescriptor("a", "a/", 30)
	d.Equal = func(_ string, desired, applied *obj) bool {
		return (applied.Rev == unreadable || desired.Rev == applied.Rev) && desired.Hard == applied.Hard
	}
	d.Dump = func(op *DumpOp, emit func(string, *obj)) {
		m.dump(op, "a", func(key string, t thing) { emit(key, &obj{Rev: unreadable, Hard: t.hard, Deps: t.deps}) })
	}
	if err := errors.Join(Register(s, d), Register(s, m.nbDescriptor("b", "b/", 40))); err != nil {
		t.Fatal(err)
	}
	return startRig(t, s, m)
}

// applied returns the Rev of the applied version.
func (r *rig) applied(key string) int {
	r.t.Helper()
	for _, v := range r.Dump(Filter{Key: key}) {
		if o, ok := v.Applied.(*obj); ok {
			return o.Rev
		}
	}
	r.t.Fatalf("%s is not applied", key)
	return 0
}

// If the dataplane rejects an update, the previous version stays the applied one, although a dump cannot distinguish the two.
func TestRejectedUpdate(t *testing.T) {
	m := newMock(t)
	r := blindRig(t, m)
	r.must(update(kv("a/1", &obj{Rev: 1}), kv("b/1", &obj{Deps: []string{"a/1"}})))
	m.fault = func(action, key string) *fault {
		if action == "update" && key == "a/1" {
			return &fault{err: errors.New("invalid argument")}
		}
		return nil
	}
	if _, err := r.commit(update(kv("a/1", &obj{Rev: 2}))); err == nil {
		t.Fatal("the rejection is not reported")
	}
	for _, kind := range []txn.Kind{txn.DownstreamResync, txn.FullResync} {
		tx := &txn.Txn{Kind: kind}
		if kind == txn.FullResync {
			tx.Values = []txn.KV{kv("a/1", &obj{Rev: 2}), kv("b/1", &obj{Deps: []string{"a/1"}})}
		}
		if _, err := r.commit(tx); err == nil {
			t.Errorf("%s: the version that the dataplane has rejected counts as applied", kind)
		}
		if got := r.applied("a/1"); got != 1 {
			t.Errorf("%s: version %d is the applied one", kind, got)
		}
	}
	r.expectState("b/1", Configured) // it stays on the previous version
	m.fault = nil
	r.must(&txn.Txn{Kind: txn.DownstreamResync})
	if got := m.things["a/1"].rev; got != 2 || r.applied("a/1") != 2 {
		t.Errorf("the dataplane has version %d, and version %d counts as applied", got, r.applied("a/1"))
	}
}

// If a transaction with a rejected update is reverted, nothing has to be written, and the previous version is configured.
func TestRevertOfRejectedUpdate(t *testing.T) {
	m := newMock(t)
	r := blindRig(t, m)
	r.must(update(kv("a/1", &obj{Rev: 1})))
	m.fault = func(action, _ string) *fault {
		if action == "update" {
			return &fault{err: errors.New("invalid argument")}
		}
		return nil
	}
	m.log = nil
	_, err := r.commit(&txn.Txn{Kind: txn.Update, Revert: true, Values: []txn.KV{kv("a/1", &obj{Rev: 2})}})
	var e *txn.Error
	if !errors.As(err, &e) || !e.Reverted || e.RevertErr != nil {
		t.Fatalf("commit: %v", err)
	}
	if len(m.log) != 1 {
		t.Errorf("operations %v", m.log)
	}
	r.expectState("a/1", Configured)
	if got := r.applied("a/1"); got != 1 {
		t.Errorf("version %d is the applied one", got)
	}
}
