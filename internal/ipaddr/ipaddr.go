package ipaddr

import "net/netip"

// HostPrefix returns the prefix with only this address: /32 or /128.
func HostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// Family returns the name of an address family: IPv4 or IPv6. It is the name that users read.
func Family(a netip.Addr) string {
	if a.Is6() {
		return "IPv6"
	}
	return "IPv4"
}
