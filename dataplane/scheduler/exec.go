package scheduler

import (
	"context"
	"fmt"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// execution carries out one plan.
type execution struct {
	s      *Scheduler
	ops    []Op // one per planned operation
	failed []failure
	refs   references // what values refer to that are not as desired; nil: not collected yet
}

// failure is an operation that failed, or could not be started.
type failure struct {
	n   *node
	err error
}

// opPhase is the progress of an operation.
type opPhase uint8

const (
	opIdle    opPhase = iota
	opSkipped         // no longer needed or no longer possible
	opBlocked         // the value is still used by one that could not be deleted
	opRunning
	opDone
	opOver // ended by the scheduler: a late call of Done has no effect
)

// opDone ends an operation.
func (x *execution) opDone(o *Op, err error) {
	if o.phase != opRunning {
		x.s.log.Error("backend bug: an operation ended twice or too late", "error", err)
		return
	}
	o.phase, o.err, o.took = opDone, err, time.Since(o.began)
}

// execute runs the planner's plan wave by wave and adds the executed operations to rec.
func (s *Scheduler) execute(ctx context.Context, rec *txn.Record) *execution {
	p := &s.plan
	x := &execution{s: s, ops: make([]Op, len(p.ops))}
	begin := 0
	for wave, end := range p.ends {
		running := false
		for i := begin; i < end; i++ {
			running = x.start(&p.ops[i], &x.ops[i]) || running
		}
		if running {
			for _, b := range s.cfg.Backends {
				b.Flush(ctx)
			}
		}
		s.mu.Lock()
		for i := begin; i < end; i++ {
			x.finish(&p.ops[i], &x.ops[i])
			if o := &x.ops[i]; o.phase == opDone || o.phase == opOver {
				rec.Executed = append(rec.Executed, recordOp(wave, &p.ops[i], o))
			}
		}
		s.mu.Unlock()
		begin = end
	}
	return x
}

// start starts an operation unless it is no longer possible or no longer needed.
func (x *execution) start(po *planOp, o *Op) (running bool) {
	n := po.n
	if o.phase = x.ready(po); o.phase != opRunning {
		return false
	}
	c := &n.kind.calls
	o.run = x
	o.began = time.Now()
	switch po.act {
	case actDelete:
		c.remove(o, n.key, n.applied)
	case actCreate, actRecreate:
		c.create(o, n.key, n.desired)
	case actUpdate:
		c.update(o, n.key, n.applied, n.desired)
	}
	return true
}

// ready checks the results of the earlier operations, which the plan assumed to be successful.
func (x *execution) ready(po *planOp) opPhase {
	n := po.n
	if n.flags&flagUnknown != 0 || po.act != actDelete && n.p.flags&planFailed != 0 {
		return opSkipped
	}
	switch po.act {
	case actDelete:
		if n.applied == nil {
			return opSkipped
		}
		if x.used(n) || x.referrer(n) != nil {
			return opBlocked
		}
		return opRunning
	case actCreate, actRecreate:
		if n.applied != nil {
			return opSkipped // it could not be deleted
		}
	}
	for i := range n.edges {
		e := &n.edges[i]
		if e.bits&edgeWant != 0 && (!e.to.usable() || x.s.plan.has(e.to, planFailed)) {
			return opSkipped
		}
	}
	if po.act == actRelink {
		return opIdle
	}
	return opRunning
}

// used reports whether n must stay because values that should have been deleted before n are still present.
func (x *execution) used(n *node) bool {
	p := &x.s.plan
	if n.p.flags&planForced != 0 || n.users == 0 {
		return false
	}
	if n.users > n.p.implied {
		return true
	}
	for _, r := range n.rdeps {
		if p.impliedBy(r) && x.heldBy(r.n) != nil {
			return true
		}
	}
	return false
}

// heldBy returns a value that still uses an implied item and is not removed together with the same parent, or nil.
func (x *execution) heldBy(item *node) *node {
	if item.users == 0 {
		return nil
	}
	for _, r := range item.rdeps {
		if r.edge().bits&edgeHave != 0 && !(x.s.plan.has(r.n, planImplied) && x.s.plan.siblings(item, r.n)) {
			return r.n
		}
	}
	return nil
}

// finish updates the state of a value with the result of its operation.
func (x *execution) finish(po *planOp, o *Op) {
	n := po.n
	switch o.phase {
	case opSkipped:
		return
	case opBlocked:
		x.afterFailure(po, x.blocked(n))
		return
	case opIdle: // only the dependencies of the value changed
		x.s.graph.setApplied(n)
		n.p.flags |= planDone
		return
	case opRunning:
		o.phase, o.err, o.took = opOver, errBackendBug, time.Since(o.began)
	}
	if o.err != nil {
		x.afterFailure(po, o.err)
		return
	}
	g := x.s.graph
	if po.act != actDelete {
		g.setApplied(n)
		n.flags &^= flagRemake
		n.p.flags |= planDone
		return
	}
	if n.p.implied > 0 {
		x.markItemsAbsent(n)
	}
	g.setAbsent(n)
}

// markItemsAbsent marks the implied items of n as absent: the dataplane removed them together with n.
func (x *execution) markItemsAbsent(n *node) {
	for i := len(n.rdeps) - 1; i >= 0; i-- {
		if i < len(n.rdeps) && x.s.plan.impliedBy(n.rdeps[i]) {
			x.s.graph.setAbsent(n.rdeps[i].n)
		}
	}
}

// afterFailure updates the state of a value after its operation failed.
func (x *execution) afterFailure(po *planOp, err error) {
	n, g := po.n, x.s.graph
	unknown := isOutcomeUnknown(err)
	switch po.act {
	case actCreate, actRecreate:
		if unknown {
			g.setApplied(n)
		}
	case actUpdate:
		g.hold(n)
		unknown = true
	}
	if unknown {
		n.doubt()
	}
	x.fail(n, err)
	if po.act == actDelete && n.p.implied > 0 {
		x.failItems(n, err, unknown)
	}
}

// doubt marks n as a value whose presence is unknown.
func (n *node) doubt() {
	if n.kind.calls.dump == nil {
		n.flags |= flagRemake
	} else {
		n.flags |= flagUnknown
	}
}

// failItems handles the items that should have been removed together with n and are, or may be, still present. Items that are not desired are
// reported as failed: they may have to be deleted separately later.
func (x *execution) failItems(n *node, err error, unknown bool) {
	for _, r := range n.rdeps {
		if !x.s.plan.impliedBy(r) {
			continue
		}
		if unknown {
			r.n.doubt()
		}
		if r.n.desired == nil {
			x.fail(r.n, fmt.Errorf("not removed together with %s: %w", n.key, err))
		}
	}
}

func (x *execution) fail(n *node, err error) {
	n.err = err
	n.p.flags |= planFailed
	x.failed = append(x.failed, failure{n: n, err: err})
}

// blocked returns the reason why n could not be deleted.
func (x *execution) blocked(n *node) error {
	if m := x.referrer(n); m != nil {
		return &blockedError{user: m.key, cause: m.err, retry: m.err == nil || x.s.retriable(m, m.err)}
	}
	for _, r := range n.rdeps {
		m := r.n
		if r.edge().bits&edgeHave == 0 || x.s.plan.impliedBy(r) && x.heldBy(m) == nil {
			continue
		}
		return &blockedError{user: m.key, cause: m.err, retry: m.err == nil || x.s.retriable(m, m.err)}
	}
	return &blockedError{user: "another value", retry: true}
}

// blockedError is the reason why a value was not deleted: another value still uses it.
type blockedError struct {
	user  string
	cause error // why the user is still there
	retry bool
}

func (e *blockedError) Error() string {
	if e.cause == nil {
		return "still used by " + e.user
	}
	return fmt.Sprintf("still used by %s: %v", e.user, e.cause)
}

func (e *blockedError) Unwrap() error   { return e.cause }
func (e *blockedError) Retriable() bool { return e.retry }

// OutcomeUnknown hides that of the cause: no operation was tried on this value.
func (e *blockedError) OutcomeUnknown() bool { return false }

func recordOp(wave int, po *planOp, o *Op) txn.Op {
	r := txn.Op{Wave: wave, Action: po.act.name(), Key: po.n.key, Took: o.took}
	if o.err != nil {
		r.Err = o.err.Error()
	}
	return r
}

func (a action) name() txn.Action {
	switch a {
	case actDelete:
		return txn.Delete
	case actCreate:
		return txn.Create
	case actRecreate:
		return txn.Recreate
	}
	return txn.Modify
}
