package kube

import (
	"net/netip"
	"strings"
)

// parseAddr parses an address of an API object. Old objects may have IPv4 addresses with leading zeros, which are
// decimal (KEP-4858), and IPv4-mapped IPv6 addresses, which are IPv4.
func parseAddr(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(s)
	if err != nil {
		addr, err = netip.ParseAddr(withoutLeadingZeros(s))
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// parsePrefix parses a network of an API object and returns its first address and length.
func parsePrefix(s string) (netip.Prefix, bool) {
	s = strings.TrimSpace(s)
	p, err := netip.ParsePrefix(s)
	if err != nil {
		p, err = netip.ParsePrefix(withoutLeadingZeros(s))
	}
	if err != nil {
		return netip.Prefix{}, false
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, false
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}

func withoutLeadingZeros(s string) string {
	addr, bits, _ := strings.Cut(s, "/")
	parts := strings.Split(addr, ".")
	for i, part := range parts {
		if trimmed := strings.TrimLeft(part, "0"); trimmed != part {
			parts[i] = trimmed
			if trimmed == "" {
				parts[i] = "0"
			}
		}
	}
	if bits != "" {
		bits = "/" + bits
	}
	return strings.Join(parts, ".") + bits
}

// addrTexts returns the valid addresses among texts, in canonical form and without duplicates.
func addrTexts(texts []string) []string {
	out := make([]string, 0, len(texts))
	seen := map[netip.Addr]bool{}
	for _, text := range texts {
		if addr, ok := parseAddr(text); ok && !seen[addr] {
			seen[addr] = true
			out = append(out, addr.String())
		}
	}
	return out
}

// prefixTexts returns the valid networks among texts in canonical form.
func prefixTexts(texts []string) []string {
	out := make([]string, 0, len(texts))
	for _, text := range texts {
		if p, ok := parsePrefix(text); ok {
			out = append(out, p.String())
		}
	}
	return out
}
