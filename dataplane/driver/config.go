package driver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/internal/health"
)

// Config is what a driver is made of. Only Name is required; what is called "loop's goroutine" below must not call Inspect or
// Stop, and may be called again while an apply is being retried.
type Config struct {
	// Name is the health reporter's and part of the metrics' names: "int_dataplane".
	Name string
	// Log; nil: quiet.
	Log *slog.Logger
	// Clock; nil: real time.
	Clock Clock

	// RetryInterval is how long after a failed apply the next one is due if nothing else asks for it; 0: 10 s.
	RetryInterval time.Duration
	// HealthInterval is the period of health reports; 0: 10 s. HealthTimeout is how long one counts; 0: 20 s.
	HealthInterval, HealthTimeout time.Duration
	// StatusReportingInterval is the period of ProcessStatusUpdates (the first comes after 10 s); ≤ 0: none.
	StatusReportingInterval time.Duration
	// Health receives live and ready reports; nil: nothing.
	Health *health.HealthAggregator

	// PostInSync is called once, after the first successful apply, on the loop's goroutine.
	PostInSync func()
	// HangAfter makes the loop hang so long after Start, to see that the watchdog acts; 0: never.
	HangAfter time.Duration
	// Metrics; nil: not exported.
	Metrics prometheus.Registerer
	// MetricPrefix begins the metrics' names. "": they have Felix's names, felix_<Name>_failures and so on. With a prefix they have
	// Prometheus' endings: <prefix>failures_total.
	MetricPrefix string

	// Refresh are periodic causes of an apply.
	Refresh []Refresh
	// Gates must all be true before the first apply, besides InSync. They are asked on the loop's goroutine, again and again
	// until all are true at once, and never after that.
	Gates []func() bool
	// Apply is phase two's tail, after the managers' CompleteDeferredWork: it writes. It runs on the loop's goroutine; its
	// context ends when Stop cannot wait any longer. When it takes seconds it should call Progress now and then.
	Apply func(ctx context.Context) ApplyResult
}

// Refresh is a periodic cause of an apply, for instance a full comparison with the kernel.
type Refresh struct {
	Name string
	// Interval to which a random 0–10 % is added each time, so that nodes and causes spread out; ≤ 0: off.
	Interval time.Duration
	// Fire notes on the loop's goroutine what the next apply is to do.
	Fire func()
}

// ApplyResult is the outcome of Config.Apply.
type ApplyResult struct {
	// Err: something is not applied; it is tried again after RetryInterval.
	Err error
	// Again asks for another apply after this time; ≤ 0: no need. The last apply's word counts.
	Again time.Duration
}

// Flush is an internal message that asks for the outcome of what was sent before it. Managers do not see it.
type Flush struct {
	// Done receives nil when all that was sent before is applied, else the error of the apply that tried. A later success is
	// not reported. It needs a capacity of at least one: the loop does not wait for a reader.
	Done chan<- error
}

// ErrStopped is returned after Stop.
var ErrStopped = errors.New("the dataplane driver was stopped")

const (
	inputCapacity = 100
	// drainLimit is how many messages of the same channel are added to a batch after its first one.
	drainLimit = 100
	// firstStatus is when the first ProcessStatusUpdate is sent after Start.
	firstStatus = 10 * time.Second
	// gatePoll is how often gates are asked when they are all that an apply waits for: they change without a message.
	gatePoll = 50 * time.Millisecond
)

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = realClock{}
	}
	c.RetryInterval = cmp.Or(max(c.RetryInterval, 0), 10*time.Second)
	c.HealthInterval = cmp.Or(max(c.HealthInterval, 0), 10*time.Second)
	c.HealthTimeout = cmp.Or(max(c.HealthTimeout, 0), 20*time.Second)
	return c
}
