package contivconf

import (
	"fmt"
	"net/netip"
)

// parsePrefixes parses a list of networks, at most one per family. If hosts is true, the elements are addresses with a prefix length, which
// must differ from the network's own address; otherwise they must be equal to it. ok is false if any element is invalid.
func parsePrefixes(field, text string, hosts bool, bad *faults) (list []netip.Prefix, ok bool) {
	ok = true
	seen := map[IPVersion]bool{}
	for _, part := range elements(text) {
		p, err := parsePrefix(part, hosts)
		if err != nil {
			bad.add(field, "%s", err)
			ok = false
			continue
		}
		v := VersionOf(p.Addr())
		if seen[v] {
			bad.add(field, "%q has more than one %s element; give at most one per family", text, v)
			ok = false
			continue
		}
		seen[v] = true
		list = append(list, p)
	}
	return list, ok
}

func parsePrefix(text string, host bool) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			return netip.Prefix{}, fmt.Errorf("%q has no prefix length; write it as address/length, e.g. %s/24", text, a)
		}
		return netip.Prefix{}, fmt.Errorf("%q is not address/length; write it like 10.1.0.0/16 or fd10:1::/48", text)
	}
	if err := checkUnicast(p.Addr()); err != nil {
		return netip.Prefix{}, err
	}
	if r := reservedBy(p); r.IsValid() && !host {
		return netip.Prefix{}, fmt.Errorf("%s has addresses of %s, which no host can have; use a network of unicast addresses", p, r)
	}
	switch {
	case !host && p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("%s is an address inside a network; write the network, %s", p, p.Masked())
	case host && !usable(p.Addr(), p):
		return netip.Prefix{}, fmt.Errorf("%s is the network's own or its broadcast address; use one between them", p)
	}
	return p, nil
}

// parseAddrs parses a list of addresses, at most one per family.
func parseAddrs(field, text string, bad *faults) []netip.Addr {
	var list []netip.Addr
	for _, part := range elements(text) {
		a, err := netip.ParseAddr(part)
		switch {
		case err != nil || a.Zone() != "":
			bad.add(field, "%q is not an IP address; write it like 192.168.16.1", part)
		case checkUnicast(a) != nil:
			bad.add(field, "%s", checkUnicast(a))
		case addrOf(list, VersionOf(a)).IsValid():
			bad.add(field, "%q has more than one %s address; give at most one per family", text, VersionOf(a))
		default:
			list = append(list, a)
		}
	}
	return list
}

func checkUnicast(a netip.Addr) error {
	switch {
	case a.Is4In6():
		return fmt.Errorf("%s is an IPv4-mapped IPv6 address; write %s", a, a.Unmap())
	case a.IsMulticast(), a.IsLoopback():
		return fmt.Errorf("%s is a multicast or loopback address; use a unicast one", a)
	case a.IsUnspecified():
		return fmt.Errorf("%s is the unspecified address; use a unicast address", a)
	}
	return nil
}

// reservedBy returns a reserved network that overlaps with p: one in which no host can have an address, or only a link-local one. It
// returns an invalid prefix if there is none.
func reservedBy(p netip.Prefix) netip.Prefix {
	reserved := []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3"}
	if p.Addr().Is6() {
		reserved = []string{"::/128", "::1/128", "::ffff:0:0/96", "fe80::/10", "ff00::/8"}
	}
	for _, text := range reserved {
		if r := netip.MustParsePrefix(text); r.Overlaps(p) {
			return r
		}
	}
	return netip.Prefix{}
}

// usable reports whether a host in network p can have the address: it must be neither the network's own address nor (IPv4) its broadcast
// address, unless the network is too small to have these.
func usable(a netip.Addr, p netip.Prefix) bool {
	hostBits := p.Addr().BitLen() - p.Bits()
	if !p.Contains(a) {
		return false
	}
	if hostBits <= 1 {
		return true
	}
	if a == p.Masked().Addr() {
		return false
	}
	next := a.Next()
	return a.Is6() || (next.IsValid() && p.Contains(next))
}
