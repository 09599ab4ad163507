package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/nat_types"
)

// in2out implements nat44-ed-in2out and nat44-ed-in2out-output with their slow paths.
func (w *walk) in2out(q *natPacket) verdict {
	q.dir = natI2O
	if !q.out && q.TTL == 1 {
		return w.natDrop("ttl expired")
	}
	if q.out && w.nat.forwarding {
		key := q.key
		key.table = w.ip.tables[ip4][0]
		if s := w.nat.flows[key]; s != nil && s.bypass {
			s.count(q.IPLen()+14, w.now())
			return pass
		}
	}
	s := w.liveSession(q.key)
	switch {
	case s == nil:
		return w.in2outSlow(q)
	case s.i2o.match == q.key:
		return w.translate(q, s, &s.i2o)
	case s.hairpin && s.o2i.match == q.key:
		return w.translate(q, s, &s.o2i)
	}
	w.dropSession(s)
	return w.natDrop("flow does not match its session")
}

func (w *walk) in2outSlow(q *natPacket) verdict {
	if q.Error != nil {
		return w.errorOut(q)
	}
	if q.out && w.leaveOutput(q) || !q.out && w.leaveInput(q) {
		return pass
	}
	if q.out && q.Proto == ProtoUDP && q.DstPort == 67 && q.Dst == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return pass
	}
	if w.full() {
		return w.natDrop("maximum sessions exceeded")
	}
	m := w.natSource(q.Src, q.key.srcPort, q.key.table, q.Proto)
	switch {
	case m != nil && m.identity:
		return pass
	case !q.opening():
		return w.natDrop("not the first packet of a connection")
	}
	return w.sourceSession(q, m)
}

// leaveInput implements nat44_ed_not_translate.
func (w *walk) leaveInput(q *natPacket) bool {
	back := natKey{src: q.key.dst, srcPort: q.key.dstPort, dst: q.key.src, dstPort: q.key.srcPort, table: w.nat.outside,
		proto: q.Proto}
	if m := w.natMatch(q.Dst, q.key.dstPort, q.Proto); m != nil || w.nat.flows[back] != nil {
		if m != nil && m.lb && m.affinity != 0 {
			w.crash("NAT: to %s:%d, with affinity, by an interface that is only inside: VPP follows a null pointer", q.Dst, q.DstPort)
		} else if m != nil && m.lb {
			_, _ = w.chooseLocal(q, m) // VPP draws a backend although it only checks whether there is one
		}
		return false
	}
	switch {
	case w.nat.forwarding, w.ownAddress(q.rx, q.Dst):
		return true
	}
	return !w.resolvable(q.Dst)
}

// resolvable reports whether the tables of outside interfaces lead to an outside interface.
func (w *walk) resolvable(a netip.Addr) bool {
	for _, f := range w.nat.outFibs {
		if ifx := f.table.lookup(a, (*fibEntry).installed).resolving(); ifx != none {
			if p := findPort(w.nat.ports, ifx); p != nil && p.out {
				return true
			}
		}
	}
	return false
}

// leaveOutput implements nat44_ed_not_translate_output_feature.
func (w *walk) leaveOutput(q *natPacket) bool {
	key := q.key
	key.table = w.ifs.all[q.tx].ip[ip4].table
	if w.nat.flows[key] != nil {
		return true
	}
	back := natKey{src: q.key.dst, srcPort: q.key.dstPort, dst: q.key.src, dstPort: q.key.srcPort, table: q.key.table,
		proto: q.Proto}
	s := w.nat.flows[back]
	return s != nil && !s.bypass && findPort(w.nat.outputs, q.rx) == nil
}

// natSource returns the mapping for a local address.
func (w *walk) natSource(a netip.Addr, port uint16, table *fib, proto uint8) *natMapping {
	for _, t := range []*fib{table, w.nat.inside, w.nat.outside} {
		if m := w.nat.byLocal[natLocal{natExt{a, port, proto}, t}]; m != nil {
			return m
		}
		if m := w.nat.byLocal[natLocal{natExt{a, 0, 0}, t}]; m != nil {
			return m
		}
	}
	return nil
}

// outTable implements get_tx_fib_index.
func (w *walk) outTable(a netip.Addr) *fib {
	for _, f := range w.nat.outFibs {
		if e := f.table.lookup(a, (*fibEntry).installed); e != nil && e.resolving() != none {
			return f.table
		}
	}
	return w.nat.outside
}

// sourceSession creates the session for the first packet of a connection whose source is translated.
func (w *walk) sourceSession(q *natPacket, m *natMapping) verdict {
	tx := w.outTable(q.Dst)
	icmp := q.Proto == ProtoICMP
	s := &natSession{in: natEnd{q.Src, q.key.srcPort, q.key.table}, proto: q.Proto, static: m != nil,
		ext: natEnd{addr: q.Dst, port: q.key.dstPort}}
	daddr, dport := q.Dst, q.key.dstPort
	if other := w.natMatch(q.Dst, q.key.dstPort, q.Proto); other != nil {
		s.hairpin, daddr = true, other.local
		if dport = other.localPort; other.has(nat_types.NAT_IS_ADDR_ONLY) {
			dport = q.key.dstPort
		}
	}
	w.nat.sessions.add(s)
	s.o2i = natFlow{table: q.key.table, echo: icmp, match: natKey{src: daddr, srcPort: dport, table: tx, proto: q.Proto}}
	if m != nil {
		s.out = natEnd{m.ext, m.extPort, tx}
		if m.has(nat_types.NAT_IS_ADDR_ONLY) {
			s.out.port = q.key.srcPort
		}
		s.o2i.match.dst, s.o2i.match.dstPort = s.out.addr, s.out.port
		if icmp {
			s.o2i.match.srcPort = s.out.port
		}
	} else if !w.allocate(q, s, tx) {
		w.dropSession(s)
		return w.natDrop("out of ports")
	}
	s.o2i.to = s.o2i.match
	s.o2i.to.src, s.o2i.to.dst, s.o2i.to.dstPort = q.Dst, q.Src, q.key.srcPort
	if icmp {
		s.o2i.to.srcPort = q.key.srcPort
	}
	s.i2o = natFlow{match: q.key, to: q.key, table: tx, echo: icmp}
	s.i2o.to.src, s.i2o.to.srcPort, s.i2o.to.dst = s.out.addr, s.out.port, daddr
	if !icmp {
		s.i2o.to.dstPort = dport
	}
	w.nat.flows[s.o2i.match], w.nat.flows[s.i2o.match] = s, s
	return w.translate(q, s, &s.i2o)
}

// allocate selects an address of the pool and a free port.
func (w *walk) allocate(q *natPacket, s *natSession, tx *fib) bool {
	a := w.poolAddress(q)
	if a == nil {
		return false
	}
	n := &w.nat
	port := q.key.srcPort
	if port < 1024 {
		port = n.randomPort()
	}
	for range natPortAttempts {
		key := s.o2i.match
		key.dst, key.dstPort = a.addr, port
		if q.Proto == ProtoICMP {
			key.srcPort = port
		}
		if n.flows[key] == nil && n.byExt[natExt{a.addr, port, q.Proto}] == nil {
			s.o2i.match = key
			s.out = natEnd{a.addr, port, tx}
			return true
		}
		port = n.randomPort()
	}
	return false
}

// poolAddress implements VPP's choice of an address: one that is bound to the outgoing interface, else one of the table, else one for all
// tables.
func (w *walk) poolAddress(q *natPacket) *natAddress {
	pool := w.nat.pool
	if len(pool) == 0 {
		return nil
	}
	raw := q.Src.As4()
	le := uint32(raw[3])<<24 | uint32(raw[2])<<16 | uint32(raw[1])<<8 | uint32(raw[0])
	first := int((le + le>>8 + le>>16 + le>>24) % uint32(len(pool)))
	var tied, ours, shared *natAddress
	for k := range pool {
		a := &pool[(first+k)%len(pool)]
		switch {
		case a.table == q.key.table:
			near := a.net.IsValid() && a.net.Contains(q.Dst)
			if q.out && a.ifx == q.tx {
				tied = a
			} else if q.out {
				near = false
			}
			if near {
				return a
			}
			ours = a
		case a.table == nil:
			shared = a
		}
	}
	for _, a := range []*natAddress{tied, ours, shared} {
		if a != nil {
			return a
		}
	}
	return nil
}

// crash records that VPP would have crashed on this packet.
func (w *walk) crash(format string, args ...any) {
	w.unknown(format, args...)
	w.dead = w.err.Error()
}
