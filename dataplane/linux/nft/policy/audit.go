package policy

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/ipaddr"
)

// load reads the kernel's state and marks the differences to the recorded state.
func (b *Backend) load() (err error) {
	for _, f := range b.families {
		err = wire.FirstError(err, f.load(b.view.Lister(f.Proto)))
	}
	return err
}

// load records the kernel's state of the family's table.
func (f *family) load(l wire.Lister) error {
	present, flags, err := l.TableFlags()
	if err != nil {
		return err
	}
	a := &auditor{f: f, l: l, was: map[*node]kernelChain{}, wasSet: map[*set]kernelSet{}}
	a.recordKernelState()
	f.markAbsent()
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

// auditor reads a family's table and finds the differences to the recorded state.
type auditor struct {
	f      *family
	l      wire.Lister
	was    map[*node]kernelChain
	wasSet map[*set]kernelSet
}

type kernelChain struct {
	present bool
	hashes  []wire.Hash
	elems   *kernelElems
}

type kernelSet struct {
	present bool
	typ     table.SetType
}

func (a *auditor) recordKernelState() {
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

// compare marks the objects that differ from the recorded state to be checked.
func (a *auditor) compare() {
	for _, n := range a.f.nodes {
		was := a.was[n]
		same := n.present == was.present && slices.Equal(n.hashes, was.hashes) && (n.elems == nil) == (was.elems == nil)
		if !same || a.f.rebuild {
			n.Touch()
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
			s.Touch()
		}
	}
}

// compareMap marks the interfaces whose elements in the kernel's map differ from the desired ones.
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
		n.Touch()
	}
}

func (a *auditor) chains() error {
	return a.l.Chains(func(c wire.Chain) {
		n := a.f.nodes[c.Name]
		if n == nil {
			n = newNode(a.f, table.Raw, c.Name, c.Name) // without an owner: it will be removed
			if c.Hook {
				n.base = &baseHook{num: c.Hooknum, priority: c.Priority, typ: c.Type}
			}
		}
		n.present = true
		base := n.base != nil
		if base != c.Hook || base && (n.base.num != c.Hooknum || n.base.priority != c.Priority || n.base.typ != c.Type) {
			a.f.rebuild = true
		}
	})
}

func (a *auditor) rules() error {
	for _, n := range a.f.nodes {
		if !n.present {
			continue
		}
		err := a.l.Rules(n.chain, func(r wire.Rule) { n.hashes = append(n.hashes, wire.HashOf(r.UserData)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) sets() error {
	var list []wire.Set
	if err := a.l.Sets(func(s wire.Set) { list = append(list, s) }); err != nil {
		return err
	}
	for _, ls := range list {
		if err := a.set(ls); err != nil {
			return err
		}
	}
	return nil
}

func (a *auditor) set(ls wire.Set) error {
	if ls.Flags&unix.NFT_SET_ANONYMOUS != 0 {
		return nil // part of a rule: it cannot be changed, and the rule's hash covers it
	}
	if chain, ok := strings.CutPrefix(ls.Name, mapPrefix); ok {
		if ls.Flags != unix.NFT_SET_MAP || ls.KeyLen != unix.IFNAMSIZ || ls.DataType != wire.TypeVerdict {
			a.f.rebuild = true
			return nil
		}
		return a.verdictMap(ls.Name, chain)
	}
	if strings.HasPrefix(ls.Name, listPrefix) {
		return a.list(ls)
	}
	id, ok := strings.CutPrefix(ls.Name, setPrefix)
	if !ok {
		a.f.leaving.strays = append(a.f.leaving.strays, ls.Name)
		return nil
	}
	s := a.f.set(swapColon(id))
	s.present = true
	if s.typ, ok = typeOf(a.f, ls); !ok {
		a.f.rebuild = true
		return nil
	}
	if !s.wanted || s.inlined != nil || s.typ != s.spec.Type {
		// It will be removed, or its members are in the rules. Its elements are not read. If it is needed again before it is removed, it is
		// emptied and filled.
		s.refill = true
		return nil
	}
	if interval(s.typ) {
		return a.intervals(s)
	}
	return a.members(s)
}

func typeOf(f *family, ls wire.Set) (table.SetType, bool) {
	for _, t := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		if typ, size := keyType(f, t); ls.KeyType == typ && ls.KeyLen == size && ls.Flags == setFlags(t) {
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
	return a.l.Elements(name, func(e wire.Elem) {
		switch {
		case e.Code == unix.NFT_GOTO:
			elems[netlink.Text(e.Key)] = e.Chain
		case e.Code == wire.CodeDrop:
			elems[netlink.Text(e.Key)] = ""
		default:
			elems[netlink.Text(e.Key)] = otherVerdict
		}
	})
}

// otherVerdict is never the name of a chain.
const otherVerdict = "/"

func (a *auditor) members(s *set) error {
	there := make(map[table.Member]struct{}, len(s.flat))
	size := wire.AddressBytes(a.f.ID)
	err := a.l.Elements(s.name, func(e wire.Elem) {
		addr, ok := netip.AddrFromSlice(e.Key[:min(size, len(e.Key))])
		if !ok || e.Flags != 0 {
			s.refill = true
			return
		}
		m := table.Member{Net: ipaddr.HostPrefix(addr)}
		if s.typ == table.SetIPAndPort && len(e.Key) == size+8 {
			m.Proto, m.Port = e.Key[size], binary.BigEndian.Uint16(e.Key[size+4:])
		}
		there[m] = struct{}{}
	})
	if err == nil {
		s.compare(there)
	}
	return err
}

// bound is one element of an interval set: the first key of an interval, or the first key after it.
type bound struct {
	key [16]byte
	end bool
}

// bounds reads the elements of an interval set; ok is false if there are elements of another form.
func (a *auditor) bounds(name string, size int) (bounds []bound, ok bool, err error) {
	ok = true
	err = a.l.Elements(name, func(e wire.Elem) {
		if len(e.Key) != size || e.Flags&^unix.NFT_SET_ELEM_INTERVAL_END != 0 {
			ok = false
			return
		}
		one := bound{end: e.Flags != 0}
		copy(one.key[:], e.Key)
		bounds = append(bounds, one)
	})
	return bounds, ok, err
}

func (a *auditor) intervals(s *set) error {
	size := wire.AddressBytes(a.f.ID)
	bounds, ok, err := a.bounds(s.name, size)
	if err != nil {
		return err
	}
	there := make(map[table.Member]struct{}, len(bounds)/2)
	ok = ok && eachSpan(bounds, size, func(one wire.Span) {
		p, isPrefix := one.Prefix(size)
		s.refill = s.refill || !isPrefix
		there[table.Member{Net: p}] = struct{}{}
	})
	if s.refill = s.refill || !ok; !s.refill {
		s.compare(there)
	}
	return nil
}

// list records an existing list. A list whose content does not match its name is not ours.
func (a *auditor) list(ls wire.Set) error {
	if ls.KeyLen > 16 {
		a.f.rebuild = true
		return nil
	}
	bounds, ok, err := a.bounds(ls.Name, int(ls.KeyLen))
	if err != nil {
		return err
	}
	if !ok || !holds(ls, bounds) {
		a.f.rebuild = true
		return nil
	}
	l := a.f.lists[ls.Name]
	if l == nil {
		l = &list{name: ls.Name, typ: ls.KeyType, spans: wire.Spans{Size: int(ls.KeyLen)}}
		_ = eachSpan(bounds, l.spans.Size, func(one wire.Span) { l.spans.List = append(l.spans.List, one) })
		a.f.lists[ls.Name] = l
	}
	l.present = true
	return nil
}

// eachSpan combines bounds to intervals, in order; it returns false if they do not form intervals.
func eachSpan(bounds []bound, size int, f func(wire.Span)) bool {
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
		one := wire.Span{First: bounds[i].key}
		switch {
		case bounds[i].end:
			return false
		case i+1 == len(bounds):
			for j := range size {
				one.Last[j] = 0xff
			}
		case !bounds[i+1].end:
			return false
		default:
			i++
			one.Last = before(bounds[i].key, size)
		}
		f(one)
	}
	return true
}

// before returns the key before k, which must not be the first key.
func before(k [16]byte, size int) [16]byte {
	for i := size - 1; i >= 0; i-- {
		k[i]--
		if k[i] != 0xff {
			break
		}
	}
	return k
}
