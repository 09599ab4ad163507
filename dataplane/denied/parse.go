package denied

import (
	"encoding/binary"
	"net/netip"
)

// Protocols that have ports, and the ICMP protocols.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
	protoSCTP   = 132
)

// maxExtensions bounds the walk over extension headers of IPv6.
const maxExtensions = 8

// Parse reads the beginning of an IP packet into the fields Protocol, Source, Dest, ICMPType and ICMPCode. Truncated fields, and the ports of
// later fragments, stay 0. ok is false if the packet is not an IP packet.
func Parse(packet []byte) (f Flow, ok bool) {
	if len(packet) < 1 {
		return f, false
	}
	switch packet[0] >> 4 {
	case 4:
		return parse4(packet)
	case 6:
		return parse6(packet)
	}
	return f, false
}

func parse4(p []byte) (f Flow, ok bool) {
	if len(p) < 20 || p[0]&0xf < 5 {
		return f, false
	}
	f.Protocol = p[9]
	src, dst := netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20]))
	var l4 []byte
	if size := int(p[0]&0xf) * 4; len(p) >= size && binary.BigEndian.Uint16(p[6:])&0x1fff == 0 {
		l4 = p[size:]
	}
	return f.ends(src, dst, l4), true
}

func parse6(p []byte) (f Flow, ok bool) {
	if len(p) < 40 {
		return f, false
	}
	src, dst := netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40]))
	next, l4 := p[6], p[40:]
	for range maxExtensions {
		size := 0
		switch {
		case next == 44 && len(l4) >= 8: // fragment
			if binary.BigEndian.Uint16(l4[2:])&0xfff8 != 0 {
				f.Protocol = l4[0]
				return f.ends(src, dst, nil), true
			}
			size = 8
		case (next == 0 || next == 43 || next == 60) && len(l4) >= 8:
			size = 8 * (int(l4[1]) + 1)
		}
		if size == 0 {
			break
		}
		next, l4 = l4[0], l4[min(size, len(l4)):]
	}
	f.Protocol = next
	return f.ends(src, dst, l4), true
}

// ends sets source and destination from the addresses and the transport header.
func (f Flow) ends(src, dst netip.Addr, l4 []byte) Flow {
	var sport, dport uint16
	switch f.Protocol {
	case protoTCP, protoUDP, protoSCTP:
		if len(l4) >= 4 {
			sport, dport = binary.BigEndian.Uint16(l4), binary.BigEndian.Uint16(l4[2:])
		}
	case protoICMP, protoICMPv6:
		if len(l4) >= 2 {
			f.ICMPType, f.ICMPCode = l4[0], l4[1]
		}
	}
	f.Source, f.Dest = netip.AddrPortFrom(src, sport), netip.AddrPortFrom(dst, dport)
	return f
}
