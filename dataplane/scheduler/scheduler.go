package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
)

// Config configures a scheduler.
type Config struct {
	// Backends are flushed, in this order, at the end of each wave.
	Backends []Backend
	// Jobs runs the scheduler's goroutine.
	Jobs *lifecycle.Group
	// Retry bounds the background retries of failed values.
	Retry RetryPolicy
	// History bounds the stored records.
	History HistoryLimits
	// DumpTimeout bounds the dump of all kinds; 1 minute when zero.
	DumpTimeout time.Duration
	// Report is called with each background retry that ended with values that will not be retried again. It runs on the scheduler's goroutine
	// and must not call Commit there. Optional.
	Report func(rec *txn.Record, err *txn.Error)
	// Decode reads a value of the dry run's REST request. Optional: without it there is no dry run over REST.
	Decode func(key string, data []byte) (proto.Message, error)
}

// RetryPolicy bounds the background retries of failed values.
type RetryPolicy struct {
	// First is the delay before the first retry, doubled for each further one up to Max. Defaults: 1 s and 1 min.
	First, Max time.Duration
	// Attempts is the number of retries after which a value is FAILED and reported. Default: 10; negative: no limit.
	Attempts int
}

// Scheduler is the engine. All methods may be called from any goroutine; methods that wait must not be called from the functions of a descriptor.
type Scheduler struct {
	cfg  Config
	log  *slog.Logger
	reg  registry
	hist *history

	// Owned by the scheduler's goroutine: only this goroutine writes, and it holds mu while it writes; other goroutines read under mu.
	mu    sync.RWMutex
	graph *graph
	stats Stats

	// Owned by the scheduler's goroutine.
	plan         planner
	retries      retryQueue
	peers        []string // the last process of each backend's peer that a transaction found; empty if there was none yet
	replacedPeer error    // set when a peer has been replaced and not everything has been dumped since; see peers.go

	serving atomic.Bool  // a request is being served, or values are being retried
	served  atomic.Int64 // end of the last request or retry, in Unix ns

	qmu     sync.Mutex
	queue   []*request
	started bool
	closed  bool
	wake    chan struct{}
	done    chan struct{} // closed when the goroutine has ended
}

// request is a transaction that waits for, or runs on, the scheduler's goroutine.
type request struct {
	txn   *txn.Txn
	dry   bool
	check []string // keys to compare with the dataplane, instead of a transaction

	rec  *txn.Record
	err  error
	done chan struct{}
}

// New returns a scheduler without descriptors; it does nothing before Start.
func New(cfg Config, log *slog.Logger) *Scheduler {
	if cfg.DumpTimeout == 0 {
		cfg.DumpTimeout = time.Minute
	}
	cfg.Retry = cfg.Retry.withDefaults()
	s := &Scheduler{
		cfg:  cfg,
		log:  log,
		reg:  registry{byName: map[string]*kind{}},
		hist: newHistory(cfg.History),
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	s.graph = newGraph(&s.reg)
	return s
}

func (s *Scheduler) register(k *kind) error {
	s.qmu.Lock()
	defer s.qmu.Unlock()
	if s.started {
		return fmt.Errorf("kind %s: registered after start", k.name)
	}
	return s.reg.add(k)
}

// Start begins to apply transactions, including those that were committed before.
func (s *Scheduler) Start() error {
	s.qmu.Lock()
	defer s.qmu.Unlock()
	switch {
	case s.closed:
		return txn.ErrClosed
	case s.started:
		return errors.New("scheduler was started before")
	case s.cfg.Jobs == nil:
		return errors.New("scheduler needs a group of jobs")
	}
	s.started = true
	s.reg.freeze()
	s.plan.init(s.graph, s.reg.levels)
	s.cfg.Jobs.Go("scheduler", s.loop)
	return nil
}

// Close lets the running transaction finish, rejects waiting ones with txn.ErrClosed, and ends the background retries.
func (s *Scheduler) Close() {
	s.qmu.Lock()
	s.closed = true
	started := s.started
	s.qmu.Unlock()
	s.signal()
	if started {
		<-s.done
	}
	s.refuse()
}

// Commit implements txn.Applier. When ctx ends, only the wait ends: the transaction is still applied and can be found in the history.
func (s *Scheduler) Commit(ctx context.Context, t *txn.Txn) (*txn.Record, error) {
	return s.request(ctx, &request{txn: t, done: make(chan struct{})})
}

// Plan implements txn.Applier. Resyncs are planned against a dump of the dataplane.
func (s *Scheduler) Plan(ctx context.Context, t *txn.Txn) ([]txn.Op, error) {
	rec, err := s.request(ctx, &request{txn: t, dry: true, done: make(chan struct{})})
	if rec == nil {
		return nil, err
	}
	return rec.Planned, err
}

// Check compares the values under keys, and their items, with the dataplane; only these values are dumped. It returns the operations that would
// bring them to their desired state, and does not run them. Keys that are not desired are ignored.
func (s *Scheduler) Check(ctx context.Context, keys []string) ([]txn.Op, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	rec, err := s.request(ctx, &request{check: keys, done: make(chan struct{})})
	if rec == nil {
		return nil, err
	}
	return rec.Planned, err
}

// QueueLength returns the number of waiting requests.
func (s *Scheduler) QueueLength() int {
	s.qmu.Lock()
	defer s.qmu.Unlock()
	return len(s.queue)
}

func (s *Scheduler) request(ctx context.Context, r *request) (*txn.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nothing was committed: %w", err)
	}
	s.qmu.Lock()
	if s.closed {
		s.qmu.Unlock()
		return nil, txn.ErrClosed
	}
	s.queue = append(s.queue, r)
	s.qmu.Unlock()
	s.signal()
	select {
	case <-r.done:
		return r.rec, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the transaction continues, but its caller no longer waits: %w", ctx.Err())
	}
}

func (s *Scheduler) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// next takes the oldest request; stop is true when no further request may be processed.
func (s *Scheduler) next() (r *request, stop bool) {
	s.qmu.Lock()
	defer s.qmu.Unlock()
	if s.closed {
		return nil, true
	}
	if len(s.queue) == 0 {
		return nil, false
	}
	r = s.queue[0]
	s.queue[0] = nil
	s.queue = s.queue[1:]
	return r, false
}

// refuse rejects the requests that were not processed.
func (s *Scheduler) refuse() {
	s.qmu.Lock()
	queue := s.queue
	s.queue = nil
	s.qmu.Unlock()
	for _, r := range queue {
		r.err = txn.ErrClosed
		close(r.done)
	}
}

// loop is the scheduler's goroutine.
func (s *Scheduler) loop(ctx context.Context) error {
	defer s.refuse()
	defer close(s.done)
	defer func() {
		s.qmu.Lock()
		s.closed = true
		s.qmu.Unlock()
	}()
	// A transaction that has started is finished: a partly applied transaction is worse than a late stop, and every operation has a deadline.
	work := context.WithoutCancel(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if err := s.drain(ctx, work); err != nil {
			return nil //nolint:nilerr // a requested stop is not an error
		}
		due, ok := s.retries.earliest()
		var fire <-chan time.Time
		if ok {
			timer.Reset(max(0, time.Until(due)))
			fire = timer.C
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-fire:
			s.retryDue(work, time.Now())
		}
	}
}

// drain serves the waiting requests.
func (s *Scheduler) drain(ctx, work context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, stop := s.next()
		switch {
		case stop:
			return txn.ErrClosed
		case r == nil:
			return nil
		}
		s.serve(work, r)
	}
}

// Busy reports whether a transaction waits or is in progress, or values are being retried: background work on the same dataplane should wait.
func (s *Scheduler) Busy() bool {
	s.qmu.Lock()
	defer s.qmu.Unlock()
	return len(s.queue) > 0 || s.serving.Load()
}

// Idle returns the time since the end of the last transaction or background retry.
func (s *Scheduler) Idle() time.Duration {
	if s.Busy() {
		return 0
	}
	return time.Duration(time.Now().UnixNano() - s.served.Load())
}

// endWork records the end of a request or of a background retry.
func (s *Scheduler) endWork() {
	s.served.Store(time.Now().UnixNano())
	s.serving.Store(false)
}

// serve applies one request. It replies even if a descriptor panics, which ends the scheduler.
func (s *Scheduler) serve(ctx context.Context, r *request) {
	s.serving.Store(true)
	defer s.endWork()
	r.err = txn.ErrClosed
	defer close(r.done)
	if r.check != nil {
		r.rec, r.err = s.check(ctx, r.check)
		return
	}
	if r.dry {
		r.rec, r.err = s.dryRun(ctx, r.txn)
		return
	}
	r.rec, r.err = s.commit(ctx, r.txn)
}
