package vpp

import (
	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/policy/model"
)

// A policy that is too large for VPP is reduced, so that it denies more. If it were rejected instead, VPP would keep the previous policy,
// and neither this policy nor a later one would apply to the pod: a tenant could bypass an administrator's policy with policies of its own.

// fitRules removes the last rules of a policy that has too many. The rules of a NetworkPolicy only allow; for other policies a rule that
// denies replaces them.
func (r Renderer) fitRules(id model.PolicyID, p *vpp_contiv.Policy) {
	in, out := len(p.Ingress), len(p.Egress)
	if in+out <= nb.ContivPolicyRules {
		return
	}
	denies := id.Kind != model.KindNetworkPolicy
	const half = nb.ContivPolicyRules / 2
	p.Ingress = fewer(p.Ingress, max(half, nb.ContivPolicyRules-out), denies)
	p.Egress = fewer(p.Egress, max(half, nb.ContivPolicyRules-in), denies)
	r.Log.Warn("a policy has more rules than VPP has room for; the last ones allow nothing", "policy", id.String(), "rules", in+out, "limit",
		nb.ContivPolicyRules)
}

func fewer(list []*vpp_contiv.Policy_Rule, n int, denies bool) []*vpp_contiv.Policy_Rule {
	if len(list) <= n {
		return list
	}
	if list = list[:n]; denies {
		list[n-1] = &vpp_contiv.Policy_Rule{Action: vpp_contiv.Policy_DENY}
	}
	return list
}

// fitTiers removes the last policies of a side that has too many, and denies at the end of their tier. It reports whether it has removed
// any.
func fitTiers(s *vpp_contiv.EndpointPolicy_Side) bool {
	room := nb.ContivPolicyItems
	for i, t := range s.Tiers {
		if room -= len(t.Policies) + 1; room >= 0 {
			continue
		}
		if s.Tiers = s.Tiers[:i+1]; len(t.Policies)+room < 0 { // there is no room for the end of the tier either
			s.Tiers, s.Otherwise = s.Tiers[:i], vpp_contiv.Policy_DENY
			return true
		}
		t.Policies, t.Otherwise = t.Policies[:len(t.Policies)+room], vpp_contiv.Policy_DENY
		t.HoldsForNode = t.HoldsForNode && len(t.Policies) > 0
		return true
	}
	return false
}
