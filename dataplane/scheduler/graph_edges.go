package scheduler

import (
	"slices"
)

// relink makes the dependencies of v the edges of n with the given bit. The edge to the parent stays unchanged.
func (g *graph) relink(n *node, v any, bit edgeBits) {
	g.listDeps(n, v)
	if g.linked(n, bit) {
		return
	}
	g.stamp++
	stamp := g.stamp
	if n.edges == nil {
		n.edges = make([]edge, 0, len(g.depBuf))
	}
	for _, dep := range g.depBuf {
		d := g.name(dep)
		if d.marks.stamp != stamp {
			d.marks.stamp = stamp
			g.link(n, d, bit)
		}
	}
	for i := len(n.edges) - 1; i >= 0; i-- {
		if e := &n.edges[i]; e.to.marks.stamp != stamp && e.bits&edgeParent == 0 {
			g.clearBits(n, i, bit)
		}
	}
}

// listDeps fills depBuf with the dependencies of v, except its parent.
func (g *graph) listDeps(n *node, v any) {
	g.depBuf = g.depBuf[:0]
	if n.kind.calls.deps == nil {
		return
	}
	n.kind.calls.deps(n.key, v, g.addDep)
	if p := n.parent(); p != nil {
		g.depBuf = slices.DeleteFunc(g.depBuf, func(dep string) bool { return dep == p.key })
	}
}

// linked reports whether depBuf names exactly the edges with the given bit, in the same order: the usual case of a changed value.
func (g *graph) linked(n *node, bit edgeBits) bool {
	j := 0
	for i := range n.edges {
		e := &n.edges[i]
		if e.bits&bit == 0 || e.bits&edgeParent != 0 {
			continue
		}
		if j == len(g.depBuf) || g.depBuf[j] != e.to.key {
			return false
		}
		j++
	}
	return j == len(g.depBuf)
}

// link adds bits to the edge from n to d.
func (g *graph) link(n, d *node, bits edgeBits) {
	for i := range n.edges {
		if n.edges[i].to == d {
			g.setBits(&n.edges[i], bits)
			return
		}
	}
	n.edges = append(n.edges, edge{to: d, pos: int32(len(d.rdeps))})
	d.rdeps = append(d.rdeps, rdep{n: n, idx: int32(len(n.edges) - 1)})
	g.setBits(&n.edges[len(n.edges)-1], bits)
}

func (g *graph) setBits(e *edge, bits edgeBits) {
	if bits&edgeHave != 0 && e.bits&edgeHave == 0 {
		e.to.users++
	}
	e.bits |= bits
}

// clearBits removes bits from edge i of n, and removes the edge if nothing needs it afterwards. Edges after i keep their index or move to index
// i.
func (g *graph) clearBits(n *node, i int, bits edgeBits) {
	e := &n.edges[i]
	if bits&edgeHave != 0 && e.bits&edgeHave != 0 {
		e.to.users--
	}
	e.bits &^= bits
	if e.bits&(edgeWant|edgeHave) == 0 {
		g.unlink(n, i)
	}
}

// unlink removes edge i of n.
func (g *graph) unlink(n *node, i int) {
	e := n.edges[i]
	d := e.to
	last := len(d.rdeps) - 1
	moved := d.rdeps[last]
	d.rdeps[e.pos] = moved
	moved.edge().pos = e.pos
	d.rdeps[last] = rdep{}
	d.rdeps = d.rdeps[:last]

	last = len(n.edges) - 1
	if i != last {
		n.edges[i] = n.edges[last]
		r := &n.edges[i]
		r.to.rdeps[r.pos].idx = int32(i)
	}
	n.edges[last] = edge{}
	n.edges = n.edges[:last]
	g.collectName(d)
}

// setApplied makes the desired value of n the applied one.
func (g *graph) setApplied(n *node) {
	n.applied = n.desired
	for i := len(n.edges) - 1; i >= 0; i-- {
		if n.edges[i].bits&edgeWant != 0 {
			g.setBits(&n.edges[i], edgeHave)
		} else {
			g.clearBits(n, i, edgeHave)
		}
	}
}

// setAbsent removes the applied value of n and the dependencies of that value.
func (g *graph) setAbsent(n *node) {
	n.applied = nil
	n.flags &^= flagUnknown | flagRemake
	for i := len(n.edges) - 1; i >= 0; i-- {
		g.clearBits(n, i, edgeHave)
	}
}

// hold makes n keep the dependencies of both of its values, since one of the two is present but it is unknown which.
func (g *graph) hold(n *node) {
	for i := range n.edges {
		g.setBits(&n.edges[i], edgeHave)
	}
}
