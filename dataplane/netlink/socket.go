package netlink

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// Conn is a netlink socket in a network namespace. It must be used by one goroutine only.
type Conn struct {
	fd     int
	ns     *nsdo.Namespace
	port   uint32
	seq    uint32
	sndbuf int
	rbuf   []byte

	protocol int
	options  Options
}

// Options configures a socket; only Timeout is required.
type Options struct {
	Timeout time.Duration // of each reply
	Buffer  []byte        // buffer for replies: sockets of one goroutine may share it; nil: one of ReceiveBuffer bytes is allocated
	Queue   int           // number of bytes of replies that the kernel may queue; 0: enough for a Batch
	Limit   int           // number of entries that a listing may have, see ErrTooMany; 0: no limit. Not with Join
}

// Dial opens a socket of a netlink protocol (unix.NETLINK_ROUTE, …) in a namespace. timeout applies to each reply.
func Dial(ns *nsdo.Namespace, protocol int, timeout time.Duration) (*Conn, error) {
	return Open(ns, protocol, Options{Timeout: timeout})
}

// Open is like Dial, with options.
func Open(ns *nsdo.Namespace, protocol int, o Options) (*Conn, error) {
	c := &Conn{ns: ns, rbuf: o.Buffer, fd: -1, protocol: protocol, options: o}
	if c.rbuf == nil {
		c.rbuf = make([]byte, ReceiveBuffer)
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	return c, nil
}

// open opens the socket.
func (c *Conn) open() error {
	c.sndbuf = socketBuffer
	err := c.ns.Do(func() (err error) {
		c.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, c.protocol)
		return err
	})
	if err != nil {
		return fmt.Errorf("open a netlink socket in %s: %w", c.ns, err)
	}
	if err := c.setup(c.options); err != nil {
		c.Close()
		return fmt.Errorf("set up a netlink socket in %s: %w", c.ns, err)
	}
	return nil
}

func (c *Conn) setup(o Options) error {
	if err := unix.Bind(c.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	own, err := unix.Getsockname(c.fd)
	if err != nil {
		return fmt.Errorf("read its port: %w", err)
	}
	if sa, ok := own.(*unix.SockaddrNetlink); ok {
		c.port = sa.Pid
	}
	tv := unix.NsecToTimeval(o.Timeout.Nanoseconds())
	for _, opt := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, opt, &tv); err != nil {
			return fmt.Errorf("set its timeout: %w", err)
		}
	}
	setBuffer(c.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, socketBuffer)
	setBuffer(c.fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, max(o.Queue, socketBuffer))
	// Best effort: short acknowledgements with an explanation, and dumps that the kernel filters. Old kernels lack these options; callers
	// filter the results.
	for _, opt := range []int{unix.NETLINK_CAP_ACK, unix.NETLINK_EXT_ACK, unix.NETLINK_GET_STRICT_CHK} {
		_ = unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, opt, 1)
	}
	return nil
}

// setBuffer sets the size of a socket's buffer, above the system's limit if the process has the right to do that.
func setBuffer(fd, force, plain, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size)
	}
}

// FD returns the socket, for requests other than netlink messages that any socket of the namespace can make.
func (c *Conn) FD() int { return c.fd }

// Port returns the kernel's number of the socket. Notifications of changes made through the socket carry this number.
func (c *Conn) Port() uint32 { return c.port }

// Close closes the socket.
func (c *Conn) Close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
	}
	c.fd = -1
}

// Send sends one datagram unchanged, for callers that number their messages. The kernel processes it before Send returns.
func (c *Conn) Send(data []byte) error {
	// The kernel doubles the given size, and needs slightly more than the datagram.
	if need := len(data) + 4096; need > c.sndbuf {
		setBuffer(c.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, need)
		c.sndbuf = need
	}
	for {
		err := unix.Sendto(c.fd, data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("send %d bytes to netlink in %s: %w", len(data), c.ns, err)
		}
		return nil
	}
}

// ErrEmpty reports that no message is waiting.
var ErrEmpty = errors.New("no netlink message")

// Receive reads one datagram and calls each for its messages, whose payloads must not be kept. If wait is false and there is no message, it
// returns ErrEmpty.
func (c *Conn) Receive(wait bool, each func(Message)) error {
	flags := unix.MSG_TRUNC
	if !wait {
		flags |= unix.MSG_DONTWAIT
	}
	for {
		size, from, err := unix.Recvfrom(c.fd, c.rbuf, flags)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN) && !wait:
			return ErrEmpty
		case err != nil:
			return fmt.Errorf("receive from netlink in %s: %w", c.ns, err)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // not from the kernel
		}
		if size > len(c.rbuf) {
			return fmt.Errorf("receive from netlink in %s: datagram of %d bytes", c.ns, size)
		}
		Messages(c.rbuf[:size], each)
		return nil
	}
}

// Join subscribes to the notifications of a group.
func (c *Conn) Join(group int) error {
	return unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group)
}

// Leave ends the subscription of Join.
func (c *Conn) Leave(group int) error {
	return unix.SetsockoptInt(c.fd, unix.SOL_NETLINK, unix.NETLINK_DROP_MEMBERSHIP, group)
}

// Wait waits until a message may be available. It returns false after d.
func (c *Conn) Wait(d time.Duration) bool {
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, int(d.Milliseconds()))
	return errors.Is(err, unix.EINTR) || err == nil && ready > 0
}
