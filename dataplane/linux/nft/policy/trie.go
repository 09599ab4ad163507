package policy

import "net/netip"

// netTrie holds prefixes of one family and finds those that no other one covers: the elements of an interval set, which must not overlap.
// Of two prefixes either one contains the other or they are disjoint, so an element is always one of the members.
type netTrie struct {
	root *trieNode
	size int
}

// trieNode is a prefix that is a member, or one at which two branches separate.
type trieNode struct {
	net    netip.Prefix
	member bool
	child  [2]*trieNode
}

// bit returns the i-th bit of an address.
func bit(a netip.Addr, i int) int {
	if a.Is4() {
		b := a.As4()
		return int(b[i/8]>>(7-i%8)) & 1
	}
	b := a.As16()
	return int(b[i/8]>>(7-i%8)) & 1
}

// common returns the longest prefix that covers both.
func common(a, b netip.Prefix) netip.Prefix {
	n, limit := 0, min(a.Bits(), b.Bits())
	x, y := a.Addr().As16(), b.Addr().As16()
	skip := 128 - a.Addr().BitLen()
	for n < limit && (x[(skip+n)/8]^y[(skip+n)/8])&(0x80>>((skip+n)%8)) == 0 {
		n++
	}
	return netip.PrefixFrom(a.Addr(), n).Masked()
}

// covers reports whether a contains b or is equal to it.
func covers(a, b netip.Prefix) bool { return a.Bits() <= b.Bits() && a.Contains(b.Addr()) }

// insert adds a prefix, which must be masked. covered is true if another member contains it. added is false if it was already a member.
func (t *netTrie) insert(p netip.Prefix) (added, covered bool) {
	at := &t.root
	for *at != nil {
		n := *at
		if n.net == p {
			added = !n.member
			n.member = true
			if added {
				t.size++
			}
			return added, covered
		}
		if covers(n.net, p) {
			covered = covered || n.member
			at = &n.child[bit(p.Addr(), n.net.Bits())]
			continue
		}
		fork := &trieNode{net: common(n.net, p)}
		fork.child[bit(n.net.Addr(), fork.net.Bits())] = n
		*at = fork
		if fork.net == p {
			fork.member = true
			t.size++
			return true, covered
		}
		at = &fork.child[bit(p.Addr(), fork.net.Bits())]
	}
	*at = &trieNode{net: p, member: true}
	t.size++
	return true, covered
}

// remove removes a prefix. covered is true if another member contains it. removed is false if it was not a member.
func (t *netTrie) remove(p netip.Prefix) (removed, covered bool) {
	at, parent := &t.root, (**trieNode)(nil)
	for *at != nil && (*at).net != p && covers((*at).net, p) {
		covered = covered || (*at).member
		parent, at = at, &(*at).child[bit(p.Addr(), (*at).net.Bits())]
	}
	if *at == nil || (*at).net != p || !(*at).member {
		return false, covered
	}
	t.size--
	(*at).member = false
	contract(at)
	if parent != nil {
		contract(parent)
	}
	return true, covered
}

// contract removes a node that is neither a member nor a fork.
func contract(at **trieNode) {
	n := *at
	switch {
	case n.member, n.child[0] != nil && n.child[1] != nil:
	case n.child[0] != nil:
		*at = n.child[0]
	default:
		*at = n.child[1]
	}
}

// inside calls f for the members that p contains and that no other member inside p contains; p itself is excluded.
func (t *netTrie) inside(p netip.Prefix, f func(netip.Prefix)) {
	n := t.root
	for n != nil && n.net != p && covers(n.net, p) {
		n = n.child[bit(p.Addr(), n.net.Bits())]
	}
	if n == nil || !covers(p, n.net) {
		return
	}
	if n.net == p {
		n.child[0].outermost(f)
		n.child[1].outermost(f)
		return
	}
	n.outermost(f)
}

// outermost calls f for the members below n that no other member below n contains.
func (n *trieNode) outermost(f func(netip.Prefix)) {
	switch {
	case n == nil:
	case n.member:
		f(n.net)
	default:
		n.child[0].outermost(f)
		n.child[1].outermost(f)
	}
}

// each calls f for all members.
func (n *trieNode) each(f func(netip.Prefix)) {
	if n == nil {
		return
	}
	if n.member {
		f(n.net)
	}
	n.child[0].each(f)
	n.child[1].each(f)
}
