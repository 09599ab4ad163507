package intdataplane

import (
	"cmp"
	"context"
	"fmt"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
)

// PolicyCounts holds how many packets the rules of a policy have matched since they were written, summed over both families.
type PolicyCounts struct{ inbound, outbound map[string]uint64 } // keyed by the rules' comments

// Inbound returns the count of the inbound rules with this proto.Rule.RuleId. Counts of rules with the same ID are added.
func (c PolicyCounts) Inbound(ruleID string) uint64 { return c.inbound[rules.RuleComment(ruleID)] }

// Outbound returns the count of the outbound rules with this ID.
func (c PolicyCounts) Outbound(ruleID string) uint64 { return c.outbound[rules.RuleComment(ruleID)] }

// PolicyCounts reads from the kernel how many packets the rules of the given policies have matched. The result has the order of policies.
// Rules without IDs are not counted. A policy that no endpoint uses is not in the kernel: its counts are 0.
func (d *InternalDataplane) PolicyCounts(ctx context.Context, policies []*proto.PolicyID) ([]PolicyCounts, error) {
	if err := d.front.Failed(); err != nil {
		return nil, fmt.Errorf("counters of policies: %w", err)
	}
	backend, can := d.parts.backend.(table.Counters)
	if !can {
		return nil, fmt.Errorf("counters of policies: %s has none", d.parts.backend.Name())
	}
	out := make([]PolicyCounts, len(policies))
	counts, names := map[string]map[string]uint64{}, make([]string, 0, 2*len(policies))
	for i, id := range policies {
		out[i] = PolicyCounts{inbound: map[string]uint64{}, outbound: map[string]uint64{}}
		key := policyKey{Tier: cmp.Or(id.GetTier(), rules.DefaultTier), Name: id.GetName()}
		for inbound, count := range map[bool]map[string]uint64{true: out[i].inbound, false: out[i].outbound} {
			name := ruleList{Policy: key, Inbound: inbound}.chain(d.config.RulesConfig.Own)
			counts[name], names = count, append(names, name)
		}
	}
	err := backend.ReadCounters(ctx, d.config.families(), names, func(chain, comment string, packets uint64) { counts[chain][comment] += packets })
	if err != nil {
		return nil, fmt.Errorf("counters of policies: %w", err)
	}
	return out, nil
}
