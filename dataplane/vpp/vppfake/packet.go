package vppfake

import (
	"fmt"
	"net/netip"
	"strings"

	"go.fd.io/govpp/binapi/ethernet_types"
)

// MAC is an Ethernet address.
type MAC = ethernet_types.MacAddress

// IP protocols that a walk evaluates.
const (
	ProtoICMP   = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
	ProtoSCTP   = 132
)

// Packet is the packet of a walk: an Ethernet frame with an IP packet or an ARP message in it.
type Packet struct {
	EthSrc, EthDst MAC
	VLAN           []uint16 // outer tag first

	Src, Dst         netip.Addr
	Proto            uint8
	SrcPort, DstPort uint16 // TCP, UDP
	TTL              uint8  // 0 in a packet to be sent means 64
	DF               bool
	Size             int    // bytes after the TCP, UDP or ICMP header
	GSO              int    // segment size: the packet represents several packets with this part of Size each; 0: it is a single packet
	Padding          int    // bytes after the IP packet that its header does not include
	Flags            uint8  // of TCP; 0 stands for SYN alone, the first packet of a connection
	Echo             uint16 // identifier of an ICMP echo; 0 stands for 1
	EchoReply        bool   // of ICMP, instead of a request

	ARP   *ARP       // instead of the IP packet
	VXLAN *VXLAN     // in UDP, instead of Size
	Error *ICMPError // in ICMP, instead of an echo
	ND    *Discovery // in ICMPv6, instead of an echo

	Frag       *Fragment // the packet is a fragment; Size is that of the fragment
	Extensions int       // extension headers of IPv6, 8 bytes each, or words of IPv4 options

	own bool // sent by VPP: the first hop does not decrement its TTL
}

// ARP is an ARP request or reply.
type ARP struct {
	Reply                bool
	SenderMAC, TargetMAC MAC
	SenderIP, TargetIP   netip.Addr
}

// VXLAN is a frame in a tunnel.
type VXLAN struct {
	VNI   uint32
	Inner Packet
}

// headerLen returns the length of the IP header, including extension headers and the fragment header.
func (p Packet) headerLen() int {
	if !p.Dst.Is6() {
		return 20 + 4*p.Extensions
	}
	n := 40 + 8*p.Extensions
	if p.Frag != nil {
		n += 8
	}
	return n
}

// IPLen returns the length of the IP packet, headers included.
func (p Packet) IPLen() int {
	n := p.headerLen()
	if p.later() {
		return n + p.Size
	}
	switch p.Proto {
	case ProtoTCP:
		n += 20
	case ProtoSCTP:
		n += 12
	case ProtoUDP, ProtoICMP, ProtoICMPv6:
		n += 8
	}
	switch {
	case p.ND != nil:
		return n - 8 + p.ND.len()
	case p.VXLAN != nil:
		return n + 8 + p.VXLAN.Inner.frameLen()
	case p.Error != nil:
		return min(n+p.Error.Inner.IPLen(), longestError(p.Dst.Is6()))
	}
	return n + p.Size
}

func (p Packet) frameLen() int {
	n := 14 + 4*len(p.VLAN) + p.Padding
	if p.ARP != nil {
		return n + 28
	}
	return n + p.IPLen()
}

// segment returns the first of the packets that this one represents; VPP compares its length with the MTU.
func (p Packet) segment() Packet {
	if p.GSO != 0 {
		p.Size, p.GSO = min(p.Size, p.GSO), 0
	}
	if p.VXLAN != nil && p.VXLAN.Inner.GSO != 0 {
		p.VXLAN = &VXLAN{p.VXLAN.VNI, p.VXLAN.Inner.segment()}
	}
	return p
}

// whole reports whether the packet represents only itself.
func (p Packet) whole() bool { return p.GSO == 0 && (p.VXLAN == nil || p.VXLAN.Inner.GSO == 0) }

// String returns the packet on one line.
func (p Packet) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s > %s", p.EthSrc, p.EthDst)
	for _, tag := range p.VLAN {
		fmt.Fprintf(&b, " vlan %d", tag)
	}
	switch {
	case p.ARP != nil && p.ARP.Reply:
		fmt.Fprintf(&b, " ARP %s is at %s", p.ARP.SenderIP, p.ARP.SenderMAC)
	case p.ARP != nil:
		fmt.Fprintf(&b, " ARP who has %s tell %s", p.ARP.TargetIP, p.ARP.SenderIP)
	default:
		b.WriteString(" " + p.network())
	}
	return b.String()
}

// network returns the packet without Ethernet, as text.
func (p Packet) network() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s > %s proto %d ttl %d", hostPort(p.Src, p.SrcPort), hostPort(p.Dst, p.DstPort), p.Proto, p.TTL)
	if p.Flags != 0 {
		fmt.Fprintf(&b, " flags %#x", p.Flags)
	}
	if p.Echo != 0 {
		fmt.Fprintf(&b, " id %d", p.Echo)
	}
	if p.EchoReply {
		b.WriteString(" reply")
	}
	if p.ND != nil {
		fmt.Fprintf(&b, " type %d %s", p.ND.Type, p.ND.Target)
	}
	if p.Extensions != 0 {
		fmt.Fprintf(&b, " extensions %d", p.Extensions)
	}
	if p.Frag != nil {
		fmt.Fprintf(&b, " fragment %d at %d", p.Frag.ID, p.Frag.Offset)
	}
	if p.Error != nil {
		fmt.Fprintf(&b, " error %d code %d [%s]", p.Error.Type, p.Error.Code, p.Error.Inner.network())
	}
	if p.VXLAN != nil {
		fmt.Fprintf(&b, " vni %d [%s]", p.VXLAN.VNI, p.VXLAN.Inner)
	}
	return b.String()
}

// TCP flags.
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	FlagPSH
	FlagACK
)

func (p Packet) tcpFlags() uint8 {
	if p.Flags == 0 {
		return FlagSYN
	}
	return p.Flags
}

func (p Packet) echoID() uint16 {
	if p.Echo == 0 {
		return 1
	}
	return p.Echo
}

func (p *Packet) setEchoID(id uint16) {
	if p.Echo = id; id == 1 {
		p.Echo = 0
	}
}

func hostPort(a netip.Addr, port uint16) string {
	if port == 0 {
		return a.String()
	}
	return netip.AddrPortFrom(a, port).String()
}

// flow returns the hash for multipath: it is the same for all packets of a connection and in every run. VPP's choice is equally stable but
// different.
func (p Packet) flow() uint64 {
	h := uint64(14695981039346656037)
	mix := func(bytes ...byte) {
		for _, c := range bytes {
			h = (h ^ uint64(c)) * 1099511628211
		}
	}
	mix(p.Src.AsSlice()...)
	mix(p.Dst.AsSlice()...)
	mix(p.Proto, byte(p.SrcPort>>8), byte(p.SrcPort), byte(p.DstPort>>8), byte(p.DstPort))
	return h ^ h>>32
}

// Delivery is one place at which a packet has arrived.
type Delivery struct {
	Fake *Fake
	// Interface is the name of the interface through which the packet left; "" if Local.
	Interface string
	// Tag is that interface's tag.
	Tag string
	// Local is true if the packet is for VPP itself.
	Local  bool
	Packet Packet
	// Fragments is true if the packet was fragmented because it is longer than the interface's MTU.
	Fragments bool
}

// Result is the result of a walk.
type Result struct {
	Out []Delivery
	// Errors lists the ICMP errors that have arrived: those that VPP generated for the packet, or the packet itself.
	Errors []Delivery
	// Drops lists the reasons of all drops, including drops of ICMP errors; a flooded packet may be delivered and dropped.
	Drops []string
	// Walk lists the steps, one per line.
	Walk []string
}

// Delivered returns the delivery, if there is exactly one and there were no drops.
func (r Result) Delivered() (Delivery, bool) {
	if len(r.Out) != 1 || len(r.Drops) > 0 {
		return Delivery{}, false
	}
	return r.Out[0], true
}

// Dropped returns the reason of the drop, if the packet was not delivered.
func (r Result) Dropped() (string, bool) {
	if len(r.Out) > 0 || len(r.Drops) == 0 {
		return "", false
	}
	return strings.Join(r.Drops, "; "), true
}

// String returns the whole walk.
func (r Result) String() string { return strings.Join(r.Walk, "\n") }
