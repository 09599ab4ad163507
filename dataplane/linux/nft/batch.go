package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// batch is a transaction: messages that the kernel carries out all or none. It has the object that each message is for.
type batch struct {
	buffer
	table  string
	first  uint32   // sequence number of the message that begins it
	blame  []object // of the messages, by sequence number from first
	last   int      // where the last message is
	open   int      // where the message being built is
	sets   uint32   // that were made so far
	writes int
}

func newBatch(table string, first uint32) *batch {
	b := &batch{table: table, first: first}
	b.message(unix.NFNL_MSG_BATCH_BEGIN, unix.NLM_F_REQUEST, first, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.blame = append(b.blame, nil)
	b.bytes(unix.NFNL_BATCH_GENID, make([]byte, 4))
	b.endMessage(0)
	return b
}

// genIDAt is where the generation's number is in the first message.
const genIDAt = msgHeader + attrHeader

// begin begins a message on an object of the family's table.
func (b *batch) begin(f *family, typ int, flags uint16, who object) {
	b.open = b.message(subsys(typ), unix.NLM_F_REQUEST|flags, b.first+uint32(len(b.blame)), f.proto, 0)
	b.blame = append(b.blame, who)
	b.last = b.open
	b.str(1, b.table) // NFTA_*_TABLE are all 1
}

func (b *batch) end() { b.endMessage(b.open) }

func (b *batch) empty() bool { return len(b.blame) == 1 }

// close ends the transaction, of which the kernel is to acknowledge the last message.
func (b *batch) close() []byte {
	b.addFlags(b.last, unix.NLM_F_ACK)
	seq := b.first + uint32(len(b.blame))
	at := b.message(unix.NFNL_MSG_BATCH_END, unix.NLM_F_REQUEST, seq, unix.AF_UNSPEC, unix.NFNL_SUBSYS_NFTABLES)
	b.endMessage(at)
	return b.b
}

// Outcomes of a transaction.
var (
	// errStale: another program has written since the generation for which the transaction was.
	errStale = errors.New("nf_tables was changed meanwhile by another program")
	errLost  = errors.New("nf_tables did not acknowledge the transaction")
)

// refusal is a transaction that the kernel did not carry out because of some of its messages.
type refusal struct {
	objects map[object]error // those to blame; the first error of each
	order   []object         // in which they were met
	other   error            // of a message that is for no object
}

func (r *refusal) Error() string {
	for o, err := range r.objects {
		return fmt.Sprintf("nf_tables refuses %d objects, among them %s: %v", len(r.objects), o.key(), err)
	}
	return fmt.Sprintf("nf_tables refuses the transaction: %v", r.other)
}

// commit sends a closed transaction, which the kernel takes only in generation gen. The error is errStale, a *refusal, or of
// the socket.
func (c *conn) commit(b *batch, data []byte, gen uint32) error {
	binary.BigEndian.PutUint32(data[genIDAt:], gen)
	if err := c.send(data); err != nil {
		return err
	}
	c.seq = b.first + uint32(len(b.blame))
	r := &refusal{objects: map[object]error{}}
	acked, stale := false, false
	for {
		err := c.receive(unix.MSG_DONTWAIT, func(h header, payload []byte) error {
			i := h.seq - b.first
			if h.typ != unix.NLMSG_ERROR || i >= uint32(len(b.blame)) {
				return nil
			}
			err := ackError(h, payload)
			switch {
			case err == nil:
				acked = acked || i == uint32(len(b.blame)-1)
			case errors.Is(err, unix.ERESTART):
				stale = true
			case b.blame[i] == nil:
				r.other = cmpErr(r.other, err)
			case r.objects[b.blame[i]] == nil:
				r.objects[b.blame[i]] = err
				r.order = append(r.order, b.blame[i])
			}
			return nil
		})
		if errors.Is(err, unix.ENOBUFS) {
			continue // there were more errors than fit; those that did are enough
		}
		if errors.Is(err, errNoMore) {
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case stale:
		return errStale
	case len(r.objects) > 0 || r.other != nil:
		return r
	case !acked:
		return errLost
	}
	return nil
}
