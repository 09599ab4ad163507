package forge

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Types of messages of neighbour discovery, and operations of ARP.
const (
	RouterSolicitation    = 133
	NeighborSolicitation  = 135
	NeighborAdvertisement = 136
	ARPRequest            = 1
	ARPReply              = 2
)

// Discovery returns an IPv6 neighbour solicitation or advertisement, or a router solicitation, with the right checksum and hop limit. It
// announces that its source (of an advertisement: its target) has the hardware address at.
func (p Path) Discovery(kind uint8, target netip.Addr, at net.HardwareAddr) []byte {
	message := []byte{kind, 0, 0, 0, 0, 0, 0, 0}
	option := byte(1) // source link-layer address
	if kind == NeighborAdvertisement {
		message[4], option = 0x60, 2 // solicited, override; target link-layer address
	}
	if kind != RouterSolicitation {
		message = append(message, target.AsSlice()...)
	}
	message = append(append(message, option, 1), at...)
	pseudo := append(append([]byte{}, p.Src.AsSlice()...), p.Dst.AsSlice()...)
	pseudo = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(pseudo, uint32(len(message))), unix.IPPROTO_ICMPV6)
	binary.BigEndian.PutUint16(message[2:], checksum(append(pseudo, message...)))
	packet := p.ipv6(Packet{Proto: unix.IPPROTO_ICMPV6}, message)
	packet[7] = 255
	return append(binary.BigEndian.AppendUint16(append(append([]byte{}, p.To...), p.From...), unix.ETH_P_IPV6), packet...)
}

// ARP returns an ARP message by which p.Src announces that it has the hardware address at.
func (p Path) ARP(operation uint16, target netip.Addr, at net.HardwareAddr) []byte {
	b := binary.BigEndian.AppendUint16(append(append([]byte{}, p.To...), p.From...), unix.ETH_P_ARP)
	b = binary.BigEndian.AppendUint16(append(b, 0, 1, 8, 0, 6, 4), operation)
	b = append(append(b, at...), p.Src.AsSlice()...)
	return append(append(b, p.To...), target.AsSlice()...)
}
