package vppfake

import (
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// Flows that are older than the policy of their ends.

// opener reports which end has opened a flow.
type opener uint8

const (
	bySender opener = iota
	byReceiver
	byEither
)

// openerOf returns which end has opened a flow: if exactly one end has a port above 32 767, that end; otherwise either of them.
func openerOf(f contivFlow) opener {
	fromHigh, toHigh := f.sport >= 32768, f.dport >= 32768
	switch {
	case fromHigh == toHigh:
		return byEither
	case fromHigh:
		return bySender
	}
	return byReceiver
}

// evaluateOpen evaluates a packet of a TCP connection that was opened before its ends had policy. If the ports do not show which end is the
// client, both directions must be allowed.
func (n *contivOpening) evaluateOpen() {
	c, forth := &n.w.contiv, contivFlowOf(n.p)
	by, receiver := openerOf(forth), c.contivPod(forth.dst)
	n.judged = contivFree
	if by != byReceiver {
		n.judged = c.evaluate(n.i.index, forth, n.now)
	}
	if by != bySender && n.judged != contivDenied {
		n.judged = max(n.judged, c.evaluate(receiver, forth.reverse(), n.now))
	}
	if by == byReceiver && n.judged == contivAllowed {
		n.reverse()
	}
}

// needsMemory reports whether a packet opens a connection of a pod that evaluateOpen would evaluate wrongly if the pod got policy later, and
// whether there is room for it: such connections take at most half of those of their endpoint, and half of the table.
func (n *contivOpening) needsMemory() bool {
	c, f := &n.w.contiv, contivFlowOf(n.p)
	if n.p.Proto != ProtoTCP || n.p.later() || n.p.tcpFlags()&(FlagSYN|FlagACK|FlagRST) != FlagSYN || openerOf(f) == bySender {
		return false
	}
	pod := func(e *contivEndpoint) bool { return e != nil && e.set.Role == contiv.CONTIV_ROLE_API_POD }
	fam := family(f.src)
	return (pod(n.e) || pod(c.endpoints[c.contivPod(f.dst)])) && n.e.connections[fam] < c.limit(n.e)/2 && c.conns.n[fam] < c.max/2
}

// reverse makes the receiver the client. The connection counts for the packet's sender, and not for the client: otherwise any sender could use
// up a pod's connections.
func (n *contivOpening) reverse() { n.reversed, n.ofBackend, n.t = true, true, n.t.reverse() }

// answersDenied reports whether an allowed UDP packet may be the answer to a denied client, by a flow that is older than the policy of one of
// its ends. Unless the ports show that the sender is the client, both directions must be allowed.
func (n *contivOpening) answersDenied() bool {
	c, forth := &n.w.contiv, contivFlowOf(n.p)
	by, receiver := openerOf(forth), c.contivPod(forth.dst)
	if n.p.Proto != ProtoUDP || by == bySender || !c.wasUnjudged(n.i.index, n.now) && !c.wasUnjudged(receiver, n.now) {
		return false
	}
	judged := c.evaluate(receiver, forth.reverse(), n.now)
	if judged == contivDenied || by == byReceiver && judged == contivAllowed {
		n.judged = judged
		n.reverse()
	}
	return judged == contivDenied
}

// makeDenied adds a denied connection if there is room, and drops the packet.
func (n *contivOpening) makeDenied() bool {
	c, fam := &n.w.contiv, family(n.t.src.Addr())
	if n.e.connections[fam] < c.limit(n.e) && c.conns.n[fam] < c.max {
		c.conns.made++
		c.conns.stats.Created++
		conn := &contivConn{keys: [2]contivTuple{n.t, n.t.reverse()}, ifx: uint32(n.e.set.SwIfIndex), state: contivOpen, number: c.conns.made,
			judged: n.judged, epoch: c.policy.epoch, ofBackend: true, last: n.now}
		for _, key := range conn.keys {
			c.conns.table[key] = conn
		}
		c.conns.n[fam]++
		n.e.connections[fam]++
	}
	return n.w.contivDrop(&c.conns.stats.Denied, "denied by network policy")
}

// noteUnjudged records a UDP packet that passes without a connection, for those of its ends that are pods without policy.
func (n *contivOpening) noteUnjudged() {
	c := &n.w.contiv
	if n.p.Proto != ProtoUDP {
		return
	}
	for _, ifx := range []uint32{n.i.index, c.contivPod(n.p.Dst)} {
		if e := c.endpoints[ifx]; e != nil && !c.hasPolicy(ifx) {
			e.unjudged = n.now
		}
	}
}

// wasUnjudged reports whether an interface belongs to a pod with policy that may have UDP flows from the time before it had policy.
func (c *contivState) wasUnjudged(ifx uint32, now time.Time) bool {
	e := c.endpoints[ifx]
	return e != nil && e.set.Role == contiv.CONTIV_ROLE_API_POD && !e.unjudged.IsZero() && c.hasPolicy(ifx) &&
		now.Sub(e.unjudged) < time.Duration(c.config.UDPStream)*time.Second
}

func (c *contivState) hasPolicy(ifx uint32) bool {
	p := c.policy.police[ifx]
	return p != nil && !p.open()
}
