package policy

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// plan holds the changes of one Apply in one family's table, and what to record when the kernel has executed them.
type plan struct {
	f       *family
	rewrite []rewrite // chains whose rules are replaced, including new chains
	remove  []*node   // chains to remove
	forks   []*node   // dispatch chains whose map changes
	dropMap []*node   // chains whose map is removed
	sets    []*set    // sets to create, change or remove
	create  bool      // the table is created
	lists   []*list   // lists to create or remove
	strays  []string  // sets and maps to remove
	clear   bool      // the table is removed, with all of its contents

	// leave holds the objects to remove after a grace period; with atOnce all are removed now.
	leave struct {
		nodes []*node
		sets  []*set
		lists []*list
	}
	atOnce bool
	gone   int // number of chains that were leaving before and are removed now
}

// rewrite is a chain with its new content.
type rewrite struct {
	n        *node
	programs []wire.Program
}

// plan compares the desired state with the recorded state of the kernel.
func (f *family) plan(affected map[*node]struct{}, over uint64) *plan {
	p := &plan{f: f, atOnce: f.rebuild || f.remade()}
	if f.rebuild {
		f.markAbsent()
	}
	p.nodesThatLeft(over)
	for n := range affected {
		p.node(n)
	}
	p.setsAndLists(over)
	slices.SortFunc(p.rewrite, func(a, b rewrite) int { return a.n.compare(b.n) })
	slices.SortFunc(p.sets, func(a, b *set) int { return strings.Compare(a.id, b.id) })
	p.create = !f.present && (len(p.rewrite) > 0 || len(p.sets) > 0)
	p.clear = f.present && f.nothing()
	return p
}

// compare sorts hooks before the chains they refer to. So if the check of a packet's path fails, the kernel's error is for the latter.
func (n *node) compare(o *node) int {
	if (n.base == nil) != (o.base == nil) {
		if n.base != nil {
			return -1
		}
		return 1
	}
	return strings.Compare(n.chain, o.chain)
}

// nothing reports whether the kernel must have no table. Usually the first object already shows that it must have one.
func (f *family) nothing() bool {
	for _, n := range f.nodes {
		if n.live {
			return false
		}
	}
	for _, s := range f.sets {
		if s.effective() {
			return false
		}
	}
	return true
}

func (p *plan) node(n *node) {
	if !n.live {
		p.leaves(n)
		return
	}
	programs, lists := n.content()
	n.useLists(lists)
	if !n.present || n.force || !wire.SameHashes(programs, n.hashes) {
		p.rewrite = append(p.rewrite, rewrite{n, programs})
	}
	switch hasMap := n.fork != nil && n.broken == nil; {
	case hasMap && (n.elems == nil || n.mapDiffers()):
		p.forks = append(p.forks, n)
	case !hasMap && n.elems != nil:
		p.dropMap = append(p.dropMap, n)
	}
}

// content returns the programs of a live chain, and the lists that they use. A broken chain drops everything.
func (n *node) content() ([]wire.Program, []*list) {
	if n.broken != nil {
		closed := table.Rule{Actions: []table.Action{{Verb: table.Drop}}, Comment: "broken, see the agent's log"}
		return compile(n, []table.Rule{closed}).programs, nil
	}
	if n.fork == nil {
		return n.compiled.programs, n.compiled.lists
	}
	c := newCompiler(n)
	key := uint32(unix.NFT_META_IIFNAME)
	if n.fork.byOut {
		key = unix.NFT_META_OIFNAME
	}
	c.Meta(key, wire.Reg1)
	c.VerdictMap(n.mapName())
	c.emit("")
	return append(c.finish().programs, n.compiled.programs...), n.compiled.lists
}

// verdictOf returns the chain to which the kernel must send the packets of an interface; ok is false if the interface is not in the map.
func (n *node) verdictOf(iface string) (chain string, ok bool) {
	if _, ok := n.fork.want[iface]; !ok || iface == "" || len(iface) > unix.IFNAMSIZ-1 {
		return "", false
	}
	if t := n.fork.to[iface]; t != nil {
		return t.chain, true
	}
	return "", true
}

func (n *node) mapDiffers() bool {
	for iface := range n.fork.changed {
		want, ok := n.verdictOf(iface)
		have, there := (*n.elems)[iface]
		if ok != there || want != have {
			return true
		}
	}
	return false
}

// needsWrite reports whether the kernel's set differs from the desired one.
func (s *set) needsWrite() bool {
	if s.effective() != s.present {
		return true
	}
	return s.present && (s.typ != s.spec.Type || s.refill || len(s.ops) > 0)
}

// done records that the kernel has executed the plan.
func (p *plan) done() {
	f := p.f
	if p.clear {
		f.markAbsent()
		f.present = false
		p.rewrite, p.forks, p.sets, p.lists = nil, nil, nil, nil
	}
	f.present = f.present || p.create || f.rebuild && !p.clear
	f.rebuild, f.leaving.strays = false, f.leaving.strays[len(p.strays):]
	for i := range p.rewrite {
		n := p.rewrite[i].n
		n.present, n.force = true, false
		n.hashes = make([]wire.Hash, len(p.rewrite[i].programs))
		for j := range n.hashes {
			n.hashes[j] = p.rewrite[i].programs[j].Hash
		}
	}
	for _, n := range p.remove {
		n.present, n.hashes, n.force = false, nil, false
	}
	for _, n := range p.dropMap {
		n.elems = nil
	}
	for _, n := range p.forks {
		n.noteMap()
	}
	for _, l := range p.lists {
		l.present = l.users > 0
	}
	for _, s := range p.sets {
		s.present, s.typ = s.effective(), s.spec.Type
		s.ops, s.refill = nil, false
	}
}

// noteMap records that the kernel's map is as desired.
func (n *node) noteMap() {
	if n.elems == nil {
		all := make(kernelElems, len(n.fork.want))
		n.eachNew(func(iface, chain string) { all[iface] = chain })
		n.elems = &all
		return
	}
	for iface := range n.fork.changed {
		if chain, ok := n.verdictOf(iface); ok {
			(*n.elems)[iface] = chain
		} else {
			delete(*n.elems, iface)
		}
	}
}

// markAbsent records that the kernel has none of our objects.
func (f *family) markAbsent() {
	f.leaving.strays = nil
	for _, n := range f.nodes {
		n.present, n.hashes, n.elems, n.force = false, nil, nil, false
	}
	for _, s := range f.sets {
		s.present, s.ops, s.refill = false, nil, false
	}
	for _, l := range f.lists {
		l.present = false
	}
}

// tidy clears the data that only an Apply needs, and drops objects that are neither desired nor in the kernel.
func (f *family) tidy(affected map[*node]struct{}) {
	for n := range affected {
		n.compiled = nil
		// The map of a chain that packets do not reach was not written. The chain may be reached again before it is removed: then the map
		// must be compared with what has changed since.
		if n.fork != nil && n.broken == nil && (n.live || n.elems == nil) {
			clear(n.fork.changed)
		}
	}
	for n := range f.dirtyNodes {
		affected[n] = struct{}{}
	}
	for n := range affected {
		if !n.wanted && !n.present && n.elems == nil && len(n.users) == 0 && len(n.in) == 0 {
			delete(f.nodes, n.chain)
		}
	}
	for s := range f.dirtySets {
		if s.wanted || s.present {
			continue
		}
		s.flat, s.nets, s.odd = nil, netTrie{}, nil
		if len(s.users) == 0 {
			delete(f.sets, s.id)
		}
	}
	for l := range f.dirtyLists {
		if l.users == 0 && !l.present {
			delete(f.lists, l.name)
		}
	}
	f.scratch.slab = nil // so that one remaining program does not keep the memory of removed ones
	clear(f.dirtyLists)
	clear(f.dirtyNodes)
	clear(f.dirtySets)
}
