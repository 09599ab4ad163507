package vppfake

import (
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"go.fd.io/govpp/binapi/interface_types"
)

// contivFlow is the flow that policy evaluates, with the addresses of its client and its backend.
type contivFlow struct {
	src, dst     netip.Addr
	sport, dport uint16
	proto        uint8
	icmp, code   uint8
}

// contivJudgement is the result of policy for a flow.
type contivJudgement uint8

const (
	contivNotJudged contivJudgement = iota
	contivFree                      // neither end has policy, or policy does not apply between them
	contivAllowed
	contivDenied
)

// Types of ICMP echo.
const (
	icmp4EchoRequest, icmp4EchoReply = 8, 0
	icmp6EchoRequest, icmp6EchoReply = 128, 129
)

func contivEcho(v6, reply bool) uint8 {
	switch {
	case v6 && reply:
		return icmp6EchoReply
	case v6:
		return icmp6EchoRequest
	case reply:
		return icmp4EchoReply
	}
	return icmp4EchoRequest
}

func (p *Packet) isICMP() bool { return p.Proto == ProtoICMP || p.Proto == ProtoICMPv6 }

func contivFlowOf(p *Packet) contivFlow {
	f := contivFlow{src: p.Src, dst: p.Dst, proto: p.Proto}
	switch {
	case p.Error != nil:
		f.icmp, f.code = p.Error.Type, p.Error.Code
	case p.ND != nil:
		f.icmp = p.ND.Type
	case p.isICMP():
		f.icmp = contivEcho(p.Dst.Is6(), p.EchoReply)
	default:
		f.sport, f.dport = p.SrcPort, p.DstPort
	}
	return f
}

func (f contivFlow) reverse() contivFlow {
	f.src, f.dst, f.sport, f.dport = f.dst, f.src, f.dport, f.sport
	return f
}

// matchesPacket reports whether the part of a rule that needs no set matches.
func (r *contivRule) matchesPacket(f contivFlow) bool {
	s := &r.set
	family := uint8(4)
	if f.dst.Is6() {
		family = 6
	}
	if s.Protocol != 0 && s.Protocol != f.proto || s.Family != 0 && s.Family != family ||
		s.Flags&contiv.CONTIV_RULE_API_ICMP_TYPE != 0 && s.ICMPType != f.icmp ||
		s.Flags&contiv.CONTIV_RULE_API_ICMP_CODE != 0 && s.ICMPCode != f.code {
		return false
	}
	for _, p := range s.Ports[:s.NPorts] {
		if p.First <= f.dport && f.dport <= p.Last {
			return true
		}
	}
	return s.NPorts == 0
}

// contains reports whether a set contains a member for which want returns true. sure is false if the members of the set are not known; is is
// then true.
func (p *contivPolicies) contains(id uint64, kind contiv.ContivSetKind, want func(contivMember) bool) (is, sure bool) {
	s := p.sets[id]
	if s == nil || s.overfull || s.kind != kind {
		return true, false
	}
	for m := range s.members {
		if want(m) {
			return true, true
		}
	}
	return false, true
}

// action returns the action of a rule for a flow; 0: it does not match.
func (p *contivPolicies) action(r *contivRule, f contivFlow) contiv.ContivRuleAction {
	if !r.matchesPacket(f) {
		return 0
	}
	networks, ports := contiv.CONTIV_SET_API_NETWORKS, contiv.CONTIV_SET_API_PORTS
	sure := true
	for _, set := range []struct {
		id   uint64
		kind contiv.ContivSetKind
		want func(contivMember) bool
	}{
		{r.set.Source, networks, func(m contivMember) bool { return m.net.Contains(f.src) }},
		{r.set.Destination, networks, func(m contivMember) bool { return m.net.Contains(f.dst) }},
		{r.set.PortSet, ports, func(m contivMember) bool { return m.net.Contains(f.dst) && m.proto == f.proto && m.port == f.dport }},
	} {
		if set.id == 0 {
			continue
		}
		is, known := p.contains(set.id, set.kind, set.want)
		if !is {
			return 0
		}
		sure = sure && known
	}
	switch {
	case sure:
		return r.set.Action
	case r.set.Action == contiv.CONTIV_RULE_API_ALLOW:
		return 0
	}
	return contiv.CONTIV_RULE_API_DENY
}

// byPolicy returns the action and the index of the first matching rule of a policy.
func (p *contivPolicies) byPolicy(id uint64, side contiv.ContivSide, f contivFlow) (action contiv.ContivRuleAction, rule uint32) {
	for i, r := range p.policies[id].rules[side] {
		if action := p.action(r, f); action != 0 {
			r.matched++
			return action, uint32(i)
		}
	}
	return 0, 0
}

// decide evaluates all tiers of an endpoint, and returns the policy and the rule that have decided. Packets to the pod's own node are allowed
// by the first policy that does not apply to them, and at the end.
func (p *contivPolicies) decide(e *contivPolice, side contiv.ContivSide, f contivFlow, toNode bool) (action contiv.ContivRuleAction, policy uint64, rule uint32) {
	passed, requested := false, false
	for _, item := range e.items[side] {
		switch {
		case item.PolicyID == 0 && !passed && item.Action != contiv.CONTIV_RULE_API_PASS && (requested || !toNode):
			return item.Action, 0, 0
		case item.PolicyID == 0:
			passed, requested = false, false
		case passed:
		case toNode && item.Action == 0:
			return contiv.CONTIV_RULE_API_ALLOW, 0, 0
		default:
			requested = true
			action, rule := p.byPolicy(item.PolicyID, side, f)
			if action == contiv.CONTIV_RULE_API_ALLOW || action == contiv.CONTIV_RULE_API_DENY {
				return action, item.PolicyID, rule
			}
			passed = action == contiv.CONTIV_RULE_API_PASS
		}
	}
	if toNode {
		return contiv.CONTIV_RULE_API_ALLOW, 0, 0
	}
	return e.otherwise[side], 0, 0
}

// bySide evaluates the policy of one end.
func (c *contivState) bySide(ifx uint32, side contiv.ContivSide, f contivFlow, toNode bool, now time.Time) contivJudgement {
	e := c.policy.police[ifx]
	if end := c.endpoints[ifx]; e == nil || e.open() || end == nil || end.set.Role != contiv.CONTIV_ROLE_API_POD {
		return contivFree
	}
	action, policy, rule := c.policy.decide(e, side, f, toNode)
	if action == contiv.CONTIV_RULE_API_ALLOW {
		return contivAllowed
	}
	e.denied[side]++
	c.policy.report(contiv.ContivDeniedDetails{
		SwIfIndex: interface_types.InterfaceIndex(ifx), Side: side, Protocol: f.proto, ICMPType: f.icmp, ICMPCode: f.code,
		Source: apiAddress(f.src), Destination: apiAddress(f.dst), SourcePort: f.sport, DestinationPort: f.dport, PolicyID: policy, Rule: rule,
	}, now)
	return contivDenied
}

// nodeFlow evaluates flows between a pod and its node; contivNotJudged: the flow is not one of these.
func (c *contivState) nodeFlow(from uint32, f contivFlow, now time.Time) contivJudgement {
	client, to := c.endpoints[from], c.contivPod(f.dst)
	server := c.endpoints[to]
	pod := client != nil && client.set.Role == contiv.CONTIV_ROLE_API_POD
	neighbours := f.proto == ProtoICMPv6 && (f.icmp == 133 || f.icmp == 135 || f.icmp == 136)
	switch {
	case client != nil && client.set.Role == contiv.CONTIV_ROLE_API_HOST && client.addrs[f.src]:
		if e := c.policy.police[to]; e != nil && e.forNode() {
			return contivAllowed // so that a connection is created, to which the replies belong
		}
		return contivFree
	case server == nil || server.set.Role != contiv.CONTIV_ROLE_API_HOST:
		return contivNotJudged
	case !pod || neighbours:
		return contivFree
	}
	if e := c.policy.police[from]; e == nil || !e.forNode() {
		return contivFree
	}
	return c.bySide(from, contiv.CONTIV_SIDE_API_EGRESS, f, true, now)
}

// evaluate evaluates a flow whose client is behind the interface from; none: behind another node.
func (c *contivState) evaluate(from uint32, f contivFlow, now time.Time) contivJudgement {
	if !c.policy.restrict() {
		return contivFree
	}
	client, to := c.endpoints[from], c.contivPod(f.dst)
	linkLocal := f.dst.Is6() && f.dst.IsLinkLocalUnicast() // of VPP
	if client != nil && client.set.Role == contiv.CONTIV_ROLE_API_POD && linkLocal || c.endpoints[to] != nil && to == from {
		return contivFree
	}
	if j := c.nodeFlow(from, f, now); j != contivNotJudged {
		return j
	}
	all := c.bySide(from, contiv.CONTIV_SIDE_API_EGRESS, f, false, now)
	if all != contivDenied {
		all = max(all, c.bySide(to, contiv.CONTIV_SIDE_API_INGRESS, f, false, now))
	}
	return all
}

// flow returns the flow of the connection.
func (conn *contivConn) flow() contivFlow {
	sent, answered := conn.keys[contivToBackend], conn.keys[contivToClient]
	f := contivFlow{src: sent.src.Addr(), dst: answered.src.Addr(), sport: sent.src.Port(), dport: answered.src.Port(), proto: sent.proto}
	if f.proto == ProtoICMP || f.proto == ProtoICMPv6 {
		f.sport, f.dport = 0, 0
		f.icmp = contivEcho(f.dst.Is6(), conn.echoReply)
	}
	return f
}

// allowed reports whether policy allows a connection. It evaluates policy again if policy has changed.
func (c *contivState) allowed(conn *contivConn, now time.Time) bool {
	if conn.epoch != c.policy.epoch {
		from := conn.ifx
		if conn.ofBackend {
			from = c.contivPod(conn.keys[0].src.Addr())
		}
		conn.judged, conn.epoch = c.evaluate(from, conn.flow(), now), c.policy.epoch
	}
	return conn.judged != contivDenied
}

// mayPass evaluates a packet of a connection, and new flows that it starts in the reverse direction of the connection.
func (c *contivState) mayPass(conn *contivConn, dir int, p *Packet, now time.Time) bool {
	if !c.allowed(conn, now) {
		return false
	}
	forth := dir == contivToBackend
	f := conn.flow()
	switch {
	case conn.judged != contivAllowed:
		return true
	case p.Proto == ProtoTCP:
		if forth || p.later() || p.tcpFlags()&(FlagSYN|FlagACK) != FlagSYN {
			return true
		}
		f = f.reverse()
	case p.isICMP():
		request := !p.EchoReply
		if conn.echoReply && forth && !request || !conn.echoReply && request == forth {
			return true
		}
		f.icmp = contivEcho(p.Dst.Is6(), false)
		if request != forth {
			f = f.reverse()
		}
	default:
		return true
	}
	return c.evaluate(c.contivPod(f.src), f, now) != contivDenied
}

// contivStateless evaluates a packet of a protocol without connections.
func (w *walk) contivStateless(i *iface, p *Packet) bool {
	if w.contiv.evaluate(i.index, contivFlowOf(p), w.now()) == contivDenied {
		return w.contivDrop(&w.contiv.conns.stats.Denied, "denied by network policy")
	}
	return true
}

// errorAllowed reports whether an ICMP error is allowed: with a connection, the result of the connection counts; otherwise the error is
// evaluated like other packets. to is the source of the packet inside.
func (c *contivState) errorAllowed(i *iface, p *Packet, conn *contivConn, to netip.Addr, now time.Time) bool {
	if conn != nil && to == p.Dst {
		return c.allowed(conn, now)
	}
	return c.evaluate(i.index, contivFlowOf(p), now) != contivDenied
}

// answeredByEgress reports whether the replies of a pod to a machine outside need a connection: without one they would get the source of the
// pod's egress address.
func (c *contivState) answeredByEgress(t contivTuple) bool {
	e := c.endpoints[c.contivPod(t.dst.Addr())]
	return e != nil && e.set.Role == contiv.CONTIV_ROLE_API_POD && e.set.Egress != 0 && !c.known(t.src.Addr())
}

// plain forwards packets that do not belong to a service, without translation. A connection is created if policy applies to the flow, if its
// destination is a backend, or for answeredByEgress.
func (n *contivOpening) plain() bool {
	c, role := &n.w.contiv, n.e.set.Role
	local := role == contiv.CONTIV_ROLE_API_POD || role == contiv.CONTIV_ROLE_API_HOST
	toBackend := !n.p.isICMP() && local && c.isBackend(n.t.dst)
	if n.p.Proto == ProtoTCP && c.policy.restrict() && n.p.tcpFlags()&(FlagSYN|FlagACK) != FlagSYN {
		n.evaluateOpen()
	} else {
		n.judged = c.evaluate(n.i.index, contivFlowOf(n.p), n.now)
	}
	switch {
	case n.judged == contivDenied:
		return n.w.contivDrop(&c.conns.stats.Denied, "denied by network policy")
	case n.judged == contivAllowed && n.answersDenied():
		return n.makeDenied()
	case n.judged == contivAllowed, toBackend, role == contiv.CONTIV_ROLE_API_UPLINK && c.answeredByEgress(n.t):
		return n.make(nil, n.t.dst, nil, false)
	case n.needsMemory():
		return n.make(nil, n.t.dst, nil, false)
	}
	n.noteUnjudged()
	return true
}
