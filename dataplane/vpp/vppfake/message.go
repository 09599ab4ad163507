package vppfake

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"go.fd.io/govpp/api"
)

// headerSize returns the offset of the fields of a message; its context is in the four bytes before.
func headerSize(msg api.Message) int {
	if msg.GetMessageType() == api.RequestMessage {
		return requestHeader
	}
	return replyHeader
}

// message is the interface of all generated binapi messages.
type message interface {
	api.Message
	Size() int
	Marshal([]byte) ([]byte, error)
	Unmarshal([]byte) error
}

// ptr is the pointer type of a generated message struct T.
type ptr[T any] interface {
	*T
	message
}

// access reports whether a request changes VPP's state; writes are counted separately (Fake.Writes).
type access bool

const (
	reads  access = false
	writes access = true
)

// Layout of the socket protocol: a 16-byte msgbuf_t header whose bytes 8..12 are the length, then the message. A request starts with id, client
// index and context; a reply or event with id and context (for an event: the client index). sockclnt_create and its reply have the layouts
// exchanged; the generated GetMessageType returns the layout.
const (
	frameHeader   = 16
	requestHeader = 10
	replyHeader   = 6

	sockclntCreateID      = 15 // the only id that a client can use before it has the table
	sockclntCreateReplyID = 16
	firstFreeID           = 20
)

// entry is one row of the message table: a request with its handler, or a reply, detail or event.
type entry struct {
	msg    message
	id     uint16
	access access
	fixed  bool // the id is the same after each boot

	decode func(body []byte) (message, error)
	handle func(c *call, q message) message // nil for messages that a client may not send
	fail   func() message                   // returns the reply that carries an injected retval; nil for dumps
	guard  func(body []byte) bool           // rejects counts that do not fit in the body

	requests uint64
}

func (e *entry) name() string { return e.msg.GetMessageName() }

// table is the message table of one fake. Names are looked up only by tests and at start-up; requests are looked up by id.
type table struct {
	byName map[string]*entry
	byID   []*entry
}

func newTable() *table { return &table{byName: map[string]*entry{}} }

// add registers msg; the same message may be registered twice (a reply shared by two requests).
func (t *table) add(msg message) *entry {
	if e, ok := t.byName[msg.GetMessageName()]; ok {
		return e
	}
	e := &entry{msg: msg}
	t.byName[msg.GetMessageName()] = e
	return e
}

// on registers request Q with one reply R; a nil reply means that VPP does not respond.
func on[Q, R any, PQ ptr[Q], PR ptr[R]](t *table, a access, h func(*call, *Q) *R) *entry {
	reply := t.add(PR(new(R)))
	e := request[Q, PQ](t, a)
	e.fail = func() message { return PR(new(R)) }
	e.handle = func(c *call, q message) message {
		r := h(c, (*Q)(q.(PQ)))
		if r == nil {
			return nil
		}
		c.reply = reply
		return PR(r)
	}
	return e
}

// dump registers request Q with any number of details D.
func dump[Q, D any, PQ ptr[Q], PD ptr[D]](t *table, h func(*call, *Q, func(*D))) *entry {
	detail := t.add(PD(new(D)))
	e := request[Q, PQ](t, reads)
	e.handle = func(c *call, q message) message {
		h(c, (*Q)(q.(PQ)), func(d *D) { c.send(detail, PD(d)) })
		return nil
	}
	return e
}

// event registers a message that only VPP sends.
func event[E any, PE ptr[E]](t *table) *entry { return t.add(PE(new(E))) }

func request[Q any, PQ ptr[Q]](t *table, a access) *entry {
	e := t.add(PQ(new(Q)))
	e.access = a
	e.decode = func(body []byte) (message, error) {
		q := PQ(new(Q))
		return q, unmarshal(q, body)
	}
	return e
}

// counted makes e reject a body that is too short for the number of elements in the u32 at offset: the generated decoder would allocate all
// elements before it checks the length.
func (e *entry) counted(offset, elemSize int) *entry {
	e.guard = func(body []byte) bool {
		if len(body) < offset+4 {
			return false
		}
		n := uint64(binary.BigEndian.Uint32(body[offset:]))
		return n*uint64(elemSize) <= uint64(len(body))
	}
	return e
}

// unmarshal decodes body into q. The generated code does not check the length; VPP drops a truncated message, so a panic in the decoder is an
// error.
func unmarshal(q message, body []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("truncated message: %v", r)
		}
	}()
	return q.Unmarshal(body)
}

// number assigns an id to every message except sockclnt_create, a different one after each boot: like those of a VPP with another set of
// plugins, ids must not be reused after a reconnect.
func (t *table) number(rng *rand.Rand) {
	rows := t.rows()
	free := make([]uint16, 0, len(rows))
	for i := range rows {
		free = append(free, uint16(firstFreeID+i))
	}
	rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	t.byID = make([]*entry, firstFreeID+len(rows))
	for i, e := range rows {
		if !e.fixed {
			e.id = free[i]
		}
		t.byID[e.id] = e
	}
}

// rows returns the table in order of names.
func (t *table) rows() []*entry {
	rows := make([]*entry, 0, len(t.byName))
	for _, e := range t.byName {
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b *entry) int { return cmp.Compare(a.name(), b.name()) })
	return rows
}

// lookup returns the entry with the id, nil if there is none.
func (t *table) lookup(id uint16) *entry {
	if int(id) >= len(t.byID) {
		return nil
	}
	return t.byID[id]
}

// appendFrame appends msg as a reply or event with the given id and context.
func appendFrame(out []byte, id uint16, context uint32, msg message) []byte {
	header := headerSize(msg)
	size := header + msg.Size()
	start := len(out)
	out = slices.Grow(out, frameHeader+size)[:start+frameHeader+size]
	frame := out[start:]
	clear(frame)
	binary.BigEndian.PutUint32(frame[8:], uint32(size))
	binary.BigEndian.PutUint16(frame[frameHeader:], id)
	binary.BigEndian.PutUint32(frame[frameHeader+header-4:], context)
	if size > header {
		if _, err := msg.Marshal(frame[frameHeader+header:]); err != nil {
			panic(fmt.Sprintf("vppfake: marshal %s: %v", msg.GetMessageName(), err))
		}
	}
	return out
}
