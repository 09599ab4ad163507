package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
)

// flows are UDP packets that differ in ports, and in the destination if there are several: packet i has source port
// firstPort+i%ports, and the next destination whenever all source ports have been used.
type flows struct {
	src netip.Addr
	dst []netip.AddrPort
	n   int // number of packets and flows
	// backwards swaps source and destination.
	backwards bool
	// tcpFlags: if set, the packets are TCP with these flags, and all destinations are used before the next source
	// port.
	tcpFlags byte
	perPort  int // number of destinations for each source port, then
	// toPorts: each flow has its own destination port instead of its own source port.
	toPorts bool
}

const (
	tcpSYN = 2
	tcpACK = 16
)

const (
	firstPort  = 1025
	ports      = 62_500 // 16 times as many are a million
	packetSize = 64     // IP
)

func (f flows) packet(i int) []byte {
	if f.tcpFlags != 0 {
		src, dst := netip.AddrPortFrom(f.src, uint16(firstPort+i/f.perPort%ports)), f.dst[i%f.perPort]
		if f.backwards {
			src, dst = dst, src
		}
		return tcpPacket(src, dst, f.tcpFlags)
	}
	src := netip.AddrPortFrom(f.src, uint16(firstPort+i%ports))
	dst := f.dst[i/ports%len(f.dst)]
	if f.toPorts {
		src, dst = netip.AddrPortFrom(f.src, firstPort), netip.AddrPortFrom(dst.Addr(), src.Port())
	}
	if f.backwards {
		src, dst = dst, src
	}
	return udpPacket(src, dst)
}

// udpPacket returns an IP packet with filler data.
func udpPacket(src, dst netip.AddrPort) []byte {
	p := make([]byte, packetSize)
	udp := p[20:]
	if src.Addr().Is4() {
		p[0], p[8], p[9] = 0x45, 64, 17
		binary.BigEndian.PutUint16(p[2:], packetSize)
		copy(p[12:], src.Addr().AsSlice())
		copy(p[16:], dst.Addr().AsSlice())
		binary.BigEndian.PutUint16(p[10:], ^checksum(0, p[:20]))
	} else {
		udp = p[40:]
		p[0], p[6], p[7] = 0x60, 17, 64
		binary.BigEndian.PutUint16(p[4:], uint16(len(udp)))
		copy(p[8:], src.Addr().AsSlice())
		copy(p[24:], dst.Addr().AsSlice())
	}
	binary.BigEndian.PutUint16(udp, src.Port())
	binary.BigEndian.PutUint16(udp[2:], dst.Port())
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	if src.Addr().Is6() { // for IPv4 the checksum may be left out
		sum := checksum(17+uint32(len(udp)), p[8:40])
		sum = ^checksum(uint32(sum), udp)
		if sum == 0 {
			sum = 0xffff
		}
		binary.BigEndian.PutUint16(udp[6:], sum)
	}
	return p
}

// tcpPacket returns an IPv4 packet without data.
func tcpPacket(src, dst netip.AddrPort, flags byte) []byte {
	p := udpPacket(src, dst)
	p[9], p[10], p[11] = 6, 0, 0
	binary.BigEndian.PutUint16(p[10:], ^checksum(0, p[:20]))
	tcp := p[20:]
	clear(tcp[4:])
	tcp[12], tcp[13] = 5<<4, flags
	if flags != tcpSYN { // the packet answers a SYN of sequence number 0, or follows the handshake
		tcp[11] = 1
	}
	if flags == tcpACK {
		tcp[7] = 1
	}
	binary.BigEndian.PutUint16(tcp[16:], ^checksum(uint32(checksum(6+uint32(len(tcp)), p[12:20])), tcp))
	return p
}

// checksum adds 16-bit words in ones' complement.
func checksum(sum uint32, b []byte) uint16 {
	for i := 0; i < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}

// writePcap writes the packets for VPP's packet generator.
func (f flows) writePcap(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := bufio.NewWriterSize(file, 1<<20)
	const magic, rawIP = 0xa1b2c3d4, 101
	_ = binary.Write(w, binary.LittleEndian, struct { // errors are returned by Flush
		Magic        uint32
		Major, Minor uint16
		Zone, Digits uint32
		Most, Link   uint32
	}{magic, 2, 4, 0, 0, 65535, rawIP})
	head := make([]byte, 16)
	for i := range f.n {
		p := f.packet(i)
		binary.LittleEndian.PutUint32(head[8:], uint32(len(p)))
		binary.LittleEndian.PutUint32(head[12:], uint32(len(p)))
		_, _ = w.Write(head)
		_, _ = w.Write(p)
	}
	return w.Flush()
}
