package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"contiv.dev/vswitch/dataplane/txn"
)

// settle sets the state of a node after a run.
func (b *batch) settle(n *node) {
	switch {
	case n.kind == nil || n.p.flags&planFailed != 0:
	case n.p.flags&planFrozen != 0:
		b.settleFrozen(n)
	case n.flags&flagInvalid != 0:
		n.state = Invalid
	case n.desired == nil:
		n.state, n.err, n.retry = Removed, nil, nil
		if n.applied != nil {
			n.state = Discovered
			b.s.graph.mayRefer(n)
		}
	case n.applied != nil && n.p.flags&(planMake|planDone) != planMake:
		n.state, n.err, n.retry = Configured, nil, nil
	default:
		n.state, n.err, n.retry = Pending, nil, nil
		if n.applied != nil { // its update was skipped, because a value that the new version depends on failed
			b.s.graph.mayRefer(n)
		}
	}
}

// settleFrozen handles a value whose state is unknown because its kind could not be dumped. If the dump of a resync failed, the failure was
// already reported for the kind.
func (b *batch) settleFrozen(n *node) {
	b.s.graph.mayRefer(n)
	if n.kind.stale && b.t.Kind != txn.Update {
		n.state, n.err = Unknown, n.kind.dumpE
		return
	}
	err := fmt.Errorf("dump of kind %s: %w", n.kind.name, n.kind.dumpE)
	n.err = err
	b.fail(n, err)
}

// revert undoes the transaction if the transaction requests that and any of its values failed or stayed pending.
func (b *batch) revert(ctx context.Context) {
	if !b.t.Revert {
		return
	}
	s := b.s
	if len(b.failed) == 0 {
		b.failPending()
	}
	if len(b.failed) == 0 {
		return
	}
	before := b.failed
	b.failed = nil
	again := append(slices.Clone(s.graph.touched), s.plan.nodes...)
	s.mu.Lock()
	s.graph.begin()
	b.restore()
	for _, n := range again {
		if n.kind != nil && n.state != Configured {
			s.graph.touch(n)
		}
	}
	s.mu.Unlock()
	s.plan.run++
	b.runPlan(ctx)
	b.rec.Reverted = true
	if len(b.failed) > 0 {
		b.undo = &txn.Error{Failed: b.failed}
	}
	for i := range before {
		before[i].Retriable = false // it is not desired any more
	}
	b.failed = before
}

// failPending reports the values that are pending now and were not pending before the transaction.
func (b *batch) failPending() {
	pending := func(n *node) {
		b.failed = append(b.failed, txn.KeyError{Key: n.key, Err: fmt.Errorf("%w: %s", errPending, n.waits())})
	}
	for i := range b.saved {
		if sv := &b.saved[i]; sv.n.state == Pending && sv.state != Pending && sv.n.desired != nil {
			pending(sv.n)
		}
	}
}

// finish removes the nodes that are no longer needed and stores the record.
func (b *batch) finish() error {
	s := b.s
	s.mu.Lock()
	if b.ran {
		for _, n := range s.plan.nodes {
			if n.state == Pending && n.desired != nil {
				b.rec.Pending = append(b.rec.Pending, n.key)
			}
		}
		s.collect(s.plan.nodes)
	}
	s.collect(s.graph.touched)
	s.stats.finish(b)
	s.mu.Unlock()
	b.rec.Failed = b.failed
	s.hist.add(b.rec)
	err := b.err()
	if err != nil {
		level := slog.LevelWarn
		if b.t.SeqNum != 0 {
			level = slog.LevelDebug // the sender of the event receives the error and logs it
		}
		s.log.Log(context.Background(), level, "transaction failed", "error", err, "record", b.rec.SeqNum, "kind", b.t.Kind,
			"description", b.t.Description, "failed", len(b.failed), "reverted", b.rec.Reverted)
	}
	return err
}

// err returns the error for the sender of the transaction.
func (b *batch) err() error {
	if len(b.failed) == 0 && b.undo == nil {
		return nil
	}
	return &txn.Error{Failed: b.failed, Reverted: b.rec.Reverted, RevertErr: b.undo}
}

func (s *Scheduler) collect(nodes []*node) {
	for _, n := range nodes {
		s.graph.collect(n)
	}
}
