package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestThrottle tests that ten changes in a row are each applied at once, and that then there is one apply per 100 ms however many changes there
// are.
func TestThrottle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin() // takes the first of ten tokens
		for i := range 300 {
			r.send(host(i))
			synctest.Wait()
			if i == 8 && len(r.applies) != 9 {
				t.Fatalf("%d applies for the first nine changes", len(r.applies))
			}
			if i >= 9 {
				r.pass(10 * time.Millisecond)
			}
		}
		synctest.Wait()
		for i, at := range r.applies[9:] {
			if want := time.Duration(i+1) * refillInterval; at != want {
				t.Fatalf("apply %d at %s, want %s", 9+i, at, want)
			}
		}
		if n := len(r.applies); n != 9+29 {
			t.Errorf("%d applies in 2.91 s, want 38", n)
		}
		r.pass(time.Second)
		if len(r.actual) != 300 {
			t.Errorf("%d hosts applied, want 300", len(r.actual))
		}
	})
}

// TestThrottleRefills tests that after a pause a burst of ten is possible again, and not more.
func TestThrottleRefills(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		for range 3 {
			r.pass(time.Hour)
			r.applies = nil
			for i := range 20 {
				r.send(host(i))
				synctest.Wait()
			}
			if len(r.applies) != 10 {
				t.Errorf("a burst of %d applies, want 10", len(r.applies))
			}
		}
	})
}

// TestSlowAppliesLeaveTime tests that under a flood, applies of 200 ms are at least 400 ms apart, and that the rate recovers when applies are
// fast again.
func TestSlowAppliesLeaveTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		took := 200 * time.Millisecond
		r.apply = func(context.Context) ApplyResult { time.Sleep(took); return ApplyResult{} }
		flood := func(d time.Duration) {
			for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
				r.send(host(0))
			}
			synctest.Wait()
		}
		flood(4 * time.Second)
		for i := 4; i < len(r.applies); i++ {
			if gap := r.applies[i] - r.applies[i-1]; gap < 2*took {
				t.Errorf("apply %d came %s after the one before", i, gap)
			}
		}
		if n := len(r.applies); n < 10 || n > 13 {
			t.Errorf("%d applies in 4 s, want about 11", n)
		}
		_ = r.d.Inspect(func() { took = time.Millisecond; r.applies = nil })
		flood(2 * time.Second)
		if n := len(r.applies); n < 18 || n > 31 {
			t.Errorf("%d applies in 2 s after they became fast, want 10 per second and at most one burst", n)
		}
	})
}

// TestOneSlowApplyDoesNotDelayTheNext tests that the first pod after a long cold start is not delayed by it.
func TestOneSlowApplyDoesNotDelayTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult {
			if len(r.applies) == 1 {
				time.Sleep(3 * time.Second)
			}
			return ApplyResult{}
		}
		r.send(host(1))
		synctest.Wait()
		r.send(host(2))
		if err := <-r.flush(); err != nil {
			t.Fatal(err)
		}
		r.expectApplies(0, 3*time.Second)
	})
}

// TestBucketBound tests that in any window of time at most a full bucket and the refill are granted, whatever the requests are.
func TestBucketBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		now := time.Unix(1000, 0)
		b := newBucket(now)
		var taken []time.Time
		for range 300 {
			now = now.Add(time.Duration(rng.ExpFloat64() * float64(40*time.Millisecond)))
			if b.take(now) {
				taken = append(taken, now)
				continue
			}
			if at := b.next(); !at.After(now) {
				t.Fatalf("no token at %v though the next was promised for %v", now, at)
			} else if rng.IntN(2) == 0 {
				now = at
				if !b.take(now) {
					t.Fatal("no token when it was promised")
				}
				taken = append(taken, now)
			}
		}
		for i := range taken {
			for j := i; j < len(taken); j++ {
				window := taken[j].Sub(taken[i])
				if n, most := j-i+1, bucketSize+1+int(window/refillInterval); n > most {
					t.Fatalf("%d applies within %s, at most %d are allowed", n, window, most)
				}
			}
		}
	}
}

// TestFlushSkipsTheThrottle tests that a Flush is applied at once, and so is every message while a caller has called Expedite.
func TestFlushSkipsTheThrottle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		began := time.Now()
		for i := range 100 {
			r.send(host(i))
			done := make(chan error, 1)
			r.send(Flush{Done: done})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("100 flushes took %s of waiting", took)
		}
		before := len(r.applies)
		r.send(host(1000))
		synctest.Wait()
		if len(r.applies) != before {
			t.Fatal("a change without a waiting caller was applied with an empty bucket")
		}
		release := r.d.Expedite()
		synctest.Wait()
		if len(r.applies) != before+1 {
			t.Errorf("%d applies after Expedite, want the one that was waiting", len(r.applies)-before)
		}
		r.send(host(1001))
		synctest.Wait()
		if len(r.applies) != before+2 {
			t.Error("a change is throttled although a caller waits")
		}
		release()
		release() // no effect
		for i := range 5 {
			r.send(host(2000 + i))
			synctest.Wait()
		}
		if n := len(r.applies) - before - 2; n > 1 {
			t.Errorf("%d applies after release, want the throttle back", n)
		}
	})
}

// TestMessagesTogether tests that messages that are sent together are one apply, also if a Flush and other messages follow them.
func TestMessagesTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.stop()
		r.begin()
		before := len(r.applies)
		var msgs []any
		for i := range 1000 {
			msgs = append(msgs, host(i))
		}
		if err := errors.Join(r.d.SendMessages(), r.d.SendMessages(msgs...)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		r.send(Flush{Done: done})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n := len(r.applies) - before; n != 1 {
			t.Errorf("%d applies", n)
		}
	})
}
