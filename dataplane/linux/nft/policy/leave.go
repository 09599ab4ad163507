package policy

import (
	"maps"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// leaving holds the objects in the kernel that its newest rules do not refer to, each with the grace period after which it is removed. A
// packet that jumps to a chain uses the chain's newest generation of rules: a removed chain is empty, and the packet would pass. Objects
// that such chains use are kept as long. Nothing waits for a grace period: other changes continue meanwhile.
type leaving struct {
	nodes map[*node]uint64
	sets  map[*set]uint64
	lists map[*list]uint64
	// strays are unknown sets and maps in our table. They are removed when no chain is leaving.
	strays []string
}

// staying reports whether an object has to be removed later.
func (l *leaving) staying() bool { return len(l.nodes)+len(l.sets)+len(l.lists) > 0 }

// due reports whether an object can be removed now.
func (l *leaving) due(over uint64) bool {
	return anyOver(l.nodes, over) || anyOver(l.sets, over) || anyOver(l.lists, over)
}

func anyOver[T comparable](list map[T]uint64, over uint64) bool {
	for _, ticket := range list {
		if ticket <= over {
			return true
		}
	}
	return false
}

// nodesThatLeft adds the chains that can be removed now to the plan.
func (p *plan) nodesThatLeft(over uint64) {
	for n, ticket := range p.f.leaving.nodes {
		switch {
		case n.live || !n.present && n.elems == nil:
			delete(p.f.leaving.nodes, n)
			n.Touch() // it may have no owner
		case p.atOnce || ticket <= over:
			p.gone++
			p.goes(n)
		}
	}
}

// leaves adds a chain that packets no longer reach to the plan: it is removed after a grace period. Base chains are removed at once, since
// the chains they refer to must not be reachable from two hooks.
func (p *plan) leaves(n *node) {
	n.useLists(nil)
	switch _, has := p.f.leaving.nodes[n]; {
	case has, !n.present && n.elems == nil:
	case p.atOnce || n.base != nil:
		p.goes(n)
	default:
		p.leave.nodes = append(p.leave.nodes, n)
	}
}

func (p *plan) goes(n *node) {
	if n.present {
		p.remove = append(p.remove, n)
	}
	if n.elems != nil {
		p.dropMap = append(p.dropMap, n)
	}
}

// holds reports whether chains remain that may use objects without other users.
func (p *plan) holds() bool {
	return !p.atOnce && (len(p.leave.nodes) > 0 || len(p.f.leaving.nodes) > p.gone)
}

// setsAndLists adds the differences of sets and lists to the plan.
func (p *plan) setsAndLists(over uint64) {
	f, holds := p.f, p.holds()
	for s, ticket := range f.leaving.sets {
		switch {
		case s.effective() || !s.present:
			delete(f.leaving.sets, s)
		case p.atOnce || ticket <= over:
			p.sets = append(p.sets, s)
			s.Touch()
		}
	}
	for s := range f.dirtySets {
		_, leaves := f.leaving.sets[s]
		switch {
		case leaves || !s.needsWrite():
		case holds && s.present && !s.effective():
			p.leave.sets = append(p.leave.sets, s)
		default:
			p.sets = append(p.sets, s)
		}
	}
	for l, ticket := range f.leaving.lists {
		switch {
		case l.users > 0 || !l.present:
			delete(f.leaving.lists, l)
		case p.atOnce || ticket <= over:
			p.lists = append(p.lists, l)
			f.dirtyLists[l] = struct{}{}
		}
	}
	for l := range f.dirtyLists {
		_, leaves := f.leaving.lists[l]
		switch {
		case leaves || l.present == (l.users > 0):
		case holds && l.present:
			p.leave.lists = append(p.leave.lists, l)
		default:
			p.lists = append(p.lists, l)
		}
	}
	if !holds {
		p.strays = f.leaving.strays
	}
}

// remade reports whether a set is created again with another type. This is possible only if nothing uses it, including chains that are
// leaving.
func (f *family) remade() bool {
	for s := range f.dirtySets {
		if s.present && s.effective() && s.typ != s.spec.Type {
			return true
		}
	}
	return false
}

// left records that the plan's removals are done, and begins the grace period of the next removals.
func (p *plan) left(g *wire.Grace) {
	l := &p.f.leaving
	if p.clear {
		p.remove = slices.AppendSeq(p.remove, maps.Keys(l.nodes))
		clear(l.sets)
		clear(l.lists)
	}
	for _, n := range slices.Concat(p.remove, p.dropMap) {
		delete(l.nodes, n)
		n.Touch() // it may have no owner
	}
	for _, s := range p.sets {
		delete(l.sets, s)
	}
	for _, one := range p.lists {
		delete(l.lists, one)
	}
	if p.clear || len(p.leave.nodes)+len(p.leave.sets)+len(p.leave.lists) == 0 {
		return
	}
	ticket := g.Begin()
	for _, n := range p.leave.nodes {
		l.nodes[n] = ticket
	}
	for _, s := range p.leave.sets {
		l.sets[s] = ticket
	}
	for _, one := range p.leave.lists {
		l.lists[one] = ticket
	}
}
