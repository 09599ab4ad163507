package nft

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// load reads what the kernel has and notes where it differs from what we thought.
func (b *Backend) load() (err error) {
	for _, f := range b.families {
		err = cmpErr(err, f.load(lister{b.cmd, b.table, f.proto}))
	}
	return err
}

// load notes what the kernel has in the family's table.
func (f *family) load(l lister) error {
	present, flags, err := l.tableFlags()
	if err != nil {
		return err
	}
	a := &auditor{f: f, l: l, was: map[*node]kernelChain{}, wasSet: map[*set]kernelSet{}}
	a.remember()
	f.forget()
	f.present, f.rebuild = present, present && flags != 0
	if present {
		for _, read := range []func() error{a.chains, a.rules, a.sets} {
			if err := read(); err != nil {
				return err
			}
		}
	}
	a.compare()
	return nil
}

// auditor reads a family's table and finds what is not as it was thought to be.
type auditor struct {
	f      *family
	l      lister
	was    map[*node]kernelChain
	wasSet map[*set]kernelSet
}

type kernelChain struct {
	present bool
	hashes  []ruleHash
	elems   *kernelElems
}

type kernelSet struct {
	present bool
	typ     table.SetType
}

func (a *auditor) remember() {
	for _, n := range a.f.nodes {
		if n.present || n.elems != nil {
			a.was[n] = kernelChain{n.present, n.hashes, n.elems}
		}
	}
	for _, s := range a.f.sets {
		if s.present {
			a.wasSet[s] = kernelSet{s.present, s.typ}
		}
	}
}

// compare makes what is not as it was thought to be looked at.
func (a *auditor) compare() {
	for _, n := range a.f.nodes {
		was := a.was[n]
		same := n.present == was.present && slices.Equal(n.hashes, was.hashes) && (n.elems == nil) == (was.elems == nil)
		if !same || a.f.rebuild {
			n.touch()
		}
		a.compareMap(n)
	}
	for _, l := range a.f.lists {
		if l.present != (l.users > 0) || a.f.rebuild {
			a.f.dirtyLists[l] = struct{}{}
		}
	}
	for _, s := range a.f.sets {
		was := a.wasSet[s]
		if s.present != was.present || s.typ != was.typ || s.needsWrite() || a.f.rebuild {
			s.touch()
		}
	}
}

// compareMap makes the interfaces looked at that the kernel's map has otherwise than desired.
func (a *auditor) compareMap(n *node) {
	k := n.fork
	if k == nil || n.elems == nil {
		return
	}
	before := len(k.changed)
	for iface := range *n.elems {
		if want, ok := n.verdictOf(iface); !ok || want != (*n.elems)[iface] {
			k.changed[iface] = struct{}{}
		}
	}
	for iface := range k.want {
		if _, there := (*n.elems)[iface]; !there {
			k.changed[iface] = struct{}{}
		}
	}
	if len(k.changed) > before {
		n.touch()
	}
}

func (a *auditor) chains() error {
	return a.l.chains(func(c listedChain) {
		n := a.f.nodes[c.name]
		if n == nil {
			n = newNode(a.f, table.Raw, c.name, c.name) // without an owner: it goes
			if c.hook {
				n.base = &baseHook{num: c.num, priority: c.priority, typ: c.typ}
			}
		}
		n.present = true
		base := n.base != nil
		if base != c.hook || base && (n.base.num != c.num || n.base.priority != c.priority || n.base.typ != c.typ) {
			a.f.rebuild = true
		}
	})
}

func (a *auditor) rules() error {
	for _, n := range a.f.nodes {
		if !n.present {
			continue
		}
		err := a.l.rules(n.chain, func(r listedRule) { n.hashes = append(n.hashes, hashOf(r.udata)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) sets() error {
	var list []listedSet
	if err := a.l.sets(func(s listedSet) { list = append(list, s) }); err != nil {
		return err
	}
	for _, ls := range list {
		if err := a.set(ls); err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) set(ls listedSet) error {
	if ls.flags&unix.NFT_SET_ANONYMOUS != 0 {
		return nil // a rule's own: nothing can change it, and the rule's hash speaks for it
	}
	if chain, ok := strings.CutPrefix(ls.name, mapPrefix); ok {
		if ls.flags != unix.NFT_SET_MAP || ls.keyLen != unix.IFNAMSIZ || ls.dataType != dataVerdict {
			a.f.rebuild = true
			return nil
		}
		return a.verdictMap(ls.name, chain)
	}
	if strings.HasPrefix(ls.name, listPrefix) {
		return a.list(ls)
	}
	id, ok := strings.CutPrefix(ls.name, setPrefix)
	if !ok {
		a.f.strays = append(a.f.strays, ls.name)
		return nil
	}
	s := a.f.set(swapColon(id))
	s.present = true
	if s.typ, ok = typeOf(a.f, ls); !ok {
		a.f.rebuild = true
		return nil
	}
	if !s.wanted || s.typ != s.spec.Type {
		return nil // it goes
	}
	if interval(s.typ) {
		return a.intervals(s)
	}
	return a.members(s)
}

func typeOf(f *family, ls listedSet) (table.SetType, bool) {
	for _, t := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		if typ, size := keyType(f, t); ls.keyType == typ && ls.keyLen == size && ls.flags == setFlags(t) {
			return t, true
		}
	}
	return 0, false
}

func (a *auditor) verdictMap(name, chain string) error {
	n := a.f.nodes[chain]
	if n == nil {
		n = newNode(a.f, table.Raw, chain, chain)
	}
	elems := kernelElems{}
	n.elems = &elems
	return a.l.elements(name, func(e listedElem) {
		switch {
		case e.code == unix.NFT_GOTO:
			elems[text(e.key)] = e.chain
		case e.code == codeDrop:
			elems[text(e.key)] = ""
		default:
			elems[text(e.key)] = otherVerdict
		}
	})
}

// otherVerdict is no chain's name.
const otherVerdict = "/"

func (a *auditor) members(s *set) error {
	there := make(map[table.Member]struct{}, len(s.flat))
	size := addressBytes(a.f.id)
	err := a.l.elements(s.name, func(e listedElem) {
		addr, ok := netip.AddrFromSlice(e.key[:min(size, len(e.key))])
		if !ok || e.flags != 0 {
			s.refill = true
			return
		}
		m := table.Member{Net: netip.PrefixFrom(addr, addr.BitLen())}
		if s.typ == table.SetIPAndPort && len(e.key) == size+8 {
			m.Proto, m.Port = e.key[size], binary.BigEndian.Uint16(e.key[size+4:])
		}
		there[m] = struct{}{}
	})
	if err == nil {
		s.compare(there)
	}
	return err
}

// bound is one element of an interval set: the first key of an interval, or the first one behind it.
type bound struct {
	key [16]byte
	end bool
}

// bounds reads the elements of an interval set; ok is false if there are others.
func (a *auditor) bounds(name string, size int) (bounds []bound, ok bool, err error) {
	ok = true
	err = a.l.elements(name, func(e listedElem) {
		if len(e.key) != size || e.flags&^unix.NFT_SET_ELEM_INTERVAL_END != 0 {
			ok = false
			return
		}
		one := bound{end: e.flags != 0}
		copy(one.key[:], e.key)
		bounds = append(bounds, one)
	})
	return bounds, ok, err
}

func (a *auditor) intervals(s *set) error {
	size := addressBytes(a.f.id)
	bounds, ok, err := a.bounds(s.name, size)
	if err != nil {
		return err
	}
	there := make(map[table.Member]struct{}, len(bounds)/2)
	ok = ok && eachSpan(bounds, size, func(one span) {
		p, isPrefix := one.prefix(size)
		s.refill = s.refill || !isPrefix
		there[table.Member{Net: p}] = struct{}{}
	})
	if s.refill = s.refill || !ok; !s.refill {
		s.compare(there)
	}
	return nil
}

// list notes a list that is there. One that does not hold what its name stands for is not ours.
func (a *auditor) list(ls listedSet) error {
	if ls.keyLen > 16 {
		a.f.rebuild = true
		return nil
	}
	bounds, ok, err := a.bounds(ls.name, int(ls.keyLen))
	if err != nil {
		return err
	}
	if !ok || !ls.holds(bounds) {
		a.f.rebuild = true
		return nil
	}
	l := a.f.lists[ls.name]
	if l == nil {
		l = &list{name: ls.name, typ: ls.keyType, spans: spans{size: int(ls.keyLen)}}
		_ = eachSpan(bounds, l.spans.size, func(one span) { l.spans.list = append(l.spans.list, one) })
		a.f.lists[ls.name] = l
	}
	l.present = true
	return nil
}

// eachSpan puts bounds together to intervals, in order; false if they do not fit together.
func eachSpan(bounds []bound, size int, f func(span)) bool {
	slices.SortFunc(bounds, func(a, b bound) int {
		if c := slices.Compare(a.key[:], b.key[:]); c != 0 || a.end == b.end {
			return c
		}
		if a.end {
			return -1
		}
		return 1
	})
	for i := 0; i < len(bounds); i++ {
		one := span{first: bounds[i].key}
		switch {
		case bounds[i].end:
			return false
		case i+1 == len(bounds):
			for j := range size {
				one.last[j] = 0xff
			}
		case !bounds[i+1].end:
			return false
		default:
			i++
			one.last = before(bounds[i].key, size)
		}
		f(one)
	}
	return true
}

// before is the key before k, which is not the first.
func before(k [16]byte, size int) [16]byte {
	for i := size - 1; i >= 0; i-- {
		k[i]--
		if k[i] != 0xff {
			break
		}
	}
	return k
}
