package windataplane

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
)

// What a rule does.
const (
	actionAllow = "allow"
	actionDeny  = "deny"
	actionPass  = "pass"
	actionLog   = "log"
)

// Numbers of protocols. Only those two have ports that HNS can match.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// rule is a rule of a policy as HNS can have it.
type rule struct {
	action string // actionAllow, actionDeny, actionPass
	boxes  []box  // any of them; none: the rule matches nothing
}

// setLookup returns a set that rules may refer to; false: the set does not exist, or cannot be used.
type setLookup func(id string) (*ipset, bool)

// compileRules translates the rules of one direction of a policy. problems say which rules block more than they were asked to.
func compileRules(list []*proto.Rule, inbound bool, families []family, set setLookup) (rules []rule, problems []string) {
	for i, in := range list {
		if in == nil {
			continue
		}
		r, problem := compileRule(in, inbound, families, set)
		if problem != "" {
			problems = append(problems, fmt.Sprintf("rule %d: %s", i, problem))
		}
		if len(r.boxes) > 0 {
			rules = append(rules, r)
		}
	}
	return rules, problems
}

// compileRule translates a rule. What cannot be expressed is left out of the match, and the rule is closed: it then allows nothing,
// or blocks whatever the rest of it matches.
func compileRule(in *proto.Rule, inbound bool, families []family, set setLookup) (rule, string) {
	var causes []string
	var perFamily [][]box
	for _, f := range families {
		m := &matcher{family: f, set: set, inbound: inbound}
		boxes := m.match(in)
		for _, p := range m.problems {
			if !slices.Contains(causes, p) {
				causes = append(causes, p)
			}
		}
		perFamily = append(perFamily, boxes)
	}
	r := rule{action: proto.ActionOf(in), boxes: joinFamilies(families, perFamily)}
	switch r.action {
	case actionAllow, actionDeny, actionPass, actionLog:
	default:
		causes = append(causes, fmt.Sprintf("unknown action %q", in.GetAction()))
	}
	if r.action == actionLog { // HNS cannot log; the packet goes on as if there were no rule
		return rule{}, ""
	}
	if len(causes) == 0 {
		return r, ""
	}
	cause := strings.Join(causes, ", ")
	if r.action == actionAllow {
		return rule{}, cause + ": the rule allows nothing"
	}
	r.action = actionDeny
	return r, cause + ": the rule blocks whatever the rest of it matches"
}

// joinFamilies is one list for all families. A box without addresses is for both of them, so if the families differ it gets the
// net of all addresses of its own.
func joinFamilies(families []family, perFamily [][]box) []box {
	if len(families) == 1 || len(perFamily[0]) > 0 && reflect.DeepEqual(perFamily[0], perFamily[1]) &&
		!slices.ContainsFunc(perFamily[0], func(b box) bool { return !b.anyAddress() }) {
		return perFamily[0]
	}
	var all []box
	for i, f := range families {
		for _, b := range perFamily[i] {
			if b.anyAddress() {
				b.remote = netList{f.everything()}
			}
			all = append(all, b)
		}
	}
	return all
}

// matcher translates the match of one rule for one family.
type matcher struct {
	family   family
	inbound  bool
	set      setLookup
	problems []string
}

func (m *matcher) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// side is one side of a match: source or destination.
type side struct {
	nets  netList // nil: any
	ports []ended // any of them; nil: any port
}

// ended is ports, of some addresses only if nets is not nil.
type ended struct {
	protocol uint16 // 0: the rule's
	nets     netList
	ports    portList
}

// match returns boxes any of which a packet must be in; none: no packet of the family matches.
func (m *matcher) match(in *proto.Rule) []box {
	if !m.concerned(in) {
		return nil
	}
	protocol, possible := m.protocol(in)
	src, some := m.addresses(in.GetSrcNet(), in.GetNotSrcNet(), in.GetSrcIpSetIds(), in.GetNotSrcIpSetIds())
	dst, any := m.addresses(in.GetDstNet(), in.GetNotDstNet(), in.GetDstIpSetIds(), in.GetNotDstIpSetIds())
	from, to := side{nets: src}, side{nets: dst}
	m.ports(in, protocol, &from, &to)
	protocol, fits := m.icmp(in, protocol)
	m.http(in)
	if !possible || !some || !any || !fits {
		return nil
	}
	return m.product(protocol, from, to)
}

// concerned reports whether a rule is about the family at all: by its IP version, or because each net of some list is of the other one, as
// in Felix.
func (m *matcher) concerned(in *proto.Rule) bool {
	if v := in.GetIpVersion(); v != proto.IPVersion_ANY && int(v) != int(m.family) {
		return false
	}
	for _, nets := range [][]string{in.GetSrcNet(), in.GetDstNet(), in.GetNotSrcNet(), in.GetNotDstNet()} {
		other := func(text string) bool {
			p, err := proto.ParseNet(text)
			return err == nil && familyOf(p) != m.family
		}
		if len(nets) > 0 && !slices.ContainsFunc(nets, func(text string) bool { return !other(text) }) {
			return false
		}
	}
	return true
}

// protocol returns the rule's, 0 for any. It is false if no packet has it.
func (m *matcher) protocol(in *proto.Rule) (uint16, bool) {
	want, known := proto.NumberOf(in.GetProtocol())
	if !known {
		m.problem("protocol %v does not exist", in.GetProtocol())
	}
	not, known := proto.NumberOf(in.GetNotProtocol())
	switch {
	case !known:
		m.problem("protocol %v does not exist", in.GetNotProtocol())
	case not == 0:
	case want == not:
		return uint16(want), false
	case want == 0 && len(in.GetDstIpPortSetIds()) > 0: // the services' ports have protocols: see there
	case want == 0:
		m.problem("HNS cannot match all protocols but one")
	}
	return uint16(want), true
}

// addresses returns the nets that lists and sets leave; nil: all. It is false if none is left.
func (m *matcher) addresses(nets, notNets, sets, notSets []string) (netList, bool) {
	var list netList
	possible := true
	restrict := func(to netList) { possible = possible && len(to) > 0 && meet(&list, to, netList.intersect) }
	if parsed, ok := m.nets(nets); ok && len(nets) > 0 {
		restrict(netsOf(parsed))
	}
	for _, id := range sets {
		if s := m.addressSet(id); s != nil {
			restrict(s.nets(m.family))
		}
	}
	var minus []netip.Prefix
	if parsed, ok := m.nets(notNets); ok {
		minus = parsed
	}
	for _, id := range notSets {
		if s := m.addressSet(id); s != nil {
			minus = append(minus, s.nets(m.family)...)
		}
	}
	if !possible || len(minus) == 0 {
		return list, possible
	}
	if list == nil {
		list = netList{m.family.everything()}
	}
	left := list.subtract(netsOf(minus))
	if len(left) > maxNets {
		m.problem("an exception of %d nets leaves %d, more than %d", len(minus), len(left), maxNets)
		return list, true
	}
	return left, len(left) > 0
}

// maxNets is how many nets an exception may leave.
const maxNets = 20000

// nets parses those of the family. It is false if one does not parse.
func (m *matcher) nets(texts []string) ([]netip.Prefix, bool) {
	var list []netip.Prefix
	for _, text := range texts {
		p, err := proto.ParseNet(text)
		if err != nil {
			m.problem("net %q: %v", text, err)
			return nil, false
		}
		if familyOf(p) == m.family {
			list = append(list, p)
		}
	}
	return list, true
}

func (m *matcher) addressSet(id string) *ipset {
	s, usable := m.set(id)
	switch {
	case !usable:
		m.problem("IP set %q is not there, or cannot be used", id)
	case s.kind == proto.IPSetUpdate_IP_AND_PORT:
		m.problem("IP set %q does not hold addresses", id)
	default:
		return s
	}
	return nil
}

func (m *matcher) portSet(id string) *ipset {
	s, usable := m.set(id)
	switch {
	case !usable:
		m.problem("IP set %q is not there, or cannot be used", id)
	case s.kind != proto.IPSetUpdate_IP_AND_PORT:
		m.problem("IP set %q does not hold addresses with ports", id)
	default:
		return s
	}
	return nil
}

// ports fills in the ports of both sides. When a part cannot be had, none is: half of a list would be less than was asked.
func (m *matcher) ports(in *proto.Rule, protocol uint16, from, to *side) {
	before := len(m.problems)
	if len(in.GetNotSrcNamedPortIpSetIds())+len(in.GetNotDstNamedPortIpSetIds()) > 0 {
		m.problem("HNS cannot match all but the ports of a set")
	}
	from.ports = m.endedPorts(protocol, in.GetSrcPorts(), in.GetNotSrcPorts(), in.GetSrcNamedPortIpSetIds())
	to.ports = m.endedPorts(protocol, in.GetDstPorts(), in.GetNotDstPorts(), in.GetDstNamedPortIpSetIds())
	asked := len(in.GetNotSrcNamedPortIpSetIds())+len(in.GetNotDstNamedPortIpSetIds()) > 0 || from.ports != nil || to.ports != nil
	if asked && protocol != protoTCP && protocol != protoUDP {
		m.problem("HNS matches ports of TCP and UDP only")
	}
	m.services(in, protocol, to)
	if len(m.problems) > before {
		from.ports, to.ports = nil, nil
	}
}

// endedPorts is what ranges, or named ports, minus other ranges are; nil: any port.
func (m *matcher) endedPorts(protocol uint16, ranges, not []*proto.PortRange, sets []string) []ended {
	if len(ranges)+len(not)+len(sets) == 0 {
		return nil
	}
	minus := portsOf(m.ranges(not))
	list := []ended{} // not nil: something was asked
	add := func(e ended) {
		if e.ports = e.ports.subtract(minus); len(e.ports) > 0 {
			list = append(list, e)
		}
	}
	if len(ranges) > 0 {
		add(ended{ports: portsOf(m.ranges(ranges))})
	} else if len(sets) == 0 {
		add(ended{ports: allPorts})
	}
	for _, id := range sets {
		if s := m.portSet(id); s != nil {
			for _, e := range s.ended(m.family) {
				if e.protocol == protocol {
					add(e)
				}
			}
		}
	}
	return list
}

func (m *matcher) ranges(in []*proto.PortRange) []hns.PortRange {
	var list []hns.PortRange
	for _, r := range in {
		first, last := r.GetFirst(), r.GetLast()
		if first < 0 || first > last || last > 65535 {
			m.problem("%d-%d is no range of ports", first, last)
			continue
		}
		list = append(list, hns.PortRange{First: uint16(first), Last: uint16(last)})
	}
	return list
}

// services matches services' ports, each of whose members has its own protocol.
func (m *matcher) services(in *proto.Rule, protocol uint16, to *side) {
	ids := in.GetDstIpPortSetIds()
	if len(ids) == 0 {
		return
	}
	if len(ids) > 1 || to.ports != nil {
		m.problem("a service's ports cannot be matched together with other ports")
		return
	}
	s := m.portSet(ids[0])
	if s == nil {
		return
	}
	to.ports = []ended{}
	not, _ := proto.NumberOf(in.GetNotProtocol())
	for _, e := range s.ended(m.family) {
		switch {
		case protocol != 0 && e.protocol != protocol, e.protocol == uint16(not):
		case e.protocol != protoTCP && e.protocol != protoUDP:
			m.problem("HNS matches ports of TCP and UDP only, IP set %q has others", ids[0])
		default:
			to.ports = append(to.ports, e)
		}
	}
}

// icmp returns the protocol that a rule on types of ICMP has. It is false if the family has no such packets.
func (m *matcher) icmp(in *proto.Rule, protocol uint16) (uint16, bool) {
	if in.GetIcmp() == nil && in.GetNotIcmp() == nil {
		return protocol, true
	}
	own, other := uint16(protoICMP), uint16(protoICMPv6)
	if m.family == 6 {
		own, other = other, own
	}
	if protocol == other {
		return protocol, false
	}
	m.problem("HNS cannot match types and codes of ICMP")
	if protocol == 0 && in.GetNotIcmp() == nil {
		return own, true
	}
	return protocol, true
}

func (m *matcher) http(in *proto.Rule) {
	if h := in.GetHttpMatch(); h != nil && (len(h.GetMethods()) > 0 || len(h.GetPaths()) > 0) {
		m.problem("HTTP cannot be matched here")
	}
}

// product is the boxes of all combinations of both sides' ports.
func (m *matcher) product(protocol uint16, from, to side) []box {
	var out []box
	for _, s := range alternatives(from) {
		for _, d := range alternatives(to) {
			b := box{protocol: protocol}
			if b.protocol == 0 {
				b.protocol = d.protocol
			}
			if m.inbound {
				b.remote, b.remotePorts, b.local, b.localPorts = s.nets, s.ports, d.nets, d.ports
			} else {
				b.local, b.localPorts, b.remote, b.remotePorts = s.nets, s.ports, d.nets, d.ports
			}
			out = append(out, b)
		}
	}
	return out
}

// alternatives joins the addresses of a side with those of its ports.
func alternatives(s side) []ended {
	if s.ports == nil {
		return []ended{{nets: s.nets}}
	}
	var out []ended
	for _, e := range s.ports {
		nets := s.nets
		if e.nets != nil && !meet(&nets, e.nets, netList.intersect) {
			continue
		}
		out = append(out, ended{protocol: e.protocol, nets: nets, ports: e.ports})
	}
	return out
}
