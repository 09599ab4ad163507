package vppfake

import (
	"cmp"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip"
)

// source is the origin of a FIB entry; if there are several, the one with the lowest priority value counts.
type source uint8

// VPP's own sources, by the ids of fib_source_dump.
const (
	srcSpecial      source = 1
	srcInterface    source = 4
	srcAPI          source = 8
	srcAdjacency    source = 15
	srcRecursive    source = 18
	srcDefaultRoute source = 20
)

// fib is one IP table. It is removed when the API has unlocked it and no other object refers to it.
type fib struct {
	family  int
	id      uint32
	name    string
	api     bool // locked by ip_table_add_del
	refs    int  // number of bound interfaces, and of paths that look up in it
	entries map[netip.Prefix]*fibEntry
	byLen   [129]int // number of entries per prefix length
	prio    *[256]uint8
	dead    deadLists
	nextLB  uint32
	hash    ip.IPFlowHashConfigV2 // stored, not used: walks choose among paths by their own hash
	onFree  func(*fib)
}

// fibEntry is one prefix of a table.
type fibEntry struct {
	table   *fib
	prefix  netip.Prefix // masked
	shown   netip.Prefix // prefix as given first: VPP keeps and shows the host bits
	sources []entrySource
	stats   uint32
	tracked int // number of paths and tunnels that resolve through it
}

// entrySource holds the data of one source for an entry.
type entrySource struct {
	source source
	paths  []path
	flags  entryFlags
}

type entryFlags uint8

const (
	attached entryFlags = 1 << iota // on the link of an interface: neighbours may refine it
	connected
	local
)

// path is one path of an entry.
type path struct {
	kind   fib_types.FibPathType
	proto  fib_types.FibPathNhProto
	flags  fib_types.FibPathFlags
	nh     netip.Addr // of the path's protocol; unspecified: none
	ifc    *iface     // nil: none
	ifx    uint32     // index of ifc, or none; a path keeps it after the interface is deleted
	table  *fib       // for a path without interface: the table in which nh is looked up
	weight uint8
	pref   uint8
	labels []fib_types.FibMplsLabel
	tag    uint32 // classify table, UDP encap, BIER imposition: stored, not evaluated
}

// pathClass is VPP's type of a path, in the order of its enum, by which paths are sorted.
type pathClass int

const (
	attachedNextHop pathClass = iota
	attachedOnly
	recursive
	special
	exclusive
	deag
	interfaceRx
	udpEncap
	receive
	dvr
)

func (p *path) class() pathClass {
	switch p.kind {
	case fib_types.FIB_API_PATH_TYPE_LOCAL:
		return receive
	case fib_types.FIB_API_PATH_TYPE_DROP, fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH, fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT,
		kindLinkLocal:
		return special
	case fib_types.FIB_API_PATH_TYPE_DVR:
		return dvr
	case fib_types.FIB_API_PATH_TYPE_INTERFACE_RX:
		return interfaceRx
	case fib_types.FIB_API_PATH_TYPE_UDP_ENCAP:
		return udpEncap
	case fib_types.FIB_API_PATH_TYPE_CLASSIFY, fib_types.FIB_API_PATH_TYPE_BIER_IMP:
		return exclusive
	}
	switch {
	case p.ifx != none && !p.nh.IsUnspecified():
		return attachedNextHop
	case p.ifx != none:
		return attachedOnly
	case p.nh.IsUnspecified():
		return deag
	}
	return recursive
}

// compare implements fib_path_cmp: two paths that differ only in weight and preference are equal.
func (p *path) compare(q *path) int {
	c := p.class()
	if o := cmp.Or(cmp.Compare(c, q.class()), cmp.Compare(p.proto, q.proto)); o != 0 || c == special || c == receive {
		return o
	}
	switch c {
	case recursive:
		return cmp.Or(p.nh.Compare(q.nh), cmp.Compare(p.table.id, q.table.id))
	case deag:
		return cmp.Compare(p.table.id, q.table.id)
	case exclusive, udpEncap:
		return cmp.Compare(p.tag, q.tag)
	}
	return cmp.Or(p.nh.Compare(q.nh), cmp.Compare(p.ifx, q.ifx))
}

// sortPaths sorts paths in VPP's order.
func sortPaths(paths []path) {
	if len(paths) > 1 {
		slices.SortStableFunc(paths, func(a, b path) int { return cmp.Or(cmp.Compare(a.pref, b.pref), a.compare(&b)) })
	}
}

// entry returns the entry for the prefix, and creates it if there is none.
func (f *fib) entry(shown netip.Prefix) *fibEntry {
	masked := shown.Masked()
	e := f.entries[masked]
	if e == nil {
		e = &fibEntry{table: f, prefix: masked, shown: shown, stats: f.nextLB}
		f.nextLB++
		f.entries[masked] = e
		f.byLen[masked.Bits()]++
	}
	return e
}

// set replaces the data of a source for a prefix.
func (f *fib) set(shown netip.Prefix, src source, flags entryFlags, paths []path) *fibEntry {
	e := f.entry(shown)
	sortPaths(paths)
	if src != srcAdjacency {
		paths = f.dead.share(paths)
	}
	for i := range paths {
		hold(&paths[i])
	}
	if s := e.source(src); s != nil {
		f.releaseAll(s.paths)
		s.paths, s.flags = paths, flags
		return e
	}
	e.sources = append(e.sources, entrySource{source: src, paths: paths, flags: flags})
	if len(e.sources) > 1 {
		slices.SortStableFunc(e.sources, func(a, b entrySource) int { return cmp.Compare(f.prio[a.source], f.prio[b.source]) })
	}
	return e
}

// unset removes the data of a source for a prefix.
func (f *fib) unset(prefix netip.Prefix, src source) {
	e := f.entries[prefix.Masked()]
	if e == nil {
		return
	}
	for n := range e.sources {
		if e.sources[n].source == src {
			paths := e.sources[n].paths
			e.sources = slices.Delete(e.sources, n, n+1)
			f.collect(e)
			f.releaseAll(paths)
			return
		}
	}
}

// collect removes an entry that is no longer needed.
func (f *fib) collect(e *fibEntry) {
	if len(e.sources) == 0 && e.tracked == 0 && f.entries[e.prefix] == e {
		delete(f.entries, e.prefix)
		f.byLen[e.prefix.Bits()]--
	}
}

// hold takes references to the objects of a path: its interface, the entry of its next hop, the table in which it looks up.
func hold(p *path) {
	if p.ifc != nil {
		p.ifc.paths++
	}
	switch p.class() {
	case recursive:
		p.table.track(p.nh)
	case deag:
		p.table.refs++
	}
}

func (f *fib) releaseAll(paths []path) {
	f.dead.release(paths)
	for i := range paths {
		p := &paths[i]
		if p.ifc != nil {
			p.ifc.paths--
		}
		switch p.class() {
		case recursive:
			p.table.untrack(p.nh)
		case deag:
			p.table.refs--
			p.table.freeIfUnused()
		}
	}
}

// track ensures that there is an entry for the address, through which paths and tunnels resolve.
func (f *fib) track(a netip.Addr) { f.entry(netip.PrefixFrom(a, a.BitLen())).tracked++ }

func (f *fib) untrack(a netip.Addr) {
	if e := f.entries[netip.PrefixFrom(a, a.BitLen())]; e != nil {
		e.tracked--
		f.collect(e)
	}
}

func (f *fib) freeIfUnused() {
	if f.id == 0 || f.api || f.refs > 0 {
		return
	}
	f.onFree(f)
	entries := f.entries
	f.entries, f.byLen = map[netip.Prefix]*fibEntry{}, [129]int{} // before the releases below, which may call this function again
	for _, e := range entries {
		for _, s := range e.sources {
			f.releaseAll(s.paths)
		}
	}
}

func (e *fibEntry) source(src source) *entrySource {
	for n := range e.sources {
		if e.sources[n].source == src {
			return &e.sources[n]
		}
	}
	return nil
}

// best returns the source that counts, with the paths to show: an entry that exists only because other objects resolve through it has the paths
// of its cover.
func (e *fibEntry) best() (source, []path) {
	if len(e.sources) > 0 {
		return e.sources[0].source, e.sources[0].paths
	}
	cover := e.table.cover(e.prefix)
	if cover == nil {
		return srcRecursive, nil
	}
	_, paths := cover.best()
	if len(paths) == 1 && paths[0].class() == attachedOnly {
		via := paths[0]
		via.nh = e.prefix.Addr()
		return srcRecursive, []path{via}
	}
	return srcRecursive, paths
}

// flags returns the flags of the best source.
func (e *fibEntry) flags() entryFlags {
	if len(e.sources) == 0 {
		return 0
	}
	return e.sources[0].flags
}

// cover returns the entry with the longest prefix that contains p and is shorter than p.
func (f *fib) cover(p netip.Prefix) *fibEntry { return f.longest(p.Addr(), p.Bits()-1, nil) }

// lookup returns the longest match for the address among the entries for which accept returns true (nil: all).
func (f *fib) lookup(a netip.Addr, accept func(*fibEntry) bool) *fibEntry {
	return f.longest(a, a.BitLen(), accept)
}

func (f *fib) longest(a netip.Addr, bits int, accept func(*fibEntry) bool) *fibEntry {
	for ; bits >= 0; bits-- {
		if f.byLen[bits] == 0 {
			continue
		}
		p, _ := a.Prefix(bits)
		if e := f.entries[p]; e != nil && (accept == nil || accept(e)) {
			return e
		}
	}
	return nil
}

// installed reports whether packets may match the entry: an entry that comes only from a neighbour counts only if its cover is on the
// neighbour's link, or on the link of the interface whose addresses the neighbour's interface borrows.
func (e *fibEntry) installed() bool {
	if len(e.sources) == 0 || e.sources[0].source != srcAdjacency {
		return true
	}
	cover := e.table.cover(e.prefix)
	if cover == nil {
		return false
	}
	isAttached := cover.flags()&attached != 0
	if s := cover.source(srcInterface); s != nil && s.flags&attached != 0 {
		isAttached = true
	}
	_, paths := cover.best()
	if !isAttached || len(paths) == 0 || paths[0].ifx == none {
		return false
	}
	for _, p := range e.sources[0].paths {
		if p.ifx == paths[0].ifx || p.ifc != nil && p.ifc.unnumbered == paths[0].ifx {
			return true
		}
	}
	return false
}

// sorted returns the entries in order of their prefix.
func (f *fib) sorted() []*fibEntry {
	out := make([]*fibEntry, 0, len(f.entries))
	for _, e := range f.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *fibEntry) int { return comparePrefix(a.prefix, b.prefix) })
	return out
}
