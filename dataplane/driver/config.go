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

// Config configures a driver. Only Name is required. Functions that run on the loop's goroutine must not call Inspect or Stop, and may be
// called again while an apply is being retried.
type Config struct {
	// Name is the name of the health reporter and part of the metrics' names, such as "int_dataplane".
	Name string
	// Log receives log messages; nil: no logging.
	Log *slog.Logger
	// Clock is the source of time; nil: the system clock.
	Clock Clock

	// RetryInterval is the time after which a failed apply is retried if no message causes an apply earlier; 0: 10 s.
	RetryInterval time.Duration
	// HealthInterval is the period of health reports; 0: 10 s. HealthTimeout is the time for which a report is valid; 0: 20 s.
	HealthInterval, HealthTimeout time.Duration
	// StatusReportingInterval is the period of ProcessStatusUpdates (the first is sent after 10 s); ≤ 0: none.
	StatusReportingInterval time.Duration
	// Health receives live and ready reports; nil: none are sent.
	Health *health.HealthAggregator

	// PostInSync is called once, after the first successful apply, on the loop's goroutine.
	PostInSync func()
	// HangAfter makes the loop hang this long after Start, to test the watchdog; 0: never.
	HangAfter time.Duration
	// Metrics is the registry of the metrics; nil: they are not exported.
	Metrics prometheus.Registerer
	// MetricPrefix is the prefix of the metrics' names. "": they have Felix's names, felix_<Name>_failures and so on. With a prefix they have
	// the suffixes of Prometheus: <prefix>failures_total.
	MetricPrefix string

	// Refresh lists periodic causes of an apply.
	Refresh []Refresh
	// Gates must all return true, besides InSync, before the first apply. They are polled on the loop's goroutine until all return true in one
	// pass, and not afterwards.
	Gates []func() bool
	// Apply is the last part of phase two, after the managers' CompleteDeferredWork: it writes. It runs on the loop's goroutine; its context
	// ends when Stop cannot wait any longer. If it takes seconds it should call Progress from time to time.
	Apply func(ctx context.Context) ApplyResult
}

// Refresh is a periodic cause of an apply, for instance a full comparison with the kernel.
type Refresh struct {
	Name string
	// Interval is the period, to which a random 0–10 % is added each time so that nodes and causes spread out; ≤ 0: off.
	Interval time.Duration
	// Fire records, on the loop's goroutine, the work of the next apply.
	Fire func()
}

// ApplyResult is the outcome of Config.Apply.
type ApplyResult struct {
	// Err is set when the apply is incomplete; it is retried after RetryInterval.
	Err error
	// Again requests another apply after this time; ≤ 0: none. The value of the last apply counts.
	Again time.Duration
}

// Flush is an internal message that requests the result for all messages that were sent before it. Managers do not receive it.
type Flush struct {
	// Done receives nil when all earlier messages are applied, else the error of the apply that failed. A later success is not reported. The
	// channel needs a capacity of at least one: the loop does not wait for a reader.
	Done chan<- error
}

// ErrStopped is returned after Stop.
var ErrStopped = errors.New("the dataplane driver was stopped")

const (
	inputCapacity = 100
	// drainLimit is the number of messages of the same channel that are added to a batch after its first one.
	drainLimit = 100
	// firstStatus is the time from Start to the first ProcessStatusUpdate.
	firstStatus = 10 * time.Second
	// gatePoll is the polling period of gates when an apply waits only for them: gates open without a message.
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
