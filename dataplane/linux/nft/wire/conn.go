package wire

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// Conn is a netfilter netlink socket. The kernel executes a request during the send call, so answers can be read immediately.
type Conn struct {
	nl  *netlink.Conn
	seq uint32 // of the messages of transactions
}

const (
	readBuffer = 256 << 10
	queue      = 8 << 20 // the answers to a batch are its errors, about 1,000 bytes at most each, with overhead
	ioTimeout  = 30 * time.Second
)

// subsys returns the type of an nf_tables message.
func subsys(typ int) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | uint16(typ) }

// Dial opens a socket in a namespace.
func Dial(ns *nsdo.Namespace) (c *Conn, err error) {
	nl, err := netlink.Open(ns, unix.NETLINK_NETFILTER,
		netlink.Options{Timeout: ioTimeout, Buffer: make([]byte, readBuffer), Queue: queue})
	if err != nil {
		return nil, fmt.Errorf("nf_tables: %w (check that the kernel has nf_tables, and run as root)", err)
	}
	return &Conn{nl: nl, seq: uint32(time.Now().UnixNano())}, nil
}

// Close closes the socket.
func (c *Conn) Close() { c.nl.Close() }

// ErrDumpChanged means that something changed during the listing, not necessarily the listed objects. The listing is complete.
var ErrDumpChanged = errors.New("changed while it was listed")

// Get sends a request and calls each for the messages of the answer, without nfgenmsg. fill adds the attributes of the request.
func (c *Conn) Get(typ int, flags uint16, family uint8, fill func(*Buffer), each func(attrs []byte)) error {
	var b netlink.Batch
	b.Begin(subsys(typ), flags&^unix.NLM_F_DUMP, []byte{family, unix.NFNETLINK_V0, 0, 0})
	if fill != nil {
		w := Buffer{b.Attrs}
		fill(&w)
		b.Attrs = w.Attrs
	}
	take := func(payload []byte) {
		if len(payload) >= sizeofNfgenmsg {
			each(payload[sizeofNfgenmsg:])
		}
	}
	if flags&unix.NLM_F_DUMP == 0 {
		return c.nl.Get(&b, take)
	}
	consistent, err := c.nl.Dump(&b, func(_ uint16, payload []byte) { take(payload) })
	if err == nil && !consistent {
		err = ErrDumpChanged
	}
	return err
}

// FirstError returns the first error that is not nil.
func FirstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
