package routetable

import (
	"net/netip"
	"time"
)

// plan is a list of writes, with the object that each of them is for.
type plan struct {
	ops   []op
	refs  []ref
	add   []*entry // to be written after all removals
	addGW []*entry // to be written last: next hops may depend on the other routes
	held  []*entry // to be written when the connections of their addresses have been removed
	flush []netip.Addr

	// The routes that are kept for their time of grace; the first such time ends at again.
	strays  []route
	resting []*entry
	again   time.Time
}

// ref is the object of a write: an entry, a neighbour or, if both are nil, a stray route.
type ref struct {
	e *entry
	n *neighbour
}

func (p *plan) write(o op, r ref) {
	p.ops = append(p.ops, o)
	p.refs = append(p.refs, r)
}

// makePlan turns the differences into writes.
func (t *Table) makePlan() *plan {
	size := len(t.todo) + len(t.neighDo)
	p := &plan{ops: make([]op, 0, size), refs: make([]ref, 0, size)}
	for _, r := range t.strays {
		t.planStray(p, r)
	}
	for _, e := range t.todo {
		t.planEntry(p, e)
	}
	t.planNeighbours(p)
	for _, list := range [][]*entry{p.add, p.addGW} {
		for _, e := range list {
			p.put(e)
		}
	}
	return p
}

// put writes an entry's goal. It records at once that the goal's link has had the address, since the answer may be lost.
func (p *plan) put(e *entry) {
	o := op{verb: addRoute, route: e.goal}
	if e.there {
		o.verb = replaceRoute
	}
	if e.goal.host() {
		e.served, e.servedBy = true, e.servingLink()
	}
	p.write(o, ref{e: e})
}

// leave reports whether an unknown route is in its time of grace.
func (t *Table) leave(p *plan, r route) bool {
	end := t.graceEnd(r)
	if end.IsZero() || !t.now().Before(end) {
		return false
	}
	if p.again.IsZero() || end.Before(p.again) {
		p.again = end
	}
	return true
}

func (t *Table) planStray(p *plan, r route) {
	e := t.entries[r.dst]
	wanted := e != nil && len(e.claims) > 0
	if !wanted && t.leave(p, r) {
		p.strays = append(p.strays, r)
		return
	}
	if wanted && r.host() && !e.served { // the pod behind the stray's link has had the address
		e.served, e.servedBy = true, servingLink{t.names[r.index], r.index}
	}
	p.write(op{verb: delRoute, route: r}, ref{})
}

func (t *Table) planEntry(p *plan, e *entry) {
	switch {
	case !e.differs():
	case !e.wanted && e.there:
		if !e.known && t.leave(p, e.actual) {
			t.rest(p, e)
		} else {
			p.write(op{verb: delRoute, route: e.actual}, ref{e: e})
		}
	case !e.wanted: // the kernel has removed the route with its link
		e.served = false
		t.scheduleFlush(&p.flush, e.dst.Addr())
	case t.changesHands(e) && e.there:
		p.write(op{verb: delRoute, route: e.actual}, ref{e: e}) // afterwards it is held, see deleted
	case t.changesHands(e):
		t.scheduleFlush(&p.flush, e.dst.Addr())
		e.served = false
		p.held = append(p.held, e)
	case t.isBeingForgotten(e):
		p.held = append(p.held, e)
	case e.goal.gw.IsValid():
		p.addGW = append(p.addGW, e)
	default:
		p.add = append(p.add, e)
	}
}

// rest sets an entry aside until a time of grace is over.
func (t *Table) rest(p *plan, e *entry) {
	if !e.resting {
		e.resting = true
		p.resting = append(p.resting, e)
	}
}

// changesHands reports whether the address moves from one link to another, so that the former's connections must not reach the latter.
func (t *Table) changesHands(e *entry) bool {
	if t.flush == nil || !e.goal.host() {
		return false
	}
	return e.there && e.actual.host() && e.actual.index != e.goal.index || e.served && e.servedBy != e.servingLink()
}

// isBeingForgotten reports whether connections of the address's last owner are still being removed.
func (t *Table) isBeingForgotten(e *entry) bool {
	if t.flush == nil || !e.goal.host() || e.there && e.actual.host() {
		return false
	}
	return t.flush.pending(e.dst.Addr()) != nil
}

// scheduleFlush adds an address to those whose connections are removed after the plan's writes.
func (t *Table) scheduleFlush(list *[]netip.Addr, a netip.Addr) {
	if t.flush != nil {
		*list = append(*list, a)
	}
}

// planNeighbours first removes unwanted neighbours, since the kernel's table has a limit.
func (t *Table) planNeighbours(p *plan) {
	for key, n := range t.neighDo {
		_, reported := t.names[key.index]
		switch {
		case !n.differs(), len(n.users) == 0 && !reported: // removed with its link
			t.neighDone(n)
		case len(n.users) == 0:
			p.write(op{verb: delNeigh, neigh: key}, ref{n: n})
		}
	}
	for key, n := range t.neighDo {
		if len(n.users) > 0 && t.usable(key.index) {
			p.write(op{verb: setNeigh, neigh: key, mac: n.users[0].mac}, ref{n: n})
		}
	}
}

// neighDone records that a neighbour is as desired, and drops it if it has no users.
func (t *Table) neighDone(n *neighbour) {
	delete(t.neighDo, n.key)
	if len(n.users) == 0 {
		delete(t.neighs, n.key)
	}
}
