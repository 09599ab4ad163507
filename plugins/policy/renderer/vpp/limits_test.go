package vpp

import (
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/policy/model"
)

// TestTooManyRules checks that the last rules of a policy that is too large are removed, and that other traffic is denied if it is not a
// NetworkPolicy.
func TestTooManyRules(t *testing.T) {
	for _, c := range []struct {
		kind           string
		in, out        int
		wantIn, expect int
		denies         bool
	}{
		{model.KindNetworkPolicy, 10, 20, 10, 20, false},
		{model.KindNetworkPolicy, 17000, 1, nb.ContivPolicyRules - 1, 1, false},
		{model.KindNetworkPolicy, 17000, 17000, nb.ContivPolicyRules / 2, nb.ContivPolicyRules / 2, false},
		{"ClusterNetworkPolicy", 5, 17000, 5, nb.ContivPolicyRules - 5, true},
	} {
		r, txn := newRenderer(true), values{}
		id := model.PolicyID{Kind: c.kind, Namespace: "a", Name: "p"}
		allow := func(n int) (list []model.Rule) {
			for i := range n {
				list = append(list, model.Rule{Action: model.Allow, Protocol: model.TCP, Ports: []model.PortRange{{First: uint16(i), Last: uint16(i)}}})
			}
			return list
		}
		r.PutPolicy(model.Policy{ID: id, Ingress: allow(c.in), Egress: allow(c.out)}, txn)
		got := txn[nb.ContivPolicyKey(policyID(id))].(*vpp_contiv.Policy)
		if len(got.Ingress) != c.wantIn || len(got.Egress) != c.expect {
			t.Errorf("%+v: %d and %d rules", c, len(got.Ingress), len(got.Egress))
		}
		last := got.Egress[len(got.Egress)-1]
		if denied := last.Action == vpp_contiv.Policy_DENY && last.Protocol == 0; denied != c.denies {
			t.Errorf("%+v: the last rule is %v", c, last)
		}
	}
}

// TestTooManyPolicies checks that, for a pod that too many policies select, the last policies are removed, and their tier denies at its
// end.
func TestTooManyPolicies(t *testing.T) {
	for _, c := range []struct{ admin, tenant, tiers, policies int }{
		{3, 8000, 3, 8004},
		{3, 9000, 2, nb.ContivPolicyItems - 2},
		{nb.ContivPolicyItems - 1, 1, 1, nb.ContivPolicyItems - 1},
		{nb.ContivPolicyItems, 1, 1, nb.ContivPolicyItems - 1},
	} {
		d, counts := model.Direction{Default: model.Allow}, []int{c.admin, c.tenant, 1}
		for i, tier := range model.Tiers() {
			tier.Policies, tier.Default = make([]model.PolicyID, counts[i]), model.Pass
			d.Tiers = append(d.Tiers, tier)
		}
		s := side(d, true)
		less, n := fitTiers(s), 0
		for _, tier := range s.Tiers {
			n += len(tier.Policies)
		}
		if n+len(s.Tiers) > nb.ContivPolicyItems || len(s.Tiers) != c.tiers || n != c.policies {
			t.Errorf("%+v: %d tiers with %d policies", c, len(s.Tiers), n)
		}
		if last := s.Tiers[len(s.Tiers)-1]; less && last.Otherwise != vpp_contiv.Policy_DENY && s.Otherwise != vpp_contiv.Policy_DENY {
			t.Errorf("%+v: the end does not deny", c)
		}
		if less == (c.tiers == 3) {
			t.Errorf("%+v: less is %t", c, less)
		}
	}
}
