package vppfake

import (
	"fmt"
	"net/netip"
	"time"

	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"
)

// natKey is the key of a packet's flow. For ICMP both ports are the identifier.
type natKey struct {
	src, dst         netip.Addr
	srcPort, dstPort uint16
	table            *fib
	proto            uint8
}

// natEnd is one side of a session.
type natEnd struct {
	addr  netip.Addr
	port  uint16
	table *fib
}

// natFlow is one direction of a session: the packets that match, and their translation. Fields that are not rewritten are equal to those in
// match.
type natFlow struct {
	match natKey
	to    natKey
	echo  bool // the identifier is rewritten, to to.srcPort
	table *fib // table of the next lookup; nil: that of the receiving interface
}

// natSession is a session: in is the inside end, out the outside end.
type natSession struct {
	in, out  natEnd
	proto    uint8
	i2o, o2i natFlow
	ext      natEnd
	extNAT   natEnd // for twice-NAT: the translated source

	static, lb, twice, bypass, hairpin, expired bool
	packets                                     uint32
	bytes                                       uint64
	heard                                       time.Time // time of the last packet
	tcp                                         natTCP
}

// natTCP is the state of a TCP connection as VPP sees it.
type natTCP struct {
	flags          [2]uint8 // by direction
	opened, closes bool     // both false: the connection is being opened, or has closed
}

// The directions of a session.
const (
	natO2I = iota
	natI2O
)

// see implements nat44_set_tcp_session_state. A connection that is closing may open again: its state starts from zero.
func (s *natSession) see(dir int, flags uint8) {
	t := &s.tcp
	before := t.flags[dir]
	if t.flags[dir] |= flags & (FlagFIN | FlagSYN | FlagRST | FlagACK); t.flags[dir] == before {
		return
	}
	both := t.flags[natO2I]&t.flags[natI2O] == FlagSYN|FlagACK
	switch {
	case t.opened && t.flags[dir]&(FlagFIN|FlagRST) != 0:
		*t = natTCP{closes: true}
	case t.closes && both:
		s.packets, s.bytes = 0, 0
		t.opened, t.closes = true, false
	case both:
		t.opened = true
	}
}

// natClient is the key for a client's backend.
type natClient struct {
	client  netip.Addr
	service natExt
}

// natSticky holds a client's backend, by its index in the mapping, and the client list of the mapping: a mapping that is created again finds
// the clients of its predecessor, but deletes only its own.
type natSticky struct {
	place uint8
	list  int
}

func registerNATSessions(t *table) {
	on(t, writes, natDelSession)
	dump(t, natUserDump)
	dump(t, func(c *call, q *nat44_ed.Nat44UserSessionV3Dump, send func(*nat44_ed.Nat44UserSessionV3Details)) {
		for s := range c.nat.sessions.all() {
			if s.in.addr == fromIP4(q.IPAddress) { // in any table, whatever table q names
				send(s.details(c.nat.timeouts, c.now()))
			}
		}
	})
}

func (s *natSession) details(t nat_types.NatTimeouts, now time.Time) *nat44_ed.Nat44UserSessionV3Details {
	d := &nat44_ed.Nat44UserSessionV3Details{OutsideIPAddress: toIP4(s.out.addr), OutsidePort: s.out.port,
		InsideIPAddress: toIP4(s.in.addr), InsidePort: s.in.port, Protocol: uint16(s.proto), Flags: nat_types.NAT_IS_EXT_HOST_VALID,
		TotalBytes: s.bytes, TotalPkts: s.packets, ExtHostAddress: toIP4(s.ext.addr), ExtHostPort: s.ext.port}
	silent := now.Sub(s.heard)
	d.TimeSinceLastHeard = uint64(silent / time.Second)
	d.IsTimedOut = silent >= s.timeout(t)
	if s.static {
		d.Flags |= nat_types.NAT_IS_STATIC
	}
	if s.twice {
		d.Flags |= nat_types.NAT_IS_TWICE_NAT
		d.ExtHostNatAddress, d.ExtHostNatPort = toIP4(s.extNAT.addr), s.extNAT.port
	}
	return d
}

// timeout implements nat44_session_get_timeout.
func (s *natSession) timeout(t nat_types.NatTimeouts) time.Duration {
	seconds := t.ICMP
	switch {
	case s.proto == ProtoUDP:
		seconds = t.UDP
	case s.proto == ProtoTCP && s.tcp.opened:
		seconds = t.TCPEstablished
	case s.proto == ProtoTCP:
		seconds = t.TCPTransitory
	}
	return time.Duration(seconds) * time.Second
}

// count counts a packet of the given size that arrived now.
func (s *natSession) count(bytes int, now time.Time) {
	s.packets++
	s.bytes += uint64(bytes)
	s.heard = now
}

func natDelSession(c *call, q *nat44_ed.Nat44DelSession) *nat44_ed.Nat44DelSessionReply {
	key := natKey{src: fromIP4(q.Address), srcPort: q.Port, dst: fromIP4(q.ExtHostAddress), dstPort: q.ExtHostPort,
		proto: q.Protocol, table: c.ip.tables[ip4][q.VrfID]}
	switch s := c.nat.flows[key]; {
	case !c.nat.on:
		return &nat44_ed.Nat44DelSessionReply{Retval: rvUnsupported}
	case s == nil:
		return &nat44_ed.Nat44DelSessionReply{Retval: rvNoSuchEntry}
	default:
		c.dropSession(s)
	}
	return &nat44_ed.Nat44DelSessionReply{}
}

func natUserDump(c *call, _ *nat44_ed.Nat44UserDump, send func(*nat44_ed.Nat44UserDetails)) {
	type user struct {
		addr  netip.Addr
		table *fib
	}
	byUser, order := map[user]*nat44_ed.Nat44UserDetails{}, []user{}
	for s := range c.nat.sessions.all() {
		u := user{s.in.addr, s.in.table}
		if byUser[u] == nil {
			byUser[u] = &nat44_ed.Nat44UserDetails{VrfID: u.table.id, IPAddress: toIP4(u.addr)}
			order = append(order, u)
		}
		if s.static {
			byUser[u].Nstaticsessions++
		} else {
			byUser[u].Nsessions++
		}
	}
	for _, u := range order {
		send(byUser[u])
	}
}

func (st *state) dropSessions(which func(*natSession) bool) {
	for s := range st.nat.sessions.all() {
		if which(s) {
			st.dropSession(s)
		}
	}
}

func (st *state) dropSession(s *natSession) {
	delete(st.nat.flows, s.i2o.match)
	delete(st.nat.flows, s.o2i.match)
	st.nat.sessions.remove(s)
}

// Sessions returns the NAT sessions, one line each, without counters.
func (f *Fake) Sessions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return nil
	}
	var lines []string
	for s := range f.st.nat.sessions.all() {
		lines = append(lines, s.String())
	}
	return lines
}

func (s *natSession) String() string {
	return fmt.Sprintf("proto %d %s:%d for %s:%d with %s:%d", s.proto, s.in.addr, s.in.port, s.out.addr, s.out.port,
		s.ext.addr, s.ext.port)
}

// random implements random_u32: VPP's choice of backends and ports is the same in every run.
func (n *nat) random() uint32 {
	n.seed = lcg(n.seed)
	return n.seed
}

// randomPort returns a port that is not a well-known port.
func (n *nat) randomPort() uint16 {
	const first, count = 1024, 1<<16 - 1024
	r := n.random()
	if low := r & 0xffff; low <= count-1 {
		return first + uint16(low)
	}
	return first + uint16(r%count)
}
