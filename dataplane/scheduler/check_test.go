package scheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/txn"
)

func TestCheck(t *testing.T) {
	m := newMock(t)
	r := newRig(t, m, nil)
	items := &obj{Items: []item{{Name: "x"}, {Name: "y"}}}
	r.must(update(kv("a/1", items), kv("a/2", &obj{}), kv("b/1", &obj{}), kv("c/1", &obj{})))
	check := func(keys ...string) string {
		t.Helper()
		m.dumps = nil
		ops, err := r.Check(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		var due []string
		for _, op := range ops {
			due = append(due, string(op.Action)+" "+op.Key)
		}
		return strings.Join(due, ", ")
	}
	if due := check("a/1", "b/1"); due != "" {
		t.Errorf("all is well, and due is %q", due)
	}
	if slices.Contains(m.dumps, "c") || !slices.Contains(m.dumps, "a") || !slices.Contains(m.dumps, "b") {
		t.Errorf("kinds dumped for values of a and b: %q", m.dumps)
	}
	m.sync(func() {
		delete(m.things, "item:a/1:x")
		other := m.things["b/1"]
		other.rev++
		m.things["b/1"] = other
		delete(m.things, "a/2")
	})
	if due, want := check("a/1", "b/1"), "update b/1, create item:a/1:x"; due != want {
		t.Errorf("due is %q, want %q", due, want)
	}
	if due := check("c/1", "nobody"); due != "" {
		t.Errorf("due for others: %q", due)
	}
	r.expectState("b/1", Configured) // the check changed no state
	if rec := r.must(&txn.Txn{Kind: txn.DownstreamResync}); len(rec.Executed) != 3 {
		t.Errorf("repairs:\n%s", rec)
	}
	m.dumpErr = func(kind string) error {
		if kind == "b" {
			return errors.New("no answer")
		}
		return nil
	}
	if _, err := r.Check(t.Context(), []string{"b/1"}); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("a dump fails: %v", err)
	}
	r.stop()
	if _, err := r.Check(t.Context(), []string{"a/1"}); !errors.Is(err, txn.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
