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

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Probe is a packet of a new flow and its answer.
type Probe struct {
	From  *Node
	Proto uint8          // TCP, UDP, SCTP (no answer), ICMP or ICMPv6
	To    netip.AddrPort // no port with ICMP
	ICMP  table.ICMP     // type and code; only echo requests are answered

	Src netip.AddrPort // zero: the node's own address, any port
	// At is where the packet is to arrive if it is translated on its way; zero: at To.
	At netip.AddrPort
}

// UDP is a probe to an address and port.
func (n *Node) UDP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_UDP, To: netip.AddrPortFrom(to, port)}
}

// TCP is a probe that connects to an address and port.
func (n *Node) TCP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_TCP, To: netip.AddrPortFrom(to, port)}
}

// SCTP is a packet with the ports of SCTP; nothing answers it.
func (n *Node) SCTP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_SCTP, To: netip.AddrPortFrom(to, port)}
}

// Ping is an echo request.
func (n *Node) Ping(to netip.Addr) Probe {
	if to.Is4() {
		return n.Message(to, 8, 0)
	}
	return n.Message(to, 128, 0)
}

// Message is an ICMP message of the address' family.
func (n *Node) Message(to netip.Addr, typ, code uint8) Probe {
	p := Probe{From: n, Proto: unix.IPPROTO_ICMP, To: netip.AddrPortFrom(to, 0), ICMP: table.ICMP{Type: typ, Code: code}}
	if to.Is6() {
		p.Proto = unix.IPPROTO_ICMPV6
	}
	return p
}

// FromAddr sets the source address, which need not be the node's.
func (p Probe) FromAddr(a netip.Addr) Probe {
	p.Src = netip.AddrPortFrom(a, p.Src.Port())
	return p
}

// FromPort sets the source port.
func (p Probe) FromPort(port uint16) Probe {
	p.Src = netip.AddrPortFrom(p.Src.Addr(), port)
	return p
}

// ArrivesAt reports where the packet arrives when it is translated.
func (p Probe) ArrivesAt(a netip.Addr, port uint16) Probe {
	p.At = netip.AddrPortFrom(a, port)
	return p
}

// String is "UDP pod1 → 10.65.0.2:53".
func (p Probe) String() string {
	name := map[uint8]string{1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP"}[p.Proto]
	if p.Proto == 1 || p.Proto == 58 {
		name = fmt.Sprintf("%s %d/%d", name, p.ICMP.Type, p.ICMP.Code)
	}
	s := fmt.Sprintf("%s %s", name, p.From.Name)
	if p.Src.IsValid() || p.Src.Port() != 0 {
		s += fmt.Sprintf(" (%s)", p.Src)
	}
	return fmt.Sprintf("%s → %s", s, p.To)
}

// Outcome is what became of a probe.
type Outcome struct {
	Delivered bool           // it arrived
	Answered  bool           // and the answer came back
	Refused   bool           // a TCP reset or an ICMP error came back
	SeenAs    netip.AddrPort // the source as the receiver saw it
}

// String is for messages.
func (o Outcome) String() string {
	return fmt.Sprintf("delivered %v (from %v), answered %v, refused %v", o.Delivered, o.SeenAs, o.Answered, o.Refused)
}

// Verdict is what a test expects of a probe.
type Verdict int

// The verdicts.
const (
	Pass   Verdict = iota // arrives and is answered (SCTP and ICMP other than echo: arrives)
	Arrive                // arrives, whatever happens to the answer
	Drop                  // does not arrive, and the sender hears nothing
	Refuse                // does not arrive, and the sender gets an error
)

// String is the verdict's name.
func (v Verdict) String() string { return [...]string{"pass", "arrive", "drop", "refuse"}[v] }

// Case is a probe and what is to become of it.
type Case struct {
	Want Verdict
	Probe
	SeenAs netip.Addr // the source that the receiver is to see; zero: the probe's own
	Why    string     // for the message
}

const (
	patience   = 3 * time.Second        // for what is to arrive
	negligence = 120 * time.Millisecond // for what is not to
)

// Expect sends all probes at once and reports those that meet another fate than they should.
func (n *Net) Expect(t testing.TB, cases ...Case) {
	t.Helper()
	var wg sync.WaitGroup
	outcomes, errs := make([]Outcome, len(cases)), make([]error, len(cases))
	threads := make(chan struct{}, 128)
	for i, c := range cases {
		wg.Go(func() {
			threads <- struct{}{}
			outcomes[i], errs[i] = n.try(c)
			<-threads
		})
	}
	wg.Wait()
	for i, c := range cases {
		if errs[i] != nil {
			t.Errorf("%s %v: %v", c.Why, c.Probe, errs[i])
		} else if problem := c.judge(outcomes[i]); problem != "" {
			t.Errorf("%s %v: %s; it was %v", c.Why, c.Probe, problem, outcomes[i])
		}
	}
}

func (n *Net) try(c Case) (Outcome, error) {
	switch c.Want {
	case Pass:
		return n.Send(c.Probe, patience, func(o Outcome) bool {
			return o.Delivered && (o.Answered || !c.answers())
		})
	case Arrive:
		return n.Send(c.Probe, patience, func(o Outcome) bool { return o.Delivered })
	case Refuse:
		return n.Send(c.Probe, patience, func(o Outcome) bool { return o.Delivered || o.Refused })
	default:
		return n.Send(c.Probe, negligence, func(o Outcome) bool { return o.Delivered || o.Refused })
	}
}

// judge reports what is wrong with an outcome, "" if nothing.
func (c Case) judge(o Outcome) string {
	switch {
	case c.Want == Pass && !(o.Delivered && (o.Answered || !c.answers())), c.Want == Arrive && !o.Delivered:
		return "should " + c.Want.String()
	case c.Want == Drop && (o.Delivered || o.Refused), c.Want == Refuse && (o.Delivered || !o.Refused):
		return "should be " + map[Verdict]string{Drop: "dropped", Refuse: "refused"}[c.Want]
	case o.Delivered && o.SeenAs.Addr() != c.seenAs():
		return fmt.Sprintf("should be seen as coming from %s", c.seenAs())
	}
	return ""
}

func (c Case) seenAs() netip.Addr {
	if c.SeenAs.IsValid() {
		return c.SeenAs
	}
	return c.source().Addr()
}

// answers is true for probes that the receiver answers.
func (p Probe) answers() bool {
	switch p.Proto {
	case unix.IPPROTO_TCP, unix.IPPROTO_UDP:
		return true
	case unix.IPPROTO_ICMP:
		return p.ICMP == table.ICMP{Type: 8}
	case unix.IPPROTO_ICMPV6:
		return p.ICMP == table.ICMP{Type: 128}
	}
	return false
}

// source is the probe's source; port 0 is any.
func (p Probe) source() netip.AddrPort {
	a := p.Src.Addr()
	if !a.IsValid() {
		a = p.From.addrs[table.IPv6]
		if p.To.Addr().Is4() {
			a = p.From.addrs[table.IPv4]
		}
	}
	return netip.AddrPortFrom(a, p.Src.Port())
}

// watch collects what becomes known of a probe.
type watch struct {
	mu      sync.Mutex
	outcome Outcome
	changed chan struct{}
}

func (w *watch) note(change func(*Outcome)) {
	w.mu.Lock()
	change(&w.outcome)
	w.mu.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Send sends a probe and waits until what became of it is enough, or until the timeout.
func (n *Net) Send(p Probe, patience time.Duration, enough func(Outcome) bool) (Outcome, error) {
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
	deadline := time.Now().Add(patience)
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

// settle turns an error of sending into an outcome, if it is one.
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
		_ = tcp.SetLinger(0) // leaves no TIME-WAIT behind
	}
	return conn, err
}

// packet is what is written to the socket.
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

// mustSend sends a probe that is to arrive.
func (n *Net) mustSend(t testing.TB, p Probe) Outcome {
	t.Helper()
	o, err := n.Send(p, patience, func(o Outcome) bool { return o.Delivered })
	if err != nil || !o.Delivered {
		t.Fatalf("%v: %v, %v", p, o, err)
	}
	return o
}
