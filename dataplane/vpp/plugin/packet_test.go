package plugin_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
)

var be = binary.BigEndian

const (
	icmp4, tcp, udp, icmp6, sctp = 1, 6, 17, 58, 132
	syn, ack, rst                = 2, 16, 4
)

// hostMAC and portMAC return the addresses of the machines behind packet-generator interfaces, and of the interfaces
// themselves.
func hostMAC(n int) []byte { return []byte{2, 0, 0, 0, 0x0a, byte(n)} }
func portMAC(n int) []byte { return []byte{2, 0, 0, 0, 0x0f, byte(n)} }

// flow is a protocol and two ends.
type flow struct {
	proto    uint8
	src, dst netip.AddrPort
}

func newFlow(proto uint8, src, dst string) flow {
	return flow{proto, netip.MustParseAddrPort(src), netip.MustParseAddrPort(dst)}
}

func (f flow) back() flow { return flow{f.proto, f.dst, f.src} }

func (f flow) String() string { return f.src.String() + " > " + f.dst.String() }

// packet returns an IP packet of the flow; flags are TCP's, or the type of an ICMP message.
func (f flow) packet(flags uint8, payload []byte) []byte {
	return ip(f.proto, f.src.Addr(), f.dst.Addr(), f.transport(flags, payload))
}

func (f flow) transport(flags uint8, payload []byte) []byte {
	ports := be.AppendUint16(be.AppendUint16(nil, f.src.Port()), f.dst.Port())
	var b []byte
	at := 0
	switch f.proto {
	case udp:
		b, at = append(be.AppendUint16(ports, uint16(8+len(payload))), 0, 0), 6
	case tcp:
		b, at = append(ports, 0, 0, 0, 1, 0, 0, 0, 1, 5<<4, flags, 0x10, 0, 0, 0, 0, 0), 16
	case icmp4, icmp6:
		b, at = be.AppendUint16([]byte{flags, 0, 0, 0}, f.src.Port()), 2
		b = append(b, 0, 1)
	case sctp:
		return append(append(ports, 0, 0, 0, 0, 0, 0, 0, 0), payload...) // without its CRC
	default:
		return payload
	}
	b = append(b, payload...)
	be.PutUint16(b[at:], f.checksum(b))
	return b
}

// checksum returns the transport's checksum; the checksum field must be zero.
func (f flow) checksum(b []byte) uint16 {
	s := sum(b)
	if f.proto != icmp4 {
		s += sum(f.src.Addr().AsSlice()) + sum(f.dst.Addr().AsSlice()) + uint32(f.proto) + uint32(len(b))
	}
	return ^fold(s)
}

func sum(b []byte) (s uint32) {
	for ; len(b) > 1; b = b[2:] {
		s += uint32(be.Uint16(b))
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// ip adds an IP header to a payload.
func ip(proto uint8, src, dst netip.Addr, payload []byte) []byte {
	if src.Is4() {
		b := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0}
		be.PutUint16(b[2:], uint16(20+len(payload)))
		b = append(append(b, src.AsSlice()...), dst.AsSlice()...)
		be.PutUint16(b[10:], ^fold(sum(b)))
		return append(b, payload...)
	}
	b := append([]byte{0x60, 0, 0, 0, 0, 0, proto, 64}, src.AsSlice()...)
	be.PutUint16(b[4:], uint16(len(payload)))
	return append(append(b, dst.AsSlice()...), payload...)
}

// fragments splits a packet into fragments with payloads of at most size bytes.
func fragments(p []byte, id uint32, size int) (all [][]byte) {
	header, proto := 20, p[9]
	if p[0]>>4 == 6 {
		header, proto = 40, p[6]
	}
	for at := 0; at < len(p)-header; at += size {
		end := min(at+size, len(p)-header)
		more := uint16(0)
		if end < len(p)-header {
			more = 1
		}
		f := append([]byte{}, p[:header]...)
		if header == 20 {
			be.PutUint16(f[4:], uint16(id))
			be.PutUint16(f[6:], more<<13|uint16(at/8))
			be.PutUint16(f[2:], uint16(20+end-at))
			be.PutUint16(f[10:], 0)
			be.PutUint16(f[10:], ^fold(sum(f)))
		} else {
			f[6] = 44
			f = be.AppendUint32(be.AppendUint16(append(f, proto, 0), uint16(at)|more), id)
			be.PutUint16(f[4:], uint16(8+end-at))
		}
		all = append(all, append(f, p[header+at:header+end]...))
	}
	return all
}

// read returns the flow of a packet, and whether its checksums are correct. Fragments other than the first have no
// ports.
func read(p []byte) (f flow, flags uint8, right bool) {
	var src, dst netip.Addr
	var l4 []byte
	later := false
	if p[0]>>4 == 4 {
		src, dst, f.proto = netip.AddrFrom4([4]byte(p[12:])), netip.AddrFrom4([4]byte(p[16:])), p[9]
		l4, right = p[20:be.Uint16(p[2:])], fold(sum(p[:20])) == 0xffff
		later = be.Uint16(p[6:])&0x1fff != 0
	} else {
		src, dst, f.proto = netip.AddrFrom16([16]byte(p[8:])), netip.AddrFrom16([16]byte(p[24:])), p[6]
		l4, right = p[40:40+be.Uint16(p[4:])], true
		if f.proto == 44 {
			f.proto, later, l4 = l4[0], be.Uint16(l4[2:])&0xfff8 != 0, l4[8:]
		}
	}
	f.src, f.dst = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
	fragment := later || p[0]>>4 == 4 && p[6]&0x20 != 0 || p[0]>>4 == 6 && p[6] == 44
	switch {
	case later:
		return f, 0, right
	case f.proto == tcp || f.proto == udp:
		f.src, f.dst = netip.AddrPortFrom(src, be.Uint16(l4)), netip.AddrPortFrom(dst, be.Uint16(l4[2:]))
		if f.proto == tcp {
			flags = l4[13]
		}
	case f.proto == icmp4 || f.proto == icmp6:
		flags = l4[0]
	}
	return f, flags, right && (fragment || fold(^uint32(f.checksum(l4))&0xffff) == 0xffff)
}

// ether returns a packet of the n-th machine in an Ethernet frame.
func ether(n int, p []byte) []byte {
	b := append(append([]byte{}, portMAC(n)...), hostMAC(n)...)
	kind := uint16(0x0800)
	if p[0]>>4 == 6 {
		kind = 0x86dd
	}
	return append(be.AppendUint16(b, kind), p...)
}

func writePcap(t testing.TB, path string, frames ...[]byte) {
	t.Helper()
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16(le.AppendUint32(nil, 0xa1b2c3d4), 2), 4)
	b = le.AppendUint32(le.AppendUint32(append(b, 0, 0, 0, 0, 0, 0, 0, 0), 65535), 1)
	for _, f := range frames {
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		b = append(le.AppendUint32(le.AppendUint32(b, uint32(len(f))), uint32(len(f))), f...)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readPcap(t testing.TB, path string) (frames [][]byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 24 {
		return nil // no packet was captured
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if len(b) < 16+n {
			break
		}
		frames = append(frames, b[16:16+n])
		b = b[16+n:]
	}
	return frames
}
