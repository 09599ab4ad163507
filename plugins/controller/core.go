package controller

import (
	"fmt"
	"log/slog"
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
	verify    uint64 // sequence number of the event to verify, 0 if none
	verifying bool   // the event, or the event whose follow-up it is, is a verification
}

// startup is the progress towards the node's first complete configuration.
type startup struct {
	phase    phase
	deadline time.Time // zero once the deadline has passed or is no longer needed
	late     bool      // the deadline has passed
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

// admits reports whether ev may be handled now; most events have to wait for the start-up resync.
func (c *core) admits(ev api.Event) bool {
	if c.startup.phase == running {
		return true
	}
	switch ev := ev.(type) {
	case *api.DBResync, *Shutdown:
		return true
	case *ResyncRequest: // after a fatal error, the operator has to repeat it
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
	return nil // an untyped nil, not a nil *HealingResync
}

// deadline returns the time at which due must be called again, or zero if there is none.
func (c *core) deadline() time.Time {
	if c.fatal != nil {
		return c.startup.deadline
	}
	return earliest(c.startup.deadline, c.healer.deadline())
}

// eventHandling is the handling of one event.
type eventHandling struct {
	ev       api.Event
	update   api.UpdateEvent // ev, if it is an update
	record   *EventRecord
	tx       *transaction
	txn      *txn.Txn // nil when there is nothing to commit
	executed []int    // handlers that were called, in this order

	firstErr    error
	handlerErrs []error
	external    api.KeyValuePairs // the changes to the external configuration that the event itself makes
	externalErr error             // external configuration that cannot be merged; this is not a fault of the agent
	stopped     bool              // by an AbortEventError or a FatalError: not committed
	fatal       error
	repair      error          // why the dataplane must be compared with the desired state
	before      map[int]string // for verification: internal data of handlers
}

// begin handles ev up to the point where its transaction has to be committed.
func (c *core) begin(ev api.Event, followUpTo uint64, now time.Time) *eventHandling {
	c.seqNum++
	t := &eventHandling{ev: ev, record: newRecord(c.seqNum, followUpTo, ev, now)}
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
	case c.reject(t):
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

// reject stops every event that needs consistent plugins after a fatal error, and the shutdown of a controller that has never run.
func (c *core) reject(t *eventHandling) bool {
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

// refresh updates the controller's copy of the cluster's state. The copy describes the cluster, so it stays updated even if the event
// fails. refresh returns the external configuration that the event affects.
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
