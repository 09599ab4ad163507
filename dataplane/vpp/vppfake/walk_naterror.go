package vppfake

import "net/netip"

// translateError rewrites an ICMP error and what it is about. From the outside it keeps its source: it comes from a router on the way.
func (w *walk) translateError(q *natPacket, s *natSession, f *natFlow) {
	src, dst := netip.AddrPortFrom(f.to.src, f.to.srcPort), netip.AddrPortFrom(f.to.dst, f.to.dstPort)
	if f == &s.i2o || q.Src == q.key.src {
		q.Src = f.to.src
	}
	q.Dst, q.Error = f.to.dst, q.Error.turned(src, dst)
	if f.table != nil && !q.out {
		q.table = f.table
	}
	w.step("NAT: %s", *q.Packet)
}

// errorIn is an ICMP error about no session, icmp_out2in_ed_slow_path.
func (w *walk) errorIn(q *natPacket) verdict {
	m := w.natMatch(q.Dst, q.key.srcPort, ProtoICMP)
	switch {
	case m != nil:
		return w.natDrop("bad ICMP type")
	case w.nat.forwarding, w.ownAddress(q.rx, q.Dst):
		return pass
	}
	return w.natDrop("no translation")
}

// errorOut is the same on the way out, icmp_in2out_ed_slow_path: only those errors pass that there is no reason to translate.
func (w *walk) errorOut(q *natPacket) verdict {
	if !q.out && w.leaveInput(q) {
		return pass
	}
	return w.natDrop("bad ICMP type")
}
