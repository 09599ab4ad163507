package linux

import (
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// ID is a policy's name in the driver.
func ID(id model.PolicyID) *proto.PolicyID { return policyID(id) }

// Counts are what the driver has counted for the rules of a policy, by origin, in the order of the rules. matched takes a rule's ID.
func Counts(id model.PolicyID, list []model.Rule, matched func(ruleID string) uint64) []renderer.Count {
	counts, _ := renderer.Origins(list)
	for i := range counts {
		counts[i].Decided = matched(ruleID(id, counts[i].Rule)) // one ID for all rules of the origin
	}
	return counts
}
