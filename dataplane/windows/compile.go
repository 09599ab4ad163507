package windataplane

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/proto"
)

// The actions of a rule.
const (
	actionAllow = "allow"
	actionDeny  = "deny"
	actionPass  = "pass"
	actionLog   = "log"
)

// Protocol numbers. TCP and UDP are the only protocols whose ports HNS can match.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// rule is a rule of a policy in a form that HNS supports.
type rule struct {
	action string // actionAllow, actionDeny, actionPass
	boxes  []box  // alternatives; none: the rule matches nothing
}

// setLookup returns a set that rules may refer to; false: the set does not exist, or cannot be used.
type setLookup func(id string) (*ipset, bool)

// compileRules translates the rules of one direction of a policy. problems describes the rules that block more than they specify.
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

// compileRule translates a rule. If HNS cannot express a part of the match, the part is omitted and the rule is closed: an allow rule allows
// nothing, another rule blocks all packets that the rest of it matches.
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
	if r.action == actionLog { // HNS cannot log; the packet continues as if the rule did not exist
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

// joinFamilies joins the boxes of all families in one list. A box without addresses applies to both families. So if the families differ, it
// gets the net of all addresses of its own family.
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

// ended holds ports; if nets is not nil, only those of the addresses in nets.
type ended struct {
	protocol uint16 // 0: the protocol of the rule
	nets     netList
	ports    portList
}

// match returns the alternative boxes of a rule; none: no packet of the family matches.
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

// concerned reports whether a rule applies to the family at all. It does not if it has another IP version, or if one of its lists has only
// nets of the other family, as in Felix.
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

// protocol returns the protocol of the rule, 0 for any. It returns false if no packet has it.
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
	case want == 0 && len(in.GetDstIpPortSetIds()) > 0: // each service port has its own protocol: see services
	case want == 0:
		m.problem("HNS cannot match all protocols except one")
	}
	return uint16(want), true
}

// addresses returns the nets that remain after all lists and sets; nil: all. It returns false if none remains.
func (m *matcher) addresses(nets, notNets, sets, notSets []string) (netList, bool) {
	var list netList
	possible := true
	restrict := func(to netList) { possible = possible && len(to) > 0 && intersectList(&list, to, netList.intersect) }
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
	left := list.subtract(netsOf(minus), maxNets)
	if len(left) > maxNets {
		m.problem("an exception of %d nets leaves more than %d", len(minus), maxNets)
		return list, true
	}
	return left, len(left) > 0
}

// maxNets is the largest number of nets that may remain after an exception.
const maxNets = 20000

// nets parses the nets of the family. It returns false if one cannot be parsed.
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
