package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// NewTable creates the family's table. DelTable removes it with all of its contents.
func (b *Batch) NewTable(proto uint8) {
	b.Begin(proto, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, nil)
	b.Uint32(unix.NFTA_TABLE_FLAGS, 0)
	b.End()
}

func (b *Batch) DelTable(proto uint8) {
	b.Begin(proto, unix.NFT_MSG_DELTABLE, 0, nil)
	b.End()
}

// DelSet removes a set or map.
func (b *Batch) DelSet(proto uint8, name string, object Object) {
	b.Begin(proto, unix.NFT_MSG_DELSET, 0, object)
	b.String(unix.NFTA_SET_NAME, name)
	b.End()
	b.Writes++
}

// NewRule appends a rule to a chain.
func (b *Batch) NewRule(proto uint8, chain string, p *Program, object Object) {
	b.newRule(unix.NLM_F_CREATE|unix.NLM_F_APPEND, proto, chain, p, object)
}

// InsertRule adds a rule before all rules of a chain.
func (b *Batch) InsertRule(proto uint8, chain string, p *Program, object Object) {
	b.newRule(unix.NLM_F_CREATE, proto, chain, p, object)
}

// DelRule removes a rule from a chain.
func (b *Batch) DelRule(proto uint8, chain string, handle uint64, object Object) {
	b.Begin(proto, unix.NFT_MSG_DELRULE, 0, object)
	b.String(unix.NFTA_RULE_CHAIN, chain)
	b.Bytes(unix.NFTA_RULE_HANDLE, binary.BigEndian.AppendUint64(nil, handle))
	b.End()
	b.Writes++
}

func (b *Batch) newRule(flags uint16, proto uint8, chain string, p *Program, object Object) {
	b.Begin(proto, unix.NFT_MSG_NEWRULE, flags, object)
	b.String(unix.NFTA_RULE_CHAIN, chain)
	at := b.Nest(unix.NFTA_RULE_EXPRESSIONS)
	b.B = append(b.B, p.Exprs...)
	b.EndNest(at)
	b.Bytes(unix.NFTA_RULE_USERDATA, p.Udata)
	b.End()
	b.Writes++
}

// Elements writes elements of a set, in as many messages as needed.
type Elements struct {
	B       *Batch
	proto   uint8
	typ     int
	set     string
	Blame   Object
	list    int // offset of the list being built; 0 if there is none
	Scratch []byte
}

// Elements returns a writer that adds elements to a set, or removes them.
func (b *Batch) Elements(proto uint8, typ int, set string, object Object) *Elements {
	return &Elements{B: b, proto: proto, typ: typ, set: set, Blame: object}
}

// maxElement is larger than any element.
const maxElement = 256

// Begin starts an element; EndNest of the transaction completes it.
func (e *Elements) Begin() (at int) {
	if e.list != 0 && len(e.B.B)-e.list > maxAttr-maxElement {
		e.Close()
	}
	if e.list == 0 {
		flags := uint16(unix.NLM_F_CREATE)
		if e.typ == unix.NFT_MSG_DELSETELEM {
			flags = 0
		}
		e.B.Begin(e.proto, e.typ, flags, e.Blame)
		e.B.String(unix.NFTA_SET_ELEM_LIST_SET, e.set)
		e.list = e.B.Nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	}
	return e.B.Nest(unix.NFTA_LIST_ELEM)
}

// Close completes the message being built.
func (e *Elements) Close() {
	if e.list != 0 {
		e.B.EndNest(e.list)
		e.B.End()
		e.list = 0
	}
}

// KeyAttr adds an element's key.
func (e *Elements) KeyAttr(k []byte) {
	at := e.B.Nest(unix.NFTA_SET_ELEM_KEY)
	e.B.Bytes(unix.NFTA_DATA_VALUE, k)
	e.B.EndNest(at)
}

// Span adds an interval: an element that starts it and, unless it reaches the last key, one that ends it.
func (e *Elements) Span(s Spans, one *Span) {
	at := e.Begin()
	e.KeyAttr(one.First[:s.Size])
	e.B.EndNest(at)
	if after, more := s.Next(one.Last); more {
		at = e.Begin()
		e.B.Uint32(unix.NFTA_SET_ELEM_FLAGS, unix.NFT_SET_ELEM_INTERVAL_END)
		e.KeyAttr(after[:s.Size])
		e.B.EndNest(at)
	}
}
