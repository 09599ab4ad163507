package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Object is what a message is for. It is broken if the kernel rejects one of its messages.
type Object interface {
	Key() string    // as in table.Result.Broken
	Fail(err error) // the kernel rejects it
	Failed() bool
	Touch() // marks it to be checked again
}

// Batch is a transaction: messages that the kernel executes completely or not at all. It stores the object that each message is for.
type Batch struct {
	Buffer
	table  string
	first  uint32   // sequence number of the first message
	blame  []Object // the objects of the messages, by sequence number minus first
	last   int      // offset of the last message
	open   int      // offset of the message being built
	Sets   uint32   // number of sets created so far
	Writes int
}

// NewBatch returns a transaction on a table that starts with this sequence number.
func NewBatch(table string, first uint32) *Batch {
	b := &Batch{table: table, first: first}
	b.message(unix.NFNL_MSG_BATCH_BEGIN, 0, first, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.blame = append(b.blame, nil)
	b.Bytes(unix.NFNL_BATCH_GENID, make([]byte, 4))
	b.CloseMessage(0)
	return b
}

// genIDAt is the offset of the generation's number in the first message.
const genIDAt = unix.SizeofNlMsghdr + sizeofNfgenmsg + unix.SizeofRtAttr

// Begin starts a message about an object of the family's table.
func (b *Batch) Begin(proto uint8, typ int, flags uint16, object Object) {
	b.open = b.message(subsys(typ), flags, b.first+uint32(len(b.blame)), proto, 0)
	b.blame = append(b.blame, object)
	b.last = b.open
	b.String(1, b.table) // NFTA_*_TABLE are all 1
}

// End completes a message.
func (b *Batch) End() { b.CloseMessage(b.open) }

// Empty reports whether the transaction has no messages.
func (b *Batch) Empty() bool { return len(b.blame) == 1 }

// close completes the transaction and requests an acknowledgement of its last message.
func (b *Batch) close() []byte {
	b.AddFlags(b.last, unix.NLM_F_ACK)
	seq := b.first + uint32(len(b.blame))
	at := b.message(unix.NFNL_MSG_BATCH_END, 0, seq, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.CloseMessage(at)
	return b.B
}

// Outcomes of a transaction.
var (
	// ErrStale means that another program has written since the generation that the transaction is based on.
	ErrStale = errors.New("another program has changed nf_tables at the same time")
	errLost  = errors.New("nf_tables did not acknowledge the transaction")
)

// Refusal is the error of a transaction that the kernel did not execute because it rejected some of its messages.
type Refusal struct {
	Objects map[Object]error // the rejected objects, with the first error of each
	Order   []Object         // the rejected objects in the order of their first errors
	Other   error            // error of a message that is for no object
}

// Error implements error.
func (r *Refusal) Error() string {
	for o, err := range r.Objects {
		return fmt.Sprintf("nf_tables rejects %d objects, among them %s: %v", len(r.Objects), o.Key(), err)
	}
	return fmt.Sprintf("nf_tables rejects the transaction: %v", r.Other)
}

// add records the error of a message for o, or for no object if o is nil.
func (r *Refusal) add(o Object, err error) {
	switch {
	case o == nil:
		r.Other = FirstError(r.Other, err)
	case r.Objects[o] == nil:
		r.Objects[o] = err
		r.Order = append(r.Order, o)
	}
}

// commit sends a closed transaction, which the kernel accepts only in generation gen. The error is ErrStale, a *Refusal, or an error of the
// socket.
func (c *Conn) commit(b *Batch, data []byte, gen uint32) error {
	binary.BigEndian.PutUint32(data[genIDAt:], gen)
	if err := c.nl.Send(data); err != nil {
		return err
	}
	c.seq = b.first + uint32(len(b.blame))
	r := &Refusal{Objects: map[Object]error{}}
	acked, stale := false, false
	for {
		err := c.nl.Receive(false, func(m netlink.Message) {
			i := m.Seq - b.first
			if m.Type != unix.NLMSG_ERROR || i >= uint32(len(b.blame)) {
				return
			}
			err := m.Ack()
			switch {
			case err == nil:
				acked = acked || i == uint32(len(b.blame)-1)
			case errors.Is(err, unix.ERESTART):
				stale = true
			default:
				r.add(b.blame[i], err)
			}
		})
		if errors.Is(err, unix.ENOBUFS) {
			continue // there were more errors than the queue holds; those received suffice
		}
		if errors.Is(err, netlink.ErrEmpty) {
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case stale:
		return ErrStale
	case len(r.Objects) > 0 || r.Other != nil:
		return r
	case !acked:
		return errLost
	}
	return nil
}
