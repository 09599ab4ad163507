package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
)

// hook is a handler made of functions. It records the events that it received.
type hook struct {
	name   string
	update func(ev api.Event, tx api.UpdateOperations) error
	resync func(ev api.Event, kube api.KubeStateData, count int, tx api.ResyncOperations) error

	mu   sync.Mutex
	seen []string // guarded by mu
}

func (h *hook) String() string                 { return h.name }
func (h *hook) HandlesEvent(ev api.Event) bool { return true }
func (h *hook) Revert(ev api.Event) error      { h.saw("revert " + ev.String()); return nil }
func (h *hook) saw(what string)                { h.mu.Lock(); defer h.mu.Unlock(); h.seen = append(h.seen, what) }
func (h *hook) all() []string                  { h.mu.Lock(); defer h.mu.Unlock(); return slices.Clone(h.seen) }
func (h *hook) Update(ev api.Event, tx api.UpdateOperations) (string, error) {
	h.saw(ev.String())
	if h.update == nil {
		return "", nil
	}
	return "", h.update(ev, tx)
}

func (h *hook) Resync(ev api.Event, kube api.KubeStateData, count int, tx api.ResyncOperations) error {
	h.saw(ev.GetName())
	if h.resync == nil {
		return nil
	}
	return h.resync(ev, kube, count, tx)
}

// ping is an update event that counts its outcomes.
type ping struct {
	name     string
	blocking bool
	txnType  api.UpdateTransactionType
	done     chan error
	calls    atomic.Int32
}

func newPing(name string, blocking bool) *ping {
	return &ping{name: name, blocking: blocking, done: make(chan error, 2)}
}

func (p *ping) GetName() string                            { return "ping" }
func (p *ping) String() string                             { return "ping " + p.name }
func (p *ping) Method() api.EventMethodType                { return api.Update }
func (p *ping) IsBlocking() bool                           { return p.blocking }
func (p *ping) TransactionType() api.UpdateTransactionType { return p.txnType }
func (p *ping) Direction() api.UpdateDirectionType         { return api.Forward }
func (p *ping) Done(err error)                             { p.calls.Add(1); p.done <- err }

type rig struct {
	c       *Controller
	jobs    *lifecycle.Group
	applier *lockedApplier
}

// lockedApplier may be read while the loop runs.
type lockedApplier struct {
	mu sync.Mutex
	*fakeApplier
}

func (a *lockedApplier) Commit(ctx context.Context, t *txn.Txn) (*txn.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fakeApplier.Commit(ctx, t)
}

func (a *lockedApplier) kinds() (kinds []txn.Kind) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.txns {
		kinds = append(kinds, t.Kind)
	}
	return kinds
}

// newRig returns a real controller; it must be called inside a synctest bubble.
func newRig(t *testing.T, change func(*Config, *Deps)) *rig {
	t.Helper()
	r := &rig{applier: &lockedApplier{fakeApplier: newFakeApplier()}, jobs: lifecycle.NewGroup(t.Context(), discard())}
	cfg, deps := DefaultConfig(), Deps{Log: discard(), Applier: r.applier, Jobs: r.jobs}
	if change != nil {
		change(&cfg, &deps)
	}
	c, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	r.c = c
	return r
}

func (r *rig) start(t *testing.T, handlers ...api.EventHandler) {
	t.Helper()
	if err := r.c.Start(handlers...); err != nil {
		t.Fatal(err)
	}
}

// run starts the controller and completes the start-up resync.
func (r *rig) run(t *testing.T, handlers ...api.EventHandler) {
	t.Helper()
	r.start(t, handlers...)
	push(t, r.c, dbResync(nil))
	synctest.Wait()
	if ok, why := r.c.Ready(); !ok {
		t.Fatalf("not ready: %s", why)
	}
}

func (r *rig) close(t *testing.T) {
	t.Helper()
	if err := r.c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := r.jobs.Stop(time.Second); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func push(t *testing.T, c *Controller, ev api.Event) {
	t.Helper()
	if err := c.PushEvent(ev); err != nil {
		t.Fatalf("push %s: %v", ev, err)
	}
}

func TestFollowUpsRunBeforeWhatIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var bad []error
		h := &hook{name: "h"}
		first, follow := newPing("first", false), newPing("follow-up", false)
		h.update = func(ev api.Event, _ api.UpdateOperations) error {
			if ev == api.Event(first) {
				push(t, r.c, newPing("pushed inside", false))
				bad = append(bad, r.c.PushFollowUp(newPing("other", false), newPing("x", false)),
					r.c.PushFollowUp(ev, newPing("x", true)), r.c.PushFollowUp(nil, newPing("x", false)))
				return r.c.PushFollowUp(ev, follow)
			}
			return nil
		}
		r.start(t, h)
		push(t, r.c, first)
		push(t, r.c, newPing("second", false))
		push(t, r.c, dbResync(nil))
		synctest.Wait()
		want := []string{"Database Resync", "ping first", "ping follow-up", "ping second", "ping pushed inside"}
		if got := h.all(); !slices.Equal(got, want) {
			t.Errorf("order %q, want %q", got, want)
		}
		for i, sentinel := range []error{api.ErrNotHandled, errBlockingFollowUp, errMalformedEvent} {
			if !errors.Is(bad[i], sentinel) {
				t.Errorf("follow-up %d: %v, want %v", i, bad[i], sentinel)
			}
		}
		if err := r.c.PushFollowUp(first, newPing("late", false)); !errors.Is(err, api.ErrNotHandled) {
			t.Errorf("follow-up to an event that has been handled: %v", err)
		}
		rec := r.c.EventHistory()[2]
		if !rec.IsFollowUp || rec.FollowUpTo != 2 {
			t.Errorf("record of the follow-up: %+v", rec)
		}
		r.close(t)
	})
}

func TestFollowUpsOfRevertedEventsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		h := &hook{name: "h"}
		cause, follow := newPing("cause", true), newPing("follow-up", false)
		cause.txnType = api.RevertOnFailure
		h.update = func(ev api.Event, _ api.UpdateOperations) error {
			if ev != api.Event(cause) {
				return nil
			}
			return errors.Join(r.c.PushFollowUp(ev, follow), errors.New("injected"))
		}
		r.run(t, h)
		push(t, r.c, cause)
		synctest.Wait()
		if got := h.all(); !slices.Equal(got, []string{"Database Resync", "ping cause", "revert ping cause"}) {
			t.Errorf("handler saw %q", got)
		}
		if err := <-follow.done; !errors.Is(err, errCauseReverted) {
			t.Errorf("Done of the follow-up: %v", err)
		}
		r.close(t)
	})
}

func TestFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config, _ *Deps) { c.EventQueueSize = 2 })
		h := &hook{name: "h"}
		r.start(t, h) // nothing is handled before the start-up resync
		push(t, r.c, newPing("1", false))
		push(t, r.c, newPing("2", false))
		if err := r.c.PushEvent(newPing("3", false)); !errors.Is(err, api.ErrQueueFull) {
			t.Errorf("non-blocking event in a full queue: %v", err)
		}
		began := time.Now()
		if err := r.c.PushEvent(newPing("4", true)); !errors.Is(err, api.ErrQueueFull) || time.Since(began) != pushWaitLimit {
			t.Errorf("blocking event in a full queue: %v after %s", err, time.Since(began))
		}
		blocking := newPing("5", true)
		r.jobs.Go("caller", func(context.Context) error { return r.c.PushEvent(blocking) })
		synctest.Wait()
		push(t, r.c, dbResync(nil)) // always has room
		if err := <-blocking.done; err != nil {
			t.Errorf("blocking event that waited: %v", err)
		}
		synctest.Wait()
		if got := h.all(); !slices.Equal(got, []string{"Database Resync", "ping 1", "ping 2", "ping 5"}) {
			t.Errorf("handled: %q", got)
		}
		r.close(t)
	})
}

func TestMalformedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.run(t)
		for name, ev := range map[string]api.Event{
			"nil":             nil,
			"typed nil":       (*ping)(nil),
			"not comparable":  uncomparable{},
			"no update event": onlyEvent{},
		} {
			if err := r.c.PushEvent(ev); !errors.Is(err, errMalformedEvent) {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.close(t)
	})
}

type onlyEvent struct{ nonBlocking }

func (onlyEvent) GetName() string             { return "x" }
func (onlyEvent) String() string              { return "x" }
func (onlyEvent) Method() api.EventMethodType { return api.Update }

type uncomparable struct {
	onlyEvent
	_ []int
}

func TestCloseHandlesWhatIsQueuedAndThenShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		h := &hook{name: "h"}
		slow := newPing("slow", true)
		late := newPing("late", false)
		h.update = func(ev api.Event, _ api.UpdateOperations) error {
			switch ev.(type) {
			case *ping:
				<-time.After(500 * time.Millisecond) // virtual: the event takes a while
			case *Shutdown:
				push(t, r.c, late)
				return r.c.PushFollowUp(ev, newPing("last", false))
			}
			return nil
		}
		r.run(t, h)
		push(t, r.c, slow)
		push(t, r.c, newPing("queued", true))
		r.close(t)
		want := []string{"Database Resync", "ping slow", "ping queued", "Shutdown", "ping last"}
		if got := h.all(); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
		if err := <-late.done; !errors.Is(err, api.ErrClosed) || late.calls.Load() != 1 {
			t.Errorf("event queued behind Shutdown: %v", err)
		}
		if err := r.c.PushEvent(newPing("after", true)); !errors.Is(err, api.ErrClosed) {
			t.Errorf("push after Close: %v", err)
		}
		if err := r.c.DataplaneReconnected("x"); !errors.Is(err, api.ErrClosed) {
			t.Errorf("reconnect after Close: %v", err)
		}
		if ok, why := r.c.Ready(); ok || why == "" {
			t.Error("ready after Close")
		}
		if err := r.c.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
		if err := r.c.Start(); err == nil {
			t.Error("started again after Close")
		}
	})
}

func TestCloseHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		release := make(chan struct{})
		h := &hook{name: "h", update: func(api.Event, api.UpdateOperations) error { <-release; return nil }}
		r.run(t, h)
		stuck, queued := newPing("stuck", true), newPing("queued", true)
		push(t, r.c, stuck)
		push(t, r.c, queued)
		began := time.Now()
		if err := r.c.Close(); err == nil || time.Since(began) != 3*time.Second || !strings.Contains(err.Error(), "handling ping for 3s") {
			t.Errorf("Close with a stuck handler: %v after %s", err, time.Since(began))
		}
		if err := <-queued.done; !errors.Is(err, api.ErrClosed) {
			t.Errorf("queued event: %v", err)
		}
		close(release)
		if err := <-stuck.done; err != nil {
			t.Errorf("event that was being handled: %v", err)
		}
		synctest.Wait()
		if queued.calls.Load() != 1 || stuck.calls.Load() != 1 {
			t.Error("Done must be called exactly once")
		}
		if err := r.jobs.Stop(time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseBeforeStartAndBeforeStartup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ev := newPing("never", true)
		push(t, r.c, ev)
		r.close(t)
		if err := <-ev.done; !errors.Is(err, api.ErrClosed) {
			t.Errorf("never started: %v", err)
		}

		r = newRig(t, nil)
		h := &hook{name: "h"}
		r.start(t, h)
		ev = newPing("never", true)
		push(t, r.c, ev)
		r.close(t)
		if err := <-ev.done; !errors.Is(err, api.ErrClosed) {
			t.Errorf("no start-up resync: %v", err)
		}
		if got := h.all(); len(got) != 0 {
			t.Errorf("handlers that have never been started saw %q", got)
		}
	})
}

func TestStopOfTheJobEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.start(t)
		ev := newPing("held", true)
		push(t, r.c, ev)
		if err := r.jobs.Stop(time.Second); err != nil {
			t.Fatal(err)
		}
		if err := <-ev.done; !errors.Is(err, api.ErrClosed) {
			t.Errorf("Done: %v", err)
		}
		if err := r.c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestStartupDeadlineOnlyMarksUnready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.start(t)
		<-time.After(31 * time.Second) // virtual
		if ok, why := r.c.Ready(); ok || !strings.Contains(why, "within 30s") {
			t.Errorf("ready %v: %q", ok, why)
		}
		if ok, why := r.c.Healthy(); !ok {
			t.Errorf("unhealthy: %s", why)
		}
		push(t, r.c, dbResync(nil))
		synctest.Wait()
		if ok, why := r.c.Ready(); !ok {
			t.Errorf("not ready: %s", why)
		}
		r.close(t)
	})
}

func TestPeriodicHealing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config, _ *Deps) {
			c.EnablePeriodicHealing = true
			c.PeriodicHealingInterval = Duration(30 * time.Second)
		})
		r.run(t, &hook{name: "h"})
		<-time.After(95 * time.Second) // virtual
		synctest.Wait()
		want := []txn.Kind{txn.FullResync, txn.DownstreamResync, txn.DownstreamResync, txn.DownstreamResync}
		if got := r.applier.kinds(); !slices.Equal(got, want) {
			t.Errorf("transactions %v, want %v", got, want)
		}
		r.close(t)
	})
}

func TestReconnectBringsHealingForward(t *testing.T) {
	s := newSim(t, nil, "alpha")
	s.push(dbResync(nil))
	s.applier.fault = func(*txn.Txn) fault { return fault{refuse: errors.New("not connected")} }
	s.push(kubeChange("a", "1"))
	s.advance(10 * time.Minute)
	s.applier.fault = nil
	if ok, _ := s.c.Ready(); ok {
		t.Fatal("ready while healing fails")
	}
	for range 3 { // one of them is handled
		if err := s.c.DataplaneReconnected("VPP restarted"); err != nil {
			t.Fatal(err)
		}
	}
	before := len(s.applier.txns)
	s.run()
	if ok, why := s.c.Ready(); !ok {
		t.Errorf("not ready after the reconnect: %s", why)
	}
	if n := len(s.applier.txns) - before; n != 2 {
		t.Errorf("%d transactions, want a downstream and a full resync", n)
	}
	s.noVerificationErrors()
}

func TestResyncCountAndKubeState(t *testing.T) {
	var counts []int
	var states []string
	fail := true
	s := newSim(t, func(c *Config) { c.EnableVerification = false })
	s.c.core.handlers = []api.EventHandler{&hook{name: "h",
		resync: func(_ api.Event, kube api.KubeStateData, count int, _ api.ResyncOperations) error {
			counts = append(counts, count)
			states = append(states, fmt.Sprint(sortedKeys(kube["item"])))
			if fail {
				return errors.New("injected")
			}
			return nil
		}}}
	s.push(dbResync(map[string]string{"a": "1"}))
	fail = false
	s.advance(5 * time.Second)
	s.push(kubeChange("b", "1"))
	s.push(kubeChange("a", ""))
	s.push(&ResyncRequest{waiter: newWaiter(), method: api.UpstreamResync})
	if !slices.Equal(counts, []int{1, 1, 2}) || !slices.Equal(states, []string{"[a]", "[a]", "[b]"}) {
		t.Errorf("resync counts %v, states %v", counts, states)
	}
}

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config, _ *Deps) { c.EventQueueSize = 4 })
		h := &hook{name: "h", update: func(_ api.Event, tx api.UpdateOperations) error {
			tx.Put("k", str("v"))
			return nil
		}}
		r.run(t, h)
		for i := range 8 {
			r.jobs.Go("caller", func(context.Context) error {
				for range 20 {
					ev := newPing(fmt.Sprint(i), true)
					if err := r.c.PushEvent(ev); err != nil {
						return err
					}
					if err := <-ev.done; err != nil {
						return err
					}
					r.c.EventHistory()
					r.c.GetConfig("k")
					r.c.Ready()
				}
				return nil
			})
		}
		synctest.Wait()
		if got := len(h.all()); got != 161 {
			t.Errorf("%d events handled, want 161", got)
		}
		select {
		case err := <-r.jobs.Failed():
			t.Error(err)
		default:
		}
		r.close(t)
	})
}

func TestNewAndStartCheckTheirArguments(t *testing.T) {
	jobs := lifecycle.NewGroup(t.Context(), discard())
	if _, err := New(Config{}, Deps{Applier: newFakeApplier(), Jobs: jobs}); err == nil {
		t.Error("an empty config was accepted")
	}
	if _, err := New(DefaultConfig(), Deps{Jobs: jobs}); err == nil {
		t.Error("no applier was accepted")
	}
	for _, handlers := range [][]api.EventHandler{{nil}, {&hook{name: "same"}, &hook{name: "same"}}} {
		c, err := New(DefaultConfig(), Deps{Applier: newFakeApplier(), Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(handlers...); err == nil {
			t.Errorf("handlers %v were accepted", handlers)
		}
	}
}

func TestCloseReleasesWaitingSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config, _ *Deps) { c.EventQueueSize = 1 })
		r.start(t)
		push(t, r.c, newPing("held", false))
		result := make(chan error, 1)
		r.jobs.Go("caller", func(context.Context) error { result <- r.c.PushEvent(newPing("waits", true)); return nil })
		synctest.Wait()
		began := time.Now()
		r.close(t)
		if err := <-result; !errors.Is(err, api.ErrClosed) || time.Since(began) != 0 {
			t.Errorf("PushEvent: %v after %s", err, time.Since(began))
		}
	})
}

func TestFollowUpsOfAFailedStartupResyncAreDropped(t *testing.T) {
	follow, fail := newPing("follow-up", false), true
	h := &hook{name: "h"}
	s := simOf(t, h)
	h.resync = func(ev api.Event, _ api.KubeStateData, _ int, _ api.ResyncOperations) error {
		if err := s.c.PushFollowUp(ev, follow); err != nil || fail {
			return errors.Join(err, errors.New("injected"))
		}
		return nil
	}
	s.push(dbResync(nil))
	if err := <-follow.done; !errors.Is(err, errCauseReverted) {
		t.Errorf("Done of the follow-up: %v", err)
	}
	fail = false
	s.advance(5 * time.Second)
	if err := <-follow.done; err != nil {
		t.Errorf("Done of the follow-up of the repeated resync: %v", err)
	}
	if got := h.all(); !slices.Equal(got, []string{"Database Resync", "Healing Resync", "ping follow-up"}) {
		t.Errorf("handler saw %q", got)
	}
}
