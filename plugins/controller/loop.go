package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
	"contiv.dev/vswitch/plugins/controller/api"
)

// Deps are the dependencies of the controller.
type Deps struct {
	Log     *slog.Logger
	Applier txn.Applier
	// Jobs runs the loop.
	Jobs *lifecycle.Group
	// HTTP is the server at which the REST handlers are registered; nil if there is none.
	HTTP rest.HTTPHandlers
	// Metrics is the registry of the metrics; nil if there is none.
	Metrics prometheus.Registerer
	// Now is the clock for records and decisions; time.Now if nil. Timers always use the clock of the Go runtime.
	Now func() time.Time
	// OnEventHandled is called from the loop when an event has been handled and its transaction applied; err is the argument of Done.
	OnEventHandled func(ev api.Event, start, end time.Time, err error)
	// OnVerificationError is called from the loop when a verification fails; for tests.
	OnVerificationError func(error)
}

// Controller is the event loop. It implements api.EventLoop and api.ConfigRetriever.
type Controller struct {
	cfg     Config
	deps    Deps
	queue   *queue
	history *history
	metrics *metrics
	status  status
	stopped chan struct{} // closed when the loop has ended

	// Only the loop uses these once it is started (except for core.store).
	core     *core
	shutdown bool // the Shutdown event has been handled
	ended    bool // all events that followed from Shutdown have been handled, too

	mu       sync.Mutex
	started  bool               // guarded by mu
	cancel   context.CancelFunc // guarded by mu; ends the loop
	closing  sync.Once
	closeErr error // guarded by closing
}

// New returns a controller, and registers its metrics. Events may be pushed immediately; they are handled after Start.
func New(cfg Config, deps Deps) (*Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("controller config: %w", err)
	}
	if deps.Applier == nil || deps.Jobs == nil {
		return nil, errors.New("controller: Deps.Applier and Deps.Jobs are required")
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	c := &Controller{
		cfg:     cfg,
		deps:    deps,
		core:    newCore(cfg, deps.Log),
		history: newHistory(cfg.HistoryConfig),
		stopped: make(chan struct{}),
	}
	c.queue = newQueue(cfg.EventQueueSize, c.core.admits)
	c.status.set(c.core.health())
	var err error
	if c.metrics, err = newMetrics(deps.Metrics, c.queue.length, c.ready); err != nil {
		return nil, fmt.Errorf("controller metrics: %w", err)
	}
	return c, nil
}

// Start starts the loop. Handlers receive events in the order of the arguments.
func (c *Controller) Start(handlers ...api.EventHandler) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return errors.New("controller: started twice")
	}
	names := map[string]struct{}{}
	for i, h := range handlers {
		if h == nil {
			return fmt.Errorf("controller: handler %d is nil", i)
		}
		if _, dup := names[h.String()]; dup {
			return fmt.Errorf("controller: two handlers are called %q", h)
		}
		names[h.String()] = struct{}{}
	}
	c.started = true
	c.core.handlers = handlers
	c.core.start(c.deps.Now())
	c.history.start(c.deps.Now())
	if c.deps.HTTP != nil {
		c.registerREST(c.deps.HTTP)
	}
	c.deps.Jobs.Go("controller", c.run)
	return nil
}

// Close makes the plugins handle a Shutdown event, after all queued events, and ends the loop. If this takes longer than
// Config.ShutdownDeadline, the loop is cancelled and Close returns an error. Events that remain unhandled get Done(api.ErrClosed).
func (c *Controller) Close() error {
	c.closing.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Controller) close() error {
	defer c.discardAll()
	c.mu.Lock()
	started := c.started
	c.started = true // from now on Start returns an error
	c.mu.Unlock()
	if !started {
		c.status.close()
		return nil
	}
	deadline := time.NewTimer(time.Duration(c.cfg.ShutdownDeadline))
	defer deadline.Stop()
	shutdown := newShutdown()
	if err := c.queue.pushLast(shutdown); err != nil { // the loop has already ended
		return nil
	}
	select {
	case <-c.stopped:
	case <-deadline.C:
		c.mu.Lock()
		if c.cancel != nil {
			c.cancel()
		}
		c.mu.Unlock()
		handling := "is handling no event"
		if b := c.status.busy.Load(); b != nil {
			handling = "has been handling " + b.event + " for " + time.Since(b.since).Round(time.Millisecond).String()
		}
		return fmt.Errorf("controller did not shut down within %s; it %s", time.Duration(c.cfg.ShutdownDeadline), handling)
	}
	if err := shutdown.Wait(); err != nil && !errors.Is(err, api.ErrClosed) {
		return fmt.Errorf("shutdown: %w", err)
	}
	return nil
}

// PushEvent implements api.EventLoop. A blocking event waits for room in a full queue, up to half a minute. It must not be
// called from inside a handler with a blocking event.
func (c *Controller) PushEvent(event api.Event) error { return c.queue.push(event) }

// PushFollowUp implements api.EventLoop.
func (c *Controller) PushFollowUp(cause, event api.Event) error {
	return c.queue.pushFollowUp(cause, event)
}

// GetConfig implements api.ConfigRetriever. It may be called from any goroutine.
func (c *Controller) GetConfig(key string) proto.Message { return c.core.store.get(key) }

// DataplaneReconnected informs the controller that the dataplane may have lost its configuration, e.g. because VPP has restarted. It never
// blocks and never fails because of a full queue. Events that were queued before are handled after the reconnect.
func (c *Controller) DataplaneReconnected(reason string) error {
	return c.queue.pushReconnect(&DataplaneReconnect{Reason: reason})
}

// Resync requests a resync and waits until it has ended. The record is nil if the resync did not run.
func (c *Controller) Resync(ctx context.Context, method api.EventMethodType) (*EventRecord, error) {
	if !method.IsResync() {
		return nil, fmt.Errorf("%s is not a resync", method)
	}
	ev := &ResyncRequest{waiter: newWaiter(), method: method}
	if err := c.queue.push(ev); err != nil {
		return nil, err
	}
	select {
	case err := <-ev.result:
		return ev.record, err
	case <-ctx.Done():
		return nil, fmt.Errorf("resync is queued but has not ended: %w", ctx.Err())
	}
}

// EventHistory returns the recorded events in ascending order. The caller must not change the records.
func (c *Controller) EventHistory() []*EventRecord { return c.history.snapshot(c.deps.Now()) }

// run runs the loop.
func (c *Controller) run(ctx context.Context) error {
	defer close(c.stopped)
	defer c.discardAll()
	defer c.status.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()

	for !c.ended && ctx.Err() == nil {
		if !c.step(ctx) && !c.ended {
			c.wait(ctx)
		}
	}
	return nil
}

// step handles the next event; it returns false when there is none.
func (c *Controller) step(ctx context.Context) bool {
	it := c.queue.nextFollowUp()
	if it == nil && c.shutdown {
		c.ended = true
		return false
	}
	if it == nil {
		it = c.next()
	}
	if it == nil {
		return false
	}
	c.handle(ctx, it)
	c.shutdown = c.shutdown || it.last
	return true
}

// next takes the next event that is not a follow-up: an event of the controller itself, or else one from the queue.
func (c *Controller) next() *item {
	ev := c.core.due(c.deps.Now())
	c.status.set(c.core.health())
	if ev != nil {
		c.fold(ev)
		return &item{ev: ev}
	}
	it, superseded := c.queue.next()
	if it != nil {
		c.fold(it.ev)
	}
	for _, old := range superseded {
		c.deps.Log.Debug("event is superseded by a resync", "event", old.ev.String())
		c.done(old.ev, nil)
	}
	return it
}

// fold adds the queued changes of the cluster's state to the input of a repeated start-up resync: one of them may remove the object that
// made the last resync fail.
func (c *Controller) fold(ev api.Event) {
	if _, snapshot := ev.(*api.DBResync); snapshot || ev.Method() != api.FullResync || c.core.startup.phase != startupIncomplete {
		return
	}
	for _, it := range c.queue.takeChanges() {
		c.deps.Log.Debug("change is part of the start-up resync", "event", it.ev.String())
		c.core.refresh(it.ev)
		c.done(it.ev, nil)
	}
}

// wait returns when an event may be ready to be handled.
func (c *Controller) wait(ctx context.Context) {
	var timeout <-chan time.Time
	if at := c.core.deadline(); !at.IsZero() {
		timer := time.NewTimer(at.Sub(c.deps.Now()))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-ctx.Done():
	case <-c.queue.wake:
	case <-timeout:
	}
}

// handle processes one event from beginning to end.
func (c *Controller) handle(ctx context.Context, it *item) {
	c.queue.begin(it.ev, c.core.seqNum+1)
	c.status.busy.Store(&busy{event: it.ev.GetName(), since: time.Now()})
	defer c.status.busy.Store(nil)
	t := c.core.begin(it.ev, it.followUpTo, c.deps.Now())
	rec, err := c.commit(ctx, t.txn)
	pushed := c.queue.mark()
	out := c.core.finish(t, rec, err, c.deps.Now)
	if !out.dropFollowUps {
		pushed = 0
	}
	dropped := c.queue.end(pushed)

	c.publish(t, out)
	for _, followUp := range dropped {
		c.done(followUp.ev, errCauseReverted)
	}
	if ev, ok := it.ev.(interface{ setRecord(*EventRecord) }); ok {
		ev.setRecord(t.record)
	}
	c.done(it.ev, out.err)
}

// done calls ev.Done. A panic in Done must not end the loop.
func (c *Controller) done(ev api.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.deps.Log.Error("Done of an event panicked", "event", ev.GetName(), "panic", fmt.Sprint(r))
		}
	}()
	ev.Done(err)
}

// commit applies t. A panic in the dataplane must not end the loop: it is an error after which a full resync follows.
func (c *Controller) commit(ctx context.Context, t *txn.Txn) (rec *txn.Record, err error) {
	if t == nil {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			c.deps.Log.Error("commit panicked", "event", t.SeqNum, "panic", fmt.Sprint(r),
				"stack", string(debug.Stack()))
			err = &panicError{value: r}
		}
	}()
	return c.deps.Applier.Commit(ctx, t)
}

// publish reports a handled event to the history, the metrics and the callbacks, and logs it.
func (c *Controller) publish(t *eventHandling, out outcome) {
	r := t.record
	c.history.add(r)
	c.status.set(c.core.health())
	_, healing := t.ev.(*HealingResync)
	c.metrics.handled(r, out, healing)
	if c.deps.OnEventHandled != nil {
		c.deps.OnEventHandled(t.ev, r.ProcessingStart, r.ProcessingEnd, out.err)
	}

	took := r.ProcessingEnd.Sub(r.ProcessingStart)
	switch {
	case out.verificationErr != nil:
		c.deps.Log.Error("verification failed", "event", r.SeqNum, "description", r.Description, "took", took,
			"error", out.verificationErr)
		if c.deps.OnVerificationError != nil {
			c.deps.OnVerificationError(out.verificationErr)
		}
	case out.err != nil:
		level := slog.LevelWarn
		if t.update != nil && t.ev.IsBlocking() {
			level = slog.LevelDebug // its caller receives the error and logs it
		}
		c.deps.Log.Log(context.Background(), level, "event failed", "error", oneLine(out.err.Error()), "event", r.SeqNum,
			"description", oneLine(r.Description), "method", r.Method, "result", out.result, "took", took)
	case t.update == nil:
		c.deps.Log.Info("resync done", "description", oneLine(r.Description), "method", r.Method, "event", r.SeqNum, "took", took)
	default:
		c.deps.Log.Debug("event handled", "event", r.SeqNum, "method", r.Method, "description", oneLine(r.Description),
			"took", took)
	}
}

// discardAll closes the queue and unblocks the callers that wait for its events.
func (c *Controller) discardAll() {
	for _, it := range c.queue.close() {
		c.done(it.ev, api.ErrClosed)
	}
}
