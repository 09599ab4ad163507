package ipset

import (
	"fmt"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// member is one member of a set in the kernel's format. A map may hold up to a million of them, so it has no pointers.
type member struct {
	addr  [16]byte // an IPv4 address in the first four bytes; bits beyond the prefix are zero
	bits  uint8
	proto uint8
	port  uint16
}

// why holds the reasons for a member; the member is in the set as long as there is any.
type why uint8

const (
	explicit  why = 1 << iota
	halfOfAll     // a half of 0.0.0.0/0 or ::/0, which hash:net cannot hold
)

// addrBits returns the length of an address of the family.
func addrBits(f table.Family) uint8 {
	if f == table.IPv4 {
		return 32
	}
	return 128
}

// convert returns m in the format of a set of type typ, or an error if that is not possible. all is true for the prefix of all addresses.
func convert(f table.Family, typ table.SetType, m table.Member) (out member, all bool, err error) {
	if !m.Net.IsValid() || m.Net.Addr().Is4() != (f == table.IPv4) {
		return member{}, false, fmt.Errorf("member %v is not an IPv%d prefix", m.Net, f)
	}
	bits := uint8(m.Net.Bits())
	if typ != table.SetNet && bits != addrBits(f) {
		return member{}, false, fmt.Errorf("member %v is not a single address", m.Net)
	}
	out.bits = bits
	a := m.Net.Masked().Addr()
	if f == table.IPv4 {
		four := a.As4()
		copy(out.addr[:], four[:])
	} else {
		out.addr = a.As16()
	}
	if typ == table.SetIPAndPort {
		switch m.Proto {
		case 6, 17, 132:
		default:
			return member{}, false, fmt.Errorf("member %v: protocol %d has no ports here; use 6, 17 or 132", m.Net, m.Proto)
		}
		out.proto, out.port = m.Proto, m.Port
	}
	return out, typ == table.SetNet && bits == 0, nil
}

// halves returns the two prefixes that together cover all addresses.
func halves() [2]member {
	return [2]member{{bits: 1}, {addr: [16]byte{0x80}, bits: 1}}
}

// text returns the member as text, for messages.
func (m member) text(f table.Family) string {
	a := netip.AddrFrom16(m.addr)
	if f == table.IPv4 {
		a = netip.AddrFrom4([4]byte(m.addr[:4]))
	}
	s := a.String()
	if m.bits != addrBits(f) {
		s += fmt.Sprintf("/%d", m.bits)
	}
	if m.proto != 0 {
		s += fmt.Sprintf(",%d:%d", m.proto, m.port)
	}
	return s
}
