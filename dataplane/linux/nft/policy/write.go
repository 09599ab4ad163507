package policy

import (
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// flushChain removes a chain's rules.
func flushChain(b *wire.Batch, n *node) {
	b.Begin(n.f.Proto, unix.NFT_MSG_DELRULE, 0, n)
	b.String(unix.NFTA_RULE_CHAIN, n.chain)
	b.End()
}

func delChain(b *wire.Batch, n *node) {
	b.Begin(n.f.Proto, unix.NFT_MSG_DELCHAIN, 0, n)
	b.String(unix.NFTA_CHAIN_NAME, n.chain)
	b.End()
	b.Writes++
}

func newChain(b *wire.Batch, n *node) {
	b.Begin(n.f.Proto, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE|unix.NLM_F_EXCL, n)
	b.String(unix.NFTA_CHAIN_NAME, n.chain)
	if h := n.base; h != nil {
		at := b.Nest(unix.NFTA_CHAIN_HOOK)
		b.Uint32(unix.NFTA_HOOK_HOOKNUM, h.num)
		b.Uint32(unix.NFTA_HOOK_PRIORITY, uint32(h.priority))
		b.EndNest(at)
		b.Uint32(unix.NFTA_CHAIN_POLICY, wire.CodeAccept)
		b.String(unix.NFTA_CHAIN_TYPE, h.typ)
	}
	b.End()
	b.Writes++
}

// newRules appends programs to a chain.
func newRules(b *wire.Batch, n *node, programs []wire.Program) {
	for i := range programs {
		b.NewRule(n.f.Proto, n.chain, &programs[i], n)
	}
}

// newSet adds the message that creates a set; its elements follow.
func newSet(b *wire.Batch, s *set) {
	typ, size := keyType(s.f, s.spec.Type)
	b.Begin(s.f.Proto, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, s)
	b.String(unix.NFTA_SET_NAME, s.name)
	b.Uint32(unix.NFTA_SET_FLAGS, setFlags(s.spec.Type))
	b.Uint32(unix.NFTA_SET_KEY_TYPE, typ)
	b.Uint32(unix.NFTA_SET_KEY_LEN, size)
	b.Sets++
	b.Uint32(unix.NFTA_SET_ID, b.Sets)
	b.End()
	b.Writes++
}

func setFlags(t table.SetType) uint32 {
	if interval(t) {
		return unix.NFT_SET_INTERVAL
	}
	return 0
}

// flushSet removes all elements of a set.
func flushSet(b *wire.Batch, s *set) {
	b.Begin(s.f.Proto, unix.NFT_MSG_DELSETELEM, 0, s)
	b.String(unix.NFTA_SET_ELEM_LIST_SET, s.name)
	b.End()
	b.Writes++
}

// newMap adds the message that creates the verdict map of a dispatch chain; its elements follow.
func newMap(b *wire.Batch, n *node) {
	b.Begin(n.f.Proto, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, n)
	b.String(unix.NFTA_SET_NAME, n.mapName())
	b.Uint32(unix.NFTA_SET_FLAGS, unix.NFT_SET_MAP)
	b.Uint32(unix.NFTA_SET_KEY_TYPE, wire.TypeIface)
	b.Uint32(unix.NFTA_SET_KEY_LEN, unix.IFNAMSIZ)
	b.Uint32(unix.NFTA_SET_DATA_TYPE, wire.TypeVerdict)
	b.Bytes(unix.NFTA_SET_USERDATA, []byte{0, 4, 1, 0, 0, 0}) // declares to nft that names are not in network byte order
	b.Sets++
	b.Uint32(unix.NFTA_SET_ID, b.Sets)
	b.End()
	b.Writes++
}

// addMember adds a member of a set.
func addMember(e *wire.Elements, s *set, m table.Member) {
	if interval(s.spec.Type) {
		one := wire.SpanOf(m.Net)
		e.Span(wire.Spans{Size: wire.AddressBytes(s.f.ID)}, &one)
	} else {
		e.Scratch = keyOf(e.Scratch[:0], s.spec.Type, m)
		at := e.Begin()
		e.KeyAttr(e.Scratch)
		e.B.EndNest(at)
	}
	e.B.Writes++
}

// addVerdict adds an interface to a dispatch chain's map: with a goto to the kernel's chain, or with a drop if chain is "".
func addVerdict(e *wire.Elements, iface, chain string) {
	at := e.Begin()
	e.KeyAttr(ifaceKey(iface))
	if chain == "" {
		e.B.Verdict(unix.NFTA_SET_ELEM_DATA, wire.CodeDrop, "")
	} else {
		e.B.Verdict(unix.NFTA_SET_ELEM_DATA, unix.NFT_GOTO, chain)
	}
	e.B.EndNest(at)
	e.B.Writes++
}

// addIface adds an interface to a list of elements to remove.
func addIface(e *wire.Elements, iface string) {
	at := e.Begin()
	e.KeyAttr(ifaceKey(iface))
	e.B.EndNest(at)
	e.B.Writes++
}
