package scheduler

// order puts the removed values into waves: a value goes after all that use it, and of those that may go the ones of the
// highest rank go first.
func (p *planner) order() {
	if len(p.removed) == 0 {
		return
	}
	p.imply()
	p.postpone()
	for _, n := range p.removed {
		p.countUsers(n, +1)
	}
	p.low, p.high = len(p.ready), -1
	for _, n := range p.removed {
		if n.p.users == 0 && n.p.flags&planLeaving == 0 {
			p.leave(n)
		}
	}
	for {
		for p.low <= p.high {
			p.removeWave()
		}
		if !p.untangle() {
			return
		}
	}
}

// imply finds the items that go together with their parents.
func (p *planner) imply() {
	for _, n := range p.removed {
		if !n.kind.implied || n.p.flags&planMade != 0 {
			continue
		}
		for i := range n.edges {
			e := &n.edges[i]
			if e.bits&(edgeParent|edgeHave) != edgeParent|edgeHave {
				continue
			}
			if d := e.to; p.in(d) && d.p.flags&(planRemove|planMade) == planRemove {
				n.p.flags |= planImplied
				d.p.implied++
			}
		}
	}
}

// postpone finds the values that go after everything that is made. What they hold on to goes after them, so it has to go that late, too; and so has what
// takes them along.
func (p *planner) postpone() {
	for _, n := range p.removed {
		if n.kind.last && n.p.flags&planMake == 0 {
			n.p.flags |= planLast
		}
	}
	for again := true; again; {
		again = false
		for _, n := range p.removed {
			switch {
			case n.p.flags&planLast == 0 && n.p.flags&planImplied != 0 && n.parent().p.flags&planLast != 0:
				n.parent().p.flags &^= planLast
			case n.p.flags&planLast != 0 && p.holdsEarly(n):
				n.p.flags &^= planLast
			default:
				continue
			}
			again = true
		}
	}
}

// holdsEarly reports whether n holds on to a value that goes before anything is made.
func (p *planner) holdsEarly(n *node) bool {
	for i := range n.edges {
		if d := n.edges[i].to; n.edges[i].bits&edgeHave != 0 && p.has(d, planRemove) && d.p.flags&planLast == 0 {
			return true
		}
	}
	return false
}

// planDeletes puts the deletes of a wave where they belong.
func (p *planner) planDeletes(wave []*node) {
	first, last := len(p.ops), len(p.last.ops)
	for _, n := range wave {
		n.p.flags |= planOrdered
		if op := (planOp{n: n, act: actDelete}); n.p.flags&planLast != 0 {
			p.last.ops = append(p.last.ops, op)
		} else {
			p.ops = append(p.ops, op)
		}
	}
	if len(p.ops) > first {
		p.ends = append(p.ends, len(p.ops))
	}
	if len(p.last.ops) > last {
		p.last.ends = append(p.last.ends, len(p.last.ops))
	}
}

// countUsers adds delta to the users of all removed values that n holds on to.
func (p *planner) countUsers(n *node, delta int32) {
	for i := range n.edges {
		if d := n.edges[i].to; n.edges[i].bits&edgeHave != 0 && p.has(d, planRemove) {
			d.p.users += delta
		}
	}
}

// leave makes n ready to go. An item that goes together with its parent only stops to be in the parent's way.
func (p *planner) leave(n *node) {
	n.p.flags |= planLeaving
	if n.p.flags&planImplied == 0 {
		p.push(n)
		return
	}
	// Its parent takes it along together with the siblings that it holds on to: it is not in conflict with others there.
	n.p.flags |= planLetGo
	for i := range n.edges {
		if e := &n.edges[i]; e.bits&edgeHave != 0 && p.siblings(n, e.to) {
			p.release(e.to)
		}
	}
	p.release(n.parent())
}

// siblings reports whether n and d are removed items of the same parent, of a kind that goes together with it.
func (p *planner) siblings(n, d *node) bool {
	return d != n && p.has(d, planRemove) && d.kind.implied && d.parent() != nil && d.parent() == n.parent()
}

func (p *planner) release(d *node) {
	if d.p.users--; d.p.users == 0 {
		p.leave(d)
	}
}

// gone lets go of what n holds on to.
func (p *planner) gone(n *node) {
	implied := n.p.flags&planImplied != 0
	for i := range n.edges {
		e := &n.edges[i]
		if e.bits&edgeHave == 0 || !p.has(e.to, planRemove) || e.to == n {
			continue
		}
		if implied && e.bits&edgeParent != 0 || n.p.flags&planLetGo != 0 && p.siblings(n, e.to) {
			continue // see leave
		}
		p.release(e.to)
	}
}

// removeWave lets all ready values of the highest level go.
func (p *planner) removeWave() {
	for len(p.ready[p.high]) == 0 {
		if p.high--; p.high < p.low {
			return
		}
	}
	l := p.high
	wave := p.ready[l]
	p.ready[l] = p.wave[:0]
	p.planDeletes(wave)
	for _, n := range wave {
		if n.p.implied > 0 {
			p.goneItems(n)
		}
		p.gone(n)
	}
	p.wave = emptied(wave)
}

// goneItems lets the items go that were implied by n.
func (p *planner) goneItems(n *node) {
	for _, r := range n.rdeps {
		if p.impliedBy(r) && r.n.p.flags&planOrdered == 0 {
			r.n.p.flags |= planOrdered
			p.gone(r.n)
		}
	}
}

// impliedBy reports whether r.n goes together with what the edge leads to.
func (p *planner) impliedBy(r rdep) bool {
	return r.edge().bits&(edgeParent|edgeHave) == edgeParent|edgeHave && p.has(r.n, planImplied)
}

// untangle finds values that wait for each other and breaks the knot: first by deleting items for themselves that otherwise
// would go together with their parents, then, for values in a true cycle, by force. It is false when nothing is left.
func (p *planner) untangle() bool {
	var left []*node
	again := false
	for _, n := range p.removed {
		if n.p.flags&planOrdered != 0 {
			continue
		}
		if n.p.flags&planImplied == 0 || n.p.users > 0 {
			left = append(left, n)
			continue
		}
		n.p.flags &^= planImplied
		parent := n.parent()
		parent.p.implied--
		parent.p.users++
		p.push(n)
		again = true
	}
	if again || len(left) == 0 {
		return again
	}
	for _, n := range left {
		if n.p.flags&planImplied != 0 {
			n.p.flags &^= planImplied
			n.parent().p.implied--
		}
		n.p.flags |= planForced
		n.p.users = 0
		p.push(n)
	}
	for p.low <= p.high {
		p.forceWave()
	}
	return false
}

// forceWave deletes the ready values of the highest level even if other values use them.
func (p *planner) forceWave() {
	l := p.high
	p.high--
	wave := p.ready[l]
	if len(wave) == 0 {
		return
	}
	p.planDeletes(wave)
	p.ready[l] = emptied(wave)
}
