package netlink

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// attrTypeMask removes NLA_F_NESTED and NLA_F_NET_BYTEORDER.
const attrTypeMask = 0x3fff

func align(n int) int { return (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1) }

// Attributes calls each for every attribute after a fixed header of size bytes. ok is false if the payload is too short for the header.
// Attributes stops at a malformed attribute.
func Attributes(payload []byte, size int, each func(typ uint16, value []byte)) (ok bool) {
	if len(payload) < size {
		return false
	}
	rest := payload[min(align(size), len(payload)):]
	for len(rest) >= unix.SizeofRtAttr {
		n := int(binary.NativeEndian.Uint16(rest))
		if n < unix.SizeofRtAttr || n > len(rest) {
			break
		}
		each(binary.NativeEndian.Uint16(rest[2:])&attrTypeMask, rest[unix.SizeofRtAttr:n])
		rest = rest[min(align(n), len(rest)):]
	}
	return true
}

// Find returns the first attribute of a type in the payload of another one, nil if there is none.
func Find(payload []byte, typ uint16) (value []byte) {
	Attributes(payload, 0, func(t uint16, v []byte) {
		if t == typ && value == nil {
			value = v
		}
	})
	return value
}

// Uint32 reads an attribute; it returns 0 if the attribute is too short.
func Uint32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(b)
}

// Text returns a text attribute without its terminating zero.
func Text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// Addr reads an address of 4 or 16 bytes; otherwise it returns the zero Addr.
func Addr(b []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Link holds the fields of a link that we use.
type Link struct {
	Index int
	Name  string
	Alias string
	Flags uint32 // IFF_…
	MAC   net.HardwareAddr
	MTU   int
	Kind  string // "vxlan", "veth", …; "" for a physical one
	Data  []byte // IFLA_INFO_DATA of a VXLAN, TUN or TAP device
	Group uint32

	Parent int32  // of a VETH: index of the peer, in the peer's namespace
	Master uint32 // index of its bridge or bond; 0: none
}

// Up reports whether packets can pass: the link is enabled and has a carrier.
func (l Link) Up() bool { return l.Flags&unix.IFF_UP != 0 && l.Flags&unix.IFF_RUNNING != 0 }

// ParseLink reads a message about a link. ok is false for messages about another role of a link (bridge port, IPv6 settings), which have the
// same message types.
func ParseLink(payload []byte) (l Link, ok bool) {
	ok = Attributes(payload, unix.SizeofIfInfomsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.IFLA_IFNAME:
			l.Name = Text(v)
		case unix.IFLA_IFALIAS:
			l.Alias = Text(v)
		case unix.IFLA_ADDRESS:
			l.MAC = bytes.Clone(v)
		case unix.IFLA_LINK:
			l.Parent = int32(Uint32(v))
		case unix.IFLA_GROUP:
			l.Group = Uint32(v)
		case unix.IFLA_MASTER:
			l.Master = Uint32(v)
		case unix.IFLA_MTU:
			l.MTU = int(Uint32(v))
		case unix.IFLA_LINKINFO:
			Attributes(v, 0, func(typ uint16, v []byte) {
				switch {
				case typ == unix.IFLA_INFO_KIND: // comes before the data
					l.Kind = Text(v)
				case typ == unix.IFLA_INFO_DATA && (l.Kind == "vxlan" || l.Kind == "tun"):
					l.Data = bytes.Clone(v)
				}
			})
		}
	})
	if !ok {
		return l, false
	}
	l.Index = int(int32(Uint32(payload[4:])))
	l.Flags = Uint32(payload[8:])
	return l, payload[0] == unix.AF_UNSPEC && l.Index > 0
}

// Address is an address of a link.
type Address struct {
	Index  int
	Prefix netip.Prefix // not masked
	Peer   netip.Addr   // of a point-to-point address; else the address itself
	Scope  uint8
	Flags  uint32 // IFA_F_…

	Protocol uint8 // identifies the program that has set the address; Linux 5.18
}

// ParseAddress reads a message about an address.
func ParseAddress(payload []byte) (a Address, ok bool) {
	var local netip.Addr
	ok = Attributes(payload, unix.SizeofIfAddrmsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.IFA_LOCAL:
			local = Addr(v)
		case unix.IFA_ADDRESS:
			a.Peer = Addr(v)
		case unix.IFA_FLAGS:
			a.Flags = Uint32(v)
		case ifaProtocol:
			if len(v) > 0 {
				a.Protocol = v[0]
			}
		}
	})
	if !ok {
		return a, false
	}
	if !local.IsValid() {
		local = a.Peer
	}
	a.Index = int(int32(Uint32(payload[4:])))
	a.Scope = payload[3]
	a.Prefix = netip.PrefixFrom(local, int(payload[1]))
	return a, a.Prefix.IsValid() && a.Index > 0
}

// Neighbour is an entry of a neighbour table, or of a link's forwarding database.
type Neighbour struct {
	Index    int
	Addr     netip.Addr // of a forwarding entry: the underlay destination
	MAC      net.HardwareAddr
	State    uint16 // NUD_…
	Flags    uint8  // NTF_…
	Protocol uint8
	VNI      uint32 // forwarding entries only; 0: that of the device
}

// ParseNeighbour reads a message about a neighbour or forwarding entry.
func ParseNeighbour(payload []byte) (n Neighbour, ok bool) {
	ok = Attributes(payload, unix.SizeofNdMsg, func(typ uint16, v []byte) {
		switch typ {
		case unix.NDA_DST:
			n.Addr = Addr(v)
		case unix.NDA_LLADDR:
			n.MAC = bytes.Clone(v)
		case ndaProtocol:
			if len(v) > 0 {
				n.Protocol = v[0]
			}
		case unix.NDA_VNI:
			n.VNI = Uint32(v)
		}
	})
	if !ok {
		return n, false
	}
	n.Index = int(int32(Uint32(payload[4:])))
	n.State = binary.NativeEndian.Uint16(payload[8:])
	n.Flags = payload[10]
	return n, n.Index > 0
}
