package controller

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// outcome is the result of an event for the loop.
type outcome struct {
	err error
	// result is one of the result… constants.
	result string
	// dropFollowUps is true when the follow-ups of the event must be dropped because the event was reverted or the start-up resync failed.
	dropFollowUps bool
	// verificationErr is set when a verification has failed.
	verificationErr error
}

// The results of an event, as they appear in the metrics.
const (
	resultOK       = "ok"
	resultError    = "error"
	resultReverted = "reverted"
	resultAborted  = "aborted"
	resultFatal    = "fatal"
)

// finish takes the outcome of the commit (nil, nil if there was none) and completes the event.
func (c *core) finish(t *eventHandling, rec *txn.Record, commitErr error, now func() time.Time) outcome {
	t.record.Txn = rec
	res := classify(commitErr, func(key string) bool { return c.externalOnly(t, key) })
	if commitErr != nil {
		t.record.TxnError = commitErr.Error()
		if t.firstErr == nil {
			t.firstErr = fmt.Errorf("commit: %w", commitErr)
		}
	}

	var out outcome
	var heal error
	_, verification := t.ev.(*VerificationResync)
	switch {
	case verification:
		out.verificationErr = c.compare(t)
		if c.dirty { // else only internal data differed, which the resync has corrected
			heal = out.verificationErr
		}
	case t.update != nil && t.update.TransactionType() == api.RevertOnFailure:
		heal, out.dropFollowUps = c.finishRevertible(t, res)
	case t.update != nil:
		heal = c.finishUpdate(t, res)
	case isRepair(t.ev):
		c.finishRepair(t, res)
	default:
		heal = c.finishResync(t, res)
		out.dropFollowUps = c.startup.phase != running
	}

	end := now()
	out.result, out.err = t.outcome(commitErr, out)
	if out.err != nil {
		t.record.Error = out.err.Error()
	}
	c.conclude(t, heal, end)
	t.record.ProcessingEnd = end
	return out
}

// outcome returns the result and the error for Done.
func (t *eventHandling) outcome(commitErr error, out outcome) (string, error) {
	errs := slices.Clip(t.handlerErrs)
	if out.verificationErr != nil {
		errs = []error{out.verificationErr} // includes the handlers' errors
	}
	if t.update != nil && t.update.TransactionType() == api.RevertOnFailure {
		if errs = nil; t.firstErr != nil {
			errs = []error{t.firstErr}
		}
	} else if commitErr != nil {
		errs = append(errs, fmt.Errorf("commit: %w", commitErr))
	}
	err := errors.Join(append(errs, t.externalErr)...)
	switch {
	case t.fatal != nil:
		return resultFatal, err
	case out.dropFollowUps && t.update != nil:
		return resultReverted, err
	case t.stopped:
		return resultAborted, err
	case err != nil:
		return resultError, err
	}
	return resultOK, nil
}

// finishUpdate completes a best-effort update. It returns the error to heal, or nil.
func (c *core) finishUpdate(t *eventHandling, res commitResult) error {
	handlerErr := errors.Join(t.handlerErrs...)
	if handlerErr != nil {
		c.dirty = true
	}
	if !t.stopped {
		c.store.apply(t.tx)
	}
	switch {
	case res.refused:
		// This is not an error of a value: the dataplane has not processed the transaction, so it will not retry the transaction.
		return res.err
	case handlerErr != nil:
		// Even if the event ignores errors: the values of a handler that failed half-way stay desired, and no retry of the dataplane removes them.
		return handlerErr
	case t.update.TransactionType() == api.BestEffortIgnoreErrors:
		if res.escalate { // a value that could not be removed must not stay forever
			t.repair = res.err
		}
		return nil
	case res.escalate:
		return res.err
	}
	return nil
}

// finishRevertible completes a RevertOnFailure update: all or nothing.
func (c *core) finishRevertible(t *eventHandling, res commitResult) (heal error, reverted bool) {
	if t.firstErr == nil {
		c.store.apply(t.tx)
		return nil, false
	}
	heal = c.revert(t)
	if p := (*handlerPanic)(nil); errors.As(t.firstErr, &p) {
		// Revert can undo only what a handler has recorded as done, and a handler that panicked may have stopped anywhere.
		heal = errors.Join(t.firstErr, heal)
	}
	if heal != nil {
		c.dirty = true
	}
	if res.err != nil && !res.undone {
		heal = errors.Join(heal, res.err)
	}
	return heal, true
}

// finishResync completes a resync. It returns the error to heal, or nil.
func (c *core) finishResync(t *eventHandling, res commitResult) error {
	heal := errors.Join(t.handlerErrs...)
	if heal == nil && (res.refused || res.escalate) {
		heal = res.err
	}
	if t.ev.Method() == api.DownstreamResync {
		if heal == nil {
			c.healer.repair.over()
		}
		return heal
	}
	if t.txn != nil && !res.refused {
		c.store.apply(t.tx)
	}
	ran := len(t.handlerErrs) == 0 && !res.refused
	c.dirty = !ran
	switch {
	case !ran && c.startup.phase != running:
		c.startup.phase, c.startup.err = startupIncomplete, heal
	case ran && c.startup.phase != running:
		c.startup = startup{phase: running}
	}
	if heal == nil && t.ev.Method() == api.FullResync {
		c.healer.healed()
		c.fatal = nil
	}
	return heal
}

// finishRepair completes a repair. A repair that fails is repeated with back-off; its failure has no other consequence.
func (c *core) finishRepair(t *eventHandling, res commitResult) {
	if !res.refused && !res.escalate {
		c.healer.repair.over()
		return
	}
	t.repair = res.err
	c.healer.repair.failed++
}

// conclude schedules healing, repair and verification after an event.
func (c *core) conclude(t *eventHandling, heal error, now time.Time) {
	if t.fatal != nil {
		c.fatal = t.fatal
		c.log.Error("fatal error: only a full resync can recover", "event", t.record.SeqNum, "error", c.fatal)
	}
	if _, healing := t.ev.(*HealingResync); healing && heal != nil && t.fatal == nil {
		c.healer.failedAgain(heal)
		c.log.Error("healing has failed", "event", t.record.SeqNum, "attempt", c.healer.failed,
			"retryIn", c.healer.delay(), "error", oneLine(heal.Error()))
	}
	if heal != nil && c.fatal == nil {
		c.healer.need(now, heal)
	}
	if t.repair != nil {
		c.healer.repair.need(now, t.repair, c.healer.cfg)
	}
	if _, reconnect := t.ev.(*DataplaneReconnect); reconnect && heal == nil {
		c.healer.expedite(now) // a value that failed while the dataplane was disconnected must not wait for the backoff
	}
	if c.startup.phase == running && c.healer.nextPeriodic.IsZero() {
		c.healer.schedulePeriodic(now)
	}
	_, shutdown := t.ev.(*Shutdown)
	if c.cfg.EnableVerification && c.startup.phase == running && t.record.Error == "" && !c.verifying && !shutdown {
		c.verify = t.record.SeqNum
	}
}

// externalOnly reports whether key has external configuration only: no plugin has put or deleted it.
func (c *core) externalOnly(t *eventHandling, key string) bool {
	if c.store.has(key) || (t.tx != nil && t.tx.touched(key)) {
		return false
	}
	for _, kvs := range c.external {
		if kvs[key] != nil {
			return true
		}
	}
	_, touched := t.external[key]
	return touched
}

func (t *eventHandling) fail(err error) {
	t.handlerErrs = append(t.handlerErrs, err)
	if t.firstErr == nil {
		t.firstErr = err
	}
}
