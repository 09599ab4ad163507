package idalloc

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	controller "contiv.dev/vswitch/plugins/controller/api"
)

// Parameters of the worker's retries: after a failed attempt it waits, twice as long each time, with jitter so that the nodes of a cluster
// do not overload a recovering database.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 30 * time.Second
	// tryTimeout bounds one attempt.
	tryTimeout = 10 * time.Second
)

// request is a requested allocation or release of a label. Only the newest request for a label counts.
type request struct {
	pool    *pool
	label   string
	release bool
	had     uint32 // an ID that the label had, which must be restored

	failed int       // attempts so far
	due    time.Time // the earliest time of the next attempt
	err    string    // the last error that was reported
}

type labelID struct{ pool, label string }

// worker is the job that accesses the database for the event loop, one request after the other.
type worker struct {
	store *store
	push  func(controller.Event) error
	log   *slog.Logger
	wake  chan struct{}

	mu       sync.Mutex
	requests map[labelID]*request
	order    []labelID // guarded by mu; in the order of arrival
}

func newWorker(s *store, push func(controller.Event) error, log *slog.Logger) *worker {
	return &worker{store: s, push: push, log: log, wake: make(chan struct{}, 1), requests: map[labelID]*request{}}
}

// enqueue queues a request; it replaces an earlier one for the same label. It does not wait.
func (w *worker) enqueue(r *request) {
	w.mu.Lock()
	id := labelID{r.pool.name, r.label}
	old := w.requests[id]
	if old == nil {
		w.order = append(w.order, id)
	}
	if old == nil || old.release != r.release || old.had != r.had {
		w.requests[id] = r
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// pending reports whether there is a request for the label, and whether it is a release.
func (w *worker) pending(pool, label string) (pending, release bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.requests[labelID{pool, label}]
	return r != nil, r != nil && r.release
}

// next returns the first request that is due, or else the time until one is due; wait is zero if there is none.
func (w *worker) next() (r *request, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.order {
		r := w.requests[id]
		left := time.Until(r.due)
		if left <= 0 {
			return r, 0
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return nil, wait
}

// done removes the request, unless another one has replaced it.
func (w *worker) done(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := labelID{r.pool.name, r.label}
	if w.requests[id] != r {
		return
	}
	delete(w.requests, id)
	for i, other := range w.order {
		if other == id {
			w.order = append(w.order[:i], w.order[i+1:]...)
			return
		}
	}
}

// later makes the request due after a pause.
func (w *worker) later(r *request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	backoff := min(minBackoff<<min(r.failed, 10), maxBackoff)
	r.failed++
	r.due = time.Now().Add(backoff/2 + rand.N(backoff))
}

func (w *worker) run(ctx context.Context) error {
	for {
		r, wait := w.next()
		if r != nil {
			err := w.serve(ctx, r)
			if errors.Is(err, controller.ErrClosed) {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil {
				w.done(r)
			} else {
				w.later(r)
			}
			continue
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.wake:
		case <-timer:
		}
	}
}

// serve makes one attempt and reports the result to the event loop. An error means that the attempt must be repeated.
func (w *worker) serve(ctx context.Context, r *request) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	ev := Allocated{Pool: r.pool.name, Label: r.label, PrevID: r.had}
	if r.release {
		err := w.store.release(ctx, r.pool, r.label, w.store.owner)
		if err != nil && !errors.Is(err, ErrNotOwner) {
			w.log.Debug("an ID is not released yet", "pool", r.pool.name, "label", r.label, "error", err)
			return err
		}
		return w.push(&released{ev})
	}
	a, err := w.store.allocate(ctx, r.pool, r.label, r.had)
	if err == nil {
		ev.ID, ev.owner = a.ID, a.Owner
		return w.push(&ev)
	}
	if text := err.Error(); text != r.err { // log and report each error once
		w.log.Warn("an ID cannot be allocated yet; retrying", "pool", r.pool.name, "label", r.label, "error", err)
		ev.Err = err
		if w.push(&ev) == nil {
			r.err = text
		}
	}
	return err
}
