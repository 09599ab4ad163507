package vppfake

import (
	"net/netip"

	"go.fd.io/govpp/binapi/fib_types"
)

// ICMPError is an ICMP error, which reports to the sender of a packet why the packet was dropped.
type ICMPError struct {
	Type, Code uint8
	Inner      Packet // the packet as it was when it was dropped
}

// longestError returns the maximum length of an error that VPP sends.
func longestError(ipv6 bool) int {
	if ipv6 {
		return 1280
	}
	return 576
}

// Types and codes of the errors of VPP's routes.
const (
	icmp4Unreachable, icmp4NoHost, icmp4Prohibited   = 3, 1, 10
	icmp6Unreachable, icmp6NoRoute, icmp6AdminDenied = 1, 0, 1
)

// reject handles a route that sends an ICMP error.
func (w *walk) reject(p Packet, kind fib_types.FibPathType) {
	e := &ICMPError{Type: icmp4Unreachable, Code: icmp4NoHost}
	reason := "unreachable"
	prohibit := kind == fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT
	if prohibit {
		e.Code, reason = icmp4Prohibited, "prohibited"
	}
	if p.Dst.Is6() {
		e.Type, e.Code = icmp6Unreachable, icmp6NoRoute
		if prohibit {
			e.Code = icmp6AdminDenied
		}
	}
	w.drop("%s", reason)
	w.report(p, e)
}

// report implements ip4-icmp-error and ip6-icmp-error: the error is sent from an address of the interface that received the packet, and is looked
// up in that interface's table. VPP limits the rate, the fake does not.
func (w *walk) report(p Packet, e *ICMPError) {
	fam := family(p.Dst)
	if w.rx == nil || p.Error != nil {
		w.unknown("an ICMP error about a packet of VPP's own, or about an error")
		return
	}
	from, ok := w.sourceFor(w.rx, p.Src)
	if !ok {
		return
	}
	e.Inner = p
	proto := []uint8{ProtoICMP, ProtoICMPv6}[fam]
	w.lookups = 0
	w.lookup(nil, Packet{Src: from, Dst: p.Src, Proto: proto, TTL: 255, Error: e, own: true}, w.rx.ip[fam].table)
}

// sourceFor implements ip4_sas_by_sw_if_index: it returns the interface's address, own or borrowed, that has the longest common prefix with the
// destination.
func (w *walk) sourceFor(i *iface, dst netip.Addr) (best netip.Addr, ok bool) {
	most := 0
	for _, p := range w.addresses(i, family(dst)) {
		if n := commonBits(p.Addr(), dst); !ok || n > most {
			best, most, ok = p.Addr(), n, true
		}
	}
	return best, ok
}

func commonBits(a, b netip.Addr) int {
	n := 0
	for n < a.BitLen() && netip.PrefixFrom(a, n+1).Masked().Contains(b) {
		n++
	}
	return n
}

// about returns the flow of an error in the direction of the replies: from the destination of the packet to its source.
func (e *ICMPError) about() (src, dst netip.AddrPort, proto uint8) {
	p := &e.Inner
	sport, dport := p.SrcPort, p.DstPort
	if p.Proto != ProtoTCP && p.Proto != ProtoUDP {
		sport, dport = p.echoID(), p.echoID()
	}
	return netip.AddrPortFrom(p.Dst, dport), netip.AddrPortFrom(p.Src, sport), p.Proto
}

// turned returns the error about the packet before a translation, where the replies have the ends src and dst.
func (e *ICMPError) turned(src, dst netip.AddrPort) *ICMPError {
	out := *e
	out.Inner.Src, out.Inner.Dst = dst.Addr(), src.Addr()
	if out.Inner.Proto == ProtoTCP || out.Inner.Proto == ProtoUDP {
		out.Inner.SrcPort, out.Inner.DstPort = dst.Port(), src.Port()
	} else {
		out.Inner.setEchoID(dst.Port())
	}
	return &out
}
