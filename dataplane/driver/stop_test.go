package driver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/proto"
)

func TestStopCompletesTheApply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.begin()
		var ctxErr error
		r.apply = func(ctx context.Context) ApplyResult {
			time.Sleep(5 * time.Second)
			ctxErr = ctx.Err()
			return ApplyResult{}
		}
		applying := r.flushAfter(host(1))
		synctest.Wait()
		r.send(host(2))
		queued := r.flush()
		for range inputCapacity - 2 {
			r.send(host(3))
		}
		blocked := make(chan error, 1)
		go func() { blocked <- r.d.SendMessage(host(4)) }()
		reader := make(chan error, 1)
		go func() { _, err := r.d.RecvMessage(); reader <- err }()
		synctest.Wait()
		r.stop()
		if since := time.Since(r.start); since != 5*time.Second || ctxErr != nil {
			t.Errorf("Stop took %s and the apply's context was ended with %v; it must complete", since, ctxErr)
		}
		if got := pending(applying); got != "<nil>" {
			t.Errorf("Flush of the apply that was running: %s", got)
		}
		synctest.Wait()
		for name, ch := range map[string]chan error{"queued Flush": queued, "blocked SendMessage": blocked, "RecvMessage": reader} {
			if got := pending(ch); got != ErrStopped.Error() {
				t.Errorf("%s: %s, want ErrStopped", name, got)
			}
		}
		if err := r.d.SendMessage(host(5)); !errors.Is(err, ErrStopped) {
			t.Errorf("SendMessage after Stop: %v", err)
		}
		if err := r.d.Inspect(func() { t.Error("inspected after Stop") }); !errors.Is(err, ErrStopped) {
			t.Errorf("Inspect after Stop: %v", err)
		}
		r.expectHealth(true, false)
		r.stop() // second call
		r.d.Start()
		synctest.Wait()
		if len(r.applies) != 1 {
			t.Errorf("%d applies", len(r.applies))
		}
	})
}

// TestStopDoesNotWaitForever tests that Stop returns when its context ends although an apply does not end, and that its error gives the reason.
func TestStopDoesNotWaitForever(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.begin()
		r.apply = func(ctx context.Context) ApplyResult { <-ctx.Done(); return ApplyResult{Err: ctx.Err()} }
		done := r.flushAfter(host(1))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := r.d.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "int_dataplane") {
			t.Errorf("Stop: %v", err)
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Flush: %v", err)
		}
		r.stop()
	})
}

func TestStopBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		done := r.flush()
		r.d.QueueStatus("a", "b")
		r.stop()
		if got := pending(done); got != ErrStopped.Error() {
			t.Errorf("Flush: %s", got)
		}
		if msg, err := r.d.RecvMessage(); msg != "b" || err != nil {
			t.Errorf("RecvMessage: %v, %v; want what was pending", msg, err)
		}
		if msg, err := r.d.RecvMessage(); !errors.Is(err, ErrStopped) {
			t.Errorf("RecvMessage: %v, %v", msg, err)
		}
		r.d.Start()
		if err := r.d.SendMessage(host(1)); !errors.Is(err, ErrStopped) {
			t.Errorf("SendMessage: %v", err)
		}
	})
}

// TestEveryFlushIsAnsweredOnce tests that each Flush gets one result, and that nil means that all earlier messages of its sender are in the
// dataplane: with many senders, a dataplane that fails at random, and a Stop at a random time.
func TestEveryFlushIsAnsweredOnce(t *testing.T) {
	for seed := range uint64(20) {
		bubble(t, func(t *testing.T) {
			r := newRig(t, func(_ *rig, cfg *Config) { cfg.RetryInterval = 50 * time.Millisecond })
			rng := rand.New(rand.NewPCG(seed, 1))
			r.apply = func(context.Context) ApplyResult {
				time.Sleep(time.Duration(rng.IntN(30)) * time.Millisecond)
				if rng.IntN(3) == 0 {
					return ApplyResult{Err: errBroken}
				}
				return ApplyResult{}
			}
			r.d.Start()
			r.send(&proto.InSync{})
			var wg sync.WaitGroup
			var applied, failed, stopped atomic.Int64
			for s := range 8 {
				wg.Go(func() {
					for i := range 1000 {
						msg := host(s*1000 + i)
						done := make(chan error, 2)
						if errors.Join(r.d.SendMessage(msg), r.d.SendMessage(Flush{Done: done})) != nil {
							stopped.Add(1)
							return
						}
						err := <-done
						switch {
						case errors.Is(err, ErrStopped):
							stopped.Add(1)
						case err != nil:
							failed.Add(1)
						default:
							applied.Add(1)
							_ = r.d.Inspect(func() {
								if r.actual[msg.Hostname] == "" {
									t.Errorf("Flush said that %s is applied", msg.Hostname)
								}
							})
						}
						if len(done) != 0 {
							t.Error("a second answer")
						}
					}
				})
			}
			r.pass(time.Duration(500+seed*100) * time.Millisecond)
			r.stop()
			wg.Wait()
			if applied.Load() == 0 || failed.Load() == 0 || stopped.Load() == 0 {
				t.Errorf("%d applied, %d failed, %d stopped: the test does not test", applied.Load(), failed.Load(), stopped.Load())
			}
		})
	}
}

// TestAnyOrderIsOneResync tests that updates in any grouping, with failures in between, end in the state of one snapshot.
func TestAnyOrderIsOneResync(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, func(t *testing.T) {
			r := newRig(t, nil)
			rng, luck := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
			r.apply = func(context.Context) ApplyResult {
				if luck.IntN(4) == 0 {
					return ApplyResult{Err: errBroken}
				}
				return ApplyResult{Again: time.Duration(luck.IntN(3)) * 400 * time.Millisecond}
			}
			inSync := rng.IntN(200)
			r.d.Start()
			want := map[string]string{}
			for i := range 200 {
				if i == inSync {
					r.send(&proto.InSync{})
				}
				u := &proto.HostMetadataUpdate{Hostname: fmt.Sprint(rng.IntN(20)), Ipv4Addr: fmt.Sprint(i)}
				want[u.Hostname] = u.Ipv4Addr
				r.send(u)
				time.Sleep(time.Duration(rng.IntN(3)) * 60 * time.Millisecond)
			}
			_ = r.d.Inspect(func() { r.apply = nil })
			r.pass(11 * time.Second)
			for k, v := range want {
				if r.actual[k] != v {
					t.Errorf("%s is %s, want %s", k, r.actual[k], v)
				}
			}
			r.stop()
		})
	}
}

// handClock is a clock that a test controls.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*handTimer
}

type handTimer struct {
	clock *handClock
	at    time.Time
	ch    chan time.Time
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) NewTimer(d time.Duration) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	tm := &handTimer{clock: c, at: c.now.Add(d), ch: make(chan time.Time, 1)}
	c.timers = append(c.timers, tm)
	return tm
}

func (tm *handTimer) C() <-chan time.Time { return tm.ch }

func (tm *handTimer) Reset(d time.Duration) bool {
	tm.clock.mu.Lock()
	defer tm.clock.mu.Unlock()
	tm.at = tm.clock.now.Add(d) // a tick that is in ch stays: the loop must handle it
	tm.clock.tick()
	return true
}

func (tm *handTimer) Stop() bool { return true }

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.tick()
}

func (c *handClock) tick() {
	for _, tm := range c.timers {
		if !tm.at.IsZero() && !tm.at.After(c.now) {
			tm.at = time.Time{}
			select {
			case tm.ch <- c.now:
			default:
			}
		}
	}
}

// TestInjectedClock tests that only the injected clock drives the loop.
func TestInjectedClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := &handClock{now: time.Unix(0, 0)}
		r := newRig(t, func(_ *rig, cfg *Config) { cfg.Clock = clock })
		defer r.stop()
		r.begin()
		r.apply = func(context.Context) ApplyResult { return ApplyResult{Err: errBroken} }
		r.send(host(1))
		r.pass(time.Hour)
		if len(r.applies) != 1 {
			t.Fatalf("%d applies while the clock stood still", len(r.applies))
		}
		for i := range 50 {
			clock.advance(time.Second)
			synctest.Wait()
			if want := 1 + (i+1)/10; len(r.applies) != want {
				t.Fatalf("%d applies %d s after the failure, want %d", len(r.applies), i+1, want)
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		r := newRig(t, func(_ *rig, cfg *Config) { cfg.Metrics = reg })
		ifaces := make(chan any, 10)
		r.d.AddSource("iface", ifaces)
		r.begin()
		fail := true
		r.apply = func(context.Context) ApplyResult {
			time.Sleep(time.Second)
			if fail {
				fail = false
				return ApplyResult{Err: errBroken}
			}
			return ApplyResult{}
		}
		_ = r.d.Inspect(func() { r.send(host(1), host(2), host(3)) })
		ifaces <- "up"
		r.pass(time.Minute)
		r.stop()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, f := range families {
			for _, m := range f.Metric {
				name := f.GetName()
				for _, l := range m.Label {
					name += "{" + l.GetValue() + "}"
				}
				if s := m.Summary; s != nil {
					got[name] = fmt.Sprintf("%d/%g", s.GetSampleCount(), s.GetSampleSum())
				} else {
					got[name] = fmt.Sprint(m.Counter.GetValue())
				}
			}
		}
		want := map[string]string{
			"felix_int_dataplane_failures":                     "1",
			"felix_int_dataplane_messages{InSync}":             "1",
			"felix_int_dataplane_messages{HostMetadataUpdate}": "3",
			"felix_int_dataplane_apply_time_seconds":           "3/2",
			"felix_int_dataplane_msg_batch_size":               "2/4",
			"felix_int_dataplane_iface_msg_batch_size":         "1/1",
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s = %s, want %s", name, got[name], value)
			}
		}
		New(Config{Name: "int_dataplane", Metrics: reg}) // a second driver shares them
	})
}

func TestAlarms(t *testing.T) {
	var as alarms
	var fired []string
	t0 := time.Unix(100, 0)
	a := as.add(func(time.Time) { fired = append(fired, "a") })
	var b *alarm
	b = as.add(func(now time.Time) { fired = append(fired, "b"); b.set(now.Add(time.Second)) })
	if !as.next().IsZero() {
		t.Error("an alarm that is off is due")
	}
	a.set(t0.Add(2 * time.Second))
	b.set(t0.Add(time.Second))
	for i := range 4 {
		as.run(t0.Add(time.Duration(i) * time.Second))
	}
	if !slices.Equal(fired, []string{"b", "a", "b", "b"}) {
		t.Errorf("fired %v", fired)
	}
	if next := as.next(); !next.Equal(t0.Add(4 * time.Second)) {
		t.Errorf("next is %s", next)
	}
}
