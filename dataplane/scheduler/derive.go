package scheduler

import (
	"fmt"

	"contiv.dev/vswitch/dataplane/txn"
)

// derive replaces the items of n that value from derives by those that value to derives.
func (g *graph) derive(n *node, from, to any) {
	outer, stamp := g.parent, g.stampItems()
	g.parent = n
	c := &n.kind.calls
	switch {
	case from == nil:
		c.derive(n.key, to, g.put)
	case c.deriveDiff != nil:
		c.deriveDiff(n.key, from, to, g.put, g.drop)
	default:
		c.derive(n.key, to, g.put)
		c.derive(n.key, from, g.dropRest)
	}
	g.parent, g.items = outer, stamp
}

// stampItems starts to mark emitted items. Derivations nest: the caller must restore the returned number of the outer one.
func (g *graph) stampItems() (outer uint32) {
	outer = g.items
	g.stamp++
	g.items = g.stamp
	return outer
}

func (g *graph) putItem(kindName, key string, item any) {
	k := g.reg.byName[kindName]
	if k == nil || k.prefix != "" {
		g.problem(key, fmt.Errorf("%s derives an item of kind %q, which is not a derived kind", g.parent.key, kindName))
		return
	}
	n := g.obtain(key, k)
	if n.kind != k || n == g.parent {
		g.problem(key, fmt.Errorf("%s derives an item of kind %s, but the key is one of kind %s", g.parent.key, kindName,
			n.kind.name))
		return
	}
	if err := k.calls.validate(key, item); err != nil {
		g.problem(key, err)
		if g.dry {
			g.touch(n)
			return
		}
		g.adopt(n)
		g.reject(n, err)
		return
	}
	g.adopt(n)
	n.marks.item = g.items
	g.setDesired(n, item)
}

func (g *graph) problem(key string, err error) {
	g.problems = append(g.problems, txn.KeyError{Key: key, Err: err})
}

// adopt makes n an item of the value that is being derived. If n is, or was, an item of another value, it moves.
func (g *graph) adopt(n *node) {
	for i := range n.edges {
		e := &n.edges[i]
		if e.bits&edgeParent == 0 {
			continue
		}
		if e.to == g.parent {
			e.bits |= edgeWant
			return
		}
		e.bits &^= edgeParent
		g.clearBits(n, i, edgeWant)
		if n.desired != nil { // the previous parent may also be an explicit dependency
			g.relink(n, n.desired, edgeWant)
		}
		break
	}
	g.link(n, g.parent, edgeParent|edgeWant)
}

func (g *graph) dropItem(key string) {
	if n := g.nodes[key]; n != nil && n.kind != nil && n.parent() == g.parent {
		g.setDesired(n, nil)
	}
}

func (g *graph) dropStaleItem(_, key string, _ any) {
	if n := g.nodes[key]; n != nil && n.marks.item != g.items {
		g.dropItem(key)
	}
}
