package vpp

import (
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// ID is the number of a policy in VPP.
func ID(id model.PolicyID) uint64 { return policyID(id) }

// Counts adds up what VPP has counted, by origin, in the order of the rules. decided is in the order of VPP's rules, which are those of rules. A
// policy that VPP has in another version has no counts.
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
