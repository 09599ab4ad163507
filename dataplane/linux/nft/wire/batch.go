package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Object is what messages are for, and what is broken when the kernel refuses one of them.
type Object interface {
	Key() string    // as in table.Result.Broken
	Fail(err error) // the kernel refuses it
	Failed() bool
	Touch() // it is looked at again
}

// Batch is a transaction: messages that the kernel carries out all or none. It has the object that each message is for.
type Batch struct {
	Buffer
	table  string
	first  uint32   // sequence number of the message that begins it
	blame  []Object // of the messages, by sequence number from first
	last   int      // where the last message is
	open   int      // where the message being built is
	Sets   uint32   // that were made so far
	Writes int
}

// NewBatch begins a transaction on a table, with this sequence number.
func NewBatch(table string, first uint32) *Batch {
	b := &Batch{table: table, first: first}
	b.message(unix.NFNL_MSG_BATCH_BEGIN, 0, first, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.blame = append(b.blame, nil)
	b.Bytes(unix.NFNL_BATCH_GENID, make([]byte, 4))
	b.CloseMessage(0)
	return b
}

// genIDAt is where the generation's number is in the first message.
const genIDAt = unix.SizeofNlMsghdr + sizeofNfgenmsg + unix.SizeofRtAttr

// Begin begins a message on an object of the family's table.
func (b *Batch) Begin(proto uint8, typ int, flags uint16, object Object) {
	b.open = b.message(subsys(typ), flags, b.first+uint32(len(b.blame)), proto, 0)
	b.blame = append(b.blame, object)
	b.last = b.open
	b.String(1, b.table) // NFTA_*_TABLE are all 1
}

// End ends a message.
func (b *Batch) End() { b.CloseMessage(b.open) }

// Empty is true if there is no message in it.
func (b *Batch) Empty() bool { return len(b.blame) == 1 }

// close ends the transaction, of which the kernel is to acknowledge the last message.
func (b *Batch) close() []byte {
	b.AddFlags(b.last, unix.NLM_F_ACK)
	seq := b.first + uint32(len(b.blame))
	at := b.message(unix.NFNL_MSG_BATCH_END, 0, seq, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.CloseMessage(at)
	return b.B
}

// Outcomes of a transaction.
var (
	// ErrStale: another program has written since the generation for which the transaction was.
	ErrStale = errors.New("nf_tables was changed meanwhile by another program")
	errLost  = errors.New("nf_tables did not acknowledge the transaction")
)

// Refusal is a transaction that the kernel did not carry out because of some of its messages.
type Refusal struct {
	Objects map[Object]error // those to blame; the first error of each
	Order   []Object         // in which they were met
	Other   error            // of a message that is for no object
}

// Error implements error.
func (r *Refusal) Error() string {
	for o, err := range r.Objects {
		return fmt.Sprintf("nf_tables refuses %d objects, among them %s: %v", len(r.Objects), o.Key(), err)
	}
	return fmt.Sprintf("nf_tables refuses the transaction: %v", r.Other)
}

// add notes the error of a message that is for o, or for no object.
func (r *Refusal) add(o Object, err error) {
	switch {
	case o == nil:
		r.Other = FirstError(r.Other, err)
	case r.Objects[o] == nil:
		r.Objects[o] = err
		r.Order = append(r.Order, o)
	}
}

// commit sends a closed transaction, which the kernel takes only in generation gen. The error is ErrStale, a *Refusal, or of
// the socket.
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
			continue // there were more errors than fit; those that did are enough
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
