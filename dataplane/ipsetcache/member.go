package ipsetcache

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
)

// Member is a parsed member. Net is masked and of its own family (IPv4 addresses that came mapped into IPv6 are IPv4); it has
// full length unless the set is of type NET. Proto (IANA number) and Port are of sets of type IP_AND_PORT, else zero.
type Member struct {
	Net   netip.Prefix
	Proto uint8
	Port  uint16
}

// Compare orders members: by address, length, protocol, port.
func (m Member) Compare(o Member) int {
	return cmp.Or(m.Net.Addr().Compare(o.Net.Addr()), cmp.Compare(m.Net.Bits(), o.Net.Bits()),
		cmp.Compare(m.Proto, o.Proto), cmp.Compare(m.Port, o.Port))
}

// ParseMember reads a member of a set of the kind: "10.0.0.1", "10.0.0.0/24" or "10.0.0.1,tcp:80".
func ParseMember(kind proto.IPSetUpdate_IPSetType, text string) (Member, error) {
	switch kind {
	case proto.IPSetUpdate_IP, proto.IPSetUpdate_NET:
		net, err := parseNet(text)
		if err == nil && kind == proto.IPSetUpdate_IP && !net.IsSingleIP() {
			err = errors.New("is a prefix, and the set's type IP takes addresses")
		}
		return Member{Net: net}, err
	case proto.IPSetUpdate_IP_AND_PORT:
		return parseService(text)
	}
	return Member{}, fmt.Errorf("the set's type %v is not known", kind)
}

// parseNet reads an address or a prefix.
func parseNet(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Prefix{}, err
		}
		if addr.Zone() != "" {
			return netip.Prefix{}, errors.New("has a zone")
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	net, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	if net.Addr().Is4In6() {
		const mapped = 96 // ::ffff:0:0/96
		if net.Bits() < mapped {
			return netip.Prefix{}, errors.New("is wider than the IPv4 addresses in IPv6")
		}
		net = netip.PrefixFrom(net.Addr().Unmap(), net.Bits()-mapped)
	}
	return net.Masked(), nil
}

// parseService reads "10.0.0.1,tcp:80".
func parseService(text string) (Member, error) {
	addr, service, _ := strings.Cut(text, ",")
	name, digits, ok := strings.Cut(service, ":")
	if !ok {
		return Member{}, errors.New("is not of the form address,protocol:port")
	}
	net, err := parseNet(addr)
	if err != nil {
		return Member{}, err
	}
	if !net.IsSingleIP() {
		return Member{}, errors.New("has a prefix in place of an address")
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || port == 0 {
		return Member{}, fmt.Errorf("has port %q, which is not in 1..65535", digits)
	}
	m := Member{Net: net, Port: uint16(port)}
	switch strings.ToLower(name) {
	case "tcp":
		m.Proto = 6
	case "udp":
		m.Proto = 17
	case "sctp":
		m.Proto = 132
	default:
		return Member{}, fmt.Errorf("has protocol %q, which is not tcp, udp or sctp", name)
	}
	return m, nil
}
