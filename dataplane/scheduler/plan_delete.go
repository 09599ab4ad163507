package scheduler

// order arranges the removed values in waves: a value is removed after all values that use it. Of the values that are ready, those of the
// highest rank are removed first.
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

// imply marks the items that are removed together with their parents.
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

// postpone marks the values that are removed after all creates and updates (planLast). A value is removed before the values that it uses, and
// an implied item together with its parent: if the used value or the item is removed early, the value or the parent is removed early, too.
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

// holdsEarly reports whether n uses a value that is removed before the creates.
func (p *planner) holdsEarly(n *node) bool {
	for i := range n.edges {
		if d := n.edges[i].to; n.edges[i].bits&edgeHave != 0 && p.has(d, planRemove) && d.p.flags&planLast == 0 {
			return true
		}
	}
	return false
}

// planDeletes adds the deletes of a wave to the early or to the last operations.
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

// countUsers adds delta to the users of all removed values that n uses.
func (p *planner) countUsers(n *node, delta int32) {
	for i := range n.edges {
		if d := n.edges[i].to; n.edges[i].bits&edgeHave != 0 && p.has(d, planRemove) {
			d.p.users += delta
		}
	}
}

// leave makes n ready to be removed. If n is removed together with its parent, it only stops blocking the parent.
func (p *planner) leave(n *node) {
	n.p.flags |= planLeaving
	if n.p.flags&planImplied == 0 {
		p.push(n)
		return
	}
	// The parent is removed together with n and with the siblings that n uses: n does not block those siblings.
	n.p.flags |= planLetGo
	for i := range n.edges {
		if e := &n.edges[i]; e.bits&edgeHave != 0 && p.siblings(n, e.to) {
			p.release(e.to)
		}
	}
	p.release(n.parent())
}

// siblings reports whether n and d are removed items of the same parent, and d is of a kind that is removed together with its parent.
func (p *planner) siblings(n, d *node) bool {
	return d != n && p.has(d, planRemove) && d.kind.implied && d.parent() != nil && d.parent() == n.parent()
}

func (p *planner) release(d *node) {
	if d.p.users--; d.p.users == 0 {
		p.leave(d)
	}
}

// gone releases the removed values that n uses.
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

// removeWave removes all ready values of the highest level.
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

// goneItems marks the items as removed that are removed together with n.
func (p *planner) goneItems(n *node) {
	for _, r := range n.rdeps {
		if p.impliedBy(r) && r.n.p.flags&planOrdered == 0 {
			r.n.p.flags |= planOrdered
			p.gone(r.n)
		}
	}
}

// impliedBy reports whether r.n is removed together with the value to which the edge leads.
func (p *planner) impliedBy(r rdep) bool {
	return r.edge().bits&(edgeParent|edgeHave) == edgeParent|edgeHave && p.has(r.n, planImplied)
}

// untangle finds values that wait for each other and resolves the deadlock: first by deleting items separately that otherwise would be removed
// together with their parents, then, for values in a real cycle, by force. It returns false when no value is left.
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
