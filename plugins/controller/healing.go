package controller

import (
	"errors"
	"fmt"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// healer decides when to heal. It has no timer: it receives the time and returns its next deadline.
type healer struct {
	cfg     HealingConfig
	cause   error     // the error to heal; nil when there is nothing to heal
	due     time.Time // the time at which the pending healing runs
	failed  int       // the number of consecutive failed healings
	lastErr error     // the error of the last failed healing
	repair  repair

	nextPeriodic time.Time
}

// need requests a healing because of err. At most one is pending; the first cause is kept.
func (h *healer) need(now time.Time, err error) {
	if h.cause != nil {
		return
	}
	h.cause = err
	h.due = now.Add(h.delay())
}

// start takes the pending healing, which runs now.
func (h *healer) start() *HealingResync {
	ev := &HealingResync{Type: AfterError, Cause: h.cause}
	h.cause = nil
	return ev
}

// failedAgain records that a healing has failed.
func (h *healer) failedAgain(err error) {
	h.failed++
	h.lastErr = err
}

// healed records that a full resync has succeeded.
func (h *healer) healed() {
	h.cause, h.lastErr, h.failed = nil, nil, 0
	h.repair.over()
}

// repair is a pending removal of values that could not be removed before. Unlike a healing it does not affect the node's readiness.
type repair struct {
	cause  error // nil when there is nothing to repair
	due    time.Time
	failed int // the number of consecutive failed repairs
}

// need requests a repair because of err. At most one is pending; the first cause is kept.
func (r *repair) need(now time.Time, err error, cfg HealingConfig) {
	if r.cause == nil {
		r.cause, r.due = err, now.Add(cfg.delay(r.failed))
	}
}

func (r *repair) over() { *r = repair{} }

// take returns the repair if it has to run now, or nil.
func (r *repair) take(now time.Time) *HealingResync {
	if r.cause == nil || now.Before(r.due) {
		return nil
	}
	ev := &HealingResync{Type: Repair, Cause: r.cause}
	r.cause = nil
	return ev
}

func (r *repair) deadline() time.Time {
	if r.cause == nil {
		return time.Time{}
	}
	return r.due
}

// expedite makes a pending healing run now: the condition that it waits for may be met.
func (h *healer) expedite(now time.Time) {
	if h.cause != nil {
		h.due = now
	}
}

// delay returns the delay before the next healing. It doubles with each failure, up to the maximum.
func (h *healer) delay() time.Duration { return h.cfg.delay(h.failed) }

func (c HealingConfig) delay(failed int) time.Duration {
	d, limit := time.Duration(c.DelayAfterErrorHealing), time.Duration(c.MaxHealingDelay)
	for range failed {
		if d >= limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

// schedulePeriodic starts the next interval.
func (h *healer) schedulePeriodic(now time.Time) {
	if h.cfg.EnablePeriodicHealing {
		h.nextPeriodic = now.Add(time.Duration(h.cfg.PeriodicHealingInterval))
	}
}

// deadline returns the time at which healing has to run next, or zero if none is due.
func (h *healer) deadline() time.Time {
	return earliest(earliest(h.afterErrorDue(), h.repair.deadline()), h.nextPeriodic)
}

func (h *healer) afterErrorDue() time.Time {
	if h.cause == nil {
		return time.Time{}
	}
	return h.due
}

// take returns the healing that has to run now, or nil.
func (h *healer) take(now time.Time) *HealingResync {
	if h.cause != nil && !now.Before(h.due) {
		return h.start()
	}
	if ev := h.repair.take(now); ev != nil {
		return ev
	}
	if !h.nextPeriodic.IsZero() && !now.Before(h.nextPeriodic) {
		h.schedulePeriodic(now)
		return &HealingResync{Type: Periodic}
	}
	return nil
}

// earliest returns the earlier of two times, where zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// panicError is a panic in Commit: which part of the transaction was applied is unknown.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// commitResult is the part of a commit's result that the controller uses.
type commitResult struct {
	err      error
	refused  bool // the transaction was not processed: no part of it was applied
	escalate bool // at least one value failed and is not retried
	undone   bool // for Txn.Revert: no part of it is left in the dataplane
}

// classify interprets the error of Commit. The agent does not heal failures of keys for which externalOnly is true.
func classify(err error, externalOnly func(key string) bool) commitResult {
	var te *txn.Error
	var pe *panicError
	switch {
	case err == nil:
		return commitResult{}
	case errors.As(err, &pe):
		return commitResult{err: err, refused: true}
	case !errors.As(err, &te):
		return commitResult{err: err, refused: true, undone: true}
	}
	res := commitResult{err: err, undone: te.Reverted && te.RevertErr == nil}
	if te.Escalate() {
		res.escalate = te.RevertErr != nil
		for _, failed := range te.Failed {
			if failed.Escalates() && !externalOnly(failed.Key) {
				res.escalate = true
			}
		}
	}
	return res
}
