package plugin_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The model of network policy: it makes the same decisions as core/judge.c, in the simplest way.
type (
	modelSet    struct{ members []modelMember }
	modelMember struct {
		net   netip.Prefix
		proto uint8
		port  uint16
	}
	modelRule struct {
		action, family, proto, flags, icmpType, icmpCode uint8
		source, dest, service                            uint64
		ports                                            [][2]uint16
	}
	modelPolicy [2][]modelRule
	modelItem   struct {
		policy uint64
		action uint8
	}
	modelPolice struct {
		otherwise [2]uint8
		items     [2][]modelItem
	}
	modelFlow struct {
		iface      int
		src, dst   netip.Addr
		proto      uint8
		port       uint16
		icmp, code uint8
	}
	model struct {
		sets     map[uint64]*modelSet
		policies map[uint64]modelPolicy
		police   map[int]modelPolice
	}
)

const (
	ruleAllow, ruleDeny, rulePass = 1, 2, 3
	podA, podB, hostIf            = 1, 2, 3
)

var (
	modelPods = map[netip.Addr]int{
		netip.MustParseAddr("10.1.1.2"): podA, netip.MustParseAddr("fd00::2"): podA,
		netip.MustParseAddr("10.1.1.3"): podB, netip.MustParseAddr("fd00::3"): podB,
	}
	modelHost = map[netip.Addr]bool{netip.MustParseAddr("172.30.1.2"): true, netip.MustParseAddr("fd30::2"): true}
)

func (m *model) inNetworks(set uint64, a netip.Addr) (is, known bool) {
	s := m.sets[set]
	if s == nil || set%2 == 0 {
		return false, false
	}
	return slices.ContainsFunc(s.members, func(e modelMember) bool { return e.net.Contains(a) }), true
}

func (m *model) inPorts(set uint64, f modelFlow) (is, known bool) {
	s := m.sets[set]
	if s == nil || set%2 == 1 {
		return false, false
	}
	return slices.Contains(s.members, modelMember{netip.PrefixFrom(f.dst, f.dst.BitLen()), f.proto, f.port}), true
}

// action returns the action of a rule for a flow; 0: the rule does not match.
func (m *model) action(r modelRule, f modelFlow) uint8 {
	family := uint8(4)
	if f.dst.Is6() {
		family = 6
	}
	inRange := func(p [2]uint16) bool { return p[0] <= f.port && f.port <= p[1] }
	switch {
	case r.proto != 0 && r.proto != f.proto, r.family != 0 && r.family != family,
		r.flags&1 != 0 && r.icmpType != f.icmp, r.flags&2 != 0 && r.icmpCode != f.code,
		len(r.ports) > 0 && !slices.ContainsFunc(r.ports, inRange):
		return 0
	}
	sure := true
	for _, set := range []struct {
		id uint64
		in func() (is, known bool)
	}{
		{r.source, func() (bool, bool) { return m.inNetworks(r.source, f.src) }},
		{r.dest, func() (bool, bool) { return m.inNetworks(r.dest, f.dst) }},
		{r.service, func() (bool, bool) { return m.inPorts(r.service, f) }},
	} {
		if set.id == 0 {
			continue
		}
		is, known := set.in()
		if known && !is {
			return 0
		}
		sure = sure && known
	}
	switch {
	case sure:
		return r.action
	case r.action == ruleAllow:
		return 0
	}
	return ruleDeny
}

func (m *model) side(iface, side int, f modelFlow, toNode bool) uint8 {
	p := m.police[iface]
	var tier uint8   // the decision of a rule of this tier
	applies := false // this tier has a policy that applies
	for _, item := range p.items[side] {
		if item.policy == 0 {
			if tier == 0 {
				tier = item.action
			}
			if toNode && !applies {
				tier = rulePass
			}
			if tier != rulePass {
				return tier
			}
			tier, applies = 0, false
			continue
		}
		if toNode && item.action == 0 && tier == 0 {
			return ruleAllow
		}
		applies = true
		for _, r := range m.policies[item.policy][side] {
			if tier == 0 {
				tier = m.action(r, f)
			}
		}
	}
	if toNode {
		return ruleAllow
	}
	return p.otherwise[side]
}

// forNode reports whether a policy of a pod applies to traffic from the pod to its node.
func (p modelPolice) forNode() bool {
	return slices.ContainsFunc(p.items[1], func(i modelItem) bool { return i.policy != 0 && i.action != 0 })
}

// nodes returns the decision for packets between a pod and its node; empty: the packet is not one of those.
func (m *model) nodes(f modelFlow) string {
	pod := f.iface == podA || f.iface == podB
	neighbours := f.proto == 58 && (f.icmp == 133 || f.icmp == 135 || f.icmp == 136)
	switch to, local := modelPods[f.dst]; {
	case f.iface == hostIf && modelHost[f.src] && local && m.police[to].forNode():
		return "allowed" // so that it gets a connection, to which the answers belong
	case f.iface == hostIf && modelHost[f.src], modelHost[f.dst] && (!pod || neighbours || !m.police[f.iface].forNode()):
		return "free"
	case !modelHost[f.dst]:
		return ""
	case m.side(f.iface, 1, f, true) == ruleAllow:
		return "allowed"
	}
	return "denied"
}

func (m *model) evaluate(f modelFlow) string {
	to, local := modelPods[f.dst]
	restricts := func(p modelPolice) bool {
		return len(p.items[0])+len(p.items[1]) > 0 || p.otherwise != [2]uint8{ruleAllow, ruleAllow}
	}
	if local && to == f.iface || len(m.police) == 0 {
		return "free"
	}
	if result := m.nodes(f); result != "" {
		return result
	}
	result := "free"
	if p, has := m.police[f.iface]; has && restricts(p) {
		if m.side(f.iface, 1, f, false) != ruleAllow {
			return "denied"
		}
		result = "allowed"
	}
	if p, has := m.police[to]; local && has && restricts(p) {
		if m.side(to, 0, f, false) != ruleAllow {
			return "denied"
		}
		result = "allowed"
	}
	return result
}

// world returns a random world: the input lines for the program, including flows, and the model's decisions for these
// flows.
func (m *model) world(r *rand.Rand) (script strings.Builder, want []string) {
	*m = model{map[uint64]*modelSet{}, map[uint64]modelPolicy{}, map[int]modelPolice{}}
	addrs := []string{"10.1.1.2", "10.1.1.3", "10.1.2.2", "8.8.8.8", "172.30.1.2", "fd00::2", "fd00::3", "fd00:2::2", "2001:db8::8", "fd30::2"}
	some := func() netip.Addr { return netip.MustParseAddr(addrs[r.IntN(len(addrs))]) }
	protos, ports := []uint8{0, 6, 17, 132, 1, 58, 47}, []uint16{53, 80, 81, 8080}
	for id := uint64(1); id <= 8; id++ {
		if r.IntN(4) == 0 {
			continue // the set is unknown
		}
		s := &modelSet{}
		m.sets[id] = s
		fmt.Fprintf(&script, "set %d %d\n", id, 2-id%2)
		for range r.IntN(6) {
			a := some()
			e := modelMember{net: netip.PrefixFrom(a, r.IntN(a.BitLen()+1)).Masked()}
			if id%2 == 0 {
				e = modelMember{netip.PrefixFrom(a, a.BitLen()), protos[1+r.IntN(3)], ports[r.IntN(4)]}
			}
			s.members = append(s.members, e)
			fmt.Fprintf(&script, "member %d %s %d %d %d\n", id, e.net.Addr(), e.net.Bits(), e.proto, e.port)
		}
	}
	for id := uint64(1); id <= 4; id++ {
		var p modelPolicy
		lines := ""
		for side := range p {
			n := r.IntN(4)
			if r.IntN(4) == 0 {
				n = r.IntN(60) // enough for the index of rules to have port tables
			}
			for range n {
				rule := m.rule(r, protos, ports)
				if len(p[side]) > 0 && r.IntN(3) > 0 { // like an earlier rule, except for action and ports
					like := p[side][r.IntN(len(p[side]))]
					like.action = rule.action
					if len(like.ports) > 0 {
						first := ports[r.IntN(4)]
						like.ports = [][2]uint16{{first, first + uint16(r.IntN(3))}}
					}
					rule = like
				}
				p[side] = append(p[side], rule)
				lines += fmt.Sprintf("%d %d %d %d %d %d %d %d %d %d", rule.action, rule.family, rule.proto, rule.flags, rule.icmpType,
					rule.icmpCode, rule.source, rule.dest, rule.service, len(rule.ports))
				for _, ports := range rule.ports {
					lines += fmt.Sprintf(" %d %d", ports[0], ports[1])
				}
				lines += "\n"
			}
		}
		m.policies[id] = p
		fmt.Fprintf(&script, "policy %d %d %d\n%s", id, len(p[0]), len(p[1]), lines)
	}
	for _, iface := range []int{podA, podB} {
		if r.IntN(4) == 0 {
			continue
		}
		var p modelPolice
		lines := ""
		for side := range p.items {
			p.otherwise[side] = uint8(1 + r.IntN(2))
			for range r.IntN(3) {
				for range r.IntN(3) {
					p.items[side] = append(p.items[side], modelItem{policy: uint64(1 + r.IntN(4)), action: uint8(side * rulePass * r.IntN(2))})
				}
				p.items[side] = append(p.items[side], modelItem{action: uint8(1 + r.IntN(3))})
			}
			for _, item := range p.items[side] {
				lines += fmt.Sprintf("%d %d\n", item.policy, item.action)
			}
		}
		m.police[iface] = p
		fmt.Fprintf(&script, "police %d %d %d %d %d\n%s", iface, p.otherwise[0], p.otherwise[1], len(p.items[0]), len(p.items[1]), lines)
	}
	for range 60 {
		f := modelFlow{src: some(), dst: some(), proto: protos[1+r.IntN(6)], iface: 5}
		for f.dst.BitLen() != f.src.BitLen() {
			f.dst = some()
		}
		if pod, local := modelPods[f.src]; local {
			f.iface = pod
		} else if modelHost[f.src] {
			f.iface = 3 + r.IntN(2)
		}
		switch f.proto {
		case 6, 17, 132:
			f.port = ports[r.IntN(4)]
		case 1, 58:
			f.icmp, f.code = uint8(r.IntN(3)), uint8(r.IntN(2))
			if r.IntN(4) == 0 {
				f.icmp = uint8(132 + r.IntN(6)) // neighbour discovery
			}
		}
		fmt.Fprintf(&script, "flow %d %s %s %d %d %d %d\n", f.iface, f.src, f.dst, f.proto, f.port, f.icmp, f.code)
		want = append(want, m.evaluate(f))
	}
	return script, want
}

func (m *model) rule(r *rand.Rand, protos []uint8, ports []uint16) modelRule {
	rule := modelRule{action: uint8(1 + r.IntN(3)), family: []uint8{0, 0, 4, 6}[r.IntN(4)], proto: protos[r.IntN(len(protos))]}
	set := func() uint64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return uint64(1 + r.IntN(8))
	}
	rule.source, rule.dest = set(), set()
	switch rule.proto {
	case 6, 17, 132:
		if r.IntN(2) == 0 {
			rule.service = set()
		}
		for range r.IntN(3) {
			first := ports[r.IntN(4)]
			rule.ports = append(rule.ports, [2]uint16{first, first + uint16(r.IntN(3))})
		}
	case 1, 58:
		rule.flags = []uint8{0, 1, 3}[r.IntN(3)]
		rule.icmpType, rule.icmpCode = uint8(r.IntN(3)), uint8(r.IntN(2))
	}
	return rule
}

// agreesWithModel lets the core judge random worlds, and compares the results with the model.
func agreesWithModel(t *testing.T, program string) {
	t.Helper()
	counts := map[string]int{}
	for seed := range uint64(150) {
		var m model
		script, want := m.world(rand.New(rand.NewPCG(seed, 4711)))
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Stdin = strings.NewReader(script.String())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, out)
		}
		got := strings.Fields(string(out))
		if len(got) != len(want) {
			t.Fatalf("seed %d: %d answers for %d flows", seed, len(got), len(want))
		}
		flows := strings.Split(script.String()[strings.Index(script.String(), "flow"):], "\n")
		for i := range want {
			counts[want[i]]++
			if got[i] != want[i] {
				t.Fatalf("seed %d: %s: the core says %s, the model %s\n%s", seed, flows[i], got[i], want[i], script.String())
			}
		}
	}
	for _, verdict := range []string{"free", "allowed", "denied"} {
		if counts[verdict] < 500 {
			t.Errorf("only %d flows of the random worlds are %s", counts[verdict], verdict)
		}
	}
	t.Logf("flows: %v", counts)
}
