package intdataplane

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// parseMember reads a member as the messages have it: "10.0.0.1", "10.0.0.0/24", or "10.0.0.1,tcp:80".
func parseMember(kind table.SetType, text string) (table.Member, error) {
	addr, port, hasPort := strings.Cut(text, ",")
	if hasPort != (kind == table.SetIPAndPort) {
		return table.Member{}, fmt.Errorf("does not fit the set's type")
	}
	net, err := rules.ParseNet(addr)
	if err != nil {
		return table.Member{}, err
	}
	if kind != table.SetNet && !net.IsSingleIP() {
		return table.Member{}, fmt.Errorf("is not one address")
	}
	m := table.Member{Net: net}
	if hasPort {
		m.Proto, m.Port, err = parsePort(port)
	}
	return m, err
}

// parsePort reads "tcp:80". Felix writes the protocol in lower case; SCTP is the third that has named ports.
func parsePort(text string) (proto uint8, port uint16, err error) {
	name, digits, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return 0, 0, fmt.Errorf("port %q is not in 1..65535", digits)
	}
	switch strings.ToLower(name) {
	case "tcp":
		proto = 6
	case "udp":
		proto = 17
	case "sctp":
		proto = 132
	default:
		return 0, 0, fmt.Errorf("protocol %q is not tcp, udp or sctp", name)
	}
	return proto, uint16(n), nil
}

func familyOf(a netip.Addr) table.Family {
	if a.Is4() || a.Is4In6() {
		return table.IPv4
	}
	return table.IPv6
}

// hostNet is the prefix that holds one address.
func hostNet(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
