package controller

import (
	"fmt"
	"sync/atomic"
	"time"
)

// health is the readiness and the liveness of the node, as of the last event.
type health struct {
	notReady  string // the reason; empty if ready
	unhealthy string // the reason; empty if healthy
}

// health returns the current health of the core.
func (c *core) health() health {
	switch {
	case c.fatal != nil:
		reason := "fatal error: " + oneLine(c.fatal.Error())
		return health{notReady: reason, unhealthy: reason}
	case c.startup.phase != running && c.startup.late && c.startup.err == nil:
		return health{notReady: fmt.Sprintf("start-up resync: no snapshot of the cluster's state within %s",
			time.Duration(c.cfg.StartupResyncDeadline))}
	case c.startup.phase == waitingForState:
		return health{notReady: "start-up resync: waiting for a snapshot of the cluster's state"}
	case c.startup.phase == startupIncomplete:
		return health{notReady: "start-up resync has failed and is being repeated: " + errText(c.startup.err)}
	case c.healer.lastErr != nil:
		return health{notReady: fmt.Sprintf("healing has failed %d times: %s", c.healer.failed,
			errText(c.healer.lastErr))}
	}
	return health{}
}

func errText(err error) string {
	if err == nil {
		return "unknown error"
	}
	return oneLine(err.Error())
}

// status publishes health to other goroutines.
type status struct {
	current atomic.Pointer[health]
	closed  atomic.Bool
	busy    atomic.Pointer[busy] // nil if no event is being handled
}

// busy is the event that the loop is handling.
type busy struct {
	event string
	since time.Time
}

// stuck describes the event that the loop has handled for longer than limit; it returns an empty string if there is none.
func (s *status) stuck(limit time.Duration) string {
	b := s.busy.Load()
	if b == nil || time.Since(b.since) <= limit {
		return ""
	}
	return fmt.Sprintf("the event loop is stuck: %s has been handled for %s", b.event, time.Since(b.since).Round(time.Second))
}

func (s *status) set(h health) {
	if old := s.current.Load(); old == nil || *old != h {
		s.current.Store(&h)
	}
}

func (s *status) close() { s.closed.Store(true) }

// Ready reports whether the node's configuration is in place, and if not, the reason.
func (c *Controller) Ready() (bool, string) {
	if c.status.closed.Load() {
		return false, "event loop has ended"
	}
	if reason := c.status.stuck(time.Duration(c.cfg.EventDeadline)); reason != "" {
		return false, reason
	}
	h := c.status.current.Load()
	return h.notReady == "", h.notReady
}

// Healthy returns false when a restart of the agent (never of VPP) may help: after an api.FatalError until a full resync succeeds, and
// while the loop is stuck.
func (c *Controller) Healthy() (bool, string) {
	if reason := c.status.stuck(time.Duration(c.cfg.EventDeadline)); reason != "" {
		return false, reason
	}
	h := c.status.current.Load()
	return h.unhealthy == "", h.unhealthy
}

func (c *Controller) ready() bool {
	ok, _ := c.Ready()
	return ok
}
