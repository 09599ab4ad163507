package relay

import (
	"fmt"
	"time"
)

// checks are the checks that a leader makes periodically.
type checks struct {
	relay  *Relay
	next   time.Time
	resync time.Time // when all of etcd's state is to be compared
	fresh  time.Time // when the API server was last found to be connected
	quiet  time.Time // when enough time has passed since the last change of another program
}

func newChecks(r *Relay) *checks {
	now := time.Now()
	return &checks{relay: r, next: now.Add(checkInterval), resync: now.Add(jitter(r.ResyncInterval)), fresh: now}
}

// due returns the reason to stop the term or the comparison, or nil to continue.
func (c *checks) due() error {
	now := time.Now()
	if now.Before(c.next) {
		return nil
	}
	c.next = now.Add(checkInterval)
	if err := c.relay.Fresh(); err == nil {
		c.fresh = now
	} else if now.Sub(c.fresh) > c.relay.LeaseTTL {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	if now.After(c.resync) {
		return errResync
	}
	return nil
}

// disturbed records that another program has changed something.
func (c *checks) disturbed() { c.quiet = time.Now().Add(c.relay.Settle) }

// settled reports whether the state may be marked as complete.
func (c *checks) settled() bool { return !time.Now().Before(c.quiet) }

// pause returns the time until the next check.
func (c *checks) pause() time.Duration {
	pause := time.Until(c.next)
	if left := time.Until(c.quiet); left > 0 {
		pause = min(pause, left)
	}
	return max(pause, time.Millisecond)
}
