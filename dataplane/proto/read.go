package proto

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"contiv.dev/vswitch/internal/ipaddr"
)

// ParseNet parses a CIDR, or an address, which becomes a single-address prefix. IPv4-mapped IPv6 becomes IPv4. Host bits
// are cleared.
func ParseNet(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		a = a.Unmap()
		if a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("address with a zone")
		}
		return ipaddr.HostPrefix(a), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("IPv4-mapped net wider than IPv4")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// SetMember is a member of an IP set. Protocol and Port are 0 except in a set of type IP_AND_PORT.
type SetMember struct {
	Net      netip.Prefix
	Protocol uint8
	Port     uint16
}

// ParseMember parses a member of a set in the format of IPSetUpdate: "10.0.0.1", "10.0.0.0/24", or "10.0.0.1,tcp:80".
func ParseMember(kind IPSetUpdate_IPSetType, text string) (SetMember, error) {
	addr, port, hasPort := strings.Cut(text, ",")
	if hasPort != (kind == IPSetUpdate_IP_AND_PORT) {
		return SetMember{}, fmt.Errorf("does not fit the set's type")
	}
	net, err := ParseNet(addr)
	if err != nil {
		return SetMember{}, err
	}
	if kind != IPSetUpdate_NET && !net.IsSingleIP() {
		return SetMember{}, fmt.Errorf("is not one address")
	}
	m := SetMember{Net: net}
	if hasPort {
		m.Protocol, m.Port, err = parsePort(port)
	}
	return m, err
}

// parsePort parses "tcp:80". Felix writes the protocol in lower case; SCTP is the third protocol with named ports.
func parsePort(text string) (protocol uint8, port uint16, err error) {
	name, digits, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return 0, 0, fmt.Errorf("port %q is not in 1..65535", digits)
	}
	switch strings.ToLower(name) {
	case "tcp":
		protocol = 6
	case "udp":
		protocol = 17
	case "sctp":
		protocol = 132
	default:
		return 0, 0, fmt.Errorf("protocol %q is not tcp, udp or sctp", name)
	}
	return protocol, uint16(n), nil
}

// NumberOf returns the IP protocol number of a rule's protocol, 0 if the rule has none. It returns false for an unknown
// name and for a number out of range.
func NumberOf(p *Protocol) (uint8, bool) {
	switch v := p.GetNumberOrName().(type) {
	case *Protocol_Number:
		if v.Number <= 0 || v.Number > 255 {
			return 0, false
		}
		return uint8(v.Number), true
	case *Protocol_Name:
		number, known := map[string]uint8{"icmp": 1, "ipip": 4, "tcp": 6, "udp": 17, "icmpv6": 58, "sctp": 132,
			"udplite": 136}[strings.ToLower(v.Name)]
		return number, known
	}
	return 0, true
}

// ActionOf returns the normalised action of a rule: "allow", "deny", "pass", "log", or the unknown action in lower case.
func ActionOf(r *Rule) string {
	switch a := strings.ToLower(r.GetAction()); a {
	case "":
		return "allow"
	case "next-tier":
		return "pass"
	default:
		return a
	}
}
