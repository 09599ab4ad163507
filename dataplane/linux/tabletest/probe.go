package tabletest

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Probe is a packet of a new flow, with its answer.
type Probe struct {
	From  *Node
	Proto uint8          // TCP, UDP, SCTP (no answer), ICMP or ICMPv6
	To    netip.AddrPort // no port with ICMP
	ICMP  table.ICMP     // type and code; only echo requests are answered

	Src netip.AddrPort // zero: the node's own address, any port
	// At is the address at which the packet must arrive if it is translated; zero: To.
	At netip.AddrPort
}

// UDP returns a probe to an address and port.
func (n *Node) UDP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_UDP, To: netip.AddrPortFrom(to, port)}
}

// TCP returns a probe that connects to an address and port.
func (n *Node) TCP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_TCP, To: netip.AddrPortFrom(to, port)}
}

// SCTP returns a probe with SCTP ports; it is not answered.
func (n *Node) SCTP(to netip.Addr, port uint16) Probe {
	return Probe{From: n, Proto: unix.IPPROTO_SCTP, To: netip.AddrPortFrom(to, port)}
}

// Ping returns an echo request.
func (n *Node) Ping(to netip.Addr) Probe {
	if to.Is4() {
		return n.Message(to, 8, 0)
	}
	return n.Message(to, 128, 0)
}

// Message returns an ICMP message of the address's family.
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

// ArrivesAt sets the address at which the packet arrives when it is translated.
func (p Probe) ArrivesAt(a netip.Addr, port uint16) Probe {
	p.At = netip.AddrPortFrom(a, port)
	return p
}

// String returns, for example, "UDP pod1 → 10.65.0.2:53".
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

// Outcome is the result of a probe.
type Outcome struct {
	Delivered bool           // it arrived
	Answered  bool           // the answer came back
	Refused   bool           // a TCP reset or an ICMP error came back
	SeenAs    netip.AddrPort // the source as the receiver saw it
}

// String returns the outcome as text, for messages.
func (o Outcome) String() string {
	return fmt.Sprintf("delivered %v (from %v), answered %v, refused %v", o.Delivered, o.SeenAs, o.Answered, o.Refused)
}

// Verdict is what a test expects of a probe.
type Verdict int

// The verdicts.
const (
	Pass   Verdict = iota // arrives and is answered (SCTP and ICMP other than echo: arrives)
	Arrive                // arrives, regardless of the answer
	Drop                  // does not arrive, and the sender receives nothing
	Refuse                // does not arrive, and the sender gets an error
)

// String returns the verdict's name.
func (v Verdict) String() string { return [...]string{"pass", "arrive", "drop", "refuse"}[v] }

// Case is a probe with its expected result.
type Case struct {
	Want Verdict
	Probe
	SeenAs netip.Addr // the source that the receiver must see; zero: the probe's own
	Why    string     // for the message
}

const (
	arriveTimeout = 3 * time.Second        // for packets that have to arrive
	absentTimeout = 120 * time.Millisecond // for packets that must not arrive
)

// Expect sends all probes at once and reports those with another result than expected.
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
		} else if problem := c.fault(outcomes[i]); problem != "" {
			t.Errorf("%s %v: %s; it was %v", c.Why, c.Probe, problem, outcomes[i])
		}
	}
}

func (n *Net) try(c Case) (Outcome, error) {
	switch c.Want {
	case Pass:
		return n.Send(c.Probe, arriveTimeout, func(o Outcome) bool {
			return o.Delivered && (o.Answered || !c.answers())
		})
	case Arrive:
		return n.Send(c.Probe, arriveTimeout, func(o Outcome) bool { return o.Delivered })
	case Refuse:
		return n.Send(c.Probe, arriveTimeout, func(o Outcome) bool { return o.Delivered || o.Refused })
	default:
		return n.Send(c.Probe, absentTimeout, func(o Outcome) bool { return o.Delivered || o.Refused })
	}
}

// fault returns what is wrong with an outcome, "" if nothing.
func (c Case) fault(o Outcome) string {
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

// answers reports whether the receiver answers the probe.
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

// source returns the probe's source; port 0 is any.
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

// watch collects the results of a probe.
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
