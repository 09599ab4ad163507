package kit

import (
	"fmt"
	"net"
	"net/netip"

	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// None is VPP's value for "no interface" and "any number".
const None = ^uint32(0)

// IP protocols.
const ProtoTCP, ProtoUDP = 6, 17

func ToAddress(a netip.Addr) ip_types.Address {
	if a.Is4() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(a.As4())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(a.As16())}
}

func FromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP4 {
		return netip.AddrFrom4(a.Un.GetIP4())
	}
	return netip.AddrFrom16(a.Un.GetIP6())
}

func ToPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: ToAddress(p.Addr()), Len: uint8(p.Bits())}
}

func FromPrefix(p ip_types.Prefix) netip.Prefix {
	return netip.PrefixFrom(FromAddress(p.Address), int(p.Len))
}

func Family(v6 bool) ip_types.AddressFamily {
	if v6 {
		return ip_types.ADDRESS_IP6
	}
	return ip_types.ADDRESS_IP4
}

// Addr parses an address; it returns the zero value if s is not an address.
func Addr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}
	}
	return a.Unmap()
}

// SameAddr compares two addresses by value, not by text.
func SameAddr(a, b string) bool {
	return a == b || (Addr(a).IsValid() && Addr(a) == Addr(b))
}

func ParseMAC(s string) (ethernet_types.MacAddress, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return ethernet_types.MacAddress{}, fmt.Errorf("%q is not a hardware address", s)
	}
	return ethernet_types.NewMacAddress(hw), nil
}

// MAC parses a hardware address that has been validated.
func MAC(s string) ethernet_types.MacAddress {
	m, _ := ParseMAC(s)
	return m
}

func SameMAC(a, b string) bool {
	return a == b || MAC(a) == MAC(b)
}

func IsPowerOf2(n uint32) bool { return n&(n-1) == 0 }

// Specified returns an address as text; empty for the unspecified address.
func Specified(a netip.Addr) string {
	if a.IsUnspecified() {
		return ""
	}
	return a.String()
}
