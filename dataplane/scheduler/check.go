package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/txn"
)

// check compares some desired values with the dataplane. It does not change the graph.
func (s *Scheduler) check(ctx context.Context, keys []string) (*txn.Record, error) {
	s.pin()
	nodes := s.withItems(keys)
	dumps := make([]*dumped, 0, len(s.reg.kinds))
	for _, k := range s.reg.kinds {
		if of := nodes[k]; k.calls.dump != nil && len(of) > 0 {
			dumps = append(dumps, &dumped{kind: k, only: of})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DumpTimeout)
	defer cancel()
	for _, d := range dumps {
		d.start(ctx, s)
	}
	for _, b := range s.cfg.Backends {
		b.Flush(ctx)
	}
	rec := &txn.Record{}
	var errs []error
	for _, d := range dumps {
		switch {
		case !d.over:
			d.over = true
			errs = append(errs, fmt.Errorf("%s: %w", d.kind.name, errDumpBug))
		case d.err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", d.kind.name, d.err))
		default:
			rec.Planned = append(rec.Planned, d.due()...)
		}
	}
	s.mu.Lock()
	s.stats.Dumps += uint64(len(dumps))
	s.mu.Unlock()
	return rec, errors.Join(errs...)
}

// withItems returns the nodes under keys that are desired, and their items, by kind.
func (s *Scheduler) withItems(keys []string) map[*kind][]*node {
	nodes := map[*kind][]*node{}
	seen := map[*node]bool{}
	var add func(n *node)
	add = func(n *node) {
		if n == nil || n.kind == nil || n.desired == nil || seen[n] {
			return
		}
		seen[n] = true
		nodes[n.kind] = append(nodes[n.kind], n)
		for _, r := range n.rdeps {
			if r.edge().bits&(edgeParent|edgeWant) == edgeParent|edgeWant {
				add(r.n)
			}
		}
	}
	for _, key := range keys {
		add(s.graph.nodes[key])
	}
	return nodes
}

// due returns the operations that are needed to bring the requested values to their desired state.
func (d *dumped) due() []txn.Op {
	found := make(map[string]any, len(d.keys))
	for i, key := range d.keys {
		found[key] = d.vals[i]
	}
	var ops []txn.Op
	for _, n := range d.only {
		switch v, ok := found[n.key]; {
		case !ok:
			ops = append(ops, txn.Op{Action: txn.Create, Key: n.key})
		case !d.kind.calls.equal(n.key, n.desired, v):
			ops = append(ops, txn.Op{Action: txn.Modify, Key: n.key})
		}
	}
	slices.SortFunc(ops, func(a, b txn.Op) int { return strings.Compare(a.Key, b.Key) })
	return ops
}
