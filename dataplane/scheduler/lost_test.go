package scheduler

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An operation fails because the value that it needs has disappeared: the retry dumps this value and creates it again, with its items. If the dump
// finds it, only the operation is retried.
func TestLost(t *testing.T) {
	for name, lost := range map[string]bool{"lost": true, "still there": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newMock(t), nil)
				checkLost := r.prepareLost(lost)
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				checkLost()
			})
		})
	}
}

// prepareLost makes an operation fail, because a/1 is lost or only seems to be lost. check checks the results of the retry.
func (r *rig) prepareLost(lost bool) (check func()) {
	t, m := r.t, r.m
	const itemOf = "item:a/1:x"
	r.must(update(kv("a/1", &obj{Items: []item{{Name: "x"}}}), kv("a/2", &obj{}), kv("c/1", deps(itemOf))))
	if lost {
		delete(m.things, "a/1")
		delete(m.things, itemOf)
		delete(m.things, "c/1")
	}
	failures := 0
	m.fault = func(_, key string) *fault {
		if _, there := m.things["a/1"]; key == "c/2" && (!there || failures == 0) {
			failures++
			return &fault{err: PodOnly(Lost(errors.New("no such device"), "a/1", "a/3", "unknown"))}
		}
		return nil
	}
	m.dumps, m.log = nil, nil
	if _, err := r.commit(update(kv("c/2", deps(itemOf)))); err == nil {
		t.Fatal("no error")
	}
	r.expectState("a/1", Unknown)
	r.expectState("a/2", Configured)
	return func() {
		m.sync(func() {}) // for the race detector
		r.check()
		for _, key := range []string{"a/1", "a/2", itemOf, "c/1", "c/2"} {
			r.expectState(key, Configured)
		}
		r.expectThings("a/1", "a/2", itemOf, "c/1", "c/2")
		want := "create c/2 ! no such device, create a/1, create item:a/1:x, create c/1, create c/2"
		if !lost {
			want = "create c/2 ! no such device, create c/2"
		}
		if got := strings.Join(m.log, ", "); got != want {
			t.Errorf("operations: %s, want %s", got, want)
		}
		if !slices.Contains(m.dumps, "a") || failures != 1 {
			t.Errorf("dumped %v, %d failures", m.dumps, failures)
		}
	}
}
