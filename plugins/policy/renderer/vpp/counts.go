package vpp

import (
	"contiv.dev/vswitch/plugins/policy/model"
)

// Count is how often the rules of one origin have decided.
type Count struct {
	Rule    string // where it was written, for example ingress[0]
	Action  model.Action
	Decided uint64
}

// ID is the number of a policy in VPP.
func ID(id model.PolicyID) uint64 { return policyID(id) }

// Counts adds up what VPP has counted, by origin, in the order of the rules. decided is in the order of VPP's rules, which are those of rules. A
// policy that VPP has in another version has no counts.
func Counts(list []model.Rule, decided []uint64) (out []Count) {
	at := 0
	for _, rule := range list {
		n := max(1, (len(rule.Ports)+portsOfRule-1)/portsOfRule)
		if at+n > len(decided) {
			return nil
		}
		if len(out) == 0 || out[len(out)-1].Rule != rule.Origin {
			out = append(out, Count{Rule: rule.Origin, Action: rule.Action})
		}
		for _, c := range decided[at : at+n] {
			out[len(out)-1].Decided += c
		}
		at += n
	}
	if at != len(decided) {
		return nil
	}
	return out
}
