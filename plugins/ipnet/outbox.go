package ipnet

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller/api"
)

const (
	// outboxRetry is the first pause before events are pushed again that found the queue full; the pauses double up to maxOutboxRetry.
	outboxRetry    = 100 * time.Millisecond
	maxOutboxRetry = 5 * time.Second
	outboxStop     = 2 * time.Second
)

// outbox passes events to the event loop from any goroutine. An event that finds the queue full waits here, because its change is reported
// only once; a newer event of the same kind replaces it.
type outbox struct {
	push func(api.Event) error
	log  *slog.Logger
	jobs *lifecycle.Group

	mu      sync.Mutex
	waiting []outgoing // guarded by mu; at most one event of each kind
	running bool       // guarded by mu; the job that pushes them is running
}

// outgoing is an event that waits.
type outgoing struct {
	ev     api.Event
	wanted func() bool // nil: always
}

func newOutbox(push func(api.Event) error, log *slog.Logger) *outbox {
	// The documented API has no context to derive from; close ends the job.
	return &outbox{push: push, log: log, jobs: lifecycle.NewGroup(context.Background(), log)}
}

// send pushes ev, now or when the queue has room. An event that waits is dropped as soon as wanted returns false.
func (o *outbox) send(ev api.Event, wanted func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(o.waiting, func(w outgoing) bool { return w.ev.GetName() == ev.GetName() })
	if o.pushed(ev) {
		return
	}
	o.waiting = append(o.waiting, outgoing{ev, wanted})
	if !o.running {
		o.running = true
		o.jobs.Go("ipnet-outbox", o.run)
	}
}

// pushed pushes ev. It returns false if ev has to wait.
func (o *outbox) pushed(ev api.Event) bool {
	err := o.push(ev)
	switch {
	case errors.Is(err, api.ErrQueueFull):
		return false
	case err != nil && !errors.Is(err, api.ErrClosed):
		o.log.Error("the event loop rejects an event; the next resync applies the change", "event", ev.String(), "error", err)
	}
	return true
}

// run pushes the waiting events; it ends when none is left.
func (o *outbox) run(ctx context.Context) error {
	o.log.Warn("the event queue is full; changes of the node's interfaces wait for room")
	for retry := outboxRetry; ; retry = min(2*retry, maxOutboxRetry) {
		timer := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		if o.flush() {
			return nil
		}
	}
}

// flush pushes the waiting events that are still wanted, and reports whether none is left.
func (o *outbox) flush() (empty bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(o.waiting, func(w outgoing) bool {
		return w.wanted != nil && !w.wanted() || o.pushed(w.ev)
	})
	o.running = len(o.waiting) > 0
	return !o.running
}

// close ends the job; events that wait are lost.
func (o *outbox) close() error { return o.jobs.Stop(outboxStop) }
