package vppfake_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

var be = binary.BigEndian

// encode returns the packet as bytes on a wire.
func encode(p vppfake.Packet) []byte {
	b := append(append([]byte{}, p.EthDst[:]...), p.EthSrc[:]...)
	for _, tag := range p.VLAN {
		b = be.AppendUint16(be.AppendUint16(b, 0x8100), tag)
	}
	switch {
	case p.ARP != nil:
		return append(be.AppendUint16(b, 0x0806), encodeARP(p.ARP)...)
	case p.Dst.Is4():
		return append(be.AppendUint16(b, 0x0800), encodeIP4(p)...)
	}
	return append(be.AppendUint16(b, 0x86dd), encodeIP6(p)...)
}

func encodeARP(a *vppfake.ARP) []byte {
	op := uint16(1)
	if a.Reply {
		op = 2
	}
	b := be.AppendUint16([]byte{0, 1, 8, 0, 6, 4}, op)
	b = append(append(b, a.SenderMAC[:]...), a.SenderIP.AsSlice()...)
	return append(append(b, a.TargetMAC[:]...), a.TargetIP.AsSlice()...)
}

func encodeIP4(p vppfake.Packet) []byte {
	b := make([]byte, 20+4*p.Extensions)
	for i := 20; i < len(b); i++ {
		b[i] = 1 // no operation
	}
	b[0] = 0x40 | byte(len(b)/4)
	be.PutUint16(b[2:], uint16(p.IPLen()))
	if p.DF {
		b[6] = 0x40
	}
	if p.Frag != nil {
		be.PutUint16(b[4:], uint16(p.Frag.ID))
		be.PutUint16(b[6:], fragmentField(p.Frag, 0, 0x2000))
	}
	b[8], b[9] = p.TTL, p.Proto
	copy(b[12:], p.Src.AsSlice())
	copy(b[16:], p.Dst.AsSlice())
	be.PutUint16(b[10:], ^sum(b))
	return append(b, encodeL4(p)...)
}

func encodeIP6(p vppfake.Packet) []byte {
	b := make([]byte, 40)
	b[0] = 0x60
	be.PutUint16(b[4:], uint16(p.IPLen()-40))
	b[7] = p.TTL
	copy(b[8:], p.Src.AsSlice())
	copy(b[24:], p.Dst.AsSlice())
	next := 6 // offset of the next header's type
	for range p.Extensions {
		b[next], next = 60, len(b)
		b = append(b, 0, 0, 1, 4, 0, 0, 0, 0) // destination options: padding
	}
	if f := p.Frag; f != nil {
		b[next], next = 44, len(b)
		b = be.AppendUint32(be.AppendUint16(append(b, 0, 0), fragmentField(f, 3, 1)), f.ID)
	}
	b[next] = p.Proto
	return append(b, encodeL4(p)...)
}

func fragmentField(f *vppfake.Fragment, shift int, more uint16) uint16 {
	v := f.Offset << shift
	if f.More {
		v |= more
	}
	return v
}

// inOrder sets the numbers of a TCP header as in a conversation in which each packet is in order: after the SYN, the payload and the FIN the
// sequence number is always the same, and this is the number that the peer acknowledges.
func inOrder(b []byte, payload int) {
	const behind = 78
	flags, seq := b[13], behind-payload
	switch {
	case flags&vppfake.FlagSYN != 0:
		seq = behind - 1 // its data is not acknowledged
	case flags&vppfake.FlagFIN != 0:
		seq--
	}
	be.PutUint32(b[4:], uint32(seq))
	if flags&vppfake.FlagACK != 0 {
		be.PutUint32(b[8:], behind)
	}
}

func encodeL4(p vppfake.Packet) []byte {
	payload := make([]byte, p.Size)
	if p.Error != nil {
		return encodeError(p)
	}
	if p.Frag != nil && p.Frag.Offset > 0 {
		return payload
	}
	if p.VXLAN != nil {
		payload = be.AppendUint32([]byte{8, 0, 0, 0}, p.VXLAN.VNI<<8)
		payload = append(payload, encode(p.VXLAN.Inner)...)
	}
	var b []byte
	switch p.Proto {
	case vppfake.ProtoUDP:
		b = be.AppendUint16(be.AppendUint16(nil, p.SrcPort), p.DstPort)
		b = append(be.AppendUint16(b, uint16(8+len(payload))), 0, 0)
	case vppfake.ProtoTCP:
		b = make([]byte, 20)
		be.PutUint16(b, p.SrcPort)
		be.PutUint16(b[2:], p.DstPort)
		b[12], b[13] = 0x50, 0x02
		if p.Flags != 0 {
			b[13] = p.Flags
		}
		inOrder(b, len(payload))
	case vppfake.ProtoICMP:
		b = []byte{8, 0, 0, 0, 0, 1, 0, 1}
		if p.EchoReply {
			b[0] = 0
		}
		if p.Echo != 0 {
			be.PutUint16(b[4:], p.Echo)
		}
		be.PutUint16(b[2:], ^sum(append(b, payload...)))
	case vppfake.ProtoICMPv6:
		b = []byte{128, 0, 0, 0, 0, 1, 0, 1}
		if p.EchoReply {
			b[0] = 129
		}
		if p.Echo != 0 {
			be.PutUint16(b[4:], p.Echo)
		}
		if p.ND != nil {
			b, payload = encodeND(p.ND), nil
		}
	case vppfake.ProtoSCTP:
		b = be.AppendUint16(be.AppendUint16(nil, p.SrcPort), p.DstPort)
		b = append(b, 0, 0, 0, 1, 0, 0, 0, 0)
	}
	b = append(b, payload...)
	if at := checksumAt(p.Proto); at > 0 && p.VXLAN == nil && p.Frag == nil {
		be.PutUint16(b[at:], pseudoSum(p, b))
	}
	return b
}

// checksumAt returns the offset of the checksum of a protocol, for protocols whose checksum covers addresses.
func checksumAt(proto uint8) int {
	switch proto {
	case vppfake.ProtoTCP:
		return 16
	case vppfake.ProtoUDP:
		return 6
	case vppfake.ProtoICMPv6:
		return 2
	}
	return 0
}

// pseudoSum returns the checksum over the bytes of a transport and the addresses: 0 for a packet with a correct checksum.
func pseudoSum(p vppfake.Packet, b []byte) uint16 {
	all := append(append(append([]byte{}, p.Src.AsSlice()...), p.Dst.AsSlice()...), 0, p.Proto)
	all = append(be.AppendUint16(all, uint16(len(b))), b...)
	if len(all)%2 == 1 {
		all = append(all, 0)
	}
	return ^sum(all)
}

func encodeND(d *vppfake.Discovery) []byte {
	b := make([]byte, 8, 40)
	b[0] = d.Type
	switch d.Type {
	case vppfake.NDNeighborSolicitation, vppfake.NDNeighborAdvertisement:
		return append(b, d.Target.AsSlice()...)
	case vppfake.NDRouterAdvertisement:
		return b[:16]
	case vppfake.NDRedirect:
		return append(append(b, d.Target.AsSlice()...), make([]byte, 16)...)
	}
	return b
}

// encodeError encodes an ICMP error.
func encodeError(p vppfake.Packet) []byte {
	b := []byte{p.Error.Type, p.Error.Code, 0, 0, 0, 0, 0, 0}
	inner := p.Error.Inner
	if inner.Dst.Is4() {
		b = append(b, encodeIP4(inner)...)
		be.PutUint16(b[2:], ^sum(b))
		return b
	}
	b = append(b, encodeIP6(inner)...)
	be.PutUint16(b[2:], pseudoSum(p, b))
	return b
}

// decodeError decodes the packet inside an ICMP error.
func decodeError(p *vppfake.Packet, b []byte) (err error) {
	p.Error = &vppfake.ICMPError{Type: b[0], Code: b[1]}
	inner := &p.Error.Inner
	if b = b[8:]; b[0]>>4 == 4 {
		return decodeIP4(inner, b)
	}
	return decodeIP6(inner, b)
}

func sum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(be.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

var errShort = errors.New("short frame")

// decode decodes a packet that VPP sent.
func decode(b []byte) (p vppfake.Packet, err error) {
	defer func() {
		if recover() != nil {
			err = errShort
		}
	}()
	copy(p.EthDst[:], b)
	copy(p.EthSrc[:], b[6:])
	b = b[12:]
	for be.Uint16(b) == 0x8100 {
		p.VLAN = append(p.VLAN, be.Uint16(b[2:])&0xfff)
		b = b[4:]
	}
	switch be.Uint16(b) {
	case 0x0806:
		p.ARP = decodeARP(b[2:])
	case 0x0800:
		if err = decodeIP4(&p, b[2:]); err == nil {
			err = checkSums(p, b[2:2+int(be.Uint16(b[4:]))])
		}
	case 0x86dd:
		if err = decodeIP6(&p, b[2:]); err == nil {
			err = checkSums(p, b[2:42+int(be.Uint16(b[6:]))])
		}
	default:
		err = errors.New("unknown ethertype")
	}
	return p, err
}

func decodeARP(b []byte) *vppfake.ARP {
	a := &vppfake.ARP{Reply: be.Uint16(b[6:]) == 2}
	copy(a.SenderMAC[:], b[8:])
	copy(a.TargetMAC[:], b[18:])
	a.SenderIP, a.TargetIP = netip.AddrFrom4([4]byte(b[14:18])), netip.AddrFrom4([4]byte(b[24:28]))
	return a
}

func decodeIP4(p *vppfake.Packet, b []byte) error {
	p.DF, p.TTL, p.Proto = b[6]&0x40 != 0, b[8], b[9]
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	header := int(b[0]&15) * 4
	p.Extensions = (header - 20) / 4
	if at := be.Uint16(b[6:]) & 0x3fff; at != 0 {
		p.Frag = &vppfake.Fragment{ID: uint32(be.Uint16(b[4:])), Offset: at & 0x1fff, More: at&0x2000 != 0}
	}
	return decodeL4(p, b[header:be.Uint16(b[2:])])
}

func decodeIP6(p *vppfake.Packet, b []byte) error {
	p.Proto, p.TTL = b[6], b[7]
	p.Src, p.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	b = b[40 : 40+int(be.Uint16(b[4:]))]
	for p.Proto == 60 {
		p.Proto, b = b[0], b[8*(1+int(b[1])):]
		p.Extensions++
	}
	if p.Proto == 44 {
		at := be.Uint16(b[2:])
		p.Frag = &vppfake.Fragment{ID: be.Uint32(b[4:]), Offset: at >> 3, More: at&1 != 0}
		p.Proto, b = b[0], b[8:]
	}
	return decodeL4(p, b)
}

// checkSums verifies the checksums of an IP packet. UDP may have none, and the checksum of an ICMP error covers the bytes that are present.
func checkSums(p vppfake.Packet, b []byte) error {
	header := 40 + 8*p.Extensions
	if p.Dst.Is4() {
		if header = 20 + 4*p.Extensions; sum(b[:header]) != 0xffff {
			return errChecksum
		}
	}
	at := checksumAt(p.Proto)
	switch l4 := b[header:]; {
	case p.Frag != nil, p.Proto == vppfake.ProtoUDP && be.Uint16(l4[at:]) == 0:
	case p.Proto == vppfake.ProtoICMP && sum(append(l4, make([]byte, len(l4)%2)...)) != 0xffff:
		return errChecksum
	case at > 0 && pseudoSum(p, l4) != 0:
		return errChecksum
	}
	return nil
}

var errChecksum = errors.New("wrong checksum")

func decodeL4(p *vppfake.Packet, b []byte) error {
	header := 8
	if p.Frag != nil && p.Frag.Offset > 0 {
		p.Size = len(b)
		return nil
	}
	switch p.Proto {
	case vppfake.ProtoTCP:
		header = 20
		fallthrough
	case vppfake.ProtoUDP, vppfake.ProtoSCTP:
		if p.Proto == vppfake.ProtoSCTP {
			header = 12
		}
		p.SrcPort, p.DstPort = be.Uint16(b), be.Uint16(b[2:])
	}
	if p.Proto == vppfake.ProtoTCP && b[13] != 0x02 {
		p.Flags = b[13]
	}
	if p.Proto == vppfake.ProtoICMP && b[0] == 3 || p.Proto == vppfake.ProtoICMPv6 && b[0] == 1 {
		return decodeError(p, b)
	}
	if p.Proto == vppfake.ProtoICMP {
		if p.EchoReply = b[0] == 0; be.Uint16(b[4:]) != 1 {
			p.Echo = be.Uint16(b[4:])
		}
	}
	if p.Proto == vppfake.ProtoICMPv6 && (b[0] == 128 || b[0] == 129) {
		if p.EchoReply = b[0] == 129; be.Uint16(b[4:]) != 1 {
			p.Echo = be.Uint16(b[4:])
		}
	}
	if p.Proto == vppfake.ProtoICMPv6 && b[0] >= 133 {
		p.ND = &vppfake.Discovery{Type: b[0]}
		if len(b) >= 24 {
			p.ND.Target = netip.AddrFrom16([16]byte(b[8:24]))
		}
		return nil
	}
	p.Size = len(b) - header
	if p.Proto == vppfake.ProtoUDP && p.DstPort == 4789 {
		inner, err := decode(b[16:])
		p.Size = 0
		p.VXLAN = &vppfake.VXLAN{VNI: be.Uint32(b[12:]) >> 8, Inner: inner}
		return err
	}
	return nil
}

// isError reports whether the packet is an ICMP message other than an echo.
func isError(b []byte, p vppfake.Packet) bool {
	if p.Error != nil {
		return true
	}
	switch p.Proto {
	case vppfake.ProtoICMP:
		kind := b[len(b)-p.Size-8]
		return kind != 8 && (kind != 0 || p.Src.As4()[3] == 1) // VPP's own addresses end in 1
	case vppfake.ProtoICMPv6:
		return p.ND == nil && b[len(b)-p.Size-8] != 128 && (!p.EchoReply || p.Src.As16()[15] == 1)
	}
	return false
}

func writePcap(path string, frame []byte) error {
	b := make([]byte, 24)
	le := binary.LittleEndian
	le.PutUint32(b, 0xa1b2c3d4)
	le.PutUint16(b[4:], 2)
	le.PutUint16(b[6:], 4)
	le.PutUint32(b[16:], 65535)
	le.PutUint32(b[20:], 1)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(frame))), uint32(len(frame)))
	return os.WriteFile(path, append(b, frame...), 0o644)
}

func readPcap(path string) (frames [][]byte) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) < 24 {
		return nil
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if len(b) < 16+n {
			return frames
		}
		frames = append(frames, b[16:16+n])
		b = b[16+n:]
	}
	return frames
}
