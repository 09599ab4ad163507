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

// collectReferences collects what the values of the plan, and those that wait for a retry, refer to. Values that are as desired refer to nothing that is
// deleted, so they are left out. It is called when all creates and updates have ended.
func (x *execution) collectReferences() {
	x.refs = references{}
	collect := func(n *node) {
		if n.kind == nil || n.kind.calls.refs == nil || n.applied == nil || n.kind.same(n.desired, n.applied) {
			return
		}
		n.kind.calls.refs(n.key, n.applied, func(ref string) { x.refs[ref] = append(x.refs[ref], n) })
	}
	for _, n := range x.s.plan.nodes {
		collect(n)
	}
	for _, e := range x.s.retries {
		if !x.s.plan.in(e.n) {
			collect(e.n)
		}
	}
}
