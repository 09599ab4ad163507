package linux

import (
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// ID returns a policy's name in the driver.
func ID(id model.PolicyID) *proto.PolicyID { return policyID(id) }

// Counts returns the driver's counters for the rules of a policy, by origin, in the order of the rules. matched returns the counter of a
// rule ID.
func Counts(id model.PolicyID, list []model.Rule, matched func(ruleID string) uint64) []renderer.Count {
	counts, _ := renderer.Origins(list)
	for i := range counts {
		counts[i].Decided = matched(ruleID(id, counts[i].Rule)) // one ID for all rules of the origin
	}
	return counts
}
