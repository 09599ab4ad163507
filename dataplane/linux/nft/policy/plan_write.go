package policy

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// size returns the approximate size of the plan in a transaction, in bytes.
func (p *plan) size() (n int) {
	for i := range p.rewrite {
		for j := range p.rewrite[i].programs {
			n += len(p.rewrite[i].programs[j].Exprs) + ruleOverhead
		}
	}
	return n
}

const ruleOverhead = 200 // headers, names and user data of a rule, and a share of its chain

// write adds the plan to a transaction. In this order references are removed before their objects, and objects are created before they are
// referred to.
func (p *plan) write(b *wire.Batch) {
	f := p.f
	if p.clear || f.rebuild {
		b.DelTable(f.Proto)
		b.Writes++
	}
	if p.clear {
		return
	}
	if p.create || f.rebuild {
		b.NewTable(f.Proto)
	}
	p.writeRemovals(b)
	for _, s := range p.sets {
		if s.effective() {
			fillSet(b, s)
		}
	}
	for _, l := range p.lists {
		if !l.present {
			newList(b, f, l)
		}
	}
	for i := range p.rewrite {
		if n := p.rewrite[i].n; !n.present {
			newChain(b, n)
		}
	}
	for _, n := range p.forks {
		if !p.fillsLater(n) {
			fillMap(b, n)
		}
	}
	for i := range p.rewrite {
		r := &p.rewrite[i]
		newRules(b, r.n, r.programs)
		if len(r.programs) == 0 {
			b.Writes += len(r.n.hashes)
		}
	}
}

// fillsLater reports whether a dispatch chain's map gets its new elements in a separate transaction, after the one that creates the chains.
// A packet uses one generation of rules throughout, but looks up elements in their current state: it would find the new element while the
// chain is still empty. An interface whose verdict changes keeps the old verdict until then.
func (p *plan) fillsLater(n *node) (later bool) {
	if n.elems == nil {
		return false // the map is new, and no older rule uses it
	}
	n.eachNew(func(_, chain string) {
		later = later || slices.ContainsFunc(p.rewrite, func(r rewrite) bool { return r.n.chain == chain && !r.n.present })
	})
	return later
}

// writeLater adds the messages of the second transaction: the elements that refer to chains which exist by now.
func (p *plan) writeLater(b *wire.Batch) {
	if p.clear {
		return
	}
	for _, n := range p.forks {
		if p.fillsLater(n) {
			if !p.atOnce {
				drainMap(b, n, true)
			}
			fillMap(b, n)
		}
	}
}

// writeRemovals removes references to the objects to remove, and then the objects.
func (p *plan) writeRemovals(b *wire.Batch) {
	for i := range p.rewrite {
		if n := p.rewrite[i].n; n.present && len(n.hashes) > 0 {
			flushChain(b, n)
		}
	}
	for _, n := range p.dropMap {
		if n.live {
			b.DelSet(p.f.Proto, n.mapName(), n)
		}
	}
	for _, n := range p.forks {
		drainMap(b, n, false)
		if p.atOnce || !p.fillsLater(n) { // with atOnce the chains of the old verdicts are removed too
			drainMap(b, n, true)
		}
	}
	hooks, others := p.removals()
	flushAll(b, hooks)
	delAll(b, hooks)
	p.removeRest(b, others)
}

// removals returns the chains to remove: base chains, and others.
func (p *plan) removals() (hooks, others []*node) {
	for _, n := range p.remove {
		if n.base != nil {
			hooks = append(hooks, n)
		} else {
			others = append(others, n)
		}
	}
	return hooks, others
}

func flushAll(b *wire.Batch, nodes []*node) {
	for _, n := range nodes {
		if len(n.hashes) > 0 {
			flushChain(b, n)
		}
	}
}

func delAll(b *wire.Batch, nodes []*node) {
	for _, n := range nodes {
		delChain(b, n)
	}
}

// removeRest removes the chains that nothing refers to any more, and the objects that only they used.
func (p *plan) removeRest(b *wire.Batch, chains []*node) {
	flushAll(b, chains)
	for _, n := range p.dropMap {
		if !n.live {
			b.DelSet(p.f.Proto, n.mapName(), n)
		}
	}
	delAll(b, chains)
	for _, name := range p.strays {
		b.DelSet(p.f.Proto, name, nil)
	}
	for _, l := range p.lists {
		if l.present {
			b.DelSet(p.f.Proto, l.name, nil)
		}
	}
	for _, s := range p.sets {
		if s.present && (!s.effective() || s.typ != s.spec.Type) {
			b.DelSet(p.f.Proto, s.name, s)
		}
	}
}
