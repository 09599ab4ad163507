package forge

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Path has the addresses of frames: the hardware addresses of both ends of the pod's link, and the addresses of sender and
// receiver.
type Path struct {
	From, To net.HardwareAddr
	Src, Dst netip.Addr
}

// Packet describes an IP packet; zero values stand for those of a valid packet.
type Packet struct {
	Proto   uint8
	Payload int // bytes after the transport's header
	// Length is the length in the IP header, true or not; 0: the true length.
	Length uint16
	// HeaderWords is IPv4's header length (IHL); 0: 5.
	HeaderWords uint8
	// Fragment is the fragment field of the IPv4 header (flags and offset), or that of a fragment header in IPv6.
	Fragment uint16
	// Extensions are the types of the IPv6 extension headers before the transport's header, each of 8 bytes.
	Extensions []uint8
	// DataOffset is the TCP header's length in words; 0: 5.
	DataOffset uint8
	// VLANs is the number of 802.1Q tags.
	VLANs int
}

// Frame returns the packet as a frame.
func (p Path) Frame(q Packet) []byte {
	b := append(append([]byte{}, p.To...), p.From...)
	for range q.VLANs {
		b = append(b, 0x81, 0, 0, 1)
	}
	transport := q.transport()
	if p.Dst.Is4() {
		return append(binary.BigEndian.AppendUint16(b, unix.ETH_P_IP), p.ipv4(q, transport)...)
	}
	return append(binary.BigEndian.AppendUint16(b, unix.ETH_P_IPV6), p.ipv6(q, transport)...)
}

func (q Packet) transport() []byte {
	size := 8
	if q.Proto == unix.IPPROTO_TCP {
		size = 20
	}
	b := make([]byte, size+q.Payload)
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[2:], 9)
	if q.Proto == unix.IPPROTO_TCP {
		b[12], b[13] = 5<<4, 0x10
		if q.DataOffset != 0 {
			b[12] = q.DataOffset << 4
		}
	} else {
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
	}
	return b
}

func (p Path) ipv4(q Packet, transport []byte) []byte {
	h := make([]byte, 20, 20+len(transport))
	h[0] = 4<<4 | 5
	if q.HeaderWords != 0 {
		h[0] = 4<<4 | q.HeaderWords
	}
	length := q.Length
	if length == 0 {
		length = uint16(len(h) + len(transport))
	}
	binary.BigEndian.PutUint16(h[2:], length)
	binary.BigEndian.PutUint16(h[6:], q.Fragment)
	h[8], h[9] = 64, q.Proto
	copy(h[12:], p.Src.AsSlice())
	copy(h[16:], p.Dst.AsSlice())
	binary.BigEndian.PutUint16(h[10:], checksum(h))
	return append(h, transport...)
}

func (p Path) ipv6(q Packet, transport []byte) []byte {
	types := append([]uint8{}, q.Extensions...)
	if q.Fragment != 0 {
		types = append(types, unix.IPPROTO_FRAGMENT)
	}
	types = append(types, q.Proto)
	var chain []byte
	for i, kind := range types[:len(types)-1] {
		h := make([]byte, 8)
		h[0] = types[i+1]
		if kind == unix.IPPROTO_FRAGMENT {
			binary.BigEndian.PutUint16(h[2:], q.Fragment)
		} else {
			h[2], h[3] = 1, 4 // PadN
		}
		chain = append(chain, h...)
	}
	h := make([]byte, 40, 40+len(chain)+len(transport))
	h[0] = 6 << 4
	length := q.Length
	if length == 0 {
		length = uint16(len(chain) + len(transport))
	}
	binary.BigEndian.PutUint16(h[4:], length)
	h[6], h[7] = types[0], 64
	copy(h[8:], p.Src.AsSlice())
	copy(h[24:], p.Dst.AsSlice())
	return append(append(h, chain...), transport...)
}

func checksum(h []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(h); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
