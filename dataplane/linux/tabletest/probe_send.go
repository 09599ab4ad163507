package tabletest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Send sends a probe and waits until enough returns true for its outcome, or until the timeout.
func (n *Net) Send(p Probe, timeout time.Duration, enough func(Outcome) bool) (Outcome, error) {
	at := p.At
	if !at.IsValid() {
		at = p.To
	}
	owner := n.owner(at.Addr())
	if owner == nil {
		return Outcome{}, fmt.Errorf("no device has address %s", at.Addr())
	}
	if p.Proto != unix.IPPROTO_TCP && p.Proto != unix.IPPROTO_UDP {
		at = netip.AddrPortFrom(at.Addr(), 0)
	}
	r, err := owner.receiver(recvKey{p.Proto, at})
	if err != nil {
		return Outcome{}, err
	}
	w := &watch{changed: make(chan struct{}, 1)}
	tag := payload{id: n.id.Add(1), answer: true}
	r.wait(tag.id, func(_ uint32, from netip.AddrPort) {
		w.note(func(o *Outcome) { o.Delivered, o.SeenAs = true, from })
	})
	defer r.wait(tag.id, nil)
	deadline := time.Now().Add(timeout)
	conn, err := p.launch(tag, deadline)
	if err != nil {
		return w.settle(err)
	}
	defer conn.Close()
	var answers sync.WaitGroup
	answers.Go(func() { p.listen(conn, tag, w) })
	defer answers.Wait()
	defer conn.Close()
	return w.until(deadline, enough), nil
}

// settle turns a send error into an outcome, if it is one.
func (w *watch) settle(err error) (Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case isRefusal(err):
		w.outcome.Refused = true
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), isTimeout(err),
		errors.Is(err, unix.EPERM): // the node's own output rules dropped it
	default:
		return Outcome{}, err
	}
	return w.outcome, nil
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func isRefusal(err error) bool {
	for _, e := range []syscall.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EACCES, unix.ECONNRESET} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (w *watch) until(deadline time.Time, enough func(Outcome) bool) Outcome {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		w.mu.Lock()
		o := w.outcome
		w.mu.Unlock()
		if enough(o) {
			return o
		}
		select {
		case <-w.changed:
		case <-timer.C:
			return o
		}
	}
}

// launch opens a socket in the sender's namespace and sends the packet, or connects.
func (p Probe) launch(tag payload, deadline time.Time) (net.Conn, error) {
	conn, err := p.dial(deadline)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(deadline)
	if _, err := conn.Write(p.packet(tag)); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dial opens a connected socket in the sender's namespace.
func (p Probe) dial(deadline time.Time) (conn net.Conn, err error) {
	src := p.source()
	d := net.Dialer{Deadline: deadline, KeepAlive: -1, Control: sharedSource}
	if !p.From.has(src.Addr()) {
		d.Control = foreignSource
	}
	network, to := "", p.To.String()
	switch p.Proto {
	case unix.IPPROTO_TCP:
		network, d.LocalAddr = "tcp", net.TCPAddrFromAddrPort(src)
	case unix.IPPROTO_UDP:
		network, d.LocalAddr = "udp", net.UDPAddrFromAddrPort(src)
	default:
		network, to = rawNetwork(p.To.Addr(), p.Proto), p.To.Addr().String()
		d.LocalAddr = &net.IPAddr{IP: src.Addr().AsSlice()}
	}
	err = p.From.NS.Do(func() error {
		conn, err = d.Dial(network, to)
		return err
	})
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // leaves no TIME-WAIT
	}
	return conn, err
}

// packet returns the data to write to the socket.
func (p Probe) packet(tag payload) []byte {
	switch p.Proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		return tag.bytes()
	case unix.IPPROTO_SCTP:
		b := make([]byte, headerLen(p.Proto), 32)
		binary.BigEndian.PutUint16(b, p.Src.Port())
		binary.BigEndian.PutUint16(b[2:], p.To.Port())
		return append(b, tag.bytes()...)
	}
	b := append(make([]byte, headerLen(p.Proto), 32), tag.bytes()...)
	b[0], b[1] = p.ICMP.Type, p.ICMP.Code
	binary.BigEndian.PutUint16(b[4:], uint16(tag.id))
	if p.Proto == unix.IPPROTO_ICMP { // the kernel does it for ICMPv6
		binary.BigEndian.PutUint16(b[2:], checksum(b))
	}
	return b
}

func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	if len(b)%2 == 1 {
		sum += uint32(b[len(b)-1]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// listen waits for the answer.
func (p Probe) listen(conn net.Conn, tag payload, w *watch) {
	buf := make([]byte, 2048)
	for {
		size, err := read(conn, buf)
		if isRefusal(err) {
			w.note(func(o *Outcome) { o.Refused = true })
		}
		if err != nil && (!isRefusal(err) || errors.Is(err, io.EOF)) {
			return
		}
		if p.isAnswer(buf[:size], tag) {
			w.note(func(o *Outcome) { o.Answered = true })
		}
		if p.Proto == unix.IPPROTO_TCP {
			return
		}
	}
}

// read reads a packet without its IP header.
func read(conn net.Conn, buf []byte) (int, error) {
	if raw, ok := conn.(*net.IPConn); ok {
		size, _, err := raw.ReadFromIP(buf)
		return size, err
	}
	return conn.Read(buf)
}

func (p Probe) isAnswer(b []byte, tag payload) bool {
	switch p.Proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
	case unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6:
		if len(b) < headerLen(p.Proto) || b[0] != 0 && b[0] != 129 {
			return false // not an echo reply
		}
		b = b[headerLen(p.Proto):]
	default:
		return false
	}
	got, ok := parsePayload(b)
	return ok && got.id == tag.id
}

// mustSend sends a probe that must arrive.
func (n *Net) mustSend(t testing.TB, p Probe) Outcome {
	t.Helper()
	o, err := n.Send(p, arriveTimeout, func(o Outcome) bool { return o.Delivered })
	if err != nil || !o.Delivered {
		t.Fatalf("%v: %v, %v", p, o, err)
	}
	return o
}
