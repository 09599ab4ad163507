package netlink

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

const (
	// maxRequests and maxBytes limit what goes out in one send. All requests of a send may fail, and their answers must fit
	// into the receive buffer, where the smallest message takes about 1 KiB.
	maxRequests  = 512
	maxBytes     = 128 << 10
	socketBuffer = 2 << 20
	dumpTries    = 5
)

// ReceiveBuffer is what answers are read into: more than the kernel puts into one datagram of a dump.
const ReceiveBuffer = 64 << 10

// ErrUnknown says that answers were lost: which of the requests were carried out is not known, and the Conn is to be closed.
var ErrUnknown = errors.New("what the kernel did is not known")

// Conn is a netlink socket in a network namespace. It is used by one goroutine.
type Conn struct {
	fd   int
	ns   *nsdo.Namespace
	seq  uint32
	rbuf []byte
}

// Dial opens a socket of a netlink protocol (unix.NETLINK_ROUTE, …) in a namespace. The timeout is for every answer.
func Dial(ns *nsdo.Namespace, protocol int, timeout time.Duration) (c *Conn, err error) {
	err = ns.Do(func() (err error) {
		c, err = Open(protocol, timeout, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket in %s: %w", ns, err)
	}
	c.ns = ns
	return c, nil
}

// Open opens a socket in the namespace of the calling thread. rbuf, which sockets may share, is what answers are read into; nil makes one.
func Open(protocol int, timeout time.Duration, rbuf []byte) (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if rbuf == nil {
		rbuf = make([]byte, ReceiveBuffer)
	}
	c := &Conn{fd: fd, rbuf: rbuf}
	if err := unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		c.Close()
		return nil, fmt.Errorf("bind the netlink socket: %w", err)
	}
	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, opt, &tv); err != nil {
			c.Close()
			return nil, fmt.Errorf("set the netlink socket's time-out: %w", err)
		}
	}
	setBuffer(c.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, socketBuffer)
	setBuffer(c.fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, socketBuffer)
	// Best effort: short acknowledgements with an explanation, and dumps that the kernel filters. Old kernels do without;
	// callers filter what they read.
	for _, opt := range []int{unix.NETLINK_CAP_ACK, unix.NETLINK_EXT_ACK, unix.NETLINK_GET_STRICT_CHK} {
		_ = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, opt, 1)
	}
	return c, nil
}

// setBuffer sets a socket buffer beyond the system's limit, or up to it where that is not permitted.
func setBuffer(fd, force, plain, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
	}
}

// FD is the socket, for requests that are no messages: they are about its namespace, too.
func (c *Conn) FD() int { return c.fd }

// Close closes the socket.
func (c *Conn) Close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
	}
	c.fd = -1
}

// failed is then not reported.
func (c *Conn) Do(ctx context.Context, b *Batch) (failed []error, err error) {
	for first := 0; first < len(b.offs); {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("netlink: %d of %d requests were not sent: %w", len(b.offs)-first, len(b.offs), err)
		}
		end := b.chunk(first)
		base := c.number(b, first, end, unix.NLM_F_ACK)
		if err := c.send(b.buf[b.offs[first]:b.end(end)]); err != nil {
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

// One sends a batch of a single request and returns its error, whatever it is.
func (c *Conn) One(ctx context.Context, b *Batch) error {
	failed, err := c.Do(ctx, b)
	if err == nil && failed != nil {
		err = failed[0]
	}
	return err
}

// Get sends the one request of a batch and hands the message that answers it to each, which must not keep the payload.
func (c *Conn) Get(b *Batch, each func(payload []byte)) error {
	return c.ask(b, unix.NLM_F_ACK, func(_, _ uint16, payload []byte) { each(payload) })
}

// Dump sends the one request of a batch, to which it adds NLM_F_DUMP, and hands each message of the answer to each, which must
// not keep the payload. consistent is false when what was listed changed meanwhile.
func (c *Conn) Dump(b *Batch, each func(typ uint16, payload []byte)) (consistent bool, err error) {
	consistent = true
	err = c.ask(b, unix.NLM_F_DUMP, func(typ, flags uint16, payload []byte) {
		consistent = consistent && flags&unix.NLM_F_DUMP_INTR == 0
		if typ != unix.NLMSG_DONE {
			each(typ, payload)
		}
	})
	return consistent, err
}

// ask sends the one request of a batch and reads its whole answer.
func (c *Conn) ask(b *Batch, flags uint16, each func(typ, flags uint16, payload []byte)) error {
	base := c.number(b, 0, 1, flags)
	if err := c.send(b.buf); err != nil {
		return err
	}
	var refused error
	if err := c.receive(base, 1, each, func(_ uint32, e error) { refused = e }); err != nil {
		return err
	}
	return refused
}

// List dumps and parses; parse says whether to keep what it read. It starts again when the list changed meanwhile.
func List[T any](c *Conn, b *Batch, parse func(payload []byte) (v T, keep bool)) ([]T, error) {
	for try := 1; ; try++ {
		var out []T
		consistent, err := c.Dump(b, func(_ uint16, payload []byte) {
			if v, keep := parse(payload); keep {
				out = append(out, v)
			}
		})
		if err != nil {
			return nil, err
		}
		if consistent || try == dumpTries { // what still changes will be reported by notifications, or found at the next resync
			return out, nil
		}
	}
}

// chunk is where the part of the batch that fits into one send and begins at first ends.
func (b *Batch) chunk(first int) int {
	end := first + 1
	for end < len(b.offs) && end-first < maxRequests && b.end(end+1)-b.offs[first] <= maxBytes {
		end++
	}
	return end
}

// end is where request n-1 ends.
func (b *Batch) end(n int) int {
	if n < len(b.offs) {
		return b.offs[n]
	}
	return len(b.buf)
}

// number gives the requests their sequence numbers, the first of which it returns, and flags to the last.
func (c *Conn) number(b *Batch, first, end int, flags uint16) uint32 {
	base := c.seq + 1
	for i := first; i < end; i++ {
		c.seq++
		binary.NativeEndian.PutUint32(b.buf[b.offs[i]+8:], c.seq)
	}
	at := b.buf[b.offs[end-1]+6:]
	binary.NativeEndian.PutUint16(at, binary.NativeEndian.Uint16(at)|flags)
	return base
}

func (c *Conn) send(data []byte) error {
	for {
		err := unix.Sendto(c.fd, data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("send to netlink in %s: %w", c.ns, err)
		}
		return nil
	}
}

// receive reads the answers to n requests from base on, until the last one's.
func (c *Conn) receive(base, n uint32, each func(typ, flags uint16, payload []byte), failed func(i uint32, err error)) error {
	for {
		size, from, err := unix.Recvfrom(c.fd, c.rbuf, unix.MSG_TRUNC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("receive from netlink in %s: %w (%w)", c.ns, err, ErrUnknown)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not from the kernel
		}
		if size > len(c.rbuf) {
			return fmt.Errorf("receive from netlink in %s: datagram of %d bytes (%w)", c.ns, size, ErrUnknown)
		}
		done := false
		Messages(c.rbuf[:size], func(typ, flags uint16, seq uint32, payload []byte) {
			i := seq - base
			if i >= n {
				return // the answer to a request that was given up
			}
			if typ == unix.NLMSG_ERROR || typ == unix.NLMSG_DONE {
				if err := ackError(payload, flags); err != nil {
					failed(i, err)
				}
				done = done || i == n-1
			}
			if each != nil && typ != unix.NLMSG_ERROR {
				each(typ, flags, payload)
			}
		})
		if done {
			return nil
		}
	}
}

// ackError is the error in an acknowledgement, with the kernel's explanation where there is one.
func ackError(payload []byte, flags uint16) error {
	if len(payload) < 4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(payload))
	if code == 0 {
		return nil
	}
	errno := unix.Errno(-code)
	const ackHeader = 4 + unix.SizeofNlMsghdr
	why := ""
	if flags&unix.NLM_F_ACK_TLVS != 0 && len(payload) > ackHeader {
		Attributes(payload[ackHeader:], 0, func(typ uint16, v []byte) {
			if typ == unix.NLMSGERR_ATTR_MSG {
				why = Text(v)
			}
		})
	}
	if why != "" {
		return fmt.Errorf("%w (%s)", errno, why)
	}
	return errno
}
