package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a connected, blocking TCP socket with a time limit for calls.
type socket int

// dial connects from the namespace of the current thread, with a source port (0: any).
func dial(to netip.AddrPort, port uint16, timeout time.Duration) (socket, error) {
	family := unix.AF_INET
	var own unix.Sockaddr = &unix.SockaddrInet4{Port: int(port)}
	var address unix.Sockaddr = &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if to.Addr().Is4() {
		address = &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	} else {
		family, own = unix.AF_INET6, &unix.SockaddrInet6{Port: int(port)}
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	s := socket(fd)
	err = errors.Join(s.limit(timeout), usual(fd), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err == nil && port != 0 {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, own))
	}
	if err != nil {
		return 0, errors.Join(fmt.Errorf("socket for %s, port %d: %w", to, port, err), s.close())
	}
	for {
		err = unix.Connect(fd, address)
		switch {
		case err == nil, errors.Is(err, unix.EISCONN):
			return s, nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EALREADY):
			continue
		case errors.Is(err, unix.EINPROGRESS): // the error when the send timeout expires
			err = fmt.Errorf("no answer within %s", timeout)
		}
		return 0, errors.Join(fmt.Errorf("connect to %s: %w", to, err), s.close())
	}
}

// usual makes TCP independent of this machine's settings: cubic is the kernel's default. BBR, which some machines use, does not
// slow down after packet loss, and loses a tenth of the packets at rings of 256.
func usual(fd int) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
}

// listen returns a server's listener; the sockets of its connections inherit its settings.
func listen(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		failed := raw.Control(func(fd uintptr) { err = usual(int(fd)) })
		return errors.Join(failed, err)
	}}
	return config.Listen(context.Background(), "tcp", address)
}

// adopt takes over the socket of a Go connection, and closes the Go connection.
func adopt(conn *net.TCPConn) (socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var duplicated error
	if err := raw.Control(func(of uintptr) { fd, duplicated = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) }); err != nil {
		return 0, err
	}
	if duplicated != nil {
		return 0, duplicated
	}
	s := socket(fd)
	if err := errors.Join(conn.Close(), unix.SetNonblock(fd, false)); err != nil {
		return 0, errors.Join(err, s.close())
	}
	return s, nil
}

// limit sets how long a call may block; 0: without limit.
func (s socket) limit(d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return errors.Join(unix.SetsockoptTimeval(int(s), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptTimeval(int(s), unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
}

// Read implements io.Reader.
func (s socket) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, fmt.Errorf("read: %w (%s)", errTimeout, s.state())
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write implements io.Writer.
func (s socket) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Write(int(s), b[done:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return done, fmt.Errorf("write: %w (%s)", errTimeout, s.state())
		case err != nil:
			return done, fmt.Errorf("write: %w", err)
		}
		done += n
	}
	return done, nil
}

// state returns the kernel's data of the connection, to distinguish lost packets from a server that does not respond.
func (s socket) state() string {
	i, err := unix.GetsockoptTCPInfo(int(s), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("TCP state %d, %d segments not acknowledged, %d lost, %d retransmitted, %d of them in vain; "+
		"last data sent %d ms ago, last data received %d ms ago, last acknowledgement %d ms ago", i.State, i.Unacked, i.Lost,
		i.Total_retrans, i.Retransmits, i.Last_data_sent, i.Last_data_recv, i.Last_ack_recv)
}

// abort wakes blocked callers.
func (s socket) abort() { _ = unix.Shutdown(int(s), unix.SHUT_RDWR) } // the connection may have ended by itself

func (s socket) close() error { return unix.Close(int(s)) }

// reset closes the connection with a reset, so that no TIME-WAIT state keeps the port.
func (s socket) reset() error {
	return errors.Join(unix.SetsockoptLinger(int(s), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), s.close())
}

var errTimeout = errors.New("nothing moved for too long")
