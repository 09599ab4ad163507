package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/plugins/controller/api"
)

// core is the state machine of the controller: begin turns an event into the transaction to commit, finish takes the outcome of the commit
// and returns the next step. It starts no goroutine, takes no lock that is held while handlers run, does no I/O and receives the time as an
// argument; the loop is its only caller.
type core struct {
	cfg      Config
	log      *slog.Logger
	handlers []api.EventHandler

	kube     api.KubeStateData // the cluster's state as last received
	external external
	store    *store

	seqNum      uint64
	resyncCount int
	startup     startup
	fatal       error // the FatalError after which only a full resync is possible
	// dirty is set while plugins and store may disagree (a handler failed); verification makes no sense then.
	dirty     bool
	healer    healer
	verify    uint64 // sequence number of the event to be verified, 0 if none
	verifying bool   // the event, or the event that it follows, is a verification
}

// startup is where the node is on its way to its first complete configuration.
type startup struct {
	phase    phase
	deadline time.Time // zero once it is over or no longer matters
	late     bool      // the deadline is over
	err      error     // why the start-up resync has failed
}

// phase is the progress of the start-up.
type phase int

const (
	waitingForState   phase = iota // no DBResync so far
	startupIncomplete              // the start-up resync has failed and will be repeated
	running
)

func newCore(cfg Config, log *slog.Logger) *core {
	return &core{
		cfg:      cfg,
		log:      log,
		kube:     api.KubeStateData{},
		external: external{},
		store:    newStore(),
		healer:   healer{cfg: cfg.HealingConfig},
	}
}

// start is called when the loop starts.
func (c *core) start(now time.Time) {
	c.startup.deadline = now.Add(time.Duration(c.cfg.StartupResyncDeadline))
}

// admits is false for events that have to wait for the start-up resync.
func (c *core) admits(ev api.Event) bool {
	if c.startup.phase == running {
		return true
	}
	switch ev := ev.(type) {
	case *api.DBResync, *Shutdown:
		return true
	case *ResyncRequest: // after a fatal error it is the operator's to repeat
		return ev.method == api.FullResync && c.startup.phase == startupIncomplete && c.fatal != nil
	}
	return false
}

// due returns the controller's own event to handle now, before anything queued but after follow-ups; or nil.
func (c *core) due(now time.Time) api.Event {
	if c.verify != 0 {
		ev := &VerificationResync{Verified: c.verify}
		c.verify = 0
		if !c.dirty && c.fatal == nil {
			return ev
		}
	}
	if !c.startup.deadline.IsZero() && !now.Before(c.startup.deadline) {
		c.startup.deadline = time.Time{}
		c.startup.late = true
		c.log.Error("start-up resync has not succeeded in time", "deadline", time.Duration(c.cfg.StartupResyncDeadline),
			"error", c.startup.err)
	}
	if c.fatal != nil {
		return nil
	}
	if ev := c.healer.take(now); ev != nil {
		return ev
	}
	return nil // and not a nil *HealingResync
}

// deadline is when due must be called again; zero when there is no such time.
func (c *core) deadline() time.Time {
	if c.fatal != nil {
		return c.startup.deadline
	}
	return earliest(c.startup.deadline, c.healer.deadline())
}

// turn is the handling of one event.
type turn struct {
	ev       api.Event
	update   api.UpdateEvent // ev, if it is an update
	record   *EventRecord
	tx       *transaction
	txn      *txn.Txn // nil when there is nothing to commit
	executed []int    // handlers that were called, in this order

	firstErr    error
	handlerErrs []error
	external    api.KeyValuePairs // the changes that the event itself makes to the external configuration
	externalErr error             // external configuration that cannot be merged: not the agent's fault
	stopped     bool              // by an AbortEventError or a FatalError: not committed
	fatal       error
	repair      error          // why the dataplane must be compared with the desired state
	before      map[int]string // for verification: internal data of handlers
}

// begin handles ev up to the point where its transaction has to be committed.
func (c *core) begin(ev api.Event, followUpTo uint64, now time.Time) *turn {
	c.seqNum++
	t := &turn{ev: ev, record: newRecord(c.seqNum, followUpTo, ev, now)}
	if followUpTo == 0 {
		_, c.verifying = ev.(*VerificationResync)
	}
	if ev.Method() != api.DownstreamResync {
		t.tx = newTransaction(c.store, ev.Method().IsResync())
	}
	if !ev.Method().IsResync() {
		t.update, _ = ev.(api.UpdateEvent)
	}
	t.external = c.refresh(ev)
	switch {
	case c.refuse(t):
	case ev.Method() == api.DownstreamResync:
		t.txn = &txn.Txn{Kind: txn.DownstreamResync}
	case ev.Method().IsResync():
		c.runResync(t)
	default:
		c.runUpdate(t)
	}
	if t.txn != nil {
		t.txn.Description = ev.String()
		t.txn.SeqNum = t.record.SeqNum
	}
	return t
}

// refuse rejects every event that needs consistent plugins after a fatal error, and the shutdown of a controller that never ran.
func (c *core) refuse(t *turn) bool {
	_, shutdown := t.ev.(*Shutdown)
	repairs := t.ev.Method() == api.FullResync || t.ev.Method() == api.DownstreamResync
	switch {
	case shutdown:
		return c.startup.phase != running
	case c.fatal != nil && !repairs:
		t.fail(fmt.Errorf("not handled because of an earlier fatal error: %w", c.fatal))
		t.stopped = true
		return true
	}
	return false
}

// refresh updates the controller's copy of the cluster's state. These are facts: they stay even if the event fails. It returns the external
// configuration that the event touches.
func (c *core) refresh(ev api.Event) (touched api.KeyValuePairs) {
	switch ev := ev.(type) {
	case *api.DBResync:
		c.kube = make(api.KubeStateData, len(ev.KubeState))
		for resource, kvs := range ev.KubeState {
			c.kube[resource] = cloneKVs(kvs)
		}
	case *api.KubeStateChange:
		kvs := c.kube[ev.Resource]
		if kvs == nil {
			kvs = api.KeyValuePairs{}
			c.kube[ev.Resource] = kvs
		}
		if ev.NewValue == nil {
			delete(kvs, ev.Key)
		} else {
			kvs[ev.Key] = ev.NewValue
		}
	case *ExternalConfigChange:
		c.external.change(ev)
		return ev.UpdatedKVs
	case *ExternalConfigResync:
		old := c.external[ev.Source]
		c.external.resync(ev)
		return old
	}
	return nil
}

// outcome is what the loop needs after an event.
type outcome struct {
	err error
	// result is one of the result… constants.
	result string
	// dropFollowUps is true when the follow-ups that were pushed for the event have lost their cause.
	dropFollowUps bool
	// verificationErr is set when a verification has failed.
	verificationErr error
}

// The results of an event, as in the metrics.
const (
	resultOK       = "ok"
	resultError    = "error"
	resultReverted = "reverted"
	resultAborted  = "aborted"
	resultFatal    = "fatal"
)

// finish takes the outcome of the commit (nil, nil if there was none) and completes the event.
func (c *core) finish(t *turn, rec *txn.Record, commitErr error, now func() time.Time) outcome {
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
		if c.dirty { // else only internal data differed, which the resync has put right
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
	out.err, out.result = t.outcome(commitErr, out)
	if out.err != nil {
		t.record.Error = out.err.Error()
	}
	c.conclude(t, heal, end)
	t.record.ProcessingEnd = end
	return out
}

// outcome is the error for Done and the result.
func (t *turn) outcome(commitErr error, out outcome) (error, string) {
	errs := slices.Clip(t.handlerErrs)
	if out.verificationErr != nil {
		errs = []error{out.verificationErr} // has the former in it
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
		return err, resultFatal
	case out.dropFollowUps && t.update != nil:
		return err, resultReverted
	case t.stopped:
		return err, resultAborted
	case err != nil:
		return err, resultError
	}
	return nil, resultOK
}

// finishUpdate completes a best-effort update and reports whether and why it needs healing.
func (c *core) finishUpdate(t *turn, res commitResult) error {
	handlerErr := errors.Join(t.handlerErrs...)
	if handlerErr != nil {
		c.dirty = true
	}
	if !t.stopped {
		c.store.apply(t.tx)
	}
	switch {
	case res.refused:
		// Not an error of a value: the dataplane has not processed the transaction, so it will not retry it.
		return res.err
	case t.update.TransactionType() == api.BestEffortIgnoreErrors:
		if res.escalate { // a value that could not be removed must not stay forever
			t.repair = res.err
		}
		return nil
	case handlerErr != nil:
		return handlerErr
	case res.escalate:
		return res.err
	}
	return nil
}

// finishRevertible completes a RevertOnFailure update: all or nothing.
func (c *core) finishRevertible(t *turn, res commitResult) (heal error, reverted bool) {
	if t.firstErr == nil {
		c.store.apply(t.tx)
		return nil, false
	}
	if err := c.revert(t); err != nil {
		c.dirty = true
		heal = err
	}
	if res.err != nil && !res.undone {
		heal = errors.Join(heal, res.err)
	}
	return heal, true
}

// finishResync completes a resync and reports whether and why it needs healing.
func (c *core) finishResync(t *turn, res commitResult) error {
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

// finishRepair completes a repair. One that fails is repeated, later and later; it takes nothing else with it.
func (c *core) finishRepair(t *turn, res commitResult) {
	if !res.refused && !res.escalate {
		c.healer.repair.over()
		return
	}
	t.repair = res.err
	c.healer.repair.failed++
}

// conclude draws the consequences of an event.
func (c *core) conclude(t *turn, heal error, now time.Time) {
	if t.fatal != nil {
		c.fatal = t.fatal
		c.log.Error("fatal error: only a full resync can go on", "event", t.record.SeqNum, "error", c.fatal)
	}
	if _, healing := t.ev.(*HealingResync); healing && heal != nil && t.fatal == nil {
		c.healer.failedAgain(heal)
		c.log.Error("healing has failed", "event", t.record.SeqNum, "attempt", c.healer.failed,
			"nextIn", c.healer.delay(), "error", oneLine(heal.Error()))
	}
	if heal != nil && c.fatal == nil {
		c.healer.need(now, heal)
	}
	if t.repair != nil {
		c.healer.repair.need(now, t.repair, c.healer.cfg)
	}
	if _, reconnect := t.ev.(*DataplaneReconnect); reconnect && heal == nil {
		c.healer.hurry(now) // a value that failed while the dataplane was disconnected must not wait for the backoff
	}
	if c.startup.phase == running && c.healer.nextPeriodic.IsZero() {
		c.healer.schedulePeriodic(now)
	}
	_, shutdown := t.ev.(*Shutdown)
	if c.cfg.EnableVerification && c.startup.phase == running && t.record.Error == "" && !c.verifying && !shutdown {
		c.verify = t.record.SeqNum
	}
}

// externalOnly is true for keys that no plugin has to do with.
func (c *core) externalOnly(t *turn, key string) bool {
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

func (t *turn) fail(err error) {
	t.handlerErrs = append(t.handlerErrs, err)
	if t.firstErr == nil {
		t.firstErr = err
	}
}
