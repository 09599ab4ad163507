package scheduler

// references holds values by the keys that their applied values refer to (Descriptor.Refs).
type references map[string][]*node

// referrer returns a value that still refers to n, or to a value that is deleted together with n, such as the set of a member. It returns nil unless
// n is deleted last.
func (x *execution) referrer(n *node) *node {
	if n.p.flags&planLast == 0 {
		return nil
	}
	if x.refs == nil {
		x.collectReferences()
	}
	if len(x.refs) == 0 {
		return nil
	}
	if m := x.refs.to(n.key); m != nil {
		return m
	}
	for i := range n.edges {
		if d := n.edges[i].to; n.edges[i].bits&edgeHave != 0 && x.s.plan.has(d, planLast) {
			if m := x.refs.to(d.key); m != nil {
				return m
			}
		}
	}
	return nil
}

// to returns a value that is present and refers to a key, or nil.
func (r references) to(key string) *node {
	for _, n := range r[key] {
		if n.applied != nil {
			return n
		}
	}
	return nil
}

// collectReferences collects what the values of the plan, and the referrers outside of the plan, refer to. All other values are as desired and refer to
// nothing that is deleted. It is called when all creates and updates have ended.
func (x *execution) collectReferences() {
	x.refs = references{}
	collect := func(n *node) {
		n.kind.calls.refs(n.key, n.applied, func(ref string) { x.refs[ref] = append(x.refs[ref], n) })
	}
	for _, n := range x.s.plan.nodes {
		if n.kind != nil && n.kind.calls.refs != nil && n.outdated() {
			collect(n)
		}
	}
	for n := range x.s.graph.referrers {
		switch {
		case x.s.plan.in(n):
		case n.outdated():
			collect(n)
		default:
			delete(x.s.graph.referrers, n)
		}
	}
}

// outdated reports whether the applied value of n is not, or may not be, the one that the last transaction requested.
func (n *node) outdated() bool {
	return n.applied != nil && (n.flags&flagInvalid != 0 || !n.kind.same(n.desired, n.applied))
}
