package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"
)

// inL2 reports whether frames may leave through the interface: it must be a port or half of a cross-connect.
func (i *iface) inL2() bool { return i.l2.bd != nil || i.l2.xconn }

func isGroup(m mac) bool { return m[0]&1 != 0 }

// crossConnect passes a frame directly to the peer.
func (w *walk) crossConnect(i *iface, p Packet) {
	peer := w.iface(interface_types.InterfaceIndex(i.l2.peer))
	if peer == nil {
		w.drop("peer of the cross-connect %s is gone", i.label())
		return
	}
	if !peer.inL2() {
		w.drop("peer %s of the cross-connect is not in layer 2", peer.label())
		return
	}
	if !w.keepsTags(i) || !w.keepsTags(peer) {
		return
	}
	w.step("cross-connect %s to %s", i.label(), peer.label())
	w.output(peer, p)
}

// bridge implements l2-input: a frame enters the domain of a port.
func (w *walk) bridge(in *iface, p Packet, shg uint8) {
	b := in.l2.bd
	fromBVI := b.bvi == in
	if !w.step("bridge %d from %s", b.id, in.label()) || !w.keepsTags(in) {
		return
	}
	if b.has(featLearn) && !fromBVI && !w.learn(b, in, p.EthSrc) {
		w.drop("bridge %d: %s may not move to %s", b.id, p.EthSrc, in.label())
		return
	}
	if isGroup(p.EthDst) {
		if fromBVI && p.ARP != nil && !p.ARP.Reply {
			shg = 0
		}
		if b.has(featArpTerm) && p.ARP != nil && b.has(featArpUfwd) {
			w.unknown("ARP unicast forwarding in bridge %d", b.id)
			return
		}
		if b.terminates(p) {
			w.unknown("ARP termination of %s in bridge %d", p.ARP.TargetIP, b.id)
			return
		}
		w.flood(b, in, p, shg, featFlood)
		return
	}
	if fromBVI {
		shg = 0
	}
	if b.has(featForward) {
		if e, ok := w.l2.fib[macKey{b.index, p.EthDst}]; ok {
			w.forward(b, in, e, p, shg)
			return
		}
	}
	switch {
	case b.has(featUuFwd) && b.fwd != nil:
		w.step("unknown unicast to %s", b.fwd.label())
		w.bridgeOut(b, b.fwd, p, shg)
	case b.has(featUuFlood):
		w.flood(b, in, p, shg, featUuFlood)
	default:
		w.drop("bridge %d: unknown unicast %s", b.id, p.EthDst)
	}
}

// learn stores the port of a MAC; false: the MAC is configured for another port, or is filtered.
func (w *walk) learn(b *bridge, in *iface, m mac) bool {
	key := macKey{b.index, m}
	e, ok := w.l2.fib[key]
	if ok && (e.static || e.filter) {
		return !e.filter && e.ifx == in.index
	}
	w.l2.fib[key] = macEntry{ifx: in.index, learned: !ok || e.learned}
	return true
}

// forward follows a row of the MAC table.
func (w *walk) forward(b *bridge, in *iface, e macEntry, p Packet, shg uint8) {
	if e.filter {
		w.drop("bridge %d filters %s", b.id, p.EthDst)
		return
	}
	out := w.iface(interface_types.InterfaceIndex(e.ifx))
	switch {
	case out == nil:
		w.drop("bridge %d: %s is behind an interface that is gone", b.id, p.EthDst)
	case out == in:
		w.drop("bridge %d: %s is behind %s, where the packet came from", b.id, p.EthDst, in.label())
	case !out.inL2():
		w.drop("bridge %d: %s is behind %s, which is not in layer 2", b.id, p.EthDst, out.label())
	default:
		w.bridgeOut(b, out, p, shg)
	}
}

// flood copies a frame to all members except the one on which it was received.
func (w *walk) flood(b *bridge, in *iface, p Packet, shg uint8, feature uint32) {
	if !b.has(feature) {
		w.drop("bridge %d does not flood", b.id)
		return
	}
	copies := 0
	for n := len(b.members) - 1; n >= 0; n-- { // in VPP's order: the BVI last
		m := b.members[n]
		if m == in || b.floodRank(m) == noFlood || shg != 0 && m.l2.shg == shg {
			continue
		}
		copies++
		w.step("flood to %s", m.label())
		w.bridgeOut(b, m, p, shg)
	}
	if copies == 0 {
		w.drop("bridge %d: no other port to flood to", b.id)
	}
}

// bridgeOut implements l2-output, to a port or to the BVI.
func (w *walk) bridgeOut(b *bridge, out *iface, p Packet, shg uint8) {
	switch {
	case w.err != nil, !w.keepsTags(out):
	case b.bvi == out:
		w.toBVI(out, p)
	case shg != 0 && out.l2.shg == shg:
		w.drop("bridge %d: split horizon group %d", b.id, shg)
	default:
		w.output(out, p)
	}
}

// toBVI passes a frame to layer 3.
func (w *walk) toBVI(bvi *iface, p Packet) {
	if !w.step("bvi %s", bvi.label()) {
		return
	}
	if !isGroup(p.EthDst) && p.EthDst != bvi.hw.mac {
		w.drop("bvi %s: MAC %s is not mine", bvi.label(), p.EthDst)
		return
	}
	w.network(bvi, p)
}

// encapsulate encapsulates a frame for a tunnel and sends the outer packet.
func (w *walk) encapsulate(i *iface, t *vxlanTunnel, p Packet) {
	if t.l3 {
		w.unknown("layer 3 VXLAN tunnel %s", i.name)
		return
	}
	if t.dst.IsMulticast() {
		w.unknown("multicast VXLAN tunnel %s", i.name)
		return
	}
	outer := Packet{Src: t.src, Dst: t.dst, Proto: ProtoUDP, TTL: 254, DstPort: t.dstPort,
		SrcPort: uint16(p.flow()) | 0xc000, VXLAN: &VXLAN{VNI: t.key.vni, Inner: p}}
	if !w.step("encapsulate in %s: vni %d", i.label(), t.key.vni) {
		return
	}
	w.lookup(nil, outer, t.table)
}

// decapsulate decapsulates a packet for a tunnel end; false: the packet is not for a tunnel.
func (w *walk) decapsulate(p Packet, table *fib) bool {
	if p.Proto != ProtoUDP || p.VXLAN == nil {
		return false
	}
	src := p.Dst
	if src.Is6() {
		src = netip.Addr{}
	}
	i := w.vxlan.tunnels[vxlanKey{src: src, dst: p.Src, port: p.DstPort, vrf: table.id, vni: p.VXLAN.VNI}]
	if i == nil {
		w.drop("no VXLAN tunnel from %s with vni %d", p.Src, p.VXLAN.VNI)
		return true
	}
	t := i.hw.driver.detail.(*vxlanTunnel)
	if t.decapNext != vxlanDecapL2 {
		w.unknown("VXLAN tunnel %s decapsulates to node %d", i.name, t.decapNext)
		return true
	}
	if !w.step("decapsulate in %s", i.label()) {
		return true
	}
	if i.l2.bd == nil {
		w.drop("VXLAN tunnel %s is not in a bridge", i.label())
		return true
	}
	w.bridge(i, p.VXLAN.Inner, i.l2.shg)
	return true
}
