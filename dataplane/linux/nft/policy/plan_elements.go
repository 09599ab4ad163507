package policy

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// fillSet adds the messages that create a set or change it.
func fillSet(b *wire.Batch, s *set) {
	switch {
	case !s.present || s.typ != s.spec.Type:
		newSet(b, s)
		addAll(b, s)
	case s.refill:
		flushSet(b, s)
		addAll(b, s)
	default:
		del := b.Elements(s.f.Proto, unix.NFT_MSG_DELSETELEM, s.name, s)
		for m, lacks := range s.ops {
			if !lacks {
				addMember(del, s, m)
			}
		}
		del.Close()
		add := b.Elements(s.f.Proto, unix.NFT_MSG_NEWSETELEM, s.name, s)
		for m, lacks := range s.ops {
			if lacks {
				addMember(add, s, m)
			}
		}
		add.Close()
	}
}

func addAll(b *wire.Batch, s *set) {
	add := b.Elements(s.f.Proto, unix.NFT_MSG_NEWSETELEM, s.name, s)
	s.eachElement(func(m table.Member) { addMember(add, s, m) })
	add.Close()
}

// drainMap removes interfaces from the map: with changes, those whose verdict changes; otherwise, those that are no longer desired.
func drainMap(b *wire.Batch, n *node, changes bool) {
	if n.elems == nil {
		return
	}
	e := b.Elements(n.f.Proto, unix.NFT_MSG_DELSETELEM, n.mapName(), n)
	for iface := range n.fork.changed {
		want, ok := n.verdictOf(iface)
		if have, there := (*n.elems)[iface]; there && ok == changes && (!ok || want != have) {
			addIface(e, iface)
		}
	}
	e.Close()
}

// fillMap creates a dispatch chain's map, or adds new elements to it.
func fillMap(b *wire.Batch, n *node) {
	if n.elems == nil {
		newMap(b, n)
	}
	e := b.Elements(n.f.Proto, unix.NFT_MSG_NEWSETELEM, n.mapName(), n)
	n.eachNew(func(iface, chain string) { addVerdict(e, iface, chain) })
	e.Close()
}

// eachNew calls f for the interfaces that the kernel's map lacks, or has with another verdict.
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
