package conn

import (
	"sync"

	"go.fd.io/govpp/api"
)

// A request's context names the receiver by its number and which of its requests it is (the sequence number).
const (
	sequenceBits = 20
	sequenceMask = 1<<sequenceBits - 1
	maxReceivers = 1 << (32 - sequenceBits)
	callReceiver = 1 // number of the one-at-a-time calls; lanes come behind, 0 is without an owner
)

// delivery is a decoded message on its way to the receiver that asked for it.
type delivery struct {
	sequence uint32
	typ      *msgType
	msg      api.Message
	err      error // could not be decoded
}

// receiver gets the answers to its requests, on the reader's goroutine. It must not block or keep batch.
type receiver interface{ deliver(batch []delivery) }

// router takes what one transport receives to the receivers and subscribers.
type router struct {
	conn  *Conn
	t     *transport
	types []*msgType // by message number
	to    receiver
	batch []delivery
	fresh bool // something came since the last idle
}

func newRouter(c *Conn, t *transport) *router {
	r := &router{conn: c, t: t}
	for key, id := range t.ids {
		if typ, ok := c.types[key]; ok {
			for int(id) >= len(r.types) {
				r.types = append(r.types, make([]*msgType, 256)...)
			}
			r.types[id] = typ
		}
	}
	return r
}

func (r *router) message(id uint16, data []byte) {
	r.fresh = true
	if int(id) >= len(r.types) || r.types[id] == nil {
		return // a message of a package that the agent does not link: nothing asked for it
	}
	typ := r.types[id]
	context, ok := typ.context(data)
	if !ok {
		r.conn.events.publish(typ, data)
		return
	}
	to := r.conn.receiver(context >> sequenceBits)
	if to == nil {
		return
	}
	if to != r.to {
		r.hand()
		r.to = to
	}
	m, err := typ.decode(data)
	r.batch = append(r.batch, delivery{sequence: context & sequenceMask, typ: typ, msg: m, err: err})
}

// idle hands over what came and notes the sign of life.
func (r *router) idle() {
	if !r.fresh {
		return
	}
	r.fresh = false
	r.t.lastRx.Store(r.conn.clock.now())
	r.hand()
}

func (r *router) hand() {
	if len(r.batch) > 0 {
		r.to.deliver(r.batch)
		clear(r.batch)
		r.batch = r.batch[:0]
	}
}

// mailbox is where the reader leaves deliveries for a lane.
type mailbox struct {
	mu    sync.Mutex
	items []delivery
	wake  chan struct{} // capacity 1
}

func (b *mailbox) deliver(batch []delivery) {
	b.mu.Lock()
	b.items = append(b.items, batch...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take swaps the deliveries for the empty slice spare.
func (b *mailbox) take(spare []delivery) []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = spare[:0]
	return items
}
