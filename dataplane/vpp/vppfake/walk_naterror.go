package vppfake

import "net/netip"

// translateError rewrites an ICMP error and the packet inside. An error from the outside keeps its source, which is a router on the path.
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

// errorIn handles an ICMP error about no session, icmp_out2in_ed_slow_path.
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

// errorOut handles an ICMP error about no session in the outgoing direction, icmp_in2out_ed_slow_path: only errors that need no translation
// pass.
func (w *walk) errorOut(q *natPacket) verdict {
	if !q.out && w.leaveInput(q) {
		return pass
	}
	return w.natDrop("bad ICMP type")
}
