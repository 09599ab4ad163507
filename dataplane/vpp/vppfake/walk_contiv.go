package vppfake

import (
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// contivDrop drops a packet and counts the reason.
func (w *walk) contivDrop(counter *uint64, reason string) bool {
	if counter != nil {
		*counter++
	}
	w.drop("contiv: %s", reason)
	return false
}

// contivInput is the plugin's node for received packets, before every other feature; false: the packet was dropped or waits.
func (w *walk) contivInput(i *iface, p *Packet) bool {
	goOn := w.contivDecide(i, p)
	if p.later() {
		p.SrcPort, p.DstPort, p.Echo, p.Flags = 0, 0, 0, 0
	}
	return goOn
}

func (w *walk) contivDecide(i *iface, p *Packet) bool {
	c := &w.contiv
	e := c.endpoints[i.index]
	if e == nil {
		return true
	}
	if !w.contivSource(i, p) || !w.contivReassemble(i, p) {
		return false
	}
	pod := e.set.Role == contiv.CONTIV_ROLE_API_POD
	if p.Proto == ProtoUDP && c.tunnelPort(p.DstPort) {
		if pod {
			return w.contivDrop(&c.conns.stats.Tunnel, "tunnel packet of a pod")
		}
		return w.contivStateless(i, p)
	}
	now := w.now()
	c.sweep(now)
	if p.Error != nil {
		return w.contivError(i, e, p, now)
	}
	t, ok := contivTupleOf(p)
	if !ok {
		return w.contivWhole(i, e, p)
	}
	if conn := c.conns.table[t]; conn != nil {
		if c.chooseAgain(conn, t, p) {
			c.end(conn)
		} else {
			dir := contivToBackend
			if t == conn.keys[contivToClient] {
				dir = contivToClient
			}
			if !c.mayPass(conn, dir, p, now) {
				conn.last = now // the connection stays blocked while its ends keep sending
				return w.contivDrop(&c.conns.stats.Denied, "denied by network policy")
			}
			conn.see(dir, p, now)
			w.contivTranslate(p, conn, dir)
			return true
		}
	}
	n := &contivOpening{w: w, i: i, e: e, p: p, t: t, now: now}
	return n.open()
}

// contivTupleOf returns the tuple of a packet; false: the protocol has no connections.
func contivTupleOf(p *Packet) (contivTuple, bool) {
	sport, dport := p.SrcPort, p.DstPort
	switch p.Proto {
	case ProtoTCP, ProtoUDP, ProtoSCTP:
	case ProtoICMP, ProtoICMPv6:
		if p.ND != nil {
			return contivTuple{}, false
		}
		sport, dport = p.echoID(), p.echoID()
	default:
		return contivTuple{}, false
	}
	return contivTuple{netip.AddrPortFrom(p.Src, sport), netip.AddrPortFrom(p.Dst, dport), p.Proto}, true
}

func (c *contivState) tunnelPort(port uint16) bool {
	for _, p := range c.config.TunnelPorts {
		if p == port && p != 0 {
			return true
		}
	}
	return false
}

// chooseAgain reports whether the packet is the first one of a new connection of the same client.
func (c *contivState) chooseAgain(conn *contivConn, t contivTuple, p *Packet) bool {
	toBackend := t == conn.keys[contivToBackend]
	leaves := toBackend && (conn.gone() || conn.backend == nil && c.frontendOf(t) != nil)
	switch p.Proto {
	case ProtoTCP:
		unanswered := conn.state == contivNew && !conn.replied || conn.state == contivClosing
		return p.tcpFlags()&(FlagSYN|FlagACK|FlagRST) == FlagSYN && (conn.state == contivClosed || unanswered && leaves)
	case ProtoUDP:
		return toBackend && (conn.backend == nil && leaves || conn.backend != nil && !c.stillServed(conn))
	}
	return leaves && conn.backend == nil
}

// stillServed reports whether the client's frontend leads to the connection's backend, by this service or by another one. The connection then
// belongs to the backend of the service that the frontend names now.
func (c *contivState) stillServed(conn *contivConn) bool {
	f := c.frontends[contivPlace{conn.keys[contivToBackend].dst, conn.keys[contivToBackend].proto}]
	if f == nil {
		return false
	}
	for _, id := range []uint64{f.set.InCluster.ServiceID, f.set.Outside.ServiceID} {
		s := c.services[id]
		if s == nil {
			continue
		}
		for _, b := range s.backends {
			if b.end == conn.keys[contivToClient].src {
				b.conns++
				c.release(conn)
				conn.backend = b
				return true
			}
		}
	}
	return false
}

// frontendOf returns the frontend of a port, or else that of the whole address.
func (c *contivState) frontendOf(t contivTuple) *contivFrontend {
	if f := c.frontends[contivPlace{t.dst, t.proto}]; f != nil {
		return f
	}
	return c.frontends[contivPlace{at: netip.AddrPortFrom(t.dst.Addr(), 0)}]
}

// contivTranslate rewrites a packet of one direction to the form that the other end of the connection expects.
func (w *walk) contivTranslate(p *Packet, conn *contivConn, dir int) {
	from, to := conn.keys[dir], conn.keys[1-dir].reverse()
	if from == to {
		return
	}
	p.Src, p.Dst = to.src.Addr(), to.dst.Addr()
	switch p.Proto {
	case ProtoICMP, ProtoICMPv6:
		p.setEchoID(to.src.Port())
	default:
		if p.Frag == nil || p.Frag.Offset == 0 {
			p.SrcPort, p.DstPort = to.src.Port(), to.dst.Port()
		}
	}
	w.contivRoute(conn, dir)
	w.step("contiv: %s", *p)
}

// contivRoute selects the table of the HOST endpoint for replies to clients behind the host, and for errors about their packets.
func (w *walk) contivRoute(conn *contivConn, dir int) {
	if e := w.contiv.endpoints[conn.ifx]; conn.behind && dir == contivToClient && e != nil {
		w.answers = e.answers
	}
}

// contivError translates an ICMP error about a connection, and the packet inside. An error about no connection stays unchanged. False: a pod
// reports a packet that was not sent to it, or a policy denies the error.
func (w *walk) contivError(i *iface, e *contivEndpoint, p *Packet, now time.Time) bool {
	src, dst, proto := p.Error.about()
	t := contivTuple{src, dst, proto}
	c := &w.contiv
	conn, policed := c.conns.table[t], c.policy.restrict()
	translated := conn != nil && conn.keys[0] != conn.keys[1].reverse()
	if e.set.Role == contiv.CONTIV_ROLE_API_POD && !e.addrs[src.Addr()] {
		return w.contivDrop(&c.conns.stats.Spoofed, "source that is not the pod's")
	}
	if policed && !c.errorAllowed(i, p, conn, dst.Addr(), now) {
		return w.contivDrop(&c.conns.stats.Denied, "denied by network policy")
	}
	if !translated {
		return true
	}
	dir := contivToBackend
	if t == conn.keys[contivToClient] {
		dir = contivToClient
	}
	to := conn.keys[1-dir].reverse()
	if p.Src == t.src.Addr() { // otherwise the error is from a router on the path
		p.Src = to.src.Addr()
	}
	p.Dst, p.Error = to.dst.Addr(), p.Error.turned(to.src, to.dst)
	w.contivRoute(conn, dir)
	w.step("contiv: %s", *p)
	return true
}

// contivWhole handles a packet of a protocol without connections: only a frontend of a whole address can match it.
func (w *walk) contivWhole(i *iface, e *contivEndpoint, p *Packet) bool {
	f := w.contiv.frontends[contivPlace{at: netip.AddrPortFrom(p.Dst, 0)}]
	if f == nil {
		return w.contivStateless(i, p)
	}
	n := &contivOpening{w: w, i: i, e: e, p: p}
	return n.refuse(f)
}
