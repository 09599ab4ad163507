package conn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/api"

	"contiv.dev/vswitch/internal/lifecycle"
)

// Config configures the connection to VPP. Zero fields take the defaults.
type Config struct {
	Socket string // default /run/vpp/api.sock
	Client string // our name in VPP's "show api clients"; default contiv-vswitch

	// Require lists the requests (and events) that the agent cannot work without. A VPP that lacks one of them, or its reply, is
	// rejected.
	Require []api.Message
	// Accept, if set, decides whether a VPP that has the required messages can be used. If it returns an error, there is no session with
	// this VPP, so nothing is written to it.
	Accept func(context.Context, Candidate) error

	RequestTimeout time.Duration // longest time between two answers of VPP; default 5 s
	Window         int           // requests in flight per lane, 1 to 1024; default 128
	HealthInterval time.Duration // silence after which VPP is pinged; default 500 ms
	HealthTimeout  time.Duration // further silence after which VPP counts as frozen; default 3 s
	Reconnect      time.Duration // pause between attempts to connect; default 50 ms
	ReconnectMax   time.Duration // pause after repeated failures of a VPP that is running; default 2 s

	// Trace, if set, is called with each request when it is sent, and with each answer and the time it took (or the request again, with
	// its error). It runs on the goroutines that make requests.
	Trace func(dir Direction, msg api.Message, took time.Duration, err error)
}

func (c *Config) setDefaults() {
	def := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	if c.Socket == "" {
		c.Socket = "/run/vpp/api.sock"
	}
	if c.Client == "" {
		c.Client = "contiv-vswitch"
	}
	if c.Window <= 0 {
		c.Window = 128
	}
	c.Window = min(c.Window, 1024)
	def(&c.RequestTimeout, 5*time.Second)
	def(&c.HealthInterval, 500*time.Millisecond)
	def(&c.HealthTimeout, 3*time.Second)
	def(&c.Reconnect, 50*time.Millisecond)
	def(&c.ReconnectMax, 2*time.Second)
}

// Status is the state of the connection.
type Status int

// The states.
const (
	Disconnected Status = iota
	Connected
	NotResponding
)

func (s Status) String() string {
	switch s {
	case Connected:
		return "connected"
	case NotResponding:
		return "not responding"
	default:
		return "disconnected"
	}
}

// State describes the connection at one time.
type State struct {
	Status  Status
	Since   time.Time
	Err     error  // why the status is not Connected
	Session uint64 // incremented with each transition to Connected
	// NewBoot: this session is with another VPP process than the previous one, or is the first. All earlier data about VPP is void.
	// Otherwise VPP kept its state, but the outcome of some requests may be unknown.
	NewBoot bool
	BootID  string // identifies the VPP process, also across restarts of the agent
	PID     uint32 // of VPP, in its own namespace
	Version string // of VPP
}

// Connected reports whether requests can be made.
func (s State) Connected() bool { return s.Status == Connected }

// Conn is a connection to VPP that restores itself automatically.
type Conn struct {
	cfg   Config
	log   *slog.Logger
	clock clock
	types registry

	session   atomic.Pointer[session] // never nil
	receivers atomic.Pointer[[]receiver]
	calls     calls
	events    events
	counters  counters
	channels  channels
	reading   chan *transport // to the reader

	life  life
	board board
}

// life is the time between New and Close.
type life struct {
	ctx  context.Context
	end  context.CancelFunc
	jobs sync.WaitGroup
}

// board holds the published state and its watchers.
type board struct {
	mu       sync.Mutex
	state    State         // guarded by mu
	watchers []func(State) // guarded by mu
}

// New returns a connection that is not started yet.
func New(cfg Config, log *slog.Logger) *Conn {
	cfg.setDefaults()
	c := &Conn{
		cfg: cfg, log: log.With("component", "vpp"), clock: clock{time.Now()}, types: newRegistry(),
		reading: make(chan *transport), board: board{state: State{Since: time.Now(), Err: ErrDisconnected}},
	}
	c.life.ctx, c.life.end = context.WithCancel(context.Background()) // until Close, after any start
	c.session.Store(endedSession(ErrDisconnected))
	c.calls.init(c)
	c.receivers.Store(&[]receiver{callReceiver: &c.calls})
	c.events.init(&c.counters.dropped)
	return c
}

// Start connects, and reconnects when the connection is lost, until Close or until jobs stops.
func (c *Conn) Start(jobs *lifecycle.Group) {
	c.life.jobs.Add(2)
	jobs.Go("vpp reader", c.job(c.reader))
	jobs.Go("vpp connection", c.job(c.supervise))
}

// job wraps run so that Close ends it, too.
func (c *Conn) job(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		defer c.life.jobs.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.life.ctx, cancel)()
		if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// Close ends the connection; requests in flight fail. It waits for the jobs to end.
func (c *Conn) Close() {
	c.life.end()
	c.channels.close()
	c.life.jobs.Wait()
}

// Lane returns a new lane. Lanes live as long as the Conn: make one per goroutine that needs it, not one per use.
func (c *Conn) Lane() *Lane {
	for {
		old := c.receivers.Load()
		if len(*old) == maxReceivers {
			return newLane(c, 0) // rejects all requests
		}
		l := newLane(c, uint32(len(*old)))
		next := append(append(make([]receiver, 0, len(*old)+1), *old...), &l.box)
		if c.receivers.CompareAndSwap(old, &next) {
			return l
		}
	}
}

func (c *Conn) receiver(number uint32) receiver {
	all := *c.receivers.Load()
	if int(number) >= len(all) {
		return nil
	}
	return all[number]
}

// State returns the current state.
func (c *Conn) State() State {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	return c.board.state
}

// OnChange calls f with each new state, in order, on the supervising goroutine: f must not block and must not make requests. The
// current state is not reported.
func (c *Conn) OnChange(f func(State)) {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	c.board.watchers = append(c.board.watchers, f)
}

// Writes counts the requests that may have changed VPP. It stays 0 in a restarted agent that finds VPP in the desired state.
func (c *Conn) Writes() uint64 { return c.counters.writes.Load() }

// Stats returns the counters.
func (c *Conn) Stats() Stats { return c.counters.stats() }

// Has returns nil if the connected VPP has the messages and their replies, an *IncompatibleError that lists the missing ones, or
// ErrDisconnected.
func (c *Conn) Has(messages []api.Message) error {
	s := c.session.Load()
	if err := s.err(); err != nil {
		return err
	}
	return c.types.check(s.t.ids, messages, c.State().Version)
}

// Invoke makes one request and waits for its answer, which it stores in reply (nil to ignore it). Prefer a Lane.
func (c *Conn) Invoke(ctx context.Context, req, reply api.Message) error {
	s := c.session.Load()
	if err := s.err(); err != nil {
		return &requestError{Message: req.GetMessageName(), Err: err}
	}
	return c.calls.invoke(ctx, s.t, req, reply)
}

// reader decodes the messages from VPP, one connection after the other.
func (c *Conn) reader(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case t := <-c.reading:
			t.read(newRouter(c, t))
		}
	}
}
