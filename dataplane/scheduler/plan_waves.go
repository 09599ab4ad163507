package scheduler

// simulate creates the desired values wave by wave. It returns false when applied values lose their dependencies: they were added to the
// removed values, and the closure must be computed again.
func (p *planner) simulate() bool {
	p.made, p.madeEnd = p.made[:0], p.madeEnd[:0]
	p.low, p.high = len(p.ready), -1
	for _, n := range p.nodes {
		n.p.waiters = 0
		n.p.flags &^= planPresent | planMade | planHeld
		if n.applied != nil && n.p.flags&(planRemove|planFrozen|planUncertain) == 0 {
			n.p.flags |= planPresent
		}
	}
	for _, n := range p.nodes {
		if n.p.flags&planMake != 0 {
			p.count(n)
			if n.p.missing == 0 {
				p.push(n)
			}
		}
	}
	for p.low <= p.high {
		p.makeWave()
	}
	again := false
	for _, n := range p.nodes {
		if n.p.flags&(planMake|planMade|planHeld|planRemove) == planMake && n.applied != nil {
			p.remove(n)
			again = true
		}
	}
	return !again
}

// count counts the absent dependencies of n.
func (p *planner) count(n *node) {
	n.p.missing = 0
	for i := range n.edges {
		e := &n.edges[i]
		if e.bits&edgeWant == 0 {
			continue
		}
		d := e.to
		if !p.in(d) {
			if d.usable() {
				continue
			}
			if d.kind != nil && d.unknown() {
				p.requestDump(d)
				n.p.flags |= planHeld
			}
			n.p.missing++
			continue
		}
		if d.p.flags&planPresent != 0 {
			continue
		}
		if d.p.flags&planFrozen != 0 {
			n.p.flags |= planHeld
		}
		n.p.missing++
		d.p.waiters++
	}
}

func (p *planner) push(n *node) {
	l := n.kind.level
	p.ready[l] = append(p.ready[l], n)
	p.low, p.high = min(p.low, l), max(p.high, l)
}

// makeWave creates all ready values of the lowest level.
func (p *planner) makeWave() {
	for len(p.ready[p.low]) == 0 {
		if p.low++; p.low > p.high {
			return
		}
	}
	l := p.low
	wave := p.ready[l]
	p.ready[l] = p.wave[:0] // values of the same level that this wave unlocks belong to another wave
	for _, n := range wave {
		n.p.flags |= planMade | planPresent
	}
	p.made = append(p.made, wave...)
	p.madeEnd = append(p.madeEnd, len(p.made))
	for _, n := range wave {
		if n.p.waiters > 0 {
			p.unlock(n)
		}
	}
	p.wave = emptied(wave)
}

// unlock counts n as present for the values that wait for it.
func (p *planner) unlock(n *node) {
	for _, r := range n.rdeps {
		m := r.n
		if !p.in(m) || m.p.flags&(planMake|planMade) != planMake || r.edge().bits&edgeWant == 0 {
			continue
		}
		if m.p.missing--; m.p.missing == 0 {
			p.push(m)
		}
	}
}
