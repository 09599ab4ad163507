package nft

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// fillSet makes a set or changes it.
func (b *batch) fillSet(s *set) {
	switch {
	case !s.present || s.typ != s.spec.Type:
		b.newSet(s)
		b.addAll(s)
	case s.refill:
		b.flushSet(s)
		b.addAll(s)
	default:
		del := b.elements(s.f, unix.NFT_MSG_DELSETELEM, s.name, s)
		for m, lacks := range s.ops {
			if !lacks {
				del.member(s, m)
			}
		}
		del.close()
		add := b.elements(s.f, unix.NFT_MSG_NEWSETELEM, s.name, s)
		for m, lacks := range s.ops {
			if lacks {
				add.member(s, m)
			}
		}
		add.close()
	}
}

func (b *batch) addAll(s *set) {
	add := b.elements(s.f, unix.NFT_MSG_NEWSETELEM, s.name, s)
	s.eachElement(func(m table.Member) { add.member(s, m) })
	add.close()
}

// drainMap removes the interfaces that go or whose verdict changes.
func (b *batch) drainMap(n *node) {
	if n.elems == nil {
		return
	}
	e := b.elements(n.f, unix.NFT_MSG_DELSETELEM, n.mapName(), n)
	for iface := range n.fork.changed {
		want, ok := n.verdictOf(iface)
		if have, there := (*n.elems)[iface]; there && (!ok || want != have) {
			e.ifaceOnly(iface)
		}
	}
	e.close()
}

// fillMap makes a dispatch chain's map or adds what is new.
func (b *batch) fillMap(n *node) {
	if n.elems == nil {
		b.newMap(n)
	}
	e := b.elements(n.f, unix.NFT_MSG_NEWSETELEM, n.mapName(), n)
	n.eachNew(func(iface, chain string) { e.verdictFor(iface, chain) })
	e.close()
}

// eachNew calls f for the interfaces that the kernel's map does not have, or not so.
func (n *node) eachNew(f func(iface, chain string)) {
	if n.elems == nil {
		for iface := range n.fork.want {
			if chain, ok := n.verdictOf(iface); ok {
				f(iface, chain)
			}
		}
		return
	}
	for iface := range n.fork.changed {
		want, ok := n.verdictOf(iface)
		if have, there := (*n.elems)[iface]; ok && (!there || want != have) {
			f(iface, want)
		}
	}
}
