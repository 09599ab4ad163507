package rules

import (
	"fmt"
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// matcher translates the match of a rule. Conditions that cannot be rendered are left out and recorded in problems.
type matcher struct {
	family   table.Family
	env      Env
	match    table.Match
	problems []string
	badSets  []string
	// never means that the match holds for no packet of the family.
	never bool
	// anyPortProtocol means that the rule names (address, protocol, port) members of services but no protocol.
	anyPortProtocol bool
}

func newMatcher(f table.Family, in *proto.Rule, env Env) (m matcher) {
	m.family, m.env = f, env
	m.protocols(in)
	m.match.SrcNets, m.match.DstNets = m.nets(in.GetSrcNet()), m.nets(in.GetDstNet())
	m.match.NotSrcNets, m.match.NotDstNets = m.nets(in.GetNotSrcNet()), m.nets(in.GetNotDstNet())
	m.match.SrcSets, m.match.DstSets = m.addressSets(in.GetSrcIpSetIds()), m.addressSets(in.GetDstIpSetIds())
	m.match.NotSrcSets, m.match.NotDstSets = m.addressSets(in.GetNotSrcIpSetIds()), m.addressSets(in.GetNotDstIpSetIds())
	m.ports(in)
	m.icmp(in)
	if h := in.GetHttpMatch(); h != nil && (len(h.GetMethods()) > 0 || len(h.GetPaths()) > 0) {
		m.problem("HTTP cannot be matched here")
	}
	return m
}

func (m *matcher) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// appendTo appends the rendered rule to list: one rule, or one for each protocol that has ports.
func (m *matcher) appendTo(list []table.Rule, comment string, actions []table.Action) []table.Rule {
	if !m.anyPortProtocol {
		return append(list, table.Rule{Match: m.match, Actions: actions, Comment: comment, Counted: comment != ""})
	}
	for _, protocol := range []uint8{protoTCP, protoUDP, protoSCTP} {
		if protocol == m.match.NotProtocol {
			continue
		}
		one := m.match
		one.Protocol, one.NotProtocol = protocol, 0
		list = append(list, table.Rule{Match: one, Actions: actions, Comment: comment, Counted: comment != ""})
	}
	return list
}

func (m *matcher) protocols(in *proto.Rule) {
	m.match.Protocol = m.protocol(in.GetProtocol())
	m.match.NotProtocol = m.protocol(in.GetNotProtocol())
}

// protocol returns the protocol's number, or 0 if there is none or it is unknown.
func (m *matcher) protocol(p *proto.Protocol) uint8 {
	number, known := proto.NumberOf(p)
	switch v := p.GetNumberOrName().(type) {
	case *proto.Protocol_Number:
		if !known {
			m.problem("protocol %d cannot be matched", v.Number)
		}
	case *proto.Protocol_Name:
		if !known {
			m.problem("unknown protocol %q", v.Name)
		}
	}
	return number
}

func protocolNumber(name string) (uint8, bool) {
	return proto.NumberOf(&proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: name}})
}

func hasPorts(protocol uint8) bool {
	return protocol == protoTCP || protocol == protoUDP || protocol == protoSCTP || protocol == 136 || protocol == 33
}

// nets returns the prefixes of the family. An invalid prefix is a problem.
func (m *matcher) nets(texts []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		p, err := ParseNet(text)
		if err != nil {
			m.problem("net %q: %v", text, err)
			return nil
		}
		if p.Addr().Is4() == (m.family == table.IPv4) {
			list = append(list, p)
		}
	}
	return list
}

// ParseNet is proto.ParseNet.
func ParseNet(text string) (netip.Prefix, error) { return proto.ParseNet(text) }

// onlyOther reports whether texts is not empty and all of its prefixes are of the other family.
func onlyOther(texts []string, f table.Family) bool {
	for _, text := range texts {
		p, err := ParseNet(text)
		if err != nil || p.Addr().Is4() == (f == table.IPv4) {
			return false
		}
	}
	return len(texts) > 0
}

func (m *matcher) addressSets(ids []string) []string {
	return m.sets(ids, func(t table.SetType) bool { return t != table.SetIPAndPort }, "addresses")
}

func (m *matcher) portSets(ids []string) []string {
	return m.sets(ids, func(t table.SetType) bool { return t == table.SetIPAndPort }, "addresses with ports")
}

func (m *matcher) sets(ids []string, fits func(table.SetType) bool, what string) []string {
	var list []string
	for _, id := range ids {
		kind, usable := m.env.Set(id)
		switch {
		case !usable:
			m.problem("IP set %q is not there, or has more members than MaxIPSetSize", id)
			m.badSets = append(m.badSets, id)
		case !fits(kind):
			m.problem("IP set %q does not hold %s", id, what)
			m.badSets = append(m.badSets, id)
		default:
			list = append(list, id)
		}
	}
	return list
}

func (m *matcher) ports(in *proto.Rule) {
	before := len(m.problems)
	m.match.SrcPorts, m.match.DstPorts = m.ranges(in.GetSrcPorts()), m.ranges(in.GetDstPorts())
	m.match.NotSrcPorts, m.match.NotDstPorts = m.ranges(in.GetNotSrcPorts()), m.ranges(in.GetNotDstPorts())
	m.match.SrcPortSets = m.portSets(in.GetSrcNamedPortIpSetIds())
	m.match.DstPortSets = m.portSets(in.GetDstNamedPortIpSetIds())
	m.match.NotSrcPortSets = m.portSets(in.GetNotSrcNamedPortIpSetIds())
	m.match.NotDstPortSets = m.portSets(in.GetNotDstNamedPortIpSetIds())
	ports := len(in.GetSrcPorts()) + len(in.GetDstPorts()) + len(in.GetNotSrcPorts()) + len(in.GetNotDstPorts()) +
		len(in.GetSrcNamedPortIpSetIds()) + len(in.GetDstNamedPortIpSetIds()) +
		len(in.GetNotSrcNamedPortIpSetIds()) + len(in.GetNotDstNamedPortIpSetIds())
	if ports > 0 && !hasPorts(m.match.Protocol) {
		m.problem("ports without a protocol that has them")
	}
	m.services(in)
	if len(m.problems) > before {
		// One match in ranges or sets suffices, so an incomplete list would match fewer packets than specified.
		c := &m.match
		c.SrcPorts, c.DstPorts, c.NotSrcPorts, c.NotDstPorts = nil, nil, nil, nil
		c.SrcPortSets, c.DstPortSets, c.NotSrcPortSets, c.NotDstPortSets = nil, nil, nil, nil
		m.anyPortProtocol = false
	}
}

// services matches the ports of services; each member of such a set has its own protocol.
func (m *matcher) services(in *proto.Rule) {
	ids := in.GetDstIpPortSetIds()
	if len(ids) == 0 {
		return
	}
	if len(ids) > 1 || len(m.match.DstPorts)+len(m.match.DstPortSets) > 0 {
		m.problem("a service's ports cannot be matched together with other ports")
		return
	}
	m.match.DstPortSets = m.portSets(ids)
	switch {
	case m.match.Protocol == 0:
		m.anyPortProtocol = len(m.match.DstPortSets) > 0
	case !hasPorts(m.match.Protocol):
		m.never = true // no member has this protocol
	}
}

func (m *matcher) ranges(in []*proto.PortRange) []table.PortRange {
	var list []table.PortRange
	for _, r := range in {
		first, last := r.GetFirst(), r.GetLast()
		if first < 0 || first > last || last > 65535 {
			m.problem("%d-%d is not a range of ports", first, last)
			continue
		}
		list = append(list, table.PortRange{First: uint16(first), Last: uint16(last)})
	}
	return list
}

func (m *matcher) icmp(in *proto.Rule) {
	var want, not *table.ICMP
	switch v := in.GetIcmp().(type) {
	case *proto.Rule_IcmpType:
		want = m.icmpType(v.IcmpType, 0, true)
	case *proto.Rule_IcmpTypeCode:
		want = m.icmpType(v.IcmpTypeCode.GetType(), v.IcmpTypeCode.GetCode(), false)
	}
	switch v := in.GetNotIcmp().(type) {
	case *proto.Rule_NotIcmpType:
		not = m.icmpType(v.NotIcmpType, 0, true)
	case *proto.Rule_NotIcmpTypeCode:
		not = m.icmpType(v.NotIcmpTypeCode.GetType(), v.NotIcmpTypeCode.GetCode(), false)
	}
	if want == nil && not == nil {
		return
	}
	own, other := uint8(protoICMP), uint8(protoICMPv6)
	if m.family == table.IPv6 {
		own, other = other, own
	}
	switch {
	case m.match.Protocol == other:
		m.never = true
		return
	case m.match.Protocol == 0 && not == nil && m.match.NotProtocol == 0:
		m.match.Protocol = own
	case m.match.Protocol != own:
		m.problem("ICMP type without protocol ICMP")
		return
	}
	m.match.ICMP, m.match.NotICMP = want, not
}

func (m *matcher) icmpType(kind, code int32, anyCode bool) *table.ICMP {
	if kind < 0 || kind > 255 || code < 0 || code > 255 {
		m.problem("ICMP type %d code %d does not exist", kind, code)
		return nil
	}
	return &table.ICMP{Type: uint8(kind), Code: uint8(code), AnyCode: anyCode}
}
