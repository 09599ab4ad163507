package model

import "fmt"

// MaxNamedRules is the maximum number of rules that peers and named ports make of the rules of a policy: as many as VPP has room for. Each
// peer with each named port is a rule, and in egress has a set of its own, so that a small object could make millions of them.
const MaxNamedRules = 16384

// NamedRules counts the rules that peers and named ports make.
type NamedRules int

// Add adds a rule. If the policy has too many rules then, Add does not add it, and returns a text for users with the numbers.
func (n *NamedRules) Add(r *PolicyRule) (problem string) {
	named := 0
	for _, p := range r.GetPorts() {
		if p.GetName() != "" {
			named++
		}
	}
	rules := named * max(len(r.GetPeers()), 1)
	if r.GetAction() == PolicyRule_PASS {
		rules *= 3 // the others deny addresses that several pods claim
	}
	room := MaxNamedRules - int(*n)
	if rules <= room {
		*n += NamedRules(rules)
		return ""
	}
	return fmt.Sprintf("its peers and named ports make %d rules, and the policy has room for %d of at most %d; use numbers of ports, or several policies",
		rules, room, MaxNamedRules)
}
