package renderer

import (
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// IPAddresses is a set of IP addresses.
type IPAddresses struct {
	list []netip.Addr // sorted, IPv4 before IPv6, without IPv4-mapped addresses
}

// NewIPAddresses returns a set of the given addresses.
func NewIPAddresses(addrs ...net.IP) *IPAddresses {
	list := make([]netip.Addr, 0, len(addrs))
	for _, ip := range addrs {
		if addr, ok := netip.AddrFromSlice(ip); ok {
			list = append(list, addr)
		}
	}
	return FromAddrs(list...)
}

// FromAddrs is like NewIPAddresses, for netip. It is not part of the documented API.
func FromAddrs(addrs ...netip.Addr) *IPAddresses {
	list := make([]netip.Addr, 0, len(addrs))
	for _, addr := range addrs {
		if addr.IsValid() {
			list = append(list, addr.Unmap().WithZone(""))
		}
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return &IPAddresses{list: slices.Compact(list)}
}

// FromSorted is like FromAddrs, for addresses that are sorted and without duplicates. The set keeps the slice. It is not part of the
// documented API.
func FromSorted(addrs []netip.Addr) *IPAddresses { return &IPAddresses{list: addrs} }

// Copy creates a deep copy of the set.
func (addrs *IPAddresses) Copy() *IPAddresses {
	if addrs == nil {
		return nil
	}
	return &IPAddresses{list: slices.Clone(addrs.list)}
}

// Has reports whether the given IP address is in the set.
func (addrs *IPAddresses) Has(addr net.IP) bool {
	a, ok := netip.AddrFromSlice(addr)
	return ok && addrs.Contains(a)
}

// Contains is like Has, for netip. It is not part of the documented API.
func (addrs *IPAddresses) Contains(addr netip.Addr) bool {
	if addrs == nil {
		return false
	}
	_, found := slices.BinarySearchFunc(addrs.list, addr.Unmap(), netip.Addr.Compare)
	return found
}

// List returns the set as a slice.
func (addrs *IPAddresses) List() []net.IP {
	all := addrs.Addrs()
	out := make([]net.IP, len(all))
	for i, addr := range all {
		out[i] = addr.AsSlice()
	}
	return out
}

// Addrs is like List, for netip: sorted, IPv4 before IPv6; the caller must not change it. It is not part of the documented API.
func (addrs *IPAddresses) Addrs() []netip.Addr {
	if addrs == nil {
		return nil
	}
	return addrs.list
}

// Equal reports whether two sets are equal; nil is the empty set. It is not part of the documented API.
func (addrs *IPAddresses) Equal(other *IPAddresses) bool {
	return slices.Equal(addrs.Addrs(), other.Addrs())
}

// Differing returns the addresses that are in only one of two sets, sorted. It is not part of the documented API.
func (addrs *IPAddresses) Differing(other *IPAddresses) (out []netip.Addr) {
	a, b := addrs.Addrs(), other.Addrs()
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].Compare(b[0]); {
		case c == 0:
			a, b = a[1:], b[1:]
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		default:
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// String converts a set of IP addresses into a human-readable string.
func (addrs IPAddresses) String() string {
	texts := make([]string, len(addrs.list))
	for i, addr := range addrs.list {
		texts[i] = addr.String()
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// Interfaces is a set of interface names.
type Interfaces map[string]struct{}

// NewInterfaces returns a set of the given names.
func NewInterfaces(ifNames ...string) Interfaces {
	ifs := make(Interfaces, len(ifNames))
	for _, name := range ifNames {
		ifs[name] = struct{}{}
	}
	return ifs
}

// Copy creates a deep copy of the set.
func (ifs Interfaces) Copy() Interfaces { return maps.Clone(ifs) }

// Has reports whether the given interface name is in the set.
func (ifs Interfaces) Has(ifName string) bool {
	_, has := ifs[ifName]
	return has
}

// String converts a set of interface names into a human-readable string.
func (ifs Interfaces) String() string {
	return "{" + strings.Join(slices.Sorted(maps.Keys(ifs)), ", ") + "}"
}
