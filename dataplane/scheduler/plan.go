package scheduler

import "slices"

// planner works out what has to be done about the touched values, against an overlay in which every operation succeeds. It looks at the
// touched values, at those that they wake (waiting for one that is about to be made) and at those that they take down (depending on one
// that is about to go), and at nothing else.
//
// A plan has three steps. Closure: which values take part, and which applied values must go. Simulation: making values in dependency order
// shows which of the wanted ones stay without their dependencies; an applied one among them must go too, and the simulation is repeated.
// Ordering: the deletes, now final, are ordered by their references, before or after what is made.
type planner struct {
	g   *graph
	gen uint32
	run uint32 // numbers the runs, see kind.tried

	nodes   []*node // that take part
	seen    int     // nodes whose dependants have been looked at
	removed []*node // applied values that go
	spread  int     // removed values whose dependants have been looked at

	unresolved []*kind // whose dump has to come before any plan
	blind      bool    // some kind could not be dumped

	ready   [][]*node // by level
	low     int       // no level below has a ready node
	high    int       // none above
	wave    []*node
	made    []*node
	madeEnd []int // of the waves in made

	ops  []planOp
	ends []int // of the waves in ops

	last struct { // deletes that come last
		ops  []planOp
		ends []int
	}
}

// planOp is one planned operation.
type planOp struct {
	n   *node
	act action
}

type action uint8

const (
	actDelete action = iota + 1
	actCreate
	actRecreate // the create of what the same plan deletes
	actUpdate
	actRelink // the value is as it should be, only what it depends on has changed: no operation
)

// scratch is what the planner and the execution know about a node; it is void unless gen is the planner's.
type scratch struct {
	gen     uint32
	flags   planFlags
	missing int32 // dependencies that are absent at this point of the simulation
	waiters int32 // nodes that count this one as missing
	users   int32 // nodes to be deleted before this one
	implied int32 // items that go together with this one, without an operation
}

type planFlags uint16

const (
	planRemove    planFlags = 1 << iota // the applied value goes
	planMake                            // wanted, and not as it should be
	planRelink                          // only its dependencies are not as they should be
	planUncertain                       // applied, but the new value depends on more
	planPresent                         // others may depend on it at this point of the simulation
	planMade                            // made by the simulation
	planLast                            // goes, after everything that is made
	planHeld                            // depends on something of which nothing is known
	planFrozen                          // nothing is known about it, nor can be found out
	planImplied                         // goes together with its parent
	planLeaving                         // nothing is in its way any more
	planLetGo                           // has let go of the items that go together with the same parent
	planOrdered                         // has its place among those that go
	planForced                          // goes although others use it: a cycle
	planDone                            // carried out
	planFailed                          // its operation failed
)

func (p *planner) init(g *graph, levels int) {
	p.g = g
	p.ready = make([][]*node, levels)
}

// in reports whether n takes part in this plan.
func (p *planner) in(n *node) bool { return n.p.gen == p.gen }

func (p *planner) has(n *node, f planFlags) bool { return n.p.gen == p.gen && n.p.flags&f != 0 }

// make plans for the touched values. It gives up when kinds have to be dumped first; see unresolved.
func (p *planner) make(touched []*node) (ok bool) {
	p.gen++
	p.reset()
	p.blind = slices.ContainsFunc(p.g.reg.kinds, func(k *kind) bool { return k.stale && k.tried == p.run })
	for _, n := range touched {
		p.enter(n)
	}
	for {
		p.close()
		if len(p.unresolved) > 0 {
			return false
		}
		if p.simulate() {
			break
		}
	}
	if len(p.unresolved) > 0 {
		return false
	}
	p.order()
	first := len(p.ops)
	for _, n := range p.made {
		p.ops = append(p.ops, planOp{n: n, act: madeAs(n)})
	}
	for _, end := range p.madeEnd {
		p.ends = append(p.ends, first+end)
	}
	first = len(p.ops)
	p.ops = append(p.ops, p.last.ops...)
	for _, end := range p.last.ends {
		p.ends = append(p.ends, first+end)
	}
	return true
}

func (p *planner) reset() {
	p.nodes, p.removed, p.made = emptied(p.nodes), emptied(p.removed), emptied(p.made)
	p.ops, p.last.ops, p.last.ends = p.ops[:0], p.last.ops[:0], p.last.ends[:0]
	p.ends, p.unresolved = p.ends[:0], p.unresolved[:0]
	p.seen, p.spread = 0, 0
	for i := range p.ready {
		p.ready[i] = p.ready[i][:0]
	}
}

// emptied forgets the nodes of a list but keeps its space.
func emptied(list []*node) []*node {
	clear(list)
	return list[:0]
}

func madeAs(n *node) action {
	switch {
	case n.p.flags&planRemove != 0:
		return actRecreate
	case n.applied == nil:
		return actCreate
	case n.p.flags&planRelink != 0:
		return actRelink
	}
	return actUpdate
}

// enter decides what n itself needs.
func (p *planner) enter(n *node) {
	if p.in(n) || n.kind == nil {
		return
	}
	n.p = scratch{gen: p.gen}
	p.nodes = append(p.nodes, n)
	switch {
	case n.unknown():
		n.p.flags = planFrozen
		p.meet(n)
	case n.applied == nil:
		if n.desired != nil {
			n.p.flags = planMake
		}
	case n.desired == nil:
		// Which values use what a dump has just discovered is known only when everything could be dumped.
		if n.flags&flagInvalid == 0 && !(p.blind && n.state == Discovered) {
			p.remove(n)
		}
	case n.flags&flagRemake != 0:
		p.remove(n)
	default:
		p.compare(n)
	}
}

// compare decides about a value that is wanted and applied.
func (p *planner) compare(n *node) {
	fresh, stale := n.depChange()
	c := &n.kind.calls
	switch {
	case n.settled():
		if !fresh && !stale {
			return
		}
		n.p.flags = planMake | planRelink
	case c.update != nil && (c.canUpdate == nil || c.canUpdate(n.key, n.applied, n.desired)):
		n.p.flags = planMake
	default:
		p.remove(n)
		return
	}
	if fresh {
		n.p.flags |= planUncertain
		if p.cyclic(n) {
			p.remove(n)
		}
	}
}

// depChange reports whether the desired value depends on something that the applied one does not, or that got lost; and whether the applied
// value holds on to something that the desired one does not.
func (n *node) depChange() (fresh, stale bool) {
	for i := range n.edges {
		e := &n.edges[i]
		switch e.bits & (edgeWant | edgeHave) {
		case edgeWant:
			fresh = true
		case edgeHave:
			stale = true
		default:
			fresh = fresh || e.to.applied == nil
		}
	}
	return fresh, stale
}

// meet notes that nothing is known about a node that matters.
func (p *planner) meet(n *node) {
	k := n.kind
	if k.tried == p.run || k.calls.dump == nil {
		return
	}
	for _, o := range p.unresolved {
		if o == k {
			return
		}
	}
	p.unresolved = append(p.unresolved, k)
}

// remove plans the end of an applied value, and its return if it is wanted.
func (p *planner) remove(n *node) {
	n.p.flags = planRemove
	if n.desired != nil {
		n.p.flags |= planMake
	}
	p.removed = append(p.removed, n)
}

// close looks at what the nodes wake and take down until nothing is added.
func (p *planner) close() {
	for p.seen < len(p.nodes) || p.spread < len(p.removed) {
		for ; p.seen < len(p.nodes); p.seen++ {
			if n := p.nodes[p.seen]; n.state != Configured && n.p.flags&planFrozen == 0 {
				p.awaken(n)
			}
		}
		for ; p.spread < len(p.removed); p.spread++ {
			p.takeDown(p.removed[p.spread])
		}
	}
}

// awaken enters the values that may have been waiting for n, which was not as it should be: it may come now, or not at all.
func (p *planner) awaken(n *node) {
	for _, r := range n.rdeps {
		if m := r.n; m.desired != nil && m.state != Configured && r.edge().bits&edgeWant != 0 {
			p.enter(m)
		}
	}
}

// takeDown removes the applied values that depend on n; and it enters what n depends on if that could not be removed or changed
// before because of n.
func (p *planner) takeDown(n *node) {
	for _, r := range n.rdeps {
		if r.edge().bits&edgeHave == 0 {
			continue
		}
		p.enter(r.n)
		if r.n.p.flags&(planRemove|planFrozen) == 0 {
			p.remove(r.n)
		}
	}
	for i := range n.edges {
		if d := n.edges[i].to; d.applied != nil && d.state != Configured && n.edges[i].bits&edgeHave != 0 {
			p.enter(d)
		}
	}
}

// cyclic reports whether n would depend on itself: through desires, which never can be met, or through applied values that were to be
// changed and could not, so that neither could be deleted before the other.
func (p *planner) cyclic(n *node) bool {
	p.g.stamp++
	return p.reaches(n, n, edgeWant)
}

func (p *planner) reaches(from, to *node, bits edgeBits) bool {
	for i := range from.edges {
		e := &from.edges[i]
		if e.bits&bits == 0 {
			continue
		}
		if e.to == to {
			return true
		}
		if e.to.marks.stamp == p.g.stamp {
			continue
		}
		e.to.marks.stamp = p.g.stamp
		if p.reaches(e.to, to, edgeWant|edgeHave) {
			return true
		}
	}
	return false
}
