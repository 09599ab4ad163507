package scheduler

import (
	"context"
	"errors"
	"fmt"
)

var errDumpBug = errors.New("backend bug: the dump did not end by the end of the flush")

// dumped is the result of the dump of one kind.
type dumped struct {
	kind *kind
	only []*node // the requested values; nil: all
	keys []string
	vals []any
	over bool
	err  error

	stray []string // keys that belong to another kind
}

// dump dumps the kinds concurrently and corrects the applied values: all of them for a stale kind, otherwise only those that an operation left
// unknown. It returns the kinds that could not be dumped; their values stay unchanged.
func (s *Scheduler) dump(ctx context.Context, kinds []*kind) (failed []*kind) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DumpTimeout)
	defer cancel()
	dumps := make([]dumped, 0, len(kinds))
	for _, k := range kinds {
		if k.calls.dump != nil {
			dumps = append(dumps, dumped{kind: k})
		}
	}
	for i := range dumps {
		dumps[i].start(ctx, s)
	}
	for _, b := range s.cfg.Backends {
		b.Flush(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range dumps {
		d := &dumps[i]
		if !d.over {
			d.over, d.err = true, errDumpBug
		}
		if d.err != nil {
			d.kind.tried, d.kind.dumpE = s.plan.run, d.err
			s.log.Debug("dump failed", "kind", d.kind.name, "error", d.err)
			failed = append(failed, d.kind)
		}
	}
	for i := range dumps {
		if dumps[i].err == nil {
			s.graph.correct(&dumps[i])
			s.warnStray(&dumps[i])
		}
	}
	s.stats.Dumps += uint64(len(dumps))
	return failed
}

// warnStray reports the values that a dump found under keys of another kind.
func (s *Scheduler) warnStray(d *dumped) {
	if len(d.stray) > 0 {
		s.log.Warn("the dump of a kind contains keys of another kind; they are ignored", "kind", d.kind.name, "keys", len(d.stray), "first", d.stray[0])
	}
}

// strays reports whether a dumped key, which has the node n if there is one, belongs to another kind than the dumped one. Derived kinds have no prefix,
// and their keys may begin with the prefix of their parents.
func (g *graph) strays(k *kind, key string, n *node) bool {
	return k.prefix != "" && (n == nil || n.kind != k) && g.reg.kindOf(key) != k
}

func (d *dumped) start(ctx context.Context, s *Scheduler) {
	op := &DumpOp{
		ctx: ctx, partial: d.only != nil,
		done: func(err error) {
			if d.over {
				s.log.Error("backend bug: a dump ended twice or too late", "kind", d.kind.name, "error", err)
				return
			}
			d.over, d.err = true, err
		},
		desired: d.kind.eachExpected,
	}
	if d.only != nil {
		op.desired = func(visit func(key string, v any)) {
			for _, n := range d.only {
				visit(n.key, n.desired)
			}
		}
	}
	d.kind.calls.dump(op, func(key string, v any) {
		if d.over {
			s.log.Error("backend bug: a dump went on after its end", "kind", d.kind.name, "key", key)
			return
		}
		d.keys, d.vals = append(d.keys, key), append(d.vals, v)
	})
}

// eachExpected visits the desired values and, where there is none, the applied ones.
func (k *kind) eachExpected(visit func(key string, v any)) {
	for _, n := range k.nodes {
		switch {
		case n.desired != nil:
			visit(n.key, n.desired)
		case n.applied != nil:
			visit(n.key, n.applied)
		}
	}
}

// undoApplied is the applied value and state of a node before a dry run's dump.
type undoApplied struct {
	n       *node
	applied any
	held    []heldEdge
	flags   nodeFlags
	state   State
}

// heldEdge is a dependency of an applied value.
type heldEdge struct {
	to   string
	bits edgeBits
}

// correct makes the dumped values the applied ones.
func (g *graph) correct(d *dumped) {
	k := d.kind
	all := k.stale
	k.stale = false
	g.dumps++
	for i, key := range d.keys {
		n := g.nodes[key]
		if !all && (n == nil || n.kind != k || n.flags&flagUnknown == 0) && !d.leftover(i) {
			continue
		}
		if g.strays(k, key, n) {
			// An error would make the node unready, and a node would take the key from its kind. The dataplane may be at fault: a pod can name its links.
			d.stray = append(d.stray, key)
			continue
		}
		if n = g.obtain(key, k); n.kind != k {
			g.problem(key, fmt.Errorf("dumped as kind %s, but the key is one of kind %s", k.name, n.kind.name))
			continue
		}
		n.marks.dump = g.dumps
		g.found(n, d.vals[i])
	}
	for _, n := range k.nodes {
		if n.marks.dump == g.dumps || !all && n.flags&flagUnknown == 0 {
			continue
		}
		if n.applied != nil || n.flags&flagUnknown != 0 {
			g.lost(n, all)
		} else if n.state != Configured {
			g.touch(n) // no operation was possible before the dump
		}
	}
}

// found records that v is present.
func (g *graph) found(n *node, v any) {
	g.recordUndo(n)
	g.touch(n)
	n.flags &^= flagUnknown | flagRemake
	switch {
	case n.desired != nil && n.applied != nil && !n.settled() && n.kind.calls.equal(n.key, n.applied, v):
		// The previous version is still there: the dataplane has rejected its update. A dump cannot read all fields, so v may look like the
		// desired version, too; then the update must not count as done. If only its reply was lost, it is done again.
		g.setFound(n, n.applied)
		return
	case n.desired != nil && n.kind.calls.equal(n.key, n.desired, v):
		g.setApplied(n)
		return
	}
	g.setFound(n, v)
	if n.desired == nil && n.flags&flagInvalid == 0 {
		n.state = Discovered
	}
}

// leftover reports whether the i-th value is one that every dump removes; see Descriptor.Leftover.
func (d *dumped) leftover(i int) bool {
	is := d.kind.calls.leftover
	return is != nil && is(d.keys[i], d.vals[i])
}

// setFound makes v, which differs from the desired value, the applied one.
func (g *graph) setFound(n *node, v any) {
	n.applied = v
	if n.kind.prefix == "" && n.parent() == nil && n.kind.calls.parent != nil {
		if key := n.kind.calls.parent(n.key, v); key != "" {
			g.link(n, g.name(key), edgeParent|edgeHave)
		}
	}
	for i := range n.edges {
		if n.edges[i].bits&edgeParent != 0 {
			g.setBits(&n.edges[i], edgeHave)
		}
	}
	g.relink(n, v, edgeHave)
}

// lost records that the dump did not find n. Values that use n and cannot be dumped are lost, too. Unless everything is being dumped (all), the
// state of the other values that use n becomes unknown.
func (g *graph) lost(n *node, all bool) {
	g.recordUndo(n)
	g.touch(n)
	g.setAbsent(n)
	if n.desired != nil {
		n.state = Missing
	}
	for i := len(n.rdeps) - 1; i >= 0; i-- {
		if i >= len(n.rdeps) || n.rdeps[i].edge().bits&edgeHave == 0 {
			continue
		}
		m := n.rdeps[i].n
		switch {
		case m.kind.calls.dump == nil:
			g.lost(m, all)
		case !all && !m.unknown():
			g.recordUndo(m)
			g.touch(m)
			m.flags |= flagUnknown
		}
	}
}

func (g *graph) recordUndo(n *node) {
	if !g.dry {
		return
	}
	u := undoApplied{n: n, applied: n.applied, flags: n.flags, state: n.state}
	for i := range n.edges {
		if e := &n.edges[i]; e.bits&edgeHave != 0 {
			u.held = append(u.held, heldEdge{to: e.to.key, bits: e.bits &^ edgeWant})
		}
	}
	g.undo = append(g.undo, u)
}

// restoreApplied restores the applied values from before a dry run. The desired values must have been restored already.
func (g *graph) restoreApplied() {
	for i := len(g.undo) - 1; i >= 0; i-- {
		u := &g.undo[i]
		g.setAbsent(u.n)
		for _, h := range u.held {
			g.link(u.n, g.name(h.to), h.bits)
		}
		u.n.applied, u.n.flags, u.n.state = u.applied, u.flags, u.state
	}
	clear(g.undo)
	g.undo = g.undo[:0]
}
