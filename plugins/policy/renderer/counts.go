package renderer

import (
	"contiv.dev/vswitch/plugins/policy/model"
)

// Count is the number of packets for which the rules of one origin have decided.
type Count struct {
	Rule    string // the place of the rule in the object, for example ingress[0]
	Action  model.Action
	Decided uint64
}

// Counts holds the counts of a policy, in the order of its rules.
type Counts struct{ Ingress, Egress []Count }

// Origins returns the origins of rules, with counts of zero. of is the index of the origin for each rule.
func Origins(list []model.Rule) (counts []Count, of []int) {
	of = make([]int, len(list))
	for i, rule := range list {
		if len(counts) == 0 || counts[len(counts)-1].Rule != rule.Origin {
			counts = append(counts, Count{Rule: rule.Origin, Action: rule.Action})
		}
		of[i] = len(counts) - 1
	}
	return counts, of
}
