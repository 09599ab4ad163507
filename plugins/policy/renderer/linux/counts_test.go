package linux

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// TestCounts checks that rules of one origin have one ID, by which they are counted together, and that the driver's rules have these IDs.
func TestCounts(t *testing.T) {
	id := model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "ns", Name: "a"}
	list := []model.Rule{{Action: model.Allow, Origin: "ingress[0]"}, {Action: model.Allow, Origin: "ingress[0]"}, {Action: model.Deny, Origin: "ingress[1] name"}}
	matched := map[string]uint64{}
	for i, r := range rules(id, list) {
		matched[r.GetRuleId()] += 1 << i
	}
	if len(matched) != 2 {
		t.Fatalf("IDs of rules: %v", matched)
	}
	got := Counts(id, list, func(id string) uint64 { return matched[id] })
	want := []renderer.Count{{Rule: "ingress[0]", Action: model.Allow, Decided: 1 + 2}, {Rule: "ingress[1] name", Action: model.Deny, Decided: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
