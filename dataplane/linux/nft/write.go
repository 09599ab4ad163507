package nft

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// newTable and delTable make and remove the family's table with all that is in it.
func (b *batch) newTable(f *family) {
	b.begin(f, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, nil)
	b.u32(unix.NFTA_TABLE_FLAGS, 0)
	b.end()
}

func (b *batch) delTable(f *family) {
	b.begin(f, unix.NFT_MSG_DELTABLE, 0, nil)
	b.end()
}

// flushChain removes a chain's rules.
func (b *batch) flushChain(n *node) {
	b.begin(n.f, unix.NFT_MSG_DELRULE, 0, n)
	b.str(unix.NFTA_RULE_CHAIN, n.chain)
	b.end()
}

func (b *batch) delChain(n *node) {
	b.begin(n.f, unix.NFT_MSG_DELCHAIN, 0, n)
	b.str(unix.NFTA_CHAIN_NAME, n.chain)
	b.end()
	b.writes++
}

func (b *batch) newChain(n *node) {
	b.begin(n.f, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE|unix.NLM_F_EXCL, n)
	b.str(unix.NFTA_CHAIN_NAME, n.chain)
	if h := n.base; h != nil {
		at := b.nest(unix.NFTA_CHAIN_HOOK)
		b.u32(unix.NFTA_HOOK_HOOKNUM, h.num)
		b.u32(unix.NFTA_HOOK_PRIORITY, uint32(h.priority))
		b.endNest(at)
		b.u32(unix.NFTA_CHAIN_POLICY, codeAccept)
		b.str(unix.NFTA_CHAIN_TYPE, h.typ)
	}
	b.end()
	b.writes++
}

// newRules appends programs to a chain.
func (b *batch) newRules(n *node, programs []program) {
	for i := range programs {
		b.begin(n.f, unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, n)
		b.str(unix.NFTA_RULE_CHAIN, n.chain)
		at := b.nest(unix.NFTA_RULE_EXPRESSIONS)
		b.b = append(b.b, programs[i].exprs...)
		b.endNest(at)
		b.bytes(unix.NFTA_RULE_USERDATA, programs[i].udata)
		b.end()
		b.writes++
	}
}

// newSet makes a set; its elements follow.
func (b *batch) newSet(s *set) {
	typ, size := keyType(s.f, s.spec.Type)
	b.begin(s.f, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, s)
	b.str(unix.NFTA_SET_NAME, s.name)
	b.u32(unix.NFTA_SET_FLAGS, setFlags(s.spec.Type))
	b.u32(unix.NFTA_SET_KEY_TYPE, typ)
	b.u32(unix.NFTA_SET_KEY_LEN, size)
	b.sets++
	b.u32(unix.NFTA_SET_ID, b.sets)
	b.end()
	b.writes++
}

func setFlags(t table.SetType) uint32 {
	if interval(t) {
		return unix.NFT_SET_INTERVAL
	}
	return 0
}

// delSet removes a set or map.
func (b *batch) delSet(f *family, name string, who object) {
	b.begin(f, unix.NFT_MSG_DELSET, 0, who)
	b.str(unix.NFTA_SET_NAME, name)
	b.end()
	b.writes++
}

// flushSet removes all elements of a set.
func (b *batch) flushSet(s *set) {
	b.begin(s.f, unix.NFT_MSG_DELSETELEM, 0, s)
	b.str(unix.NFTA_SET_ELEM_LIST_SET, s.name)
	b.end()
	b.writes++
}

// newMap makes the verdict map of a dispatch chain; its elements follow.
func (b *batch) newMap(n *node) {
	b.begin(n.f, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, n)
	b.str(unix.NFTA_SET_NAME, n.mapName())
	b.u32(unix.NFTA_SET_FLAGS, unix.NFT_SET_MAP)
	b.u32(unix.NFTA_SET_KEY_TYPE, typeIface)
	b.u32(unix.NFTA_SET_KEY_LEN, unix.IFNAMSIZ)
	b.u32(unix.NFTA_SET_DATA_TYPE, dataVerdict)
	b.bytes(unix.NFTA_SET_USERDATA, []byte{0, 4, 1, 0, 0, 0}) // declares to nft that names are not in network byte order
	b.sets++
	b.u32(unix.NFTA_SET_ID, b.sets)
	b.end()
	b.writes++
}

const dataVerdict = 0xffffff00 // NFT_DATA_VERDICT

// elements writes elements of a set, in as many messages as are needed.
type elements struct {
	b    *batch
	f    *family
	typ  int
	set  string
	who  object
	list int // where the list being built is; 0 if none is
	key  []byte
}

func (b *batch) elements(f *family, typ int, set string, who object) *elements {
	return &elements{b: b, f: f, typ: typ, set: set, who: who}
}

// maxElement is more than any element takes.
const maxElement = 256

func (e *elements) begin() (at int) {
	if e.list != 0 && len(e.b.b)-e.list > maxAttr-maxElement {
		e.close()
	}
	if e.list == 0 {
		flags := uint16(unix.NLM_F_CREATE)
		if e.typ == unix.NFT_MSG_DELSETELEM {
			flags = 0
		}
		e.b.begin(e.f, e.typ, flags, e.who)
		e.b.str(unix.NFTA_SET_ELEM_LIST_SET, e.set)
		e.list = e.b.nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	}
	return e.b.nest(unix.NFTA_LIST_ELEM)
}

func (e *elements) close() {
	if e.list != 0 {
		e.b.endNest(e.list)
		e.b.end()
		e.list = 0
	}
}

func (e *elements) keyAttr(k []byte) {
	at := e.b.nest(unix.NFTA_SET_ELEM_KEY)
	e.b.bytes(unix.NFTA_DATA_VALUE, k)
	e.b.endNest(at)
}

// span adds an interval: an element that begins it and, unless it reaches the end of all keys, one that ends it.
func (e *elements) span(s spans, one *span) {
	at := e.begin()
	e.keyAttr(one.first[:s.size])
	e.b.endNest(at)
	if after, more := s.next(one.last); more {
		at = e.begin()
		e.b.u32(unix.NFTA_SET_ELEM_FLAGS, unix.NFT_SET_ELEM_INTERVAL_END)
		e.keyAttr(after[:s.size])
		e.b.endNest(at)
	}
}

// member adds a member of a set.
func (e *elements) member(s *set, m table.Member) {
	if interval(s.spec.Type) {
		one := prefixSpan(m.Net)
		e.span(spans{size: addressBytes(s.f.id)}, &one)
	} else {
		e.key = keyOf(e.key[:0], s.spec.Type, m)
		at := e.begin()
		e.keyAttr(e.key)
		e.b.endNest(at)
	}
	e.b.writes++
}

// verdictFor adds an interface to a dispatch chain's map, leading to the kernel's chain, or dropping if that is "".
func (e *elements) verdictFor(iface, chain string) {
	at := e.begin()
	e.keyAttr(ifaceKey(iface))
	if chain == "" {
		e.b.verdict(unix.NFTA_SET_ELEM_DATA, codeDrop, "")
	} else {
		e.b.verdict(unix.NFTA_SET_ELEM_DATA, unix.NFT_GOTO, chain)
	}
	e.b.endNest(at)
	e.b.writes++
}

// ifaceOnly adds an interface that is to be removed.
func (e *elements) ifaceOnly(iface string) {
	at := e.begin()
	e.keyAttr(ifaceKey(iface))
	e.b.endNest(at)
	e.b.writes++
}
