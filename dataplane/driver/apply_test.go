package driver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/proto"
)

func TestRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult { return ApplyResult{Err: errBroken} }
		r.send(host(1))
		r.pass(25 * time.Second)
		r.expectApplies(0, 10*time.Second, 20*time.Second)
		r.expectHealth(true, true) // an error is not a reason to schedule pods elsewhere
		if d := r.health.Summary().Detail; !strings.Contains(d, errBroken.Error()) {
			t.Errorf("detail %q", d)
		}
		r.send(host(2)) // the next message causes another try at once, and the retry interval starts from there
		r.pass(9 * time.Second)
		r.expectApplies(0, 10*time.Second, 20*time.Second, 25*time.Second)
		_ = r.d.Inspect(func() { r.apply = nil })
		r.pass(time.Minute)
		r.expectApplies(0, 10*time.Second, 20*time.Second, 25*time.Second, 35*time.Second)
		if len(r.actual) != 2 {
			t.Errorf("applied: %v", r.actual)
		}
	})
}

func TestManagerErrorIsRetriedAndOthersGoOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		other := &recorder{name: "other", desired: map[string]string{}}
		completed := 0
		other.complete = func() error { completed++; return nil }
		r.d.RegisterManager(other)
		r.begin()
		completed = 0
		r.m.complete = func() error { return errBroken }
		done := r.flush()
		synctest.Wait()
		r.send(host(1))
		done2 := r.flush()
		synctest.Wait()
		if got := pending(done); got != "<nil>" {
			t.Errorf("a Flush with nothing before it: %s", got)
		}
		if got := pending(done2); got != "manager recorder: kernel says no" {
			t.Errorf("Flush: %s", got)
		}
		if completed != 1 || r.actual["node1"] == "" {
			t.Errorf("other manager %d, applied %v: the others must go on", completed, r.actual)
		}
		_ = r.d.Inspect(func() { r.m.complete = nil })
		r.pass(time.Minute)
		r.expectApplies(0, 10*time.Second)
	})
}

// TestFirstApplyFails tests that ready and PostInSync need a successful apply.
func TestFirstApplyFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		posts := 0
		r := newRig(t, func(r *rig, cfg *Config) {
			cfg.PostInSync = func() { posts++ }
			r.apply = func(context.Context) ApplyResult { return ApplyResult{Err: errBroken} }
		})
		defer r.stop()
		r.d.Start()
		r.send(&proto.InSync{})
		r.pass(5 * time.Second)
		r.expectHealth(true, false)
		if posts != 0 {
			t.Error("PostInSync was called after a failed apply")
		}
		_ = r.d.Inspect(func() { r.apply = nil })
		r.pass(6 * time.Second)
		r.expectHealth(true, true)
		r.send(host(1))
		synctest.Wait()
		if posts != 1 {
			t.Errorf("PostInSync was called %d times, want once", posts)
		}
	})
}

func TestAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		again := []time.Duration{3 * time.Second, time.Second, 0}
		r.apply = func(context.Context) ApplyResult {
			res := ApplyResult{Again: again[0]}
			again = again[1:]
			return res
		}
		r.send(host(1)) // requests 3 s
		r.pass(2 * time.Second)
		r.send(host(2)) // requests 1 s, which replaces the 3 s
		r.pass(time.Minute)
		r.expectApplies(0, 2*time.Second, 3*time.Second) // the last apply requests none
	})
}

func TestRequestedApplyIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult {
			if len(r.applies) == 1 {
				return ApplyResult{Again: 3 * time.Second}
			}
			return ApplyResult{}
		}
		r.send(host(1))
		r.pass(2 * time.Second)
		r.send(host(2)) // its later apply finds no work left
		r.pass(time.Minute)
		r.expectApplies(0, 2*time.Second)
	})
}

func TestAgainAndRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		fail := true
		r.apply = func(context.Context) ApplyResult {
			if !fail {
				return ApplyResult{}
			}
			fail = false
			return ApplyResult{Err: errBroken, Again: time.Second}
		}
		r.send(host(1))
		r.pass(time.Minute)
		r.expectApplies(0, time.Second) // the success cancels the retry
	})
}

func TestRefresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var fired []time.Duration
		r := newRig(t, func(r *rig, cfg *Config) {
			cfg.Refresh = []Refresh{
				{Name: "routes", Interval: 90 * time.Second, Fire: func() { fired = append(fired, time.Since(r.start)) }},
				{Name: "off", Interval: 0, Fire: func() { t.Error("a refresh with interval 0 fired") }},
				{Name: "also off", Interval: -1, Fire: func() { t.Error("a refresh with negative interval fired") }},
			}
		})
		defer r.stop()
		r.begin()
		r.pass(100 * 99 * time.Second)
		if len(fired) < 100 || len(fired) > 110 {
			t.Fatalf("%d refreshes in 9900 s, want 100 to 110", len(fired))
		}
		r.expectApplies(fired...)
		shortest, longest, last := time.Hour, time.Duration(0), time.Duration(0)
		for _, at := range fired {
			shortest, longest, last = min(shortest, at-last), max(longest, at-last), at
		}
		if shortest < 90*time.Second || longest > 99*time.Second {
			t.Errorf("intervals %s to %s, want within 90 to 99 s", shortest, longest)
		}
		if longest-shortest < 2*time.Second {
			t.Errorf("intervals %s to %s: no jitter", shortest, longest)
		}
	})
}

func TestFlush(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.d.Start()
		early := r.flush()
		r.send(host(1))
		r.pass(time.Minute)
		if got := pending(early); got != "waiting" {
			t.Fatalf("Flush before InSync: %s", got)
		}
		r.send(&proto.InSync{})
		synctest.Wait()
		if got := pending(early); got != "<nil>" {
			t.Fatalf("Flush after the first apply: %s", got)
		}

		n := len(r.applies)
		if got := <-r.flush(); got != nil || len(r.applies) != n {
			t.Errorf("Flush with nothing to do: %v after %d applies", got, len(r.applies)-n)
		}

		fail := errBroken
		_ = r.d.Inspect(func() { r.apply = func(context.Context) ApplyResult { return ApplyResult{Err: fail} } })
		r.send(host(2))
		first := r.flush()
		synctest.Wait()
		if got := pending(first); got != "apply: kernel says no" {
			t.Errorf("Flush of a failing apply: %s", got)
		}
		second := &Flush{Done: first}
		r.send(second) // earlier messages are still not applied: they are tried
		if err := <-first; !errors.Is(err, errBroken) {
			t.Errorf("second Flush: %v", err)
		}
		_ = r.d.Inspect(func() { fail = nil })
		r.pass(11 * time.Second)
		if got := pending(first); got != "waiting" || r.actual["node2"] == "" {
			t.Errorf("after the retry: Flush %s, applied %v; the retry must work and not be reported", got, r.actual)
		}
		if got := <-r.flush(); got != nil {
			t.Errorf("Flush after the retry: %v", got)
		}
	})
}

// TestFlushWithoutReader tests that a channel that cannot receive the result does not stop the loop.
func TestFlushWithoutReader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.send(host(1), Flush{Done: make(chan error)}, Flush{}, host(2))
		synctest.Wait()
		if len(r.actual) != 2 {
			t.Errorf("applied %v", r.actual)
		}
	})
}

// TestRefreshOnDemand tests that a refresh on demand compares everything at once, whatever the intervals.
func TestRefreshOnDemand(t *testing.T) {
	bubble(t, func(t *testing.T) {
		fired := 0
		r := newRig(t, func(_ *rig, cfg *Config) {
			cfg.Refresh = []Refresh{{Name: "a", Fire: func() { fired++ }}, {Name: "b", Interval: time.Hour, Fire: func() { fired++ }}}
		})
		defer r.stop()
		r.begin()
		before := len(r.applies)
		if err := r.d.Refresh(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if fired != 2 || len(r.applies) != before+1 {
			t.Errorf("%d of 2 refreshes, %d applies", fired, len(r.applies)-before)
		}
	})
}
