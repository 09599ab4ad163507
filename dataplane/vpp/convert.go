package vpp

import (
	"fmt"
	"net"
	"net/netip"

	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// none is VPP's "no interface" and "any number".
const none = ^uint32(0)

func toAddress(a netip.Addr) ip_types.Address {
	if a.Is4() {
		return ip_types.Address{Af: ip_types.ADDRESS_IP4, Un: ip_types.AddressUnionIP4(a.As4())}
	}
	return ip_types.Address{Af: ip_types.ADDRESS_IP6, Un: ip_types.AddressUnionIP6(a.As16())}
}

func fromAddress(a ip_types.Address) netip.Addr {
	if a.Af == ip_types.ADDRESS_IP4 {
		return netip.AddrFrom4(a.Un.GetIP4())
	}
	return netip.AddrFrom16(a.Un.GetIP6())
}

func toPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: toAddress(p.Addr()), Len: uint8(p.Bits())}
}

func fromPrefix(p ip_types.Prefix) netip.Prefix {
	return netip.PrefixFrom(fromAddress(p.Address), int(p.Len))
}

func family(v6 bool) ip_types.AddressFamily {
	if v6 {
		return ip_types.ADDRESS_IP6
	}
	return ip_types.ADDRESS_IP4
}

// addr parses an address; the zero value for what is none.
func addr(s string) netip.Addr {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}
	}
	return a.Unmap()
}

// sameAddr compares two addresses by what they mean.
func sameAddr(a, b string) bool {
	return a == b || (addr(a).IsValid() && addr(a) == addr(b))
}

func parseMAC(s string) (ethernet_types.MacAddress, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return ethernet_types.MacAddress{}, fmt.Errorf("%q is not a hardware address", s)
	}
	return ethernet_types.NewMacAddress(hw), nil
}

// mac parses a hardware address that has been validated.
func mac(s string) ethernet_types.MacAddress {
	m, _ := parseMAC(s)
	return m
}

func sameMAC(a, b string) bool {
	return a == b || mac(a) == mac(b)
}

func isPowerOf2(n uint32) bool { return n&(n-1) == 0 }

// specified is an address as text; empty for the unspecified one.
func specified(a netip.Addr) string {
	if a.IsUnspecified() {
		return ""
	}
	return a.String()
}
