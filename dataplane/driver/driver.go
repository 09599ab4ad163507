package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/internal/health"
	"contiv.dev/vswitch/internal/lifecycle"
)

// Driver is a dataplane driver. The order of calls is New, RegisterManager and AddSource, Start, messages, Stop. SendMessage, RecvMessage,
// QueueStatus, Inspect, Start and Stop are safe for concurrent use.
type Driver struct {
	cfg    Config
	log    *slog.Logger
	clock  Clock
	health *health.Reporter
	jobs   *lifecycle.Group

	input   chan any
	inspect chan inspection
	status  *statusQueue

	stopping chan struct{} // closed: no more messages are accepted
	quit     chan struct{} // closed: the loop must end
	ended    chan struct{} // closed: the loop has ended
	senders  sync.RWMutex  // held for reading while a message is being sent
	hurried  atomic.Int32  // number of callers that have suspended the throttle

	mu       sync.Mutex // of the following
	started  bool
	stopped  bool
	managers []*slot   // used only by the loop after Start
	sources  []*source // used only by the loop after Start

	loop loop
}

// source is a further input of the loop.
type source struct {
	name string
	ch   <-chan any // nil after it was closed
	size interface{ Observe(float64) }
}

type inspection struct {
	f    func()
	done chan error
}

// New returns a driver that is not started, and registers it with cfg.Health.
func New(cfg Config) *Driver {
	cfg = cfg.withDefaults()
	d := &Driver{
		cfg: cfg, log: cfg.Log.With("driver", cfg.Name), clock: cfg.Clock,
		jobs:  lifecycle.NewGroup(context.Background(), cfg.Log),
		input: make(chan any, inputCapacity), inspect: make(chan inspection), status: newStatusQueue(),
		stopping: make(chan struct{}), quit: make(chan struct{}), ended: make(chan struct{}),
		health: cfg.Health.Register(cfg.Name, health.HealthReport{Live: true, Ready: true}, cfg.HealthTimeout),
	}
	var err error
	if d.loop.metrics, err = newMetrics(cfg.Metrics, cfg.Name, cfg.MetricPrefix); err != nil {
		d.log.Error("metrics are incomplete", "error", err)
	}
	return d
}

// RegisterManager adds a manager after those already registered. It must not be called after Start: the driver is then never ready, because the
// manager has missed messages.
func (d *Driver) RegisterManager(m Manager) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		d.late(fmt.Errorf("manager %T was registered after Start: register it before", m))
		return
	}
	d.managers = append(d.managers, newSlot(m))
}

// AddSource adds ch as a further input: each of its messages goes to all managers and causes an apply. Closing ch ends the input. Like
// RegisterManager, it must not be called after Start.
func (d *Driver) AddSource(name string, ch <-chan any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started {
		d.late(fmt.Errorf("source %s was added after Start: add it before", name))
		return
	}
	size, err := d.loop.metrics.sourceBatch(d.cfg.Metrics, name)
	if err != nil {
		d.log.Error("metrics are incomplete", "error", err)
	}
	d.sources = append(d.sources, &source{name: name, ch: ch, size: size})
}

// late reports a programming error of the caller to the loop, which from then on is not ready.
func (d *Driver) late(err error) {
	d.jobs.Go(d.cfg.Name+" misuse", func(context.Context) error {
		return d.Inspect(func() { d.loop.defect(err) })
	})
}

// Start starts the loop and returns. A second Start does nothing.
func (d *Driver) Start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started || d.stopped {
		return
	}
	d.started = true
	d.jobs.Go(d.cfg.Name, func(ctx context.Context) error {
		defer close(d.ended)
		d.loop.init(d)
		d.loop.run(ctx)
		return nil
	})
}

// Stop ends the driver in order: no more messages are accepted, a running apply is completed, Flushes that are still waiting get ErrStopped,
// and the health report turns to not ready. The dataplane stays as it is: traffic continues. Messages that were not applied are dropped. If ctx
// ends first, the apply's context is cancelled, and the error reports it. Stop may be called more than once.
func (d *Driver) Stop(ctx context.Context) error {
	d.mu.Lock()
	first := !d.stopped
	d.stopped = true
	running := d.started
	d.mu.Unlock()
	if first {
		close(d.stopping)
		// From here on SendMessage rejects messages, and senders that wait for room give up. After that the input is complete.
		d.senders.Lock()
		d.senders.Unlock() //lint:ignore SA2001 a barrier
		close(d.quit)
		if !running {
			d.loop.d = d
			d.loop.rejectFlushes()
			d.health.Report(health.HealthReport{Live: true, Detail: "stopped"})
			close(d.ended)
		}
	}
	select {
	case <-d.ended:
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("driver %s: stop: an apply or a manager does not end: %w", d.cfg.Name, ctx.Err()),
			d.jobs.Stop(0))
	}
	return d.jobs.Stop(time.Second)
}

// SendMessage passes msg to the loop: a message of package proto, one that a manager of this driver handles, or a Flush. The message must not
// be changed afterwards. SendMessage blocks while 100 messages are pending, so managers must not call it. It fails only with ErrStopped, or
// when msg is nil.
func (d *Driver) SendMessage(msg any) error {
	if msg == nil {
		return errors.New("driver: SendMessage without a message")
	}
	d.senders.RLock()
	defer d.senders.RUnlock()
	select {
	case <-d.stopping:
		return ErrStopped
	default:
	}
	select {
	case d.input <- msg:
		return nil
	case <-d.stopping:
		return ErrStopped
	case <-d.ended:
		return ErrStopped
	}
}

// SendMessages sends messages that are applied together: no apply runs between them.
func (d *Driver) SendMessages(msgs ...any) error {
	if len(msgs) == 0 {
		return nil
	}
	return d.SendMessage(several(msgs))
}

// several holds messages that are processed in one pass of the loop.
type several []any

// RecvMessage waits for the next status message and returns it: a ProcessStatusUpdate or a message queued with QueueStatus. After Stop it
// returns the pending messages and then ErrStopped.
func (d *Driver) RecvMessage() (any, error) {
	for {
		if msg, ok := d.status.take(); ok {
			return msg, nil
		}
		select {
		case <-d.status.wake:
		case <-d.ended:
			if msg, ok := d.status.take(); ok {
				return msg, nil
			}
			return nil, ErrStopped
		}
	}
}

// QueueStatus queues msg as the status message of key. It replaces an older message of key that was not read yet; a nil msg withdraws that
// message. key is any comparable value: an endpoint's identity. QueueStatus never waits.
func (d *Driver) QueueStatus(key any, msg any) { d.status.put(key, msg) }

// Inspect runs f on the loop's goroutine between two passes, so that f may read the state of managers, and waits until f has returned. The loop
// does nothing else meanwhile. Before Start it waits for Start.
func (d *Driver) Inspect(f func()) error {
	in := inspection{f: f, done: make(chan error, 1)}
	select {
	case d.inspect <- in:
	case <-d.stopping:
		return ErrStopped
	case <-d.ended:
		return ErrStopped
	}
	select {
	case err := <-in.done:
		return err
	case <-d.ended:
		return ErrStopped
	}
}

// Expedite suspends the throttle until release is called. It is for callers that wait for a result of several applies, each of which depends on
// the result of the previous one (an endpoint that comes up). A Flush is never throttled.
func (d *Driver) Expedite() (release func()) {
	d.hurried.Add(1)
	_ = d.Inspect(func() {}) // wakes a loop that is waiting for a token; not needed after Stop
	return sync.OnceFunc(func() { d.hurried.Add(-1) })
}

// Refresh fires all refreshes now, including those whose interval is off: the next apply, which is due, compares everything.
func (d *Driver) Refresh() error {
	return d.Inspect(func() {
		for _, r := range d.cfg.Refresh {
			d.loop.refresh(r)
		}
	})
}

// Progress reports that the loop is alive although a pass takes long. It is for Apply and managers, on the loop's goroutine: the progress of
// another goroutine would not show that the loop is alive.
func (d *Driver) Progress() { d.loop.reportProgress() }
