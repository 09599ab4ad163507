package routetable

import (
	"net/netip"
	"time"
)

// plan is a list of writes, with what each of them is for.
type plan struct {
	ops   []op
	refs  []ref
	add   []*entry // to be put after everything that is to go
	addGW []*entry // to be put last: next hops may depend on the others
	held  []*entry // to be put when the connections of their addresses have been forgotten
	flush []netip.Addr

	// What stays for its time of grace, the first of which ends at again.
	strays  []route
	resting []*entry
	again   time.Time
}

// ref is what a write is for: an entry, a neighbour or, both nil, a stray route.
type ref struct {
	e *entry
	n *neighbour
}

func (p *plan) write(o op, r ref) {
	p.ops = append(p.ops, o)
	p.refs = append(p.refs, r)
}

// makePlan turns what differs into writes.
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

// put writes what an entry is to have. That its link will have had the address is noted now: the answer may be lost.
func (p *plan) put(e *entry) {
	o := op{verb: addRoute, route: e.goal}
	if e.there {
		o.verb = replaceRoute
	}
	if e.goal.host() {
		e.served, e.servedBy = true, e.servant()
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
	if wanted && r.host() && !e.served { // then the pod behind its link has had the address
		e.served, e.servedBy = true, servant{t.names[r.index], r.index}
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
		t.forget(&p.flush, e.dst.Addr())
	case t.changesHands(e) && e.there:
		p.write(op{verb: delRoute, route: e.actual}, ref{e: e}) // then it is held, see deleted
	case t.changesHands(e):
		t.forget(&p.flush, e.dst.Addr())
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

// rest puts an entry aside until a time of grace is over.
func (t *Table) rest(p *plan, e *entry) {
	if !e.resting {
		e.resting = true
		p.resting = append(p.resting, e)
	}
}

// changesHands reports whether the address goes from one link to another, so that connections of the former must not reach the latter.
func (t *Table) changesHands(e *entry) bool {
	if t.flush == nil || !e.goal.host() {
		return false
	}
	return e.there && e.actual.host() && e.actual.index != e.goal.index || e.served && e.servedBy != e.servant()
}

// isBeingForgotten reports whether connections of the address's last owner are still being removed.
func (t *Table) isBeingForgotten(e *entry) bool {
	if t.flush == nil || !e.goal.host() || e.there && e.actual.host() {
		return false
	}
	return t.flush.pending(e.dst.Addr()) != nil
}

// forget adds an address to those whose connections are to be forgotten after the plan's writes.
func (t *Table) forget(list *[]netip.Addr, a netip.Addr) {
	if t.flush != nil {
		*list = append(*list, a)
	}
}

// planNeighbours removes first what is not wanted, since the kernel's table has a limit.
func (t *Table) planNeighbours(p *plan) {
	for key, n := range t.neighDo {
		_, told := t.names[key.index]
		switch {
		case !n.differs(), len(n.users) == 0 && !told: // gone with its link
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

// neighDone notes that a neighbour is as desired, and forgets it if nothing wants it.
func (t *Table) neighDone(n *neighbour) {
	delete(t.neighDo, n.key)
	if len(n.users) == 0 {
		delete(t.neighs, n.key)
	}
}
