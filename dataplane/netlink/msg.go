package netlink

import (
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

const (
	filterSkipStats = 8  // RTEXT_FILTER_SKIP_STATS omits the counters, most of a link's message, from a listing
	ndaProtocol     = 12 // NDA_PROTOCOL, Linux 5.0
	ifaProtocol     = 11 // IFA_PROTO, Linux 5.18
)

// FamilyOf returns the address family (AF_…) of an address.
func FamilyOf(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func ifInfo(index int, flags, change uint32) []byte {
	h := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	binary.NativeEndian.PutUint32(h[8:], flags)
	binary.NativeEndian.PutUint32(h[12:], change)
	return h
}

// GetLinks requests all links.
func (b *Batch) GetLinks() {
	b.Begin(unix.RTM_GETLINK, 0, ifInfo(0, 0, 0))
	b.Uint32(unix.IFLA_EXT_MASK, filterSkipStats)
}

// GetLink requests one link, by name. The kernel returns ENODEV if there is none.
func (b *Batch) GetLink(name string) {
	b.Begin(unix.RTM_GETLINK, 0, ifInfo(0, 0, 0))
	b.Uint32(unix.IFLA_EXT_MASK, filterSkipStats)
	b.Text(unix.IFLA_IFNAME, name)
}

// SetLink starts a change of a link, to which attributes may be added; up enables it.
func (b *Batch) SetLink(index int, up bool) {
	var flags uint32
	if up {
		flags = unix.IFF_UP
	}
	b.Begin(unix.RTM_NEWLINK, 0, ifInfo(index, flags, flags))
}

// NewLink starts a request for a new link, which is down; the caller adds attributes.
func (b *Batch) NewLink() {
	b.Begin(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, ifInfo(0, 0, 0))
}

// DelLink removes a link.
func (b *Batch) DelLink(index int) { b.Begin(unix.RTM_DELLINK, 0, ifInfo(index, 0, 0)) }

func ifAddr(a netip.Prefix, index int) []byte {
	h := make([]byte, unix.SizeofIfAddrmsg)
	if a.IsValid() {
		h[0], h[1] = FamilyOf(a.Addr()), uint8(a.Bits())
		if a.Addr().Is6() {
			h[2] = unix.IFA_F_NODAD // the agent assigns the address, and a tentative address cannot be used
		}
	}
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	return h
}

// GetAddresses requests the addresses of a link, or of all links with index 0. Kernels before 4.20 return all.
func (b *Batch) GetAddresses(index int) { b.Begin(unix.RTM_GETADDR, 0, ifAddr(netip.Prefix{}, index)) }

// NewAddress adds an address to a link.
func (b *Batch) NewAddress(index int, p netip.Prefix) {
	b.Begin(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, ifAddr(p, index))
	b.Addr(unix.IFA_LOCAL, p.Addr())
	b.Addr(unix.IFA_ADDRESS, p.Addr())
}

// DelAddress removes an address from a link.
func (b *Batch) DelAddress(a Address) {
	b.Begin(unix.RTM_DELADDR, 0, ifAddr(a.Prefix, a.Index))
	b.Addr(unix.IFA_LOCAL, a.Prefix.Addr())
	if a.Peer.IsValid() {
		b.Addr(unix.IFA_ADDRESS, a.Peer)
	}
}

func ndMsg(family uint8, index int, state uint16, flags uint8) []byte {
	h := make([]byte, unix.SizeofNdMsg)
	h[0] = family
	binary.NativeEndian.PutUint32(h[4:], uint32(index))
	binary.NativeEndian.PutUint16(h[8:], state)
	h[10] = flags
	return h
}

// GetNeighbours requests the neighbours of a family (AF_INET, AF_INET6), of one link or, with index 0, of all.
func (b *Batch) GetNeighbours(family uint8, index int) {
	b.Begin(unix.RTM_GETNEIGH, 0, ndMsg(family, 0, 0, 0))
	if index != 0 {
		b.Uint32(unix.NDA_IFINDEX, uint32(index))
	}
}

// NewNeighbour adds a permanent neighbour with our tag, or replaces the existing one.
func (b *Batch) NewNeighbour(index int, ip netip.Addr, mac net.HardwareAddr, protocol uint8) {
	b.Begin(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, ndMsg(FamilyOf(ip), index, unix.NUD_PERMANENT, 0))
	b.Addr(unix.NDA_DST, ip)
	b.Attr(unix.NDA_LLADDR, mac)
	b.Uint8(ndaProtocol, protocol)
}

// DelNeighbour removes a neighbour.
func (b *Batch) DelNeighbour(index int, ip netip.Addr) {
	b.Begin(unix.RTM_DELNEIGH, 0, ndMsg(FamilyOf(ip), index, 0, 0))
	b.Addr(unix.NDA_DST, ip)
}

// GetForwarding requests the forwarding entries of a link.
func (b *Batch) GetForwarding(index int) {
	b.Begin(unix.RTM_GETNEIGH, 0, ndMsg(unix.AF_BRIDGE, index, 0, 0))
}

// NewForwarding makes a VXLAN device send frames for a MAC to an underlay address.
func (b *Batch) NewForwarding(index int, mac net.HardwareAddr, to netip.Addr) {
	b.Begin(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
		ndMsg(unix.AF_BRIDGE, index, unix.NUD_PERMANENT|unix.NUD_NOARP, unix.NTF_SELF))
	b.Attr(unix.NDA_LLADDR, mac)
	b.Addr(unix.NDA_DST, to)
}

// DelForwarding removes a forwarding entry; to may be zero if the MAC has only one.
func (b *Batch) DelForwarding(index int, mac net.HardwareAddr, to netip.Addr) {
	b.Begin(unix.RTM_DELNEIGH, 0, ndMsg(unix.AF_BRIDGE, index, 0, unix.NTF_SELF))
	b.Attr(unix.NDA_LLADDR, mac)
	if to.IsValid() {
		b.Addr(unix.NDA_DST, to)
	}
}
