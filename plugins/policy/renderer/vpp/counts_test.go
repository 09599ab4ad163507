package vpp

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/renderer"
)

// TestCounts checks that counters of rules of one origin are added up, also of those that were split for their ports, and that another
// version of the policy has no counts.
func TestCounts(t *testing.T) {
	many := model.Rule{Action: model.Allow, Protocol: model.TCP, Origin: "ingress[1]"}
	for port := range uint16(17) {
		many.Ports = append(many.Ports, model.PortRange{First: port * 10, Last: port * 10})
	}
	list := []model.Rule{
		{Action: model.Allow, Origin: "ingress[0]"}, {Action: model.Allow, Origin: "ingress[0]"}, many, {Action: model.Deny, Origin: "ingress[2]"},
	}
	decided := make([]uint64, len(rules(list)))
	for i := range decided {
		decided[i] = 1 << i
	}
	want := []renderer.Count{{Rule: "ingress[0]", Action: model.Allow, Decided: 1 + 2}, {Rule: "ingress[1]", Action: model.Allow, Decided: 4 + 8 + 16},
		{Rule: "ingress[2]", Action: model.Deny, Decided: 32}}
	if got := Counts(list, decided); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, n := range []int{0, len(decided) - 1} {
		if got := Counts(list, decided[:n]); len(got) > 0 {
			t.Errorf("%d counters: %v", n, got)
		}
	}
	if got := Counts(list, append(decided, 1)); len(got) > 0 {
		t.Errorf("one counter too many: %v", got)
	}
}
