package routetable

import (
	"slices"
)

// neighbour is a static neighbour that routes use, or one of ours in the kernel.
type neighbour struct {
	key    neighKey
	users  []neighUse // by destination; the MAC of the first one is used
	actual mac        // MAC in the kernel, if there
	there  bool
}

type neighUse struct {
	e   *entry
	mac mac
}

// settleGoals computes the goals of destinations whose claims or links have changed.
func (t *Table) settleGoals() {
	for _, e := range t.changed {
		t.setGoal(e)
		if e.differs() {
			t.markTodo(e)
		}
	}
}

// tidyChanged clears the list of changed entries. Unwanted entries are kept until a pending listing is done: they may have been written
// although the answer was lost.
func (t *Table) tidyChanged() {
	for _, e := range t.changed {
		e.changed = false
		t.dropIfIdle(e)
	}
	clear(t.changed)
	t.changed = t.changed[:0]
}

func (t *Table) setGoal(e *entry) {
	e.waitFor = e.waitFor[:0]
	for i := range e.claims {
		c := &e.claims[i]
		index := 0
		if c.iface != "" {
			l := t.links[c.iface]
			if !l.up {
				if l.index > 0 {
					e.waitFor = append(e.waitFor, l.index)
				}
				continue
			}
			index = l.index
		}
		e.wanted, e.goalVia = true, c.iface
		e.goal = route{
			dst: e.dst, typ: c.typ, protocol: t.protocol, metric: t.metric(),
			index: index, gw: c.gw, onLink: c.onLink, src: c.src, mtu: c.mtu,
		}
		var key neighKey
		if c.hasMAC {
			key = neighKey{index, c.neighbour()}
		}
		t.useNeighbour(e, key, c.mac)
		return
	}
	e.wanted = false
	if !slices.Contains(e.waitFor, e.neigh.index) {
		t.useNeighbour(e, neighKey{}, mac{})
	}
}

// useNeighbour replaces the neighbour that an entry uses; a zero key means none.
func (t *Table) useNeighbour(e *entry, key neighKey, m mac) {
	isThis := func(u neighUse) bool { return u.e == e }
	if old := t.neighs[e.neigh]; old != nil {
		at := slices.IndexFunc(old.users, isThis)
		if e.neigh == key && at >= 0 && old.users[at].mac == m {
			return
		}
		if at >= 0 {
			old.users = slices.Delete(old.users, at, at+1)
		}
		t.neighDo[old.key] = old
	}
	e.neigh = key
	if key == (neighKey{}) {
		return
	}
	n := t.neighbourOf(key)
	at, _ := slices.BinarySearchFunc(n.users, e, func(u neighUse, e *entry) int {
		if c := u.e.dst.Addr().Compare(e.dst.Addr()); c != 0 {
			return c
		}
		return u.e.dst.Bits() - e.dst.Bits()
	})
	n.users = slices.Insert(n.users, at, neighUse{e, m})
	t.neighDo[key] = n
}

func (t *Table) neighbourOf(key neighKey) *neighbour {
	n := t.neighs[key]
	if n == nil {
		n = &neighbour{key: key}
		t.neighs[key] = n
	}
	return n
}

// differs reports whether the kernel must be changed.
func (n *neighbour) differs() bool {
	if len(n.users) == 0 {
		return n.there
	}
	return !n.there || n.actual != n.users[0].mac
}

func (t *Table) dropIfIdle(e *entry) {
	if e.idle() {
		delete(t.entries, e.dst)
	}
}
