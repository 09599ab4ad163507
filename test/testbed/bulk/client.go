package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/netns"
)

// ErrTooLong reports that a packet was rejected because it is longer than the MTU of the path to its destination.
var ErrTooLong = errors.New("the packet is too long")

// Result is the result of a number of streams.
type Result struct {
	Bytes int64
	Took  time.Duration
}

// Gbps returns the rate of all streams together.
func (r Result) Gbps() float64 { return float64(r.Bytes) * 8 / r.Took.Seconds() / 1e9 }

// String returns the result on one line.
func (r Result) String() string {
	return fmt.Sprintf("%d MB in %s: %.2f Gb/s", r.Bytes>>20, r.Took.Round(time.Millisecond), r.Gbps())
}

// Load is a number of simultaneous streams between a namespace and a server.
type Load struct {
	Up, Down int   // number of streams from the client, and to it
	Length   int64 // bytes of each
}

// Run runs the load and compares every byte. It ends when all streams have ended, or with ctx.
func (l Load) Run(ctx context.Context, ns *netns.Namespace, to netip.AddrPort) (Result, error) {
	start := time.Now()
	errs := make([]error, l.Up+l.Down)
	var work sync.WaitGroup
	for i := range errs {
		o := order{Up: i < l.Up, Start: rand.Uint32() % patternSize, Length: l.Length}
		work.Go(func() { errs[i] = stream(ctx, ns, to, o) })
	}
	work.Wait()
	return Result{Bytes: l.Length * int64(len(errs)), Took: time.Since(start)}, errors.Join(errs...)
}

func stream(ctx context.Context, ns *netns.Namespace, to netip.AddrPort, o order) error {
	what := map[bool]string{true: "stream from %s to %s: %w", false: "stream to %s from %s: %w"}[o.Up]
	conn, err := dial(ctx, ns, "tcp", to)
	if err != nil {
		return fmt.Errorf(what, ns.Name, to, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if err := talk(conn, o); err != nil {
		return fmt.Errorf(what, ns.Name, to, err)
	}
	return nil
}

func talk(conn net.Conn, o order) error {
	if _, err := conn.Write(o.marshal()); err != nil {
		return err
	}
	if !o.Up {
		return receive(conn, o)
	}
	if err := send(conn, o); err != nil {
		return err
	}
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	if answer[0] != answerGood {
		return errors.New("the server has got other bytes than were sent")
	}
	return nil
}

func dial(ctx context.Context, ns *netns.Namespace, network string, to netip.AddrPort) (conn net.Conn, err error) {
	timeout := 10 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	err = ns.Do(func() (err error) {
		// With a timeout by a context, another thread would connect.
		conn, err = (&net.Dialer{Timeout: timeout, KeepAlive: -1, Control: wholePackets}).DialContext(ctx, network, to.String())
		return err
	})
	return conn, err
}

// wholePackets prevents the kernel from fragmenting UDP packets: it sets the don't-fragment bit.
func wholePackets(network, _ string, raw syscall.RawConn) (err error) {
	level, option, value := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
	switch network {
	case "udp4":
	case "udp6":
		level, option, value = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
	default:
		return nil
	}
	if failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); failed != nil {
		return failed
	}
	return err
}

// Echo sends one UDP packet of size bytes (with the IP header), without fragmentation, and compares the server's answer. ErrTooLong means
// that the packet is larger than the path MTU, which the kernel has stored or an ICMP error has reported.
func Echo(ctx context.Context, ns *netns.Namespace, to netip.AddrPort, size int, timeout time.Duration) error {
	wrap := func(err error) error {
		if errors.Is(err, unix.EMSGSIZE) {
			err = fmt.Errorf("%w: %w", ErrTooLong, err)
		}
		return fmt.Errorf("a packet of %d bytes from %s to %s: %w", size, ns.Name, to, err)
	}
	headers := 28
	if to.Addr().Is6() {
		headers = 48
	}
	conn, err := dial(ctx, ns, "udp", to)
	if err != nil {
		return wrap(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return wrap(err)
	}
	c := cursor{rand.Int64N(patternSize - int64(size))}
	sent := c.next(int64(size - headers))
	if _, err := conn.Write(sent); err != nil {
		return wrap(err)
	}
	got := make([]byte, size)
	n, err := conn.Read(got)
	if err != nil {
		return wrap(err)
	}
	if !bytes.Equal(sent, got[:n]) {
		return wrap(fmt.Errorf("%d other bytes came back", n))
	}
	return nil
}
