package conn

import (
	"sync"

	"go.fd.io/govpp/api"
)

// A request's context holds the number of its receiver and the sequence number of the request at that
// receiver.
const (
	sequenceBits = 20
	sequenceMask = 1<<sequenceBits - 1
	maxReceivers = 1 << (32 - sequenceBits)
	callReceiver = 1 // number of the one-at-a-time calls; lanes follow, 0 has no owner
)

// delivery is a decoded message for the receiver that made the request.
type delivery struct {
	sequence uint32
	typ      *msgType
	msg      api.Message
	err      error // could not be decoded
}

// receiver gets the answers to its requests, on the reader's goroutine. It must not block or keep batch.
type receiver interface{ deliver(batch []delivery) }

// router distributes the messages of one transport to the receivers and subscribers.
type router struct {
	conn  *Conn
	t     *transport
	types []*msgType // by message number
	to    receiver
	batch []delivery
	fresh bool // a message has arrived since the last idle
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
		return // a message of a package that the agent does not link: no request for it was made
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

// idle delivers the collected messages and records the sign of life.
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

// mailbox holds deliveries from the reader for a lane.
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

// take returns the deliveries and keeps the empty slice spare for the next ones.
func (b *mailbox) take(spare []delivery) []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = spare[:0]
	return items
}
