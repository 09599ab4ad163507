package relay

import (
	"fmt"
	"time"
)

// checks are what a leader looks at from time to time.
type checks struct {
	relay  *Relay
	next   time.Time
	resync time.Time // when etcd is to be compared
	fresh  time.Time // when the API server was last heard
	quiet  time.Time // when another program's changes are long enough ago
}

func newChecks(r *Relay) *checks {
	now := time.Now()
	return &checks{relay: r, next: now.Add(checkInterval), resync: now.Add(jitter(r.ResyncInterval)), fresh: now}
}

// due reports why not to go on.
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

// disturbed notes that another program has changed something.
func (c *checks) disturbed() { c.quiet = time.Now().Add(c.relay.Settle) }

// settled is true if the state may be marked as complete.
func (c *checks) settled() bool { return !time.Now().Before(c.quiet) }

// pause is how long there may be nothing to do.
func (c *checks) pause() time.Duration {
	pause := time.Until(c.next)
	if left := time.Until(c.quiet); left > 0 {
		pause = min(pause, left)
	}
	return max(pause, time.Millisecond)
}
