package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

// batch is a transaction, or a background retry, that is being processed.
type batch struct {
	s   *Scheduler
	t   *txn.Txn
	rec *txn.Record

	nodes  []*node // of the values that were put; nil for an entry that has no effect
	remade []*node // values that were marked to be created again
	saved  []saved
	failed []txn.KeyError
	undo   error // why the revert failed
	ran    bool  // a plan was made and carried out
}

// saved holds the state of a northbound value before the transaction.
type saved struct {
	n       *node
	desired any
	invalid bool
	state   State
	err     error
}

var (
	errNoKind  = errors.New("no kind is registered for this key")
	errPending = errors.New("waits for a dependency")
	errRemake  = errors.New("values can be created again only by an update without revert")
)

func (s *Scheduler) newBatch(t *txn.Txn) *batch {
	s.graph.begin()
	s.plan.run++
	s.pin()
	s.recordPeers()
	return &batch{s: s, t: t, rec: &txn.Record{
		EventSeqNum: t.SeqNum, Kind: t.Kind, Description: t.Description, Start: time.Now(),
	}}
}

// commit applies a transaction.
func (s *Scheduler) commit(ctx context.Context, t *txn.Txn) (*txn.Record, error) {
	if len(t.Recreate) > 0 && (t.Revert || t.Kind != txn.Update) {
		return nil, errRemake
	}
	b := s.newBatch(t)
	if s.replacedPeer != nil && t.Revert && t.Kind == txn.Update {
		return nil, &peerReplacedError{s.replacedPeer}
	}
	if !b.load() {
		b.rec.Reverted = true
		return b.rec, b.finish()
	}
	b.refresh(ctx)
	if len(b.failed) == 0 || !t.Revert {
		b.runPlan(ctx)
	}
	b.revert(ctx)
	return b.rec, b.explain(b.finish())
}

// dryRun plans a transaction and restores the previous state.
func (s *Scheduler) dryRun(ctx context.Context, t *txn.Txn) (*txn.Record, error) {
	if len(t.Recreate) > 0 && (t.Revert || t.Kind != txn.Update) {
		return nil, errRemake
	}
	g := s.graph
	stale := make([]bool, len(s.reg.kinds))
	for i, k := range s.reg.kinds {
		stale[i] = k.stale
	}
	peers, replacedPeer := slices.Clone(s.peers), s.replacedPeer
	g.dry = true
	b := s.newBatch(t)
	if b.load() {
		b.refresh(ctx)
		b.makePlan(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.restore()
	g.restoreApplied()
	g.dry = false
	for i, k := range s.reg.kinds {
		k.stale = stale[i]
	}
	s.peers, s.replacedPeer = peers, replacedPeer
	s.collect(g.touched)
	return b.rec, b.err()
}

// load makes the values of the transaction the desired ones. It returns false when nothing was changed: a value is invalid, and the transaction
// must be applied completely or not at all.
func (b *batch) load() bool {
	s, g := b.s, b.s.graph
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.t.Kind == txn.DownstreamResync {
		return true
	}
	b.find()
	errs := b.validate()
	if len(b.failed) > 0 && (b.t.Revert || g.dry) {
		return false
	}
	for i, n := range b.nodes {
		if n == nil {
			continue
		}
		if errs != nil && errs[i] != nil {
			g.reject(n, errs[i])
			continue
		}
		b.save(n)
		if v := b.t.Values[i].Value; v != nil {
			g.setDesired(n, v)
		} else {
			g.setDesired(n, nil)
		}
	}
	if b.t.Kind != txn.Update {
		b.dropOthers()
	}
	b.remake()
	b.failed = append(b.failed, g.problems...)
	return true
}

// remake marks the values that are to be created again.
func (b *batch) remake() {
	g := b.s.graph
	for _, key := range b.t.Recreate {
		n := g.nodes[key]
		if n == nil || n.desired == nil || !n.present() {
			continue
		}
		n.flags |= flagRemake
		b.remade = append(b.remade, n)
		g.touch(n)
	}
}

// find looks up the nodes of the values. Only the last value of a key counts.
func (b *batch) find() {
	g := b.s.graph
	b.nodes = make([]*node, len(b.t.Values))
	g.touched = slices.Grow(g.touched, len(b.t.Values))
	for i := range b.t.Values {
		kv := &b.t.Values[i]
		n := g.nodes[kv.Key]
		if n == nil || n.kind == nil {
			k := g.reg.kindOf(kv.Key)
			if k == nil {
				if kv.Value != nil {
					b.failed = append(b.failed, txn.KeyError{Key: kv.Key, Err: errNoKind})
				}
				continue
			}
			if kv.Value == nil {
				continue
			}
			if n == nil {
				n = g.add(kv.Key)
			}
			g.classify(n, k)
			g.touch(n)
		}
		if n.kind.prefix == "" {
			b.failed = append(b.failed, txn.KeyError{Key: kv.Key,
				Err: fmt.Errorf("the key belongs to items of kind %s, which are derived", n.kind.name)})
			continue
		}
		if n.marks.txn == g.batch {
			b.nodes[n.marks.txnPos] = nil
		}
		n.marks.txn, n.marks.txnPos = g.batch, int32(i)
		b.nodes[i] = n
	}
}

// validate returns the errors of the values, nil if all are valid.
func (b *batch) validate() (errs []error) {
	for i, n := range b.nodes {
		v := b.t.Values[i].Value
		if n == nil || v == nil || n.kind.same(n.desired, v) {
			continue
		}
		if err := n.kind.calls.validate(n.key, v); err != nil {
			if errs == nil {
				errs = make([]error, len(b.nodes))
			}
			errs[i] = err
			b.failed = append(b.failed, txn.KeyError{Key: n.key, Err: err})
		}
	}
	return errs
}

// dropOthers removes the desired values that a resync does not contain.
func (b *batch) dropOthers() {
	g := b.s.graph
	for _, k := range g.reg.kinds {
		if k.prefix == "" {
			continue
		}
		for _, n := range k.nodes {
			if n.marks.txn != g.batch && (n.desired != nil || n.flags&flagInvalid != 0) {
				b.save(n)
				g.setDesired(n, nil)
			}
		}
	}
}

func (b *batch) save(n *node) {
	if b.t.Revert || b.s.graph.dry {
		b.saved = append(b.saved, saved{n: n, desired: n.desired, invalid: n.flags&flagInvalid != 0, state: n.state, err: n.err})
	}
}

// restore puts the former desired values back, in reverse order, so that items which moved to another parent move back.
func (b *batch) restore() {
	for _, n := range b.remade {
		n.flags &^= flagRemake
	}
	for i := len(b.saved) - 1; i >= 0; i-- {
		sv := &b.saved[i]
		b.s.graph.setDesired(sv.n, sv.desired)
		if sv.invalid {
			sv.n.flags |= flagInvalid
			sv.n.err, sv.n.state = sv.err, sv.state
		}
	}
}

// refresh dumps the dataplane if the transaction is a full or downstream resync.
func (b *batch) refresh(ctx context.Context) {
	if b.t.Kind != txn.FullResync && b.t.Kind != txn.DownstreamResync {
		return
	}
	s := b.s
	s.invalidateKinds()
	s.mu.Lock()
	clear(s.graph.problems)
	s.graph.problems = s.graph.problems[:0]
	s.mu.Unlock()
	for _, k := range s.dump(ctx, s.reg.kinds) {
		b.failed = append(b.failed, txn.KeyError{Key: k.label(), Err: k.dumpE})
	}
	b.failed = append(b.failed, s.graph.problems...)
	s.graph.touchAll()
	s.clearReplaced()
}

// makePlan makes the plan. Before that, it dumps the values whose state is unknown and on which the plan depends.
func (b *batch) makePlan(ctx context.Context) {
	s := b.s
	start := time.Now()
	for !s.plan.make(s.graph.touched) {
		s.dump(ctx, s.plan.unresolved)
	}
	b.rec.PlanTime += time.Since(start)
	b.recordPlan()
}

func (b *batch) recordPlan() {
	p := &b.s.plan
	b.rec.Planned = slices.Grow(b.rec.Planned, len(p.ops))
	begin := 0
	for wave, end := range p.ends {
		for i := begin; i < end; i++ {
			if po := &p.ops[i]; po.act != actRelink {
				b.rec.Planned = append(b.rec.Planned, txn.Op{Wave: wave, Action: po.act.name(), Key: po.n.key})
			}
		}
		begin = end
	}
}

// runPlan plans the operations for the touched values, runs them, and sets the states of all nodes of the plan.
func (b *batch) runPlan(ctx context.Context) {
	s := b.s
	b.makePlan(ctx)
	start := time.Now()
	b.rec.Executed = slices.Grow(b.rec.Executed, len(s.plan.ops))
	x := s.execute(ctx, b.rec)
	b.rec.ExecTime += time.Since(start)

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range x.failed {
		b.fail(f.n, f.err)
	}
	for _, n := range s.plan.nodes {
		b.settle(n)
	}
	for _, f := range x.failed {
		s.doubtLost(f.n, f.err)
	}
	b.ran = true
	s.stats.count(x)
}

func (b *batch) fail(n *node, err error) {
	b.s.graph.mayRefer(n)
	again := b.s.scheduleRetry(n, err, b.t.NoRetry)
	b.failed = append(b.failed, txn.KeyError{Key: n.key, Retriable: again, PodOnly: IsPodOnly(err), Err: err})
}
