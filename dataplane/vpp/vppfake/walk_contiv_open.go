package vppfake

import (
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
)

// contivOpening is the first packet of a connection.
type contivOpening struct {
	w   *walk
	i   *iface
	e   *contivEndpoint
	p   *Packet
	t   contivTuple
	now time.Time

	judged    contivJudgement
	reversed  bool // the packet is from the backend; t is the tuple in the client's direction
	ofBackend bool
	behind    bool // received on the HOST endpoint, but not from the host itself
}

// open determines the destination of the connection and creates it; false: the packet was dropped.
func (n *contivOpening) open() bool {
	c := &n.w.contiv
	if f := c.frontends[contivPlace{n.t.dst, n.t.proto}]; f != nil {
		return n.frontend(f)
	}
	if f := c.frontends[contivPlace{at: netip.AddrPortFrom(n.t.dst.Addr(), 0)}]; f != nil {
		return n.refuse(f)
	}
	if n.t == n.t.reverse() {
		return n.w.contivStateless(n.i, n.p) // to itself: both keys would be equal
	}
	role, dst := n.e.set.Role, n.t.dst.Addr()
	pod := role == contiv.CONTIV_ROLE_API_POD
	if pod && n.e.set.Egress != 0 && !dst.IsMulticast() && !dst.IsLinkLocalUnicast() && !dst.IsLoopback() && !c.known(dst) {
		snat, known := c.source(n.e.set.Egress, family(n.t.src.Addr()))
		switch {
		case !known:
			return n.w.contivDrop(nil, "no address for source NAT")
		case snat.addr.IsValid():
			return n.make(nil, n.t.dst, &snat, false)
		}
	}
	return n.plain()
}

func (n *contivOpening) reset() bool { return n.p.Proto == ProtoTCP && n.p.tcpFlags()&FlagRST != 0 }

// target returns the target of a frontend for the client, nil if the client's address is in none of the source ranges.
func (n *contivOpening) target(f *contivFrontend) *contiv.ContivTarget {
	c := &n.w.contiv
	if f.set.Ranges != 0 && !c.inRanges(f.set.Ranges, n.p.Src) {
		n.w.contivDrop(nil, "client outside of the source ranges")
		return nil
	}
	n.behind = n.e.set.Table != 0 && !n.e.addrs[n.p.Src]
	if role := n.e.set.Role; !n.behind && (role == contiv.CONTIV_ROLE_API_POD || role == contiv.CONTIV_ROLE_API_HOST) {
		return &f.set.InCluster
	}
	return &f.set.Outside
}

// refuse handles a packet for a frontend that has no backend, or for one of a whole address.
func (n *contivOpening) refuse(f *contivFrontend) bool {
	t := n.target(f)
	switch {
	case t == nil:
	case t.Action == contiv.CONTIV_ACTION_API_REJECT:
		n.reject()
	default:
		n.w.contivDrop(nil, "no local backend")
	}
	return false
}

func (n *contivOpening) frontend(f *contivFrontend) bool {
	t := n.target(f)
	switch {
	case t == nil:
		return false
	case t.Action != contiv.CONTIV_ACTION_API_BALANCE:
		return n.refuse(f)
	}
	f.new++
	if n.reset() {
		return n.w.contivDrop(nil, "reset of no connection")
	}
	b := n.choose(f, n.w.contiv.services[t.ServiceID])
	if b == nil {
		n.reject()
		return false
	}
	if t.Flags&contiv.CONTIV_TARGET_API_MASQ == 0 && !b.masq && b.end.Addr() != n.p.Src {
		return n.make(b, b.end, nil, true)
	}
	snat := n.masquerade(b)
	if !snat.addr.IsValid() {
		return n.w.contivDrop(nil, "no address for source NAT")
	}
	return n.make(b, b.end, &snat, true)
}

// masquerade returns the source address for clients of a backend: backends outside of the cluster receive the node's address, if there is one.
func (n *contivOpening) masquerade(b *contivBackend) contivSource {
	c, fam := &n.w.contiv, family(n.p.Src)
	if !c.known(b.end.Addr()) {
		if snat, _ := c.source(1, fam); snat.addr.IsValid() {
			return snat
		}
	}
	snat, _ := c.source(0, fam)
	return snat
}

// choose returns the remembered backend if it still gets new connections, otherwise any that does; nil: there is none.
func (n *contivOpening) choose(f *contivFrontend, s *contivService) *contivBackend {
	if s == nil || len(s.backends) == 0 {
		return nil
	}
	c := &n.w.contiv
	takers := s.takers()
	b := takers[n.w.rng.IntN(len(takers))]
	if s.flags&contiv.CONTIV_SERVICE_API_MAGLEV != 0 {
		b = takers[Packet{Src: n.t.src.Addr(), SrcPort: n.t.src.Port()}.flow()%uint64(len(takers))]
	}
	if f.set.AffinityGroup == 0 {
		return b
	}
	client := contivClient{f.set.AffinityGroup, n.p.Src}
	if sticky, ok := c.conns.sticky[client]; ok {
		for _, other := range takers {
			if other.end == sticky.end {
				b = other
			}
		}
	}
	c.conns.sticky[client] = contivSticky{b.end, n.now.Add(time.Duration(f.set.AffinityTimeout) * time.Second)}
	return b
}

// isBackend reports whether any service has a backend with this address and port.
func (c *contivState) isBackend(end netip.AddrPort) bool {
	for _, s := range c.services {
		for _, b := range s.backends {
			if b.end == end {
				return true
			}
		}
	}
	return false
}

// contivSource is an address for SNAT, with its ports.
type contivSource struct {
	addr      netip.Addr
	low, high uint16
}

// source returns one of the addresses for SNAT; invalid: there is no address of the family. known reports whether the number is configured.
func (c *contivState) source(id uint32, fam int) (s contivSource, known bool) {
	set := c.snats[id]
	if set == nil {
		return s, false
	}
	s.low, s.high = set.PortLow, set.PortHigh
	a := netip.AddrFrom4(set.IP4)
	if fam == ip6 {
		a = netip.AddrFrom16(set.IP6)
	}
	if !a.IsUnspecified() {
		s.addr = a
	}
	return s, true
}

// make adds the connection under its two keys, and translates its first packet.
func (n *contivOpening) make(b *contivBackend, end netip.AddrPort, snat *contivSource, service bool) bool {
	c, fam := &n.w.contiv, family(n.t.src.Addr())
	stats := &c.conns.stats
	pod := n.e.set.Role == contiv.CONTIV_ROLE_API_POD
	if n.judged == contivNotJudged {
		f := contivFlowOf(n.p)
		if f.dst = end.Addr(); !n.p.isICMP() {
			f.dport = end.Port()
		}
		if n.judged = c.evaluate(n.i.index, f, n.now); n.judged == contivDenied {
			return n.w.contivDrop(&stats.Denied, "denied by network policy")
		}
	}
	if service && pod && n.p.Proto == ProtoUDP && c.tunnelPort(end.Port()) {
		return n.w.contivDrop(&stats.Tunnel, "tunnel packet of a pod")
	}
	if limit := c.limit(n.e); n.e.connections[fam] >= limit {
		n.e.refused++
		return n.w.contivDrop(&stats.RefusedLimit, "endpoint has too many connections")
	}
	if c.conns.n[fam] >= c.max {
		return n.w.contivDrop(&stats.RefusedFull, "connection table full")
	}
	answer, ok := n.answer(end, snat)
	if !ok {
		return n.w.contivDrop(&stats.RefusedPort, "no free port for source NAT")
	}
	c.conns.made++
	conn := &contivConn{
		keys: [2]contivTuple{n.t, answer}, ifx: uint32(n.e.set.SwIfIndex), backend: b, state: contivNew, number: c.conns.made,
		judged: n.judged, epoch: c.policy.epoch, ofBackend: n.ofBackend, behind: n.behind, echoReply: n.p.EchoReply,
	}
	for _, key := range conn.keys {
		c.conns.table[key] = conn
	}
	c.conns.n[fam]++
	n.e.connections[fam]++
	if b != nil {
		b.conns++
	}
	stats.Created++
	dir := contivToBackend
	if n.reversed {
		dir = contivToClient
	}
	conn.see(dir, n.p, n.now)
	n.w.contivTranslate(n.p, conn, dir)
	return true
}

// limit returns the maximum number of connections of an endpoint: endpoints of other roles leave a quarter of the table to pods, and an eighth
// to affinity records.
func (c *contivState) limit(e *contivEndpoint) int {
	switch {
	case e.set.MaxConnections != 0:
		return int(e.set.MaxConnections)
	case e.set.Role == contiv.CONTIV_ROLE_API_POD:
		return int(c.config.EndpointConnections)
	}
	return c.max - c.max/4 - c.max/8
}

// answer returns the tuple of the backend's replies. If it is in use, another source port is chosen.
func (n *contivOpening) answer(end netip.AddrPort, snat *contivSource) (contivTuple, bool) {
	source := n.t.src.Addr()
	low, high := uint16(32768), uint16(65535)
	if snat != nil {
		source, low, high = snat.addr, snat.low, snat.high
	}
	icmp := n.p.Proto == ProtoICMP || n.p.Proto == ProtoICMPv6
	try := func(port uint16) (contivTuple, bool) {
		from := end
		if icmp {
			from = netip.AddrPortFrom(end.Addr(), port)
		}
		key := contivTuple{from, netip.AddrPortFrom(source, port), n.t.proto}
		_, taken := n.w.contiv.conns.table[key]
		return key, !taken && key != n.t
	}
	if own := n.t.src.Port(); snat == nil || icmp || own >= low && own <= high {
		if key, free := try(own); free {
			return key, true
		}
	}
	size := int(high) - int(low) + 1
	for range 16 {
		if key, free := try(low + uint16(n.w.rng.IntN(size))); free {
			return key, true
		}
	}
	for at := range size {
		if key, free := try(low + uint16(at)); free {
			return key, true
		}
	}
	return contivTuple{}, false
}

// reject sends a rejection from the packet's destination.
func (n *contivOpening) reject() {
	p := n.p
	n.w.drop("contiv: rejected, no backend")
	out := Packet{Src: p.Dst, Dst: p.Src, Proto: p.Proto, TTL: 64, own: true}
	switch {
	case p.Proto == ProtoTCP && n.reset():
		return
	case p.Proto == ProtoTCP:
		out.SrcPort, out.DstPort, out.Flags = p.DstPort, p.SrcPort, FlagRST|FlagACK
		if p.tcpFlags()&FlagACK != 0 {
			out.Flags = FlagRST
		}
	case p.Dst.Is4():
		out.Proto, out.Error = ProtoICMP, &ICMPError{Type: icmp4Unreachable, Code: icmp4NoPort, Inner: *p}
	default:
		out.Proto, out.Error = ProtoICMPv6, &ICMPError{Type: icmp6Unreachable, Code: icmp6NoPort, Inner: *p}
	}
	n.w.lookups = 0
	table := n.i.ip[family(p.Dst)].table
	if n.behind {
		table = n.e.answers[family(p.Dst)]
	}
	n.w.lookup(nil, out, table)
}

// Codes of the errors for a port without a listener.
const icmp4NoPort, icmp6NoPort = 3, 4
