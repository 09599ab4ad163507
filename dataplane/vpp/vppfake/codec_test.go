package vppfake_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

var be = binary.BigEndian

// encode is the packet as bytes on a wire.
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
	b := make([]byte, 20)
	b[0] = 0x45
	be.PutUint16(b[2:], uint16(p.IPLen()))
	if p.DF {
		b[6] = 0x40
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
	b[6], b[7] = p.Proto, p.TTL
	copy(b[8:], p.Src.AsSlice())
	copy(b[24:], p.Dst.AsSlice())
	return append(b, encodeL4(p)...)
}

func encodeL4(p vppfake.Packet) []byte {
	payload := make([]byte, p.Size)
	if p.Error != nil {
		return encodeError(p)
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
	}
	return append(b, payload...)
}

// encodeError is an ICMP error.
func encodeError(p vppfake.Packet) []byte {
	b := []byte{p.Error.Type, p.Error.Code, 0, 0, 0, 0, 0, 0}
	inner := p.Error.Inner
	if inner.Dst.Is4() {
		b = append(b, encodeIP4(inner)...)
		be.PutUint16(b[2:], ^sum(b))
		return b
	}
	return append(b, encodeIP6(inner)...)
}

// decodeError reads what an ICMP error is about.
func decodeError(p *vppfake.Packet, b []byte) (err error) {
	p.Error = &vppfake.ICMPError{Type: b[0], Code: b[1]}
	inner := &p.Error.Inner
	if b = b[8:]; b[0]>>4 == 4 {
		return decodeIP4(inner, b)
	}
	inner.Proto, inner.TTL = b[6], b[7]
	inner.Src, inner.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	return decodeL4(inner, b[40:40+int(be.Uint16(b[4:]))])
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

// decode reads what VPP sent.
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
		err = decodeIP4(&p, b[2:])
	case 0x86dd:
		b = b[2:]
		p.Proto, p.TTL = b[6], b[7]
		p.Src, p.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
		err = decodeL4(&p, b[40:40+int(be.Uint16(b[4:]))])
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
	if be.Uint16(b[6:])&0x3fff != 0 {
		p.Proto = 255 // a fragment
		return nil
	}
	return decodeL4(p, b[20:be.Uint16(b[2:])])
}

func decodeL4(p *vppfake.Packet, b []byte) error {
	header := 8
	switch p.Proto {
	case vppfake.ProtoTCP:
		header = 20
		fallthrough
	case vppfake.ProtoUDP:
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
	p.Size = len(b) - header
	if p.Proto == vppfake.ProtoUDP && p.DstPort == 4789 {
		inner, err := decode(b[16:])
		p.Size = 0
		p.VXLAN = &vppfake.VXLAN{VNI: be.Uint32(b[12:]) >> 8, Inner: inner}
		return err
	}
	return nil
}

// isError: an ICMP message other than an echo.
func isError(b []byte, p vppfake.Packet) bool {
	if p.Error != nil {
		return true
	}
	switch p.Proto {
	case vppfake.ProtoICMP:
		kind := b[len(b)-p.Size-8]
		return kind != 8 && (kind != 0 || p.Src.As4()[3] == 1) // VPP's own addresses end in 1
	case vppfake.ProtoICMPv6:
		return b[len(b)-p.Size-8] != 128
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
