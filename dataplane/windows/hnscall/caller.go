package hnscall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/internal/lifecycle"
)

// ErrNoAnswer means that a call is still running: its outcome is not known.
var ErrNoAnswer = errors.New("HNS does not respond")

// Config is the configuration of a Caller.
type Config struct {
	Jobs  *lifecycle.Group // where calls run; nil: a group of its own, which Close ends
	Log   *slog.Logger     // of that group; nil: no log
	Clock driver.Clock     // nil: real time
	// Timeout is how long Do waits for a call.
	Timeout time.Duration
	// MaxGivenUp is how many calls may time out in one pass; after that, further calls of the pass fail at once, because HNS as a whole does not
	// answer.
	MaxGivenUp int
	// Ended is called when a call that had timed out has ended, on the call's goroutine. Optional.
	Ended func(ctx context.Context)
}

// Caller makes calls, one at a time for each key, so that a late write cannot undo a newer one. Do and Pass are called from one goroutine.
type Caller struct {
	cfg   Config
	given int // calls that have timed out in this pass

	mu      sync.Mutex
	hanging map[string]bool // guarded by mu; keys of calls that have timed out and have not ended
}

// New makes a Caller.
func New(cfg Config) *Caller {
	if cfg.Clock == nil {
		cfg.Clock = driver.RealClock()
	}
	if cfg.Jobs == nil {
		if cfg.Log == nil {
			cfg.Log = slog.New(slog.DiscardHandler)
		}
		cfg.Jobs = lifecycle.NewGroup(context.Background(), cfg.Log)
	}
	return &Caller{cfg: cfg, hanging: map[string]bool{}}
}

// result is the outcome of a call.
type result[T any] struct {
	value T
	err   error
}

// Do makes a call for a key. The result of a call that ends after its timeout is dropped.
func Do[T any](c *Caller, key string, call func() (T, error)) (T, error) {
	var none T
	if c.hangs(key) {
		return none, fmt.Errorf("%s: %w: an earlier call for it has not ended", key, ErrNoAnswer)
	}
	if c.given >= c.cfg.MaxGivenUp {
		return none, fmt.Errorf("%s: %w: %d calls before it have not ended", key, ErrNoAnswer, c.given)
	}
	var given bool // guarded by c.mu
	done := make(chan result[T], 1)
	c.cfg.Jobs.Go("HNS call for "+key, func(ctx context.Context) error {
		value, err := safely(key, call)
		c.mu.Lock()
		done <- result[T]{value, err}
		late := given
		if late {
			delete(c.hanging, key)
		}
		c.mu.Unlock()
		if late && c.cfg.Ended != nil {
			c.cfg.Ended(ctx)
		}
		return nil
	})
	timer := c.cfg.Clock.NewTimer(c.cfg.Timeout)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case r := <-done: // it ended at the last moment
		return r.value, r.err
	default:
	}
	given, c.hanging[key] = true, true
	c.given++
	return none, fmt.Errorf("%s: %w within %s", key, ErrNoAnswer, c.cfg.Timeout)
}

// CallOutsidePass makes a call that does not count as one of the pass, until ctx ends. It may be called from any goroutine.
func CallOutsidePass[T any](ctx context.Context, c *Caller, name string, call func() (T, error)) (T, error) {
	done := make(chan result[T], 1)
	c.cfg.Jobs.Go(name, func(context.Context) error {
		value, err := call()
		done <- result[T]{value, err}
		return nil
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
	}
}

// Close ends the group of a Config without Jobs. The error names calls that have not ended.
func (c *Caller) Close() error { return c.cfg.Jobs.Stop(closeTimeout) }

const closeTimeout = time.Second

// safely turns a panic into an error: otherwise the call would count as hanging forever.
func safely[T any](key string, call func() (T, error)) (value T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: panic: %v", key, r)
		}
	}()
	return call()
}

func (c *Caller) hangs(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hanging[key]
}

// Hanging returns the number of calls that have timed out and have not ended.
func (c *Caller) Hanging() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.hanging)
}

// Pass starts a new pass: it resets the count of timeouts.
func (c *Caller) Pass() { c.given = 0 }
