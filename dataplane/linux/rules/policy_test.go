package rules_test

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// verdict returns the result of a policy with one rule, then a profile that allows everything, for a packet to web. The rule must be the
// whole policy of its tier, so "not matched" is a drop; with pass the profile decides.
func verdict(t *testing.T, r *proto.Rule, p rulestest.Packet, sets ...func(*node)) (string, []rules.Problem) {
	t.Helper()
	n := newNode(t, rules.Config{})
	for _, set := range sets {
		set(n)
	}
	chain := n.policy(rules.PolicyInboundPfx, "one", r)
	problems := n.problems
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)},
		Profiles: n.openProfile().Profiles}, n.openProfile())
	n.apply()
	out := n.send(p)
	if out.Verdict == "accept" && !out.Accepted {
		t.Fatalf("the packet fell through all rules: %+v", out)
	}
	return out.Verdict, problems
}

func (n *node) withSet(id string, kind table.SetType, members ...table.Member) {
	n.set(id, kind, members...)
}

// matchCase is a rule without action, with packets that it matches and packets that it does not.
type matchCase struct {
	name     string
	rule     *proto.Rule
	yes, not []rulestest.Packet
}

func toWeb(f table.Family) rulestest.Packet {
	return tcp("eth0", "caliweb", farAddr[f], webAddr[f], 80)
}

func with(p rulestest.Packet, change func(*rulestest.Packet)) rulestest.Packet {
	change(&p)
	return p
}

func toPort(port uint16) rulestest.Packet {
	return with(toWeb(4), func(p *rulestest.Packet) { p.DstPort = port })
}

// matchCases returns the cases that all drivers share.
func matchCases() []matchCase {
	var cases []matchCase
	for _, c := range drivertest.MatchCases() {
		cases = append(cases, matchCase{c.Name, c.Rule, forwarded(c.Yes), forwarded(c.No)})
	}
	return cases
}

func forwarded(list []drivertest.Packet) []rulestest.Packet {
	var out []rulestest.Packet
	for _, p := range list {
		out = append(out, rulestest.Packet{In: "eth0", Out: "caliweb", Src: p.Src, Dst: p.Dst, Proto: p.Proto, SrcPort: p.SrcPort,
			DstPort: p.DstPort, ICMPType: p.ICMPType, ICMPCode: p.ICMPCode})
	}
	return out
}

// usualSets creates the sets that the cases use.
func usualSets(n *node) {
	for _, s := range drivertest.UsualSets() {
		var members []table.Member
		for _, text := range s.GetMembers() {
			m, err := proto.ParseMember(s.GetType(), text)
			if err != nil {
				n.t.Fatal(err)
			}
			members = append(members, table.Member{Net: m.Net, Proto: m.Protocol, Port: m.Port})
		}
		n.withSet(s.GetId(), table.SetType(s.GetType()), members...)
	}
}

func TestMatches(t *testing.T) {
	for _, c := range matchCases() {
		for action, want := range map[string][2]string{"allow": {"accept", "drop"}, "": {"accept", "drop"}, "pass": {"accept",
			"drop"}, "next-tier": {"accept", "drop"}} {
			c.rule.Action = action
			for i, packets := range [][]rulestest.Packet{c.yes, c.not} {
				for _, p := range packets {
					got, problems := verdict(t, c.rule, p, usualSets)
					if got != want[i] || len(problems) > 0 {
						t.Errorf("%s, action %q: %s, want %s (%v)\n%+v", c.name, action, got, want[i], problems, p)
					}
				}
			}
		}
	}
}

// denyThen returns the result of a rule, then one that allows everything, for a packet.
func denyThen(t *testing.T, r *proto.Rule, p rulestest.Packet) string {
	t.Helper()
	n := newNode(t, rules.Config{})
	usualSets(n)
	chain := n.policy(rules.PolicyInboundPfx, "two", r, &proto.Rule{Action: "allow"})
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)}}, n.openProfile())
	n.apply()
	return n.send(p).Verdict
}

func TestDenyMatches(t *testing.T) {
	for _, c := range matchCases() {
		c.rule.Action = "deny"
		for _, p := range c.yes {
			if got := denyThen(t, c.rule, p); got != "drop" {
				t.Errorf("deny %s: %s, want drop\n%+v", c.name, got, p)
			}
		}
		for _, p := range c.not {
			if got := denyThen(t, c.rule, p); got != "accept" {
				t.Errorf("deny %s: %s, want accept\n%+v", c.name, got, p)
			}
		}
	}
}

// TestFailClosed: a rule with any fault never allows more than specified. The bad rules would match the packet in the most permissive
// interpretation.
func TestFailClosed(t *testing.T) {
	bad := drivertest.BadRules()
	p := toWeb(4)
	for name, r := range bad {
		for _, action := range []string{"allow", "pass"} {
			r.Action = action
			got, problems := verdict(t, r, p, usualSets)
			if got != "drop" || len(problems) == 0 {
				t.Errorf("%s: %s: %s with problems %v, want drop with a problem", action, name, got, problems)
			}
		}
		switch name {
		case "ICMP type of TCP", "ICMP type out of range", "ports of ICMP":
			continue // checked below: their other matches need not hold for this packet
		}
		r.Action = "deny"
		if got := denyThen(t, r, p); got != "drop" {
			t.Errorf("deny: %s: %s, want drop", name, got)
		}
	}
	// The remaining conditions of a deny rule limit its effect.
	kept := proto.Rule{Action: "deny", SrcNet: []string{"10.0.0.0/8"}, DstIpSetIds: []string{"gone"}}
	if got := denyThen(t, &kept, p); got != "accept" {
		t.Errorf("deny from another net: %s, want accept", got)
	}
}

// TestBrokenPassDoesNotAllow: without the pass rule, the rest of its policy would allow what a later tier denies.
func TestBrokenPassDoesNotAllow(t *testing.T) {
	r := proto.Rule{Action: "pass", SrcIpSetIds: []string{"gone"}}
	if got := denyThen(t, &r, toWeb(4)); got != "drop" {
		t.Errorf("pass from a missing set, then allow: %s, want drop", got)
	}
}

func TestUnknownAction(t *testing.T) {
	r := proto.Rule{Action: "quarantine", Protocol: protocol("tcp"), DstPorts: ports(80)}
	got, problems := verdict(t, &r, toWeb(4))
	if got != "drop" || len(problems) == 0 || !strings.Contains(problems[0].String(), "quarantine") {
		t.Errorf("%s, %v; want drop and a problem that names the action", got, problems)
	}
	if got := denyThen(t, &r, toPort(81)); got != "accept" {
		t.Errorf("what it does not match: %s, want accept", got)
	}
}

func TestLog(t *testing.T) {
	n := newNode(t, rules.Config{IptablesLogPrefix: "audit"})
	chain := n.policy(rules.PolicyInboundPfx, "log", &proto.Rule{Action: "log", Protocol: protocol("tcp")}, allowTCP(80))
	n.workload("caliweb", webAddr, rules.Direction{Tiers: []rules.Tier{tier("t", chain)}}, n.openProfile())
	n.apply()
	out := n.send(toWeb(4))
	if out.Verdict != "accept" || len(out.Logged) != 1 || out.Logged[0] != "audit: " {
		t.Errorf("%s, logged %q; want accept and \"audit: \"", out.Verdict, out.Logged)
	}
}

func TestProblemsNameTheSets(t *testing.T) {
	_, problems := verdict(t, &proto.Rule{SrcIpSetIds: []string{"a", "far"}, NotDstIpSetIds: []string{"b"}}, toWeb(4), usualSets)
	if len(problems) == 0 || strings.Join(problems[0].Sets, ",") != "a,b" {
		t.Errorf("%v, want a problem with sets a and b", problems)
	}
}
