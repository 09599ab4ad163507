package vpp

import (
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// ID returns the number of a policy in VPP.
func ID(id model.PolicyID) uint64 { return policyID(id) }

// Counts adds up VPP's counters, by origin, in the order of the rules. decided is in the order of VPP's rules, which follow the order of
// list. If VPP has another version of the policy, the result is nil.
func Counts(list []model.Rule, decided []uint64) []renderer.Count {
	counts, origin := renderer.Origins(list)
	at := 0
	for i, rule := range list {
		n := max(1, (len(rule.Ports)+portsOfRule-1)/portsOfRule)
		if at+n > len(decided) {
			return nil
		}
		for _, c := range decided[at : at+n] {
			counts[origin[i]].Decided += c
		}
		at += n
	}
	if at != len(decided) {
		return nil
	}
	return counts
}
