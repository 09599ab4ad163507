package scheduler

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// Values are removed after their replacements are created; values that must be removed before an early removal are removed before it.
func TestDeletesLast(t *testing.T) {
	m := newMock(t)
	m.last = true
	r := newRig(t, m, nil)
	with := func(names ...string) *obj {
		v := &obj{}
		for _, name := range names {
			v.Items = append(v.Items, item{Name: name})
		}
		return v
	}
	r.must(update(kv("a/1", &obj{}), kv("p/1", with("x")), kv("p/2", with("x")), kv("p/3", &obj{Deps: []string{"a/1"}})))
	for _, c := range []struct {
		change []txn.KV
		want   string
	}{
		{[]txn.KV{kv("p/1", with("y"))}, "create item:p/1:y, delete item:p/1:x"},
		{[]txn.KV{kv("p/2", nil), kv("p/4", with("x"))}, "create p/4, create item:p/4:x, delete item:p/2:x, delete p/2"},
		{[]txn.KV{kv("a/1", nil), kv("p/3", nil), kv("p/5", &obj{})}, "delete p/3, delete a/1, create p/5"},
	} {
		rec := r.must(update(c.change...))
		if got := strings.ReplaceAll(actions(rec.Executed), "\n", ", "); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// A value that is deleted last stays, with its items, as long as an operation that should remove the last reference to it fails; also if a new scheduler
// finds the reference. Others are deleted.
func TestReferencedValuesStay(t *testing.T) {
	for _, c := range []struct {
		name, action string // of the operation that fails
		next         *obj   // the next value of c/1
		restart      bool
	}{
		{"changed", "update", &obj{Rev: 2, Refs: []string{"p/2"}}, false},
		{"changed by the next agent", "update", &obj{Rev: 2, Refs: []string{"p/2"}}, true},
		{"created again", "create", &obj{Hard: 2, Refs: []string{"p/2"}}, false},
		{"removed", "delete", nil, false},
		{"removed by the next agent", "delete", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMock(t)
				m.last = true
				r := newRig(t, m, nil)
				r.must(update(kv("p/1", &obj{Items: []item{{Name: "x"}}}), kv("p/2", &obj{Items: []item{{Name: "y"}}}), kv("p/3", &obj{}),
					kv("c/1", &obj{Refs: []string{"p/1"}})))
				change := update(kv("p/1", nil), kv("p/3", nil), kv("c/1", c.next))
				if c.restart {
					r.stop()
					r = newRig(t, m, nil)
					change = &txn.Txn{Kind: txn.FullResync, Values: []txn.KV{kv("p/2", &obj{Items: []item{{Name: "y"}}})}}
					if c.next != nil {
						change.Values = append(change.Values, kv("c/1", c.next))
					}
				}
				m.sync(func() {
					m.fault = func(action, key string) *fault {
						if action == c.action && key == "c/1" {
							return &fault{err: Retry(errors.New("no memory"))}
						}
						return nil
					}
				})
				_, err := r.commit(change)
				there := []string{"c/1", "p/1", "p/2", "item:p/1:x", "item:p/2:y"}
				if c.action == "create" {
					there = []string{"p/2", "item:p/2:y"} // the value that referred to p/1 is gone
				} else if err == nil || !strings.Contains(err.Error(), "p/1: still used by c/1: no memory") {
					t.Errorf("commit: %v", err)
				}
				r.expectThings(there...)
				for range 3 {
					time.Sleep(5 * time.Second)
					m.sync(func() { r.expectThings(there...) })
				}
				m.sync(func() { m.fault = nil })
				time.Sleep(2 * time.Minute)
				there = []string{"c/1", "p/2", "item:p/2:y"}
				if c.next == nil {
					there = there[1:]
				}
				m.sync(func() { r.expectThings(there...) })
			})
		})
	}
}

// A value that is deleted last stays also when the operation that should have removed the last reference to it failed for good in an earlier
// transaction, or was skipped because a dependency failed, or when the value without the reference was rejected.
func TestReferencesOfEarlierFailures(t *testing.T) {
	for _, c := range []struct {
		name, want string
		next       *obj // the value of c/1 that does not come into effect
	}{
		{"rejected by the dataplane", "still used by c/1: no such thing", &obj{Rev: 2, Refs: []string{"p/2"}}},
		{"removal failed", "still used by c/1: no such thing", nil},
		{"invalid", "still used by c/1: bad: must not be set", &obj{Bad: true}},
		{"skipped", "still used by c/1", &obj{Rev: 2, Refs: []string{"p/2"}, Deps: []string{"a/1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMock(t)
			m.last = true
			r := newRig(t, m, nil)
			r.must(update(kv("p/1", &obj{}), kv("p/2", &obj{}), kv("p/3", &obj{}), kv("c/1", &obj{Refs: []string{"p/1"}})))
			m.fault = func(action, key string) *fault {
				if key == "c/1" && action != "create" || key == "a/1" {
					return &fault{err: errors.New("no such thing")}
				}
				return nil
			}
			if _, err := r.commit(update(kv("a/1", &obj{}), kv("c/1", c.next))); err == nil {
				t.Fatal("it does not fail")
			}
			_, err := r.commit(update(kv("p/1", nil), kv("p/3", nil))) // c/1 has no part in this transaction
			if err == nil || !strings.Contains(err.Error(), "p/1: "+c.want) {
				t.Errorf("commit: %v", err)
			}
			r.expectThings("c/1", "p/1", "p/2")
			m.fault = nil
			values := []txn.KV{kv("p/2", &obj{})}
			if c.next != nil {
				values = append(values, kv("c/1", &obj{Rev: 3, Refs: []string{"p/2"}}))
			}
			r.must(full(values...))
			if c.next == nil {
				r.expectThings("p/2")
			} else {
				r.expectThings("c/1", "p/2")
			}
			r.must(update(kv("p/2", nil), kv("c/1", nil), kv("p/4", &obj{})))
			if n := len(r.graph.referrers); n != 0 {
				t.Errorf("%d values are still recorded as referrers", n)
			}
		})
	}
}

// A value that a dump found and that is not desired is not removed while another kind cannot be dumped. What it refers to stays, too.
func TestReferencesOfDiscoveredValues(t *testing.T) {
	m := newMock(t)
	m.last = true
	r := newRig(t, m, nil)
	r.must(update(kv("p/1", &obj{}), kv("c/1", &obj{Refs: []string{"p/1"}})))
	r.stop()
	r = newRig(t, m, nil)
	m.dumpErr = func(kind string) error {
		if kind == "b" {
			return errors.New("no answer")
		}
		return nil
	}
	if _, err := r.commit(full(kv("p/1", &obj{}))); err == nil {
		t.Fatal("the dump does not fail")
	}
	r.expectState("c/1", Discovered)
	if _, err := r.commit(update(kv("p/1", nil))); err == nil || !strings.Contains(err.Error(), "p/1: still used by c/1") {
		t.Errorf("commit: %v", err)
	}
	r.expectThings("c/1", "p/1")
	m.sync(func() { m.dumpErr = nil })
	r.must(full())
	r.expectThings()
}
