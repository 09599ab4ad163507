package intdataplane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// countingBackend has counters for the chains that are requested.
type countingBackend struct {
	table.Backend
	requested []string
	fail      error
}

func (b *countingBackend) ReadCounters(_ context.Context, families []table.Family, chains []string, each func(chain, comment string, packets uint64)) error {
	b.requested = chains
	for range families {
		for _, c := range chains {
			each(c, rules.RuleComment(strings.Repeat("long ", 50)), 1)
			each(c, rules.RuleComment("first"), 2)
			if strings.HasPrefix(c, "cali-pi-") {
				each(c, rules.RuleComment("first"), 4)
			}
		}
	}
	return b.fail
}

// TestPolicyCounts: counters of both families and of rules with the same ID are added, by policy and direction; IDs may be longer than the
// kernel's comments.
func TestPolicyCounts(t *testing.T) {
	d := newBench(t, both).d
	backend := &countingBackend{Backend: d.parts.backend}
	d.parts.backend = backend
	ids := []*proto.PolicyID{{Tier: "networkpolicy", Name: "a"}, {Tier: "networkpolicy", Name: "b"}}
	counts, err := d.PolicyCounts(t.Context(), ids)
	if err != nil || len(counts) != 2 {
		t.Fatal(counts, err)
	}
	for i, c := range counts {
		got := []uint64{c.Inbound("first"), c.Outbound("first"), c.Inbound(strings.Repeat("long ", 50)), c.Inbound("unknown")}
		if want := []uint64{12, 4, 2, 0}; !slices.Equal(got, want) {
			t.Errorf("policy %d: %v, want %v", i, got, want)
		}
	}
	for _, id := range ids {
		for _, prefix := range []string{rules.PolicyInboundPfx, rules.PolicyOutboundPfx} {
			if name := rules.PolicyChainName(prefix, id.GetTier(), id.GetName()); !slices.Contains(backend.requested, name) {
				t.Errorf("chain %s was not asked for: %v", name, backend.requested)
			}
		}
	}
	backend.fail = errors.New("refused")
	if _, err := d.PolicyCounts(t.Context(), ids); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v", err)
	}
	d.parts.backend = backend.Backend
	if _, err := d.PolicyCounts(t.Context(), ids); err == nil {
		t.Error("a backend without counters has no error")
	}
}
