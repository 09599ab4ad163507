package windataplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/internal/lifecycle"
)

// errNoAnswer says that a call of HNS is still running.
var errNoAnswer = errors.New("HNS does not answer")

// callEnded is an internal message: a call that was given up has ended after all.
type callEnded struct {
	key    string
	number int
}

// caller makes calls of HNS, which cannot be ended, with a limit: the loop goes on while a call hangs. There is one call at a time
// for each key, so a late write cannot undo a newer one.
type caller struct {
	jobs    *lifecycle.Group
	clock   driver.Clock
	timeout time.Duration
	ended   chan any       // of callEnded
	hanging map[string]int // the number of the call that has not ended
	number  int            // of the last call
	given   int            // calls that were given up in this pass
}

// maxGivenUp is how many calls may be given up in one pass; after that HNS as a whole is taken not to answer.
const maxGivenUp = 2

func newCaller(jobs *lifecycle.Group, clock driver.Clock, timeout time.Duration) *caller {
	return &caller{jobs: jobs, clock: clock, timeout: timeout, ended: make(chan any), hanging: map[string]int{}}
}

// do makes a call for a key, and is called by the loop.
func (c *caller) do(key string, call func() error) error {
	if c.hanging[key] != 0 {
		return fmt.Errorf("%s: %w: an earlier call for it has not ended", key, errNoAnswer)
	}
	if c.given >= maxGivenUp {
		return fmt.Errorf("%s: %w: %d calls before it have not ended", key, errNoAnswer, c.given)
	}
	c.number++
	number := c.number
	done, late := make(chan error, 1), make(chan struct{})
	c.jobs.Go("HNS call for "+key, func(ctx context.Context) error {
		done <- call()
		select {
		case <-late:
			c.tell(ctx, &callEnded{key, number})
		default:
		}
		return nil
	})
	timer := c.clock.NewTimer(c.timeout)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C():
	}
	c.hanging[key] = number
	c.given++
	close(late)
	select {
	case err := <-done: // it ended just now, and may not have seen that it was late
		delete(c.hanging, key)
		return err
	default:
	}
	return fmt.Errorf("%s: %w within %s", key, errNoAnswer, c.timeout)
}

// tell hands over that a late call has ended.
func (c *caller) tell(ctx context.Context, msg *callEnded) {
	select {
	case c.ended <- msg:
	case <-ctx.Done():
	}
}

// note is called by the loop when it is told.
func (c *caller) note(msg *callEnded) {
	if c.hanging[msg.key] == msg.number {
		delete(c.hanging, msg.key)
	}
}

// pass is called before each pass.
func (c *caller) pass() { c.given = 0 }
