package whoami

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/netns"
)

// Answer is the answer of a server.
type Answer struct {
	Server string
	Local  netip.AddrPort // the address at which the server received the request
	Client netip.AddrPort // the source address that the server received
}

// The two cases in which no server answers.
var (
	ErrRejected = errors.New("rejected")
	ErrDropped  = errors.New("dropped")
)

// Conn is a connection, or a series of UDP packets of one client port.
type Conn struct {
	conn    net.Conn
	lines   *bufio.Reader
	timeout time.Duration
}

// Dial connects from a namespace. For UDP this always succeeds.
func Dial(ctx context.Context, ns *netns.Namespace, network string, to netip.AddrPort, timeout time.Duration) (*Conn, error) {
	return DialFrom(ctx, ns, network, nil, to, timeout)
}

// DialFrom is like Dial, with the client's address (nil: any).
func DialFrom(ctx context.Context, ns *netns.Namespace, network string, from net.Addr, to netip.AddrPort,
	timeout time.Duration,
) (*Conn, error) {
	var conn net.Conn
	err := ns.Do(func() (err error) {
		// With a timeout by a context, another thread would connect.
		d := net.Dialer{Timeout: timeout, LocalAddr: from, KeepAlive: -1, Control: noticeErrors}
		conn, err = d.DialContext(ctx, network, to.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s from %s: %w", network, to, ns.Name, fate(err))
	}
	return &Conn{conn: conn, lines: bufio.NewReader(conn), timeout: timeout}, nil
}

// noticeErrors makes a UDP socket report all ICMP errors, not only those about closed ports.
func noticeErrors(network, _ string, raw syscall.RawConn) (err error) {
	level, option := unix.SOL_IP, unix.IP_RECVERR
	switch network {
	case "udp4":
	case "udp6":
		level, option = unix.SOL_IPV6, unix.IPV6_RECVERR
	default:
		return nil
	}
	if failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, 1) }); failed != nil {
		return failed
	}
	return err
}

// fate distinguishes rejection from a missing answer.
func fate(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, unix.ETIMEDOUT), isTimeout(err):
		return fmt.Errorf("%w: %w", ErrDropped, err)
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH),
		errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// Query sends a request and returns the server's answer.
func (c *Conn) Query() (Answer, error) {
	if err := c.conn.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return Answer{}, err
	}
	// EPERM: the kernel has dropped the packet on its way out; the read determines whether it was rejected.
	if _, err := c.conn.Write([]byte("who\n")); err != nil && !errors.Is(err, unix.EPERM) {
		return Answer{}, fmt.Errorf("ask %s: %w", c.conn.RemoteAddr(), fate(err))
	}
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return Answer{}, fmt.Errorf("ask %s: %w", c.conn.RemoteAddr(), fate(err))
	}
	return parseAnswer(c.conn.RemoteAddr().String(), line)
}

// parseAnswer parses "name own-address client" from a server.
func parseAnswer(server, line string) (Answer, error) {
	var a Answer
	var texts [2]string
	if _, err := fmt.Sscan(line, &a.Server, &texts[0], &texts[1]); err != nil {
		return Answer{}, fmt.Errorf("ask %s: answer %q: %w", server, line, err)
	}
	for i, into := range []*netip.AddrPort{&a.Local, &a.Client} {
		addr, err := netip.ParseAddrPort(texts[i])
		if err != nil {
			return Answer{}, fmt.Errorf("ask %s: answer %q: %w", server, line, err)
		}
		*into = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	}
	return a, nil
}

// LocalAddr returns the client's address.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// Close resets the connection: nothing of it waits in the kernel, so that many can be made.
func (c *Conn) Close() error {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // otherwise the connection ends slowly
	}
	return c.conn.Close()
}

// Query connects, sends one request and closes.
func Query(ctx context.Context, ns *netns.Namespace, network string, to netip.AddrPort, timeout time.Duration) (Answer, error) {
	c, err := Dial(ctx, ns, network, to, timeout)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	return c.Query()
}
