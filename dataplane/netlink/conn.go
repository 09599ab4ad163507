package netlink

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	// maxRequests and maxBytes limit the requests of one send. All requests of a send may fail, and their replies must fit into the receive
	// buffer, where the smallest message takes about 1 KiB.
	maxRequests  = 512
	maxBytes     = 128 << 10
	socketBuffer = 2 << 20
	dumpTries    = 5
)

// ReceiveBuffer is the size in bytes of the buffer for replies: more than the kernel puts into one datagram of a dump.
const ReceiveBuffer = 64 << 10

// ErrUnknown reports that replies were lost: it is unknown which of the requests were carried out, and the Conn must be closed.
var ErrUnknown = errors.New("replies of the kernel were lost, so the result is not known")

// ErrTooMany reports that a listing has more entries than Options.Limit permits. The rest of the listing was not read.
var ErrTooMany = errors.New("there are too many entries to list")

// Do carries out a batch. failed holds an error for each request that the kernel rejected, and is nil if there was none. If err is not nil, the
// outcome of all or some of the requests is unknown.
func (c *Conn) Do(ctx context.Context, b *Batch) (failed []error, err error) {
	for first := 0; first < len(b.offs); {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("netlink: %d of %d requests were not sent: %w", len(b.offs)-first, len(b.offs), err)
		}
		end := b.chunk(first)
		base := c.number(b, first, end, unix.NLM_F_ACK)
		if err := c.Send(b.B[b.offs[first]:b.end(end)]); err != nil {
			return nil, err
		}
		err := c.receive(base, uint32(end-first), nil, func(i uint32, e error) {
			if failed == nil {
				failed = make([]error, len(b.offs))
			}
			failed[first+int(i)] = e
		})
		if err != nil {
			return nil, err
		}
		first = end
	}
	return failed, nil
}

// One sends a batch of a single request and returns its error of either type.
func (c *Conn) One(ctx context.Context, b *Batch) error {
	failed, err := c.Do(ctx, b)
	if err == nil && failed != nil {
		err = failed[0]
	}
	return err
}

// Get sends the one request of a batch and calls each with the message of the reply. each must not keep the payload.
func (c *Conn) Get(b *Batch, each func(payload []byte)) error {
	return c.query(b, unix.NLM_F_ACK, func(m Message) { each(m.Payload) })
}

// Dump sends the one request of a batch, to which it adds NLM_F_DUMP, and calls each with each message of the reply. each must not keep the
// payload. consistent is false when the listed objects changed meanwhile.
func (c *Conn) Dump(b *Batch, each func(typ uint16, payload []byte)) (consistent bool, err error) {
	consistent = true
	err = c.query(b, unix.NLM_F_DUMP, func(m Message) {
		consistent = consistent && m.Flags&unix.NLM_F_DUMP_INTR == 0
		if m.Type != unix.NLMSG_DONE {
			each(m.Type, m.Payload)
		}
	})
	return consistent, err
}

// query sends the one request of a batch and reads its whole reply.
func (c *Conn) query(b *Batch, flags uint16, each func(Message)) error {
	base := c.number(b, 0, 1, flags)
	if err := c.Send(b.Bytes()); err != nil {
		return err
	}
	var refused error
	limited, entries := flags&unix.NLM_F_DUMP == unix.NLM_F_DUMP && c.options.Limit > 0, 0
	err := c.receive(base, 1, func(m Message) (more bool) {
		if entries++; limited && m.Type != unix.NLMSG_DONE && entries > c.options.Limit {
			return false
		}
		each(m)
		return true
	}, func(_ uint32, e error) { refused = e })
	if errors.Is(err, ErrTooMany) {
		return c.abandon(err)
	}
	if err != nil {
		return err
	}
	return refused
}

// abandon replaces the socket by a new one: the kernel would continue the listing with each further receive. err is the reason.
func (c *Conn) abandon(err error) error {
	c.Close()
	return errors.Join(fmt.Errorf("%w in %s: more than %d", err, c.ns, c.options.Limit), c.open())
}

// List dumps and parses; parse reports whether to keep the parsed value. List starts again when the list changed meanwhile.
func List[T any](c *Conn, b *Batch, parse func(payload []byte) (v T, keep bool)) ([]T, error) {
	out, _, err := ListWhole(c, b, dumpTries, parse) // notifications, or the next resync, report later changes
	return out, err
}

// ListWhole is like List. whole is false if the list changed during each of the given number of tries: entries may be missing.
func ListWhole[T any](c *Conn, b *Batch, tries int, parse func(payload []byte) (v T, keep bool)) (out []T, whole bool, err error) {
	for range tries {
		out = nil
		whole, err = c.Dump(b, func(_ uint16, payload []byte) {
			if v, keep := parse(payload); keep {
				out = append(out, v)
			}
		})
		if err != nil {
			return nil, false, err
		}
		if whole {
			break
		}
	}
	return out, whole, nil
}

// number sets the sequence numbers of the requests, returns the first one, and sets flags in the last request.
func (c *Conn) number(b *Batch, first, end int, flags uint16) (base uint32) {
	base = c.seq + 1
	c.seq += uint32(end - first)
	b.number(first, end, base, flags)
	return base
}

// receive reads the replies to n requests from sequence number base on, up to the reply to the last one. It ends with ErrTooMany when each returns
// false.
func (c *Conn) receive(base, n uint32, each func(Message) (more bool), failed func(i uint32, err error)) error {
	for done, full := false, false; !done; {
		err := c.Receive(true, func(m Message) {
			i := m.Seq - base
			if i >= n || full {
				return // the reply to a request that was given up
			}
			if m.Type == unix.NLMSG_ERROR || m.Type == unix.NLMSG_DONE {
				if err := m.Ack(); err != nil {
					failed(i, err)
				}
				done = done || i == n-1
			}
			if each != nil && m.Type != unix.NLMSG_ERROR {
				full = !each(m)
			}
		})
		if err != nil {
			return fmt.Errorf("%w (%w)", err, ErrUnknown)
		}
		if full {
			return ErrTooMany
		}
	}
	return nil
}
