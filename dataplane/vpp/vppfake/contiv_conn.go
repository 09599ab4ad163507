package vppfake

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"go.fd.io/govpp/binapi/interface_types"
)

// contivTuple is the key of a connection. For ICMP echoes the identifier is used for both ports.
type contivTuple struct {
	src, dst netip.AddrPort
	proto    uint8
}

func (t contivTuple) reverse() contivTuple { return contivTuple{t.dst, t.src, t.proto} }

// States of a connection, as the API reports them.
const (
	contivNew = 1 + iota
	contivOpen
	contivClosing
	contivClosed
)

// Directions of a packet in a connection.
const (
	contivToBackend = iota
	contivToClient
)

// contivConn is one connection: keys are the tuples of the packets from its client and from its backend.
type contivConn struct {
	keys    [2]contivTuple
	ifx     uint32 // the endpoint whose connections include this one: the client's, except if ofBackend is set
	backend *contivBackend
	state   uint8
	fins    [2]bool // acknowledged by the peer
	sentFin [2]bool // not acknowledged yet
	bySYN   bool    // its first packet was a SYN
	replied bool    // the backend has replied
	behind  bool    // the client is behind a HOST endpoint and is not the host: the endpoint's own table leads to the client
	last    time.Time
	number  uint64

	judged    contivJudgement // result of policy
	epoch     uint64          // of the policy that produced the result
	ofBackend bool            // ifx is the backend's endpoint, which sent the first packet; the client is identified by its address
	echoReply bool            // its first packet was an echo reply
}

func (c *contivConn) fam() int { return family(c.keys[0].src.Addr()) }

// contivClient is one client of frontends that share their affinity records.
type contivClient struct {
	group uint64
	addr  netip.Addr
}

type contivSticky struct {
	end   netip.AddrPort
	until time.Time
}

// contivConns holds the tables of connections.
type contivConns struct {
	table    map[contivTuple]*contivConn
	n        [2]int
	made     uint64
	draining []*contivBackend
	sticky   map[contivClient]contivSticky
	frags    map[contivFragment]*contivFragments
	stats    contiv.ContivStatsGetReply
}

func (c *contivConns) start() {
	c.table, c.sticky = map[contivTuple]*contivConn{}, map[contivClient]contivSticky{}
	c.frags = map[contivFragment]*contivFragments{}
}

// sorted returns all connections in the order of their creation.
func (c *contivConns) sorted() []*contivConn {
	var out []*contivConn
	for t, conn := range c.table {
		if t == conn.keys[contivToBackend] {
			out = append(out, conn)
		}
	}
	slices.SortFunc(out, func(a, b *contivConn) int { return cmp.Compare(a.number, b.number) })
	return out
}

// end removes a connection from the table.
func (c *contivState) end(conn *contivConn) {
	for _, key := range conn.keys {
		delete(c.conns.table, key)
	}
	c.conns.n[conn.fam()]--
	if e := c.endpoints[conn.ifx]; e != nil {
		e.connections[conn.fam()]--
	}
	c.release(conn)
}

// release reduces the number of connections of the connection's backend.
func (c *contivState) release(conn *contivConn) {
	b := conn.backend
	if b == nil {
		return
	}
	if b.conns--; b.conns == 0 && b.gone {
		c.conns.draining = slices.DeleteFunc(c.conns.draining, func(other *contivBackend) bool { return other == b })
	}
}

// timeout returns the idle timeout of a connection.
func (c *contivState) timeout(conn *contivConn) time.Duration {
	seconds := c.config.ICMP
	switch conn.keys[0].proto {
	case ProtoTCP:
		switch {
		case conn.state == contivOpen && (conn.sentFin[0] || conn.sentFin[1]):
			seconds = min(c.config.TCPEstablished, 3600)
		case conn.state == contivOpen:
			seconds = c.config.TCPEstablished
		case conn.state == contivClosed:
			seconds = 10
		case conn.state == contivNew:
			seconds = c.config.TCPTransitory
		case conn.gone():
			seconds = 60
		default:
			seconds = 3600 // one FIN
		}
	case ProtoUDP:
		if seconds = c.config.UDP; conn.state == contivOpen {
			seconds = c.config.UDPStream
		}
	case ProtoSCTP:
		seconds = c.config.Sctp
	}
	if conn.judged == contivDenied {
		seconds = min(seconds, contivDeniedTimeout)
	}
	return time.Duration(seconds) * time.Second
}

// sweep removes idle connections, and UDP connections to backends that no longer serve their frontend.
func (c *contivState) sweep(now time.Time) {
	for _, s := range c.services {
		if !s.emptying.IsZero() && now.Sub(s.emptying) >= contivStay {
			c.empty(s)
		}
	}
	for _, conn := range c.conns.sorted() {
		if now.Sub(conn.last) > c.timeout(conn) || conn.keys[0].proto == ProtoUDP && conn.backend != nil && !c.stillServed(conn) {
			c.end(conn)
		}
	}
	for client, s := range c.conns.sticky {
		if now.After(s.until) {
			delete(c.conns.sticky, client)
		}
	}
}

// gone reports whether the backend was removed from its service.
func (conn *contivConn) gone() bool { return conn.backend != nil && conn.backend.gone }

// see updates the state of the connection after a packet.
func (conn *contivConn) see(dir int, p *Packet, now time.Time) {
	conn.last = now
	switch {
	case p.Proto != ProtoTCP:
		if dir == contivToClient && conn.state == contivNew {
			conn.state = contivOpen
		}
	case !p.later():
		conn.follow(dir, p.tcpFlags())
	}
}

// follow updates the state by TCP flags. A connection is open when the client has acknowledged the backend's packets. All packets of the fake
// are in order, so flags count when the receiver accepts them: a FIN when the peer acknowledges it, and a RST in reply to a SYN only if it
// acknowledges the SYN.
func (conn *contivConn) follow(dir int, flags uint8) {
	acks, fresh := flags&FlagACK != 0, conn.state == contivNew
	switch {
	case flags&FlagRST != 0:
		if !(fresh && conn.bySYN && !conn.replied && dir == contivToClient) || acks {
			conn.state = contivClosed
		}
		return
	case flags&FlagSYN != 0:
		if fresh && dir == contivToBackend && !acks {
			conn.bySYN = true
		}
		conn.replied = conn.replied || fresh && dir == contivToClient && acks
		return
	case fresh && acks && dir == contivToClient:
		conn.replied = conn.replied || !conn.bySYN
	case fresh && acks && conn.replied:
		conn.state = contivOpen
	}
	if acks && conn.sentFin[1-dir] {
		conn.finished(1 - dir)
	}
	if flags&FlagFIN != 0 {
		conn.sentFin[dir] = !conn.fins[dir]
	}
}

// finished records that the peer has acknowledged a FIN.
func (conn *contivConn) finished(dir int) {
	conn.fins[dir], conn.sentFin[dir] = true, false
	switch {
	case conn.fins[0] && conn.fins[1]:
		conn.state = contivClosed
	case conn.state != contivClosed:
		conn.state = contivClosing
	}
}

func registerContivConnections(t *table) {
	detail := t.add(new(contiv.ContivConnectionDetails))
	on(t, reads, func(c *call, q *contiv.ContivConnectionGet) *contiv.ContivConnectionGetReply {
		now := c.now()
		c.contiv.sweep(now)
		for _, conn := range c.contiv.conns.sorted() { // all at once: the fake never pauses
			if conn.fam() == familyOf(q.IsIP6) && (uint32(q.SwIfIndex) == none || uint32(q.SwIfIndex) == conn.ifx) {
				c.send(detail, c.contiv.details(conn, now))
			}
		}
		return &contiv.ContivConnectionGetReply{}
	})
	on(t, writes, contivConnectionDel)
	on(t, reads, func(c *call, _ *contiv.ContivStatsGet) *contiv.ContivStatsGetReply {
		c.contiv.sweep(c.now())
		s := c.contiv.conns.stats
		s.Connections4, s.Connections6 = uint32(c.contiv.conns.n[ip4]), uint32(c.contiv.conns.n[ip6])
		s.ConnectionsMax = uint32(c.contiv.max)
		return &s
	})
}

func (c *contivState) details(conn *contivConn, now time.Time) *contiv.ContivConnectionDetails {
	sent, answered := conn.keys[contivToBackend], conn.keys[contivToClient]
	idle := now.Sub(conn.last)
	return &contiv.ContivConnectionDetails{
		Protocol: sent.proto, SwIfIndex: interface_types.InterfaceIndex(conn.ifx), State: conn.state,
		Client: apiAddress(sent.src.Addr()), ClientPort: sent.src.Port(),
		Frontend: apiAddress(sent.dst.Addr()), FrontendPort: sent.dst.Port(),
		Source: apiAddress(answered.dst.Addr()), SourcePort: answered.dst.Port(),
		Backend: apiAddress(answered.src.Addr()), BackendPort: answered.src.Port(),
		Idle: uint32(idle / time.Second), Expires: uint32((c.timeout(conn) - idle) / time.Second), Denied: conn.judged == contivDenied,
	}
}

func contivConnectionDel(c *call, q *contiv.ContivConnectionDel) *contiv.ContivConnectionDelReply {
	client, ok := contivAddr(q.Client)
	frontend, okToo := contivAddr(q.Frontend)
	if !ok || !okToo {
		return &contiv.ContivConnectionDelReply{Retval: rvInvalidValue}
	}
	key := contivTuple{netip.AddrPortFrom(client, q.ClientPort), netip.AddrPortFrom(frontend, q.FrontendPort), q.Protocol}
	conn := c.contiv.conns.table[key]
	if conn == nil || conn.keys[contivToBackend] != key {
		return &contiv.ContivConnectionDelReply{Retval: rvNoSuchEntry}
	}
	c.contiv.end(conn)
	return &contiv.ContivConnectionDelReply{}
}
