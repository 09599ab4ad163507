package netlink

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// ErrLost reports that notifications were lost: the changed objects must be listed.
var ErrLost = errors.New("netlink notifications were lost")

// Events is a socket that receives notifications of the kernel.
type Events struct {
	file *os.File
	conn syscall.RawConn
	buf  []byte
}

// Listen opens a socket of a netlink protocol in a namespace. buffer is the size in bytes of the kernel's queue for the socket. The caller
// requests notifications with Send.
func Listen(ns *nsdo.Namespace, protocol, buffer int) (*Events, error) {
	return listen(ns, protocol, buffer)
}

// Send sends requests. Receive returns their replies.
func (e *Events) Send(b *Batch) (err error) {
	control := e.conn.Control(func(fd uintptr) {
		err = unix.Sendto(int(fd), b.Bytes(), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	})
	if err = errors.Join(control, err); err != nil {
		return fmt.Errorf("send a netlink request: %w", err)
	}
	return nil
}

// Subscribe receives the notifications of some groups (unix.RTNLGRP_…) of a namespace from now on. buffer is the size in bytes of the kernel's
// queue for the socket.
func Subscribe(ns *nsdo.Namespace, buffer int, groups ...int) (*Events, error) {
	return listen(ns, unix.NETLINK_ROUTE, buffer, groups...)
}

func listen(ns *nsdo.Namespace, protocol, buffer int, groups ...int) (*Events, error) {
	fd := -1
	err := ns.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket in %s: %w", ns, err)
	}
	file := os.NewFile(uintptr(fd), "netlink")
	conn, err := file.SyscallConn()
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, buffer)
	for _, g := range groups {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g)
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("subscribe to netlink notifications in %s: %w", ns, err)
	}
	return &Events{file, conn, make([]byte, ReceiveBuffer)}, nil
}

// SetDeadline makes Receive return os.ErrDeadlineExceeded at time t. It may be called from any goroutine.
func (e *Events) SetDeadline(t time.Time) error { return e.file.SetReadDeadline(t) }

// Close closes the socket and ends Receive.
func (e *Events) Close() error { return e.file.Close() }

// Drain discards the queued notifications. After ErrLost it must be called before the listing: until its queue is empty, the kernel drops
// further notifications without a report (NETLINK_S_CONGESTED).
func (e *Events) Drain() error {
	return e.conn.Control(func(fd uintptr) {
		for {
			_, _, err := unix.Recvfrom(int(fd), e.buf, unix.MSG_DONTWAIT)
			if err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOBUFS) {
				return // EAGAIN: the queue is empty
			}
		}
	})
}

// Receive waits for a datagram and calls each for its messages; the payloads must not be kept. ErrLost: notifications were lost; see Drain.
func (e *Events) Receive(each func(typ uint16, payload []byte)) error {
	var (
		size int
		from unix.Sockaddr
		err  error
	)
	waited := e.conn.Read(func(fd uintptr) bool {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			size, from, err = unix.Recvfrom(int(fd), e.buf, unix.MSG_TRUNC)
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case waited != nil:
		return waited
	case errors.Is(err, unix.ENOBUFS) || size > len(e.buf):
		return ErrLost
	case err != nil:
		return fmt.Errorf("receive netlink notifications: %w", err)
	}
	if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
		return nil // not from the kernel
	}
	Messages(e.buf[:size], func(m Message) { each(m.Type, m.Payload) })
	return nil
}
