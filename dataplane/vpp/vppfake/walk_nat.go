package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/nat_types"
)

// natPortAttempts is the number of VPP's attempts to find a free port.
const natPortAttempts = 10

// natPacket is a packet that NAT processes.
type natPacket struct {
	*Packet
	key   natKey
	rx    uint32 // sw_if_index of the receiving interface
	table *fib   // table of the next lookup
	out   bool   // the packet is leaving: it is translated after the lookup
	tx    uint32 // sending interface, if out
	dir   int    // direction of the current node: natO2I or natI2O
}

// verdict is the result of a step of NAT.
type verdict int

const (
	pass verdict = iota
	drop
)

// natInput runs NAT before the lookup and returns the table for the lookup; false: the packet was dropped.
func (w *walk) natInput(i *iface, p *Packet) (table *fib, goOn bool) {
	table = i.ip[ip4].table
	names := w.natFeatures(i.index)
	if len(names) == 0 {
		return table, true
	}
	if len(names) > 1 || !w.features[featureKey{i.index, arcIn, featReass}] {
		w.unknown("features %v of NAT on %s", names, i.name)
		return nil, false
	}
	q, ok := w.natPacket(p, table)
	if !ok {
		return nil, false
	}
	q.rx, q.tx = i.index, none
	result := drop
	switch names[0] {
	case featIn2out:
		result = w.in2out(q)
	case featOut2in:
		result = w.out2in(q)
	default:
		if w.classify(q) {
			result = w.in2out(q)
		} else {
			result = w.out2in(q)
		}
	}
	return q.table, result == pass
}

func (w *walk) natPacket(p *Packet, table *fib) (*natPacket, bool) {
	q := &natPacket{Packet: p, table: table, key: natKey{src: p.Src, dst: p.Dst, table: table, proto: p.Proto}}
	if p.Error != nil {
		src, dst, proto := p.Error.about()
		q.key = natKey{src: src.Addr(), srcPort: src.Port(), dst: dst.Addr(), dstPort: dst.Port(), table: table, proto: proto}
		return q, true
	}
	switch p.Proto {
	case ProtoTCP, ProtoUDP:
		q.key.srcPort, q.key.dstPort = p.SrcPort, p.DstPort
	case ProtoICMP:
		q.key.srcPort, q.key.dstPort = p.echoID(), p.echoID()
	default:
		w.unknown("NAT of protocol %d", p.Proto)
		return nil, false
	}
	return q, true
}

// natOutput runs NAT for packets that leave through an interface with the output feature; false: the packet was dropped.
func (w *walk) natOutput(out *iface, p *Packet) bool {
	if !w.features[featureKey{out.index, arcOut, featOutput}] || family(p.Dst) != ip4 {
		return true
	}
	if w.rx == nil {
		w.unknown("NAT of a packet of VPP's own on %s", out.name)
		return false
	}
	q, ok := w.natPacket(p, w.rx.ip[ip4].table)
	if !ok {
		return false
	}
	q.rx, q.tx, q.out = w.rx.index, out.index, true
	return w.in2out(q) == pass
}

// classify reports whether in2out processes a packet on an interface that is both inside and outside.
func (w *walk) classify(q *natPacket) bool {
	n := &w.nat
	if q.Proto != ProtoICMP {
		if s := n.flows[q.key]; s != nil {
			return s.i2o.match == q.key
		}
	}
	for _, a := range n.pool {
		if a.addr == q.Dst {
			return false
		}
	}
	if m := n.byExt[natExt{q.Dst, 0, 0}]; m != nil {
		return m.local == m.ext
	}
	if m := n.byExt[natExt{q.Dst, q.key.dstPort, q.Proto}]; m != nil {
		return m.local == m.ext
	}
	return true
}

// opening reports whether the packet may create a session: for TCP only the first packet of a connection does.
func (q *natPacket) opening() bool {
	return q.Proto != ProtoTCP || q.tcpFlags()&(FlagSYN|FlagACK) == FlagSYN
}

func (w *walk) natDrop(format string, args ...any) verdict {
	w.drop("NAT: "+format, args...)
	return drop
}

// translate rewrites the packet.
func (w *walk) translate(q *natPacket, s *natSession, f *natFlow) verdict {
	n := 14
	if !q.out {
		n = 0
	}
	if q.Proto == ProtoTCP {
		s.see(q.dir, q.tcpFlags())
	}
	s.count(q.IPLen()+n, w.now())
	if q.Error != nil {
		w.translateError(q, s, f)
		return pass
	}
	q.Src, q.Dst = f.to.src, f.to.dst
	switch {
	case q.Proto != ProtoICMP:
		q.SrcPort, q.DstPort = f.to.srcPort, f.to.dstPort
	case f.echo:
		q.setEchoID(f.to.srcPort)
	}
	if f.table != nil && !q.out {
		q.table = f.table
	}
	w.step("NAT: %s", *q.Packet)
	return pass
}

// liveSession returns the session of a flow, unless it is void.
func (w *walk) liveSession(key natKey) *natSession {
	s := w.nat.flows[key]
	if s != nil && s.expired {
		w.dropSession(s)
		return nil
	}
	return s
}

// out2in implements nat44-ed-out2in with its slow path.
func (w *walk) out2in(q *natPacket) verdict {
	q.dir = natO2I
	if q.TTL == 1 {
		return w.natDrop("ttl expired")
	}
	s := w.liveSession(q.key)
	if s == nil {
		return w.out2inSlow(q)
	}
	switch {
	case s.o2i.match == q.key:
		return w.translate(q, s, &s.o2i)
	case s.i2o.match == q.key && (s.twice || w.nat.forwarding):
		return w.translate(q, s, &s.i2o)
	case q.toDHCPClient():
		return pass
	case w.nat.forwarding:
		w.dropSession(s)
	}
	return w.natDrop("flow does not match its session")
}

// toDHCPClient reports whether the packet is a reply of a DHCP server, which is not translated.
func (q *natPacket) toDHCPClient() bool { return q.Proto == ProtoUDP && q.DstPort == 68 }

func (w *walk) out2inSlow(q *natPacket) verdict {
	if q.Error != nil {
		return w.errorIn(q)
	}
	m := w.natMatch(q.Dst, q.key.dstPort, q.Proto)
	icmp := q.Proto == ProtoICMP
	switch {
	case m == nil && !icmp && q.toDHCPClient():
		return pass
	case m == nil && !w.nat.forwarding:
		if icmp && w.ownAddress(q.rx, q.Dst) {
			return pass
		}
		return w.natDrop("no translation")
	case m == nil:
		w.bypass(q)
		return pass
	}
	to, ok := w.chooseLocal(q, m)
	switch {
	case !ok && w.err != nil:
		return drop
	case icmp && !q.EchoReply && !m.has(nat_types.NAT_IS_ADDR_ONLY):
		return w.natDrop("unsupported ICMP type")
	case m.identity:
		return pass
	case !q.opening():
		return w.natDrop("not the first packet of a connection")
	}
	return w.mapSession(q, m, to)
}

func (w *walk) ownAddress(ifx uint32, a netip.Addr) bool {
	for _, p := range w.addresses(w.ifs.all[ifx], ip4) {
		if p.Addr() == a {
			return true
		}
	}
	return false
}

// natMatch returns the mapping for an external address.
func (w *walk) natMatch(a netip.Addr, port uint16, proto uint8) *natMapping {
	if m := w.nat.byExt[natExt{a, port, proto}]; m != nil {
		return m
	}
	return w.nat.byExt[natExt{a, 0, 0}]
}

// chooseLocal returns the destination of a mapping for this packet.
func (w *walk) chooseLocal(q *natPacket, m *natMapping) (natEnd, bool) {
	if !m.lb {
		to := natEnd{m.local, m.localPort, m.table}
		if m.has(nat_types.NAT_IS_ADDR_ONLY) {
			to.port = q.key.dstPort
		}
		return to, true
	}
	client := natClient{q.Src, natExt{q.Dst, q.key.dstPort, q.Proto}}
	if m.affinity != 0 {
		if sticky, ok := w.nat.affinity[client]; ok {
			l := m.locals.at(int(sticky.place))
			if l == nil {
				w.crash("NAT: affinity to backend %d of %d: VPP reads beyond its list", sticky.place, m.locals.len())
				return natEnd{}, false
			}
			return natEnd{l.addr, l.port, l.table}, true
		}
	}
	var sum uint8
	for l := range m.locals.all() {
		sum = l.upTo
	}
	if sum == 0 {
		w.crash("NAT: the weights of %s:%d add up to 0: VPP divides by it", m.ext, m.extPort)
		return natEnd{}, false
	}
	index := m.pick(1 + w.nat.random()%uint32(sum))
	l := m.locals.at(index)
	if m.affinity != 0 {
		w.nat.affinity[client] = natSticky{uint8(index), m.clients}
	}
	return natEnd{l.addr, l.port, l.table}, true
}

// pick implements VPP's binary search for the first backend whose sum of weights reaches r.
func (m *natMapping) pick(r uint32) int {
	var live []int
	for at := range m.locals.elems {
		if m.locals.elems[at].value != nil {
			live = append(live, at)
		}
	}
	lo, hi := 0, len(live)-1
	for lo < hi {
		mid := (hi-lo)/2 + lo
		if r > uint32(m.locals.at(live[mid]).upTo) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return live[lo]
}

// full reports whether the maximum number of sessions is reached.
func (w *walk) full() bool { return w.nat.sessions.len() >= int(w.nat.limit) }

// mapSession creates the session for the first packet to a mapping.
func (w *walk) mapSession(q *natPacket, m *natMapping, to natEnd) verdict {
	if w.full() {
		return w.natDrop("maximum sessions exceeded")
	}
	icmp := q.Proto == ProtoICMP
	s := &natSession{in: to, out: natEnd{q.Dst, q.key.dstPort, q.key.table}, ext: natEnd{addr: q.Src, port: q.key.srcPort},
		proto: q.Proto, static: true, lb: m.lb && !icmp}
	if icmp {
		s.ext.port = 0
	}
	w.nat.sessions.add(s)
	s.o2i = natFlow{match: q.key, to: q.key, table: to.table, echo: icmp}
	s.o2i.to.dst, s.o2i.to.dstPort = to.addr, to.port
	s.i2o = natFlow{echo: icmp, match: natKey{src: to.addr, srcPort: to.port, dst: q.Src, dstPort: q.key.srcPort,
		table: to.table, proto: q.Proto}}
	if icmp {
		s.o2i.to.srcPort, s.i2o.match.dstPort = to.port, to.port
	}
	twice := m.has(nat_types.NAT_IS_TWICE_NAT) || m.has(nat_types.NAT_IS_SELF_TWICE_NAT) && q.Src == to.addr
	if twice && !icmp {
		a := w.twiceAddress(m, to)
		if a == nil {
			w.dropSession(s)
			return w.natDrop("out of ports")
		}
		s.twice, s.extNAT = true, natEnd{addr: a.addr, port: w.nat.randomPort()}
		s.i2o.match.dst, s.i2o.match.dstPort = s.extNAT.addr, s.extNAT.port
		s.o2i.to.src, s.o2i.to.srcPort = s.extNAT.addr, s.extNAT.port
	}
	s.i2o.to = s.i2o.match
	s.i2o.to.src, s.i2o.to.srcPort = q.Dst, q.key.dstPort
	if s.twice {
		s.i2o.to.dst, s.i2o.to.dstPort = q.Src, q.key.srcPort
	}
	w.nat.flows[s.o2i.match], w.nat.flows[s.i2o.match] = s, s
	return w.translate(q, s, &s.o2i)
}

// twiceAddress returns the address of the twice-NAT pool for a backend.
func (w *walk) twiceAddress(m *natMapping, to natEnd) *natAddress {
	pool := w.nat.twice
	if len(pool) == 0 {
		return nil
	}
	for k := range pool {
		if m.pool.IsValid() && pool[k].addr == m.pool {
			return &pool[k]
		}
	}
	raw := to.addr.As4()
	first := int((uint32(raw[3])<<24 | uint32(raw[2])<<16 | uint32(raw[1])<<8 | uint32(raw[0])) % uint32(len(pool)))
	var shared *natAddress
	for k := range pool {
		a := &pool[(first+k)%len(pool)]
		switch a.table {
		case to.table:
			return a
		case nil:
			shared = a
		}
	}
	return shared
}

// bypass handles a packet that NAT does not translate: with forwarding VPP creates a session even for such packets.
func (w *walk) bypass(q *natPacket) {
	back := natKey{src: q.key.dst, srcPort: q.key.dstPort, dst: q.key.src, dstPort: q.key.srcPort, table: q.key.table,
		proto: q.Proto}
	s := w.nat.flows[back]
	if s == nil {
		if w.full() {
			return
		}
		s = &natSession{bypass: true, proto: q.Proto, ext: natEnd{addr: q.Src, port: q.key.srcPort},
			out: natEnd{q.Dst, q.key.dstPort, q.key.table}, i2o: natFlow{match: back, to: back, table: q.key.table}}
		s.in = s.out
		w.nat.sessions.add(s)
		w.nat.flows[back] = s
	}
	s.count(0, w.now())
}
