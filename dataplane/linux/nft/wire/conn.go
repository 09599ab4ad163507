package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// Conn is a netfilter netlink socket. The kernel carries out what is sent while it is being sent, so answers are there to
// be read at once.
type Conn struct {
	FD     int
	port   uint32 // the kernel's name of the socket, which is in what it informs others of our transactions
	seq    uint32
	sndbuf int // what the kernel was reported last
	rbuf   []byte
}

const (
	readBuffer = 256 << 10
	minSndbuf  = 1 << 20
	rcvbuf     = 8 << 20 // answers to a batch are its errors, at most some 1,000 bytes each with overhead
	ioTimeout  = 30 * time.Second
)

// subsys is the type of an nf_tables message.
func subsys(typ int) uint16 { return unix.NFNL_SUBSYS_NFTABLES<<8 | uint16(typ) }

// Dial opens a socket in a namespace.
func Dial(ns *nsdo.Namespace) (c *Conn, err error) {
	err = ns.Do(func() (err error) {
		c, err = newConn()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("nf_tables socket in %s: %w (does the kernel have nf_tables, and is this root?)", ns, err)
	}
	return c, nil
}

func newConn() (*Conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	tv := unix.NsecToTimeval(ioTimeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		unix.Close(fd)
		return nil, err
	}
	// Best effort: short errors with an explanation, and room for many. Old kernels and small privileges do without.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvbuf)
	c := &Conn{FD: fd, seq: uint32(time.Now().UnixNano()), rbuf: make([]byte, readBuffer)}
	if sa, ok := own.(*unix.SockaddrNetlink); ok {
		c.port = sa.Pid
	}
	return c, nil
}

// Close closes the socket.
func (c *Conn) Close() { unix.Close(c.FD) }

// send sends one datagram, for which the socket's buffer is made large enough.
func (c *Conn) send(b []byte) error {
	// The kernel doubles the given size, and wants a little more than the datagram.
	if need := max(len(b)+4096, minSndbuf); need > c.sndbuf {
		if err := unix.SetsockoptInt(c.FD, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, need); err != nil {
			_ = unix.SetsockoptInt(c.FD, unix.SOL_SOCKET, unix.SO_SNDBUF, need)
		}
		c.sndbuf = need
	}
	if err := unix.Sendto(c.FD, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("send %d bytes to nf_tables: %w", len(b), err)
	}
	return nil
}

// errNoMore: nothing (more) has come.
var errNoMore = errors.New("no message")

// receive reads one datagram of the kernel; flags may have MSG_DONTWAIT.
func (c *Conn) receive(flags int, each func(h header, payload []byte) error) error {
	for {
		n, from, err := unix.Recvfrom(c.FD, c.rbuf, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return errNoMore
		case err != nil:
			return fmt.Errorf("receive from nf_tables: %w", err)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not the kernel
		}
		return eachMessage(c.rbuf[:n], each)
	}
}

// header is what matters of a message's header.
type header struct {
	typ, flags uint16
	seq, port  uint32
}

func eachMessage(b []byte, each func(h header, payload []byte) error) error {
	for len(b) >= unix.SizeofNlMsghdr {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return fmt.Errorf("nf_tables: message of %d bytes in a datagram of %d", size, len(b))
		}
		h := header{binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]),
			binary.NativeEndian.Uint32(b[8:]), binary.NativeEndian.Uint32(b[12:])}
		if err := each(h, b[unix.SizeofNlMsghdr:size]); err != nil {
			return err
		}
		b = b[min(align4(size), len(b)):]
	}
	return nil
}

// ErrDumpChanged: something changed while it was listed, not necessarily that of which was asked. All has been listed.
var ErrDumpChanged = errors.New("changed while it was listed")

// errDone ends a request.
var errDone = errors.New("done")

// Get sends a request and hands the answer's messages, without nfgenmsg, to each. Attributes are filled in by fill.
func (c *Conn) Get(typ int, flags uint16, family uint8, fill func(*Buffer), each func(attrs []byte)) error {
	c.seq++
	seq := c.seq
	var w Buffer
	at := w.message(subsys(typ), unix.NLM_F_REQUEST|flags, seq, family, 0)
	if fill != nil {
		fill(&w)
	}
	w.endMessage(at)
	if err := c.send(w.B); err != nil {
		return err
	}
	changed := false
	for {
		err := c.receive(0, func(h header, payload []byte) error {
			if h.seq != seq {
				return nil // an answer to something that was given up
			}
			changed = changed || h.flags&unix.NLM_F_DUMP_INTR != 0
			switch h.typ {
			case unix.NLMSG_ERROR, unix.NLMSG_DONE:
				return FirstError(ackError(h, payload), errDone)
			}
			if len(payload) >= 4 {
				each(payload[4:])
			}
			if flags&unix.NLM_F_DUMP == 0 {
				return errDone
			}
			return nil
		})
		switch {
		case errors.Is(err, errDone) && changed:
			return ErrDumpChanged
		case errors.Is(err, errDone):
			return nil
		case err != nil:
			return err
		}
	}
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

// ackError is the error that an NLMSG_ERROR or NLMSG_DONE carries, nil if none, with the kernel's explanation if there is one.
func ackError(h header, payload []byte) error {
	if len(payload) < 4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(payload))
	if code == 0 {
		return nil
	}
	errno := unix.Errno(-code)
	const skip = 4 + unix.SizeofNlMsghdr
	if h.typ == unix.NLMSG_ERROR && h.flags&unix.NLM_F_ACK_TLVS != 0 && len(payload) > skip {
		if msg := netlink.Text(Attr(payload[skip:], unix.NLMSGERR_ATTR_MSG)); msg != "" {
			return fmt.Errorf("%w (%s)", errno, msg)
		}
	}
	return errno
}
