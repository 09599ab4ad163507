package rules

import (
	"fmt"
	"strings"

	"contiv.dev/vswitch/dataplane/driver/policyname"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// Env holds the objects that rules refer to.
type Env struct {
	// Set returns the type of a set of the family, or false if the set does not exist or cannot be programmed.
	Set func(id string) (table.SetType, bool)
}

// Prefixes of reports: a policy of the receiving workload (ingress) or of the sending workload (egress) has dropped a packet.
const (
	ReportIngress = "contiv ingress"
	ReportEgress  = "contiv egress"
)

// Problem describes why a rule blocks more than specified.
type Problem struct {
	Rule  int // position in its list, from 0
	Cause string
	// Sets are the unusable sets that the rule refers to. A change of these sets may solve the problem.
	Sets []string
}

func (p Problem) String() string { return fmt.Sprintf("rule %d: %s", p.Rule, p.Cause) }

// PolicyChainName returns the name of the chain of a policy of a tier. prefix is PolicyInboundPfx or PolicyOutboundPfx. A policy of tier
// "default" keeps its name; in other tiers the name is hashed together with the tier's name.
func PolicyChainName(prefix, tier, name string) string {
	if tier == "" || tier == DefaultTier {
		return ChainName(prefix, name)
	}
	return ChainName(prefix, tier+"\x00"+name) // NUL occurs in no name, and forces the hash
}

// DefaultTier is the tier of policies that do not name one.
const DefaultTier = policyname.DefaultTier

// ProfileChainName returns the name of the chain of a profile. prefix is ProfileInboundPfx or ProfileOutboundPfx.
func ProfileChainName(prefix, name string) string { return ChainName(prefix, name) }

func (r *renderer) PolicyChain(f table.Family, name string, rules []*proto.Rule, env Env) (table.Chain, []Problem) {
	chain := table.Chain{Name: name, Rules: make([]table.Rule, 0, len(rules))}
	var problems []Problem
	report := ReportEgress
	if strings.HasPrefix(name, r.Own(PolicyInboundPfx)) || strings.HasPrefix(name, r.Own(ProfileInboundPfx)) {
		report = ReportIngress
	}
	for i, in := range rules {
		if in == nil || !forFamily(in, f) {
			continue
		}
		m := newMatcher(f, in, env)
		if m.never {
			continue
		}
		var cause string
		if r.ReportDenied && proto.ActionOf(in) == "deny" && len(m.problems) == 0 {
			chain.Rules = m.appendTo(chain.Rules, "", []table.Action{{Verb: table.Report, Prefix: report}})
			m = newMatcher(f, in, env)
		}
		chain.Rules, cause = r.policyRule(chain.Rules, in, &m)
		if cause != "" {
			problems = append(problems, Problem{Rule: i, Cause: cause, Sets: m.badSets})
		}
	}
	return chain, problems
}

// policyRule appends one rule, rendered to block if it has problems. The string is the cause, or "".
func (r *renderer) policyRule(list []table.Rule, in *proto.Rule, m *matcher) ([]table.Rule, string) {
	comment := ""
	if id := in.GetRuleId(); id != "" {
		comment = RuleComment(id)
	}
	if len(m.problems) == 0 {
		actions, known := r.policyActions(proto.ActionOf(in))
		if !known {
			return m.appendTo(list, comment, actions), fmt.Sprintf("unknown action %q: drops what it matches", in.GetAction())
		}
		return m.appendTo(list, comment, actions), ""
	}
	cause := strings.Join(m.problems, ", ")
	switch proto.ActionOf(in) {
	case "allow":
		return list, cause + ": the rule allows nothing"
	case "log":
		return list, cause + ": the rule logs nothing"
	}
	// The conditions that can be matched limit the effect.
	return m.appendTo(list, comment, []table.Action{act(table.Drop)}), cause + ": the rule drops whatever the rest of it matches"
}

// RuleComment returns the comment of the rules that a policy rule with this ID (proto.Rule.RuleId) is rendered to.
func RuleComment(id string) string { return safeComment("rule " + id) }

func (r *renderer) policyActions(action string) ([]table.Action, bool) {
	switch action {
	case "allow":
		return []table.Action{setMark(r.IptablesMarkAccept), act(table.Return)}, true
	case "pass":
		return []table.Action{setMark(r.IptablesMarkPass), act(table.Return)}, true
	case "deny":
		return []table.Action{act(table.Drop)}, true
	case "log":
		return []table.Action{{Verb: table.Log, Prefix: r.IptablesLogPrefix + ": "}}, true
	}
	return []table.Action{act(table.Drop)}, false
}

// forFamily reports whether a rule applies to a family. It does not if its IP version is the other one, or if one of its lists has only
// prefixes of the other family (as in Felix; so a rule "not from 2001:db8::/32" does not apply to IPv4).
func forFamily(in *proto.Rule, f table.Family) bool {
	if v := in.GetIpVersion(); v != proto.IPVersion_ANY && int(v) != int(f) {
		return false
	}
	for _, nets := range [][]string{in.GetSrcNet(), in.GetDstNet(), in.GetNotSrcNet(), in.GetNotDstNet()} {
		if onlyOther(nets, f) {
			return false
		}
	}
	return true
}
