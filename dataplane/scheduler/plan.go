package scheduler

import "slices"

// planner computes the operations for the touched values, on an overlay in which every operation succeeds. It visits the touched values, the
// values that wait for one that is about to be created, and the values that depend on one that is about to be removed. It visits no others.
//
// A plan has three steps. Closure: which values take part, and which applied values must be removed. Simulation: creating values in dependency
// order shows which desired values stay without their dependencies; if one of them is applied it must be removed, too, and the simulation is
// repeated. Ordering: the deletes, now final, are ordered by their references, before or after the creates.
type planner struct {
	g   *graph
	gen uint32
	run uint32 // numbers the runs, see kind.tried

	nodes   []*node // the nodes that take part
	seen    int     // number of nodes whose dependants have been visited
	removed []*node // applied values that are removed
	spread  int     // number of removed values whose dependants have been visited

	unresolved []*kind // kinds that must be dumped before a plan can be made
	blind      bool    // some kind could not be dumped

	ready   [][]*node // by level
	low     int       // no lower level has a ready node
	high    int       // no higher level has one
	wave    []*node
	made    []*node
	madeEnd []int // ends of the waves in made

	ops  []planOp
	ends []int // ends of the waves in ops

	last struct { // deletes that run after everything else
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
	actRecreate // the create of a value that the same plan deletes
	actUpdate
	actRelink // the value is unchanged, only its dependencies have changed: no operation
)

// scratch is the state of a node in the planner and the execution; it is void unless gen equals the planner's gen.
type scratch struct {
	gen     uint32
	flags   planFlags
	missing int32 // dependencies that are absent at this point of the simulation
	waiters int32 // number of nodes that count this one as missing
	users   int32 // number of nodes to be deleted before this one
	implied int32 // number of items that are removed together with this one, without an operation
}

type planFlags uint16

const (
	planRemove    planFlags = 1 << iota // the applied value is removed
	planMake                            // desired, and the applied value differs or is absent
	planRelink                          // only its dependencies differ
	planUncertain                       // applied, but the new value has further dependencies
	planPresent                         // others may depend on it at this point of the simulation
	planMade                            // created by the simulation
	planLast                            // removed after all creates and updates
	planHeld                            // depends on a value whose state is unknown
	planFrozen                          // its state is unknown and cannot be determined
	planImplied                         // removed together with its parent
	planLeaving                         // nothing prevents its removal any more
	planLetGo                           // no longer waits for the items that are removed with the same parent
	planOrdered                         // has its position in the order of deletes
	planForced                          // removed although others use it: a cycle
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

// make plans the operations for the touched values. It returns false when kinds must be dumped first; see unresolved.
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

// emptied removes the nodes of a list and keeps its capacity.
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

// enter determines what has to be done with n itself.
func (p *planner) enter(n *node) {
	if p.in(n) || n.kind == nil {
		return
	}
	n.p = scratch{gen: p.gen}
	p.nodes = append(p.nodes, n)
	switch {
	case n.unknown():
		n.p.flags = planFrozen
		p.requestDump(n)
	case n.applied == nil:
		if n.desired != nil {
			n.p.flags = planMake
		}
	case n.desired == nil:
		// A dump that failed may hide the users of a value that was just discovered: remove it only when everything could be dumped.
		if n.flags&flagInvalid == 0 && !(p.blind && n.state == Discovered) {
			p.remove(n)
		}
	case n.flags&flagRemake != 0:
		p.remove(n)
	default:
		p.compare(n)
	}
}

// compare determines what has to be done with a value that is desired and applied.
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

// depChange reports whether the desired value depends on a value that the applied one does not depend on or that was lost (fresh), and whether
// the applied value uses a value that the desired one does not need (stale).
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

// requestDump requests a dump of the kind of n, on which the plan depends and whose state is unknown.
func (p *planner) requestDump(n *node) {
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

// remove plans the removal of an applied value, and its creation again if it is desired.
func (p *planner) remove(n *node) {
	n.p.flags = planRemove
	if n.desired != nil {
		n.p.flags |= planMake
	}
	p.removed = append(p.removed, n)
}

// close visits the values that the nodes wake or take down, until no further value is added.
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

// awaken enters the values that may have been waiting for n, which was not configured: they may become possible now, or impossible.
func (p *planner) awaken(n *node) {
	for _, r := range n.rdeps {
		if m := r.n; m.desired != nil && m.state != Configured && r.edge().bits&edgeWant != 0 {
			p.enter(m)
		}
	}
}

// takeDown removes the applied values that depend on n. It also enters those dependencies of n that are not configured: n may have prevented
// their removal or change before.
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

// cyclic reports whether n would depend on itself: through desired values, which can then never be created, or through applied values that
// could not be changed, so that neither of them could be deleted before the other.
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
