package policy

import (
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// resolver determines, after changes, which chains and sets are broken and which chains packets can reach. It processes only what has
// changed and what depends on it.
type resolver struct {
	f       *family
	queue   []*node
	queued  map[*node]struct{}
	fresh   []edge // new references
	looked  []*node
	flipped map[*node]struct{} // nodes whose live state must be determined again
}

type edge struct{ from, to *node }

// resolve updates the graph. It returns the nodes that may have to be programmed.
func (f *family) resolve() (affected map[*node]struct{}) {
	r := &resolver{f: f, queued: map[*node]struct{}{}, flipped: map[*node]struct{}{}}
	r.sets()
	for n := range f.dirtyNodes {
		r.enqueue(n)
	}
	for n := range f.brokenNodes {
		r.enqueue(n)
	}
	affected = map[*node]struct{}{}
	for len(r.queue) > 0 {
		queue := r.queue
		r.queue, r.looked = nil, r.looked[:0]
		for _, leads := range []bool{false, true} { // second, the chains that refer to others: whether their targets are idle is known then
			for _, n := range queue {
				if n.leads() == leads {
					delete(r.queued, n)
					affected[n] = struct{}{}
					r.analyze(n)
					r.looked = append(r.looked, n)
				}
			}
		}
		r.breakLoops()
		r.settle(affected)
		r.checkHooks(affected)
	}
	return affected
}

func (r *resolver) enqueue(n *node) {
	if _, ok := r.queued[n]; !ok {
		r.queued[n] = struct{}{}
		r.queue = append(r.queue, n)
	}
}

// sets determines which sets are broken; chains that name a set for which this has changed are processed again.
func (r *resolver) sets() {
	for s := range r.f.brokenSets {
		r.f.dirtySets[s] = struct{}{}
	}
	clear(r.f.brokenSets)
	for s := range r.f.dirtySets {
		was := s.broken
		s.broken = nil
		if s.wanted {
			s.broken = s.fault()
		}
		if s.broken != nil {
			r.f.brokenSets[s] = struct{}{}
		}
		rewritten := s.inline()
		remade := s.present && s.typ != s.spec.Type
		for u := range s.users {
			if !s.wanted || (was == nil) != (s.broken == nil) || u.broken != nil || remade || rewritten {
				r.enqueue(u)
				u.force = u.force || remade
			}
		}
	}
}

// analyze processes a node's content and its references.
func (r *resolver) analyze(n *node) {
	n.compiled, n.broken = nil, nil
	content := compiled{allowed: anyHook}
	if n.wanted {
		content = compile(n, n.rules)
		n.broken = wire.FirstError(n.kernelErr, content.err, n.impossible())
	}
	if n.broken != nil {
		r.relink(n, nil)
	} else {
		n.compiled = &content
		r.relink(n, content.targets)
	}
	n.recordReferences(&content)
	r.pick(n, content.allowed)
	r.note(n)
	if idle := n.hasNothing(&content); idle != n.idle {
		n.idle = idle
		for u := range n.users {
			r.enqueue(u)
		}
	}
}

// note updates the list of broken nodes.
func (r *resolver) note(n *node) {
	if n.why() != nil {
		r.f.brokenNodes[n] = struct{}{}
	} else {
		delete(r.f.brokenNodes, n)
	}
}

// hasNothing reports whether n has no effect on packets: it has no rules in the kernel, and only a change of its own rules can change that.
func (n *node) hasNothing(c *compiled) bool {
	return n.usable() && n.base == nil && n.fork == nil && n.broken == nil &&
		len(c.programs)+len(c.targets)+len(c.skipped) == 0 && c.allowed == anyHook
}

// leads reports whether rules refer to other chains.
func (n *node) leads() bool {
	for i := range n.rules {
		for _, a := range n.rules[i].Actions {
			if a.Verb == table.Jump || a.Verb == table.Goto {
				return true
			}
		}
	}
	return false
}

const maxChainName = 127

// impossible returns the reason why the kernel cannot have such a chain, nil if it can.
func (n *node) impossible() error {
	switch {
	case n.base != nil && n.base.num == noHook && len(n.rules) > 0:
		return fmt.Errorf("this layer does not have this hook")
	case n.name == "", len(n.mapName()) > maxChainName:
		return fmt.Errorf("a name of %d characters", len(n.name))
	}
	return nil
}

// recordReferences records what the rules name, so that n is processed again when a named object appears or disappears.
func (n *node) recordReferences(c *compiled) {
	if len(c.targets)+len(c.skipped)+len(n.mentions) > 0 {
		n.recordChains(c)
	}
	if len(c.sets)+len(n.uses) > 0 {
		n.recordSets(c)
	}
}

func (n *node) recordChains(c *compiled) {
	named := make(map[*node]struct{}, len(c.targets)+len(c.skipped))
	for _, list := range [][]*node{c.targets, c.skipped} {
		for _, m := range list {
			named[m] = struct{}{}
		}
	}
	for m := range n.mentions {
		if _, is := named[m]; !is {
			delete(n.mentions, m)
			m.unused(n)
		}
	}
	for m := range named {
		if _, ok := n.mentions[m]; !ok {
			n.mentions[m] = struct{}{}
			m.users[n]++
		}
	}
}

func (n *node) recordSets(c *compiled) {
	used := make(map[*set]struct{}, len(c.sets))
	for _, s := range c.sets {
		used[s] = struct{}{}
	}
	for s := range n.uses {
		if _, is := used[s]; !is {
			delete(n.uses, s)
			delete(s.users, n)
			s.Touch() // it may have no owner
		}
	}
	for s := range used {
		n.uses[s] = struct{}{}
		s.users[n] = struct{}{}
	}
}

// relink replaces the references by rules with those to targets, and processes a dispatch chain's changed interfaces.
func (r *resolver) relink(n *node, targets []*node) {
	var byRule map[*node]bool
	if len(targets) > 0 {
		byRule = make(map[*node]bool, len(targets))
	}
	for _, t := range targets {
		byRule[t] = true
	}
	for t := range byRule {
		if n.link(t, ruleWay) {
			r.fresh = append(r.fresh, edge{n, t})
			r.flipped[t] = struct{}{}
		}
	}
	for t := range n.byRule {
		if !byRule[t] && n.unlink(t, ruleWay) {
			r.flipped[t] = struct{}{}
		}
	}
	n.byRule = byRule
	r.flipped[n] = struct{}{}
	if n.fork != nil {
		r.relinkFork(n)
	}
}

// relinkFork processes the interfaces whose chain has changed, appeared or disappeared. Packets of interfaces without a chain are dropped.
func (r *resolver) relinkFork(n *node) {
	k := n.fork
	for iface := range k.changed {
		delete(k.missing, iface)
		name, ok := k.want[iface]
		if !ok {
			n.nameFor(iface, nil)
			r.lead(n, iface, nil)
			continue
		}
		target := n.f.node(n.layer, name)
		n.nameFor(iface, target)
		if !target.usable() || iface == "" || len(iface) > unix.IFNAMSIZ-1 {
			k.missing[iface] = struct{}{}
			r.lead(n, iface, nil)
			continue
		}
		r.lead(n, iface, target)
	}
}

func (r *resolver) lead(n *node, iface string, target *node) {
	was := n.fork.to[iface]
	if was == target {
		return
	}
	if target != nil && n.out[target] == 0 {
		r.fresh = append(r.fresh, edge{n, target})
	}
	n.lead(iface, target)
	for _, t := range []*node{was, target} {
		if t != nil {
			r.flipped[t] = struct{}{}
		}
	}
}

// References from one chain to another: by rules, which count once, and by interfaces.
const (
	ruleWay  = 1 << 30
	ifaceWay = 1
)

// lead makes an interface refer to target, nil for none.
func (n *node) lead(iface string, target *node) {
	if was := n.fork.to[iface]; was != nil {
		n.unlink(was, ifaceWay)
	}
	delete(n.fork.to, iface)
	if target != nil {
		n.fork.to[iface] = target
		n.link(target, ifaceWay)
	}
}

// link adds a reference from n to t; it returns true if it is the first.
func (n *node) link(t *node, way int) bool {
	if way == ruleWay && n.out[t]&ruleWay != 0 {
		return false
	}
	n.out[t] += way
	if n.out[t] > way {
		return false
	}
	t.in[n] = struct{}{}
	if n.live {
		t.refs++
	}
	return true
}

// unlink removes a reference from n to t; it returns true if it was the last.
func (n *node) unlink(t *node, way int) bool {
	if way == ruleWay && n.out[t]&ruleWay == 0 {
		return false
	}
	n.out[t] -= way
	if n.out[t] > 0 {
		return false
	}
	delete(n.out, t)
	delete(t.in, n)
	if n.live {
		t.refs--
	}
	return true
}

// settle determines which chains packets can reach, as far as that may have changed.
func (r *resolver) settle(affected map[*node]struct{}) {
	for len(r.flipped) > 0 {
		for n := range r.flipped {
			delete(r.flipped, n)
			live := n.refs > 0 || n.base != nil && n.usable() && len(n.rules) > 0
			if live == n.live {
				continue
			}
			n.live = live
			affected[n] = struct{}{}
			if live && n.compiled == nil && n.broken == nil {
				r.enqueue(n)
			}
			for t := range n.out {
				if live {
					t.refs++
				} else {
					t.refs--
				}
				r.flipped[t] = struct{}{}
			}
		}
	}
}
