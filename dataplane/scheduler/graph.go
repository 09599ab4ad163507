package scheduler

import (
	"contiv.dev/vswitch/dataplane/txn"
)

// node is one value: a northbound value, an item that a parent derives, or (kind == nil) only a name that other values wait for.
type node struct {
	key     string
	kind    *kind
	desired any // nil: not desired
	applied any // nil: absent, as far as the scheduler has seen
	err     error

	edges []edge // to the values that it depends on
	rdeps []rdep // from the values that depend on it
	users int32  // number of rdeps whose applied value uses this one

	state   State
	flags   nodeFlags
	kindPos int32
	retry   *retry

	marks marks
	p     scratch
}

type nodeFlags uint8

const (
	// flagUnknown: the outcome of the last operation is unknown; applied is the value that may be present.
	flagUnknown nodeFlags = 1 << iota
	// flagRemake: the applied value must be deleted and created again. Either its presence is unknown and its kind has no dump, or a
	// transaction requests it.
	flagRemake
	// flagInvalid: the last value put was rejected; desired is the previous value, if any.
	flagInvalid
)

// marks record in which batch, transaction or dump a node was last seen, so that no sets are needed.
type marks struct {
	batch  uint32 // touched
	stamp  uint32 // a dependency of the value being linked
	item   uint32 // emitted by the derivation in progress
	txn    uint32 // put by the transaction
	txnPos int32  // its index in the transaction
	dump   uint32 // seen by the dump
}

// edge is a dependency. An edge is kept as long as the desired or the applied value needs it.
type edge struct {
	to   *node
	pos  int32 // in to.rdeps
	bits edgeBits
}

type edgeBits uint8

const (
	edgeWant   edgeBits = 1 << iota // of the desired value
	edgeHave                        // of the applied value
	edgeParent                      // to the value that derives this one
)

// rdep is the reverse of n.edges[idx].
type rdep struct {
	n   *node
	idx int32
}

func (r rdep) edge() *edge { return &r.n.edges[r.idx] }

// unknown reports whether the state of the node is unknown: no operation on it is allowed before its kind has been dumped.
func (n *node) unknown() bool { return n.flags&flagUnknown != 0 || n.kind != nil && n.kind.stale }

// present reports whether others may depend on the node: it is applied, will not be created again, and its state is known.
func (n *node) present() bool { return n.applied != nil && n.flags&flagRemake == 0 && !n.unknown() }

// usable reports whether others may be created on top of the node: it is present and will stay.
func (n *node) usable() bool { return n.present() && (n.desired != nil || n.flags&flagInvalid != 0) }

// parent returns the value that derives the node, or nil.
func (n *node) parent() *node {
	for i := range n.edges {
		if n.edges[i].bits&edgeParent != 0 {
			return n.edges[i].to
		}
	}
	return nil
}

// settled reports whether the applied value is equivalent to the desired one. Both must exist.
func (n *node) settled() bool {
	return n.kind.same(n.desired, n.applied) || n.kind.calls.equal(n.key, n.desired, n.applied)
}

// graph holds all values. It changes desired values and links; the planner decides on the operations.
type graph struct {
	reg     *registry
	nodes   map[string]*node
	touched []*node // nodes whose desired or applied value may have changed in this batch

	// referrers has the values with Refs whose applied value may still refer to something that no desired value refers to: their last operation
	// failed or was skipped, their last value was rejected, or their kind could not be dumped.
	referrers map[*node]struct{}

	batch, stamp, items, dumps uint32 // see marks

	depBuf []string
	addDep func(dep string)

	parent   *node          // the value whose items are being derived
	problems []txn.KeyError // of items
	dry      bool           // a dry run: all changes will be reverted
	undo     []undoApplied  // the values that a dry run replaced by dumped ones
	put      func(kind, key string, item any)
	drop     func(key string)
	dropRest func(kind, key string, item any)
}

func newGraph(reg *registry) *graph {
	g := &graph{reg: reg, nodes: map[string]*node{}, referrers: map[*node]struct{}{}}
	g.addDep = func(dep string) { g.depBuf = append(g.depBuf, dep) }
	g.put = g.putItem
	g.drop = g.dropItem
	g.dropRest = g.dropStaleItem
	return g
}

// begin starts a batch.
func (g *graph) begin() {
	g.batch++
	clear(g.touched)
	g.touched = g.touched[:0]
	g.problems = g.problems[:0]
}

func (g *graph) touch(n *node) {
	if n.marks.batch != g.batch {
		n.marks.batch = g.batch
		g.touched = append(g.touched, n)
	}
}

func (g *graph) touchAll() {
	for _, k := range g.reg.kinds {
		for _, n := range k.nodes {
			g.touch(n)
		}
	}
}

// name returns the node of key. If there is none, it adds one without a kind.
func (g *graph) name(key string) *node {
	if n := g.nodes[key]; n != nil {
		return n
	}
	return g.add(key)
}

// add adds the node of a key that has none.
func (g *graph) add(key string) *node {
	n := &node{key: key}
	g.nodes[key] = n
	return n
}

// obtain returns the node of a value and adds it if there is none. The node may be of another kind than k.
func (g *graph) obtain(key string, k *kind) *node {
	n := g.name(key)
	if n.kind == nil {
		g.classify(n, k)
	}
	return n
}

// classify sets the kind of a node that was only a name.
func (g *graph) classify(n *node, k *kind) {
	n.kind = k
	n.kindPos = int32(len(k.nodes))
	k.nodes = append(k.nodes, n)
}

// collect removes the node if nothing needs it any more.
func (g *graph) collect(n *node) {
	if n.kind == nil || n.desired != nil || n.applied != nil || n.retry != nil || n.flags&(flagInvalid|flagUnknown) != 0 {
		return
	}
	for i := len(n.edges) - 1; i >= 0; i-- {
		g.unlink(n, i)
	}
	k := n.kind
	if k.calls.refs != nil {
		delete(g.referrers, n)
	}
	last := len(k.nodes) - 1
	k.nodes[n.kindPos] = k.nodes[last]
	k.nodes[n.kindPos].kindPos = n.kindPos
	k.nodes[last] = nil
	k.nodes = k.nodes[:last]
	n.kind, n.err, n.state, n.flags = nil, nil, Nonexistent, 0
	g.collectName(n)
}

func (g *graph) collectName(n *node) {
	if n.kind == nil && len(n.rdeps) == 0 && g.nodes[n.key] == n {
		delete(g.nodes, n.key)
	}
}

// setDesired sets the desired value of n, its dependencies and its items. v must be valid; nil means not desired.
func (g *graph) setDesired(n *node, v any) {
	from := n.desired
	n.flags &^= flagInvalid
	if !g.dry {
		n.retry = nil
	}
	if v == nil {
		n.desired = nil
		g.unwant(n)
		g.touch(n)
		return
	}
	if from != nil && n.kind.same(from, v) {
		if n.state != Configured {
			g.touch(n)
		}
		return
	}
	n.desired = v
	g.relink(n, v, edgeWant)
	g.touch(n)
	if n.kind.calls.derive != nil {
		g.derive(n, from, v)
		if from == nil && n.applied != nil {
			g.touchItems(n)
		}
	}
}

// touchItems touches the applied items of n. n could not be deleted before and is desired again: items that should have been removed together
// with it and are still not desired must be deleted separately.
func (g *graph) touchItems(n *node) {
	for _, r := range n.rdeps {
		if r.edge().bits&(edgeParent|edgeHave) == edgeParent|edgeHave {
			g.touch(r.n)
		}
	}
}

// unwant drops the items of n and the dependencies of its desired value. Items are dropped from the end, because unlinking moves the last
// entry, which was already visited, to the place of the removed one.
func (g *graph) unwant(n *node) {
	if n.kind.calls.derive != nil {
		for i := len(n.rdeps) - 1; i >= 0; i-- {
			if i >= len(n.rdeps) {
				continue
			}
			if r := n.rdeps[i]; r.edge().bits&(edgeParent|edgeWant) == edgeParent|edgeWant {
				g.setDesired(r.n, nil)
			}
		}
	}
	for i := len(n.edges) - 1; i >= 0; i-- {
		g.clearBits(n, i, edgeWant)
	}
}

// reject marks the value put for n as invalid. The previous value stays.
func (g *graph) reject(n *node, err error) {
	n.flags |= flagInvalid
	n.err = err
	n.state = Invalid
	n.retry = nil
	g.mayRefer(n)
	g.touch(n)
}

// mayRefer records that n may refer to something that it should no longer refer to.
func (g *graph) mayRefer(n *node) {
	if n.kind != nil && n.kind.calls.refs != nil {
		g.referrers[n] = struct{}{}
	}
}
