package policy

import (
	"errors"
	"fmt"
	"slices"
)

var errLoop = errors.New("it is part of a loop of jumps, which the kernel does not allow")

// breakLoops looks for references that have closed a loop. A loop contains a new reference, so only chains that new references lead to are
// searched.
func (r *resolver) breakLoops() {
	state := map[*node]int{}
	var path []*node
	var visit func(n *node) *node
	visit = func(n *node) *node {
		state[n] = walking
		path = append(path, n)
		for t := range n.out {
			if state[t] == walking {
				return t
			}
			if state[t] == unseen {
				if loop := visit(t); loop != nil {
					return loop
				}
			}
		}
		path = path[:len(path)-1]
		state[n] = seen
		return nil
	}
	for i := 0; i < len(r.fresh); i++ {
		if state[r.fresh[i].to] != unseen {
			continue
		}
		if start := visit(r.fresh[i].to); start != nil {
			r.breakOne(path[slices.Index(path, start):])
			clear(state)
			path = nil
			i = -1 // start again without the broken chain
		}
	}
	r.fresh = r.fresh[:0]
}

const (
	unseen = iota
	walking
	seen
)

// breakOne marks one chain of a loop as broken: the first by name of those that have changed.
func (r *resolver) breakOne(loop []*node) {
	var culprit *node
	for _, n := range loop {
		if slices.Contains(r.looked, n) && (culprit == nil || n.chain < culprit.chain) {
			culprit = n
		}
	}
	if culprit == nil {
		culprit = loop[0]
	}
	r.fault(culprit, errLoop)
}

// fault marks a node as broken after its analysis.
func (r *resolver) fault(n *node, err error) {
	n.broken, n.compiled = err, nil
	r.relink(n, nil)
	if n.fork != nil {
		for iface := range n.fork.want {
			r.lead(n, iface, nil)
			n.fork.changed[iface] = struct{}{}
		}
	}
	r.note(n)
}

// checkHooks marks chains as broken if packets reach them from hooks at which the kernel does not allow their rules. A chain that packets
// reach only through another such chain is not affected once that one is broken, so the result does not depend on the order.
func (r *resolver) checkHooks(affected map[*node]struct{}) {
	for {
		wrong := map[*node]*node{} // → the hook from which packets must not come
		for n := range r.f.picky {
			if from := n.wrongHook(nil); n.live && n.broken == nil && from != nil {
				wrong[n] = from
			}
		}
		if len(wrong) == 0 {
			return
		}
		for n := range wrong {
			if from := n.wrongHook(wrong); from != nil {
				err := fmt.Errorf("packets come here from %s, a hook at which the kernel does not allow the actions of these rules", from.Key())
				r.fault(n, err)
				affected[n] = struct{}{}
			}
		}
		r.settle(affected)
	}
}

// pick records the hooks from which a node's rules allow packets, if there are others in its layer.
func (r *resolver) pick(n *node, allowed hooks) {
	n.allowed = allowed
	if n.wanted && layerHooks(n.layer)&^allowed != 0 {
		r.f.picky[n] = struct{}{}
	} else {
		delete(r.f.picky, n)
	}
}

// wrongHook returns a hook from which packets reach n although its rules do not allow that, on a path that avoids the nodes in without; nil
// if there is none.
func (n *node) wrongHook(without map[*node]*node) *node {
	seen := map[*node]bool{n: true}
	for list := []*node{n}; len(list) > 0; {
		at := list[len(list)-1]
		list = list[:len(list)-1]
		if at.base != nil && n.allowed&(1<<at.base.hook) == 0 {
			return at
		}
		for up := range at.in {
			if _, avoid := without[up]; up.live && !seen[up] && !avoid {
				seen[up] = true
				list = append(list, up)
			}
		}
	}
	return nil
}
