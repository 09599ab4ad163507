package vppfake

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/ip_types"
)

// Families are the indices of the state that VPP keeps once per IP version.
const (
	ip4 = 0
	ip6 = 1
)

func family(a netip.Addr) int {
	if a.Is4() {
		return ip4
	}
	return ip6
}

func familyOf(isIP6 bool) int {
	if isIP6 {
		return ip6
	}
	return ip4
}

// unspecified returns the zero address of a family.
func unspecified(family int) netip.Addr {
	if family == ip6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
}

func unionAddr(af ip_types.AddressFamily, u ip_types.AddressUnion) netip.Addr {
	if af == ip_types.ADDRESS_IP6 {
		return netip.AddrFrom16(u.XXX_UnionData)
	}
	return netip.AddrFrom4([4]byte(u.XXX_UnionData[:4]))
}

func netAddr(a ip_types.Address) netip.Addr { return unionAddr(a.Af, a.Un) }

func union(a netip.Addr) (u ip_types.AddressUnion) {
	copy(u.XXX_UnionData[:], a.AsSlice())
	return u
}

func apiAddress(a netip.Addr) ip_types.Address {
	return ip_types.Address{Af: ip_types.AddressFamily(family(a)), Un: union(a)}
}

func apiPrefix(p netip.Prefix) ip_types.Prefix {
	return ip_types.Prefix{Address: apiAddress(p.Addr()), Len: uint8(p.Bits())}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func comparePrefix(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}
