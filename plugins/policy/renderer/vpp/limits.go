package vpp

import (
	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/policy/model"
)

// What is too large for VPP is made smaller, so that it denies more. If it were refused, VPP would keep what it had before, and neither this policy nor any
// later one would hold for the pod: a tenant could escape an administrator's policy by policies of its own.

// fitRules leaves out the last rules of a policy that has too many. Those of a NetworkPolicy allow; other policies deny instead.
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

// fitTiers leaves out the last policies of a side that has too many, and denies at the end of their tier. True: it did.
func fitTiers(s *vpp_contiv.EndpointPolicy_Side) bool {
	room := nb.ContivPolicyItems
	for i, t := range s.Tiers {
		if room -= len(t.Policies) + 1; room >= 0 {
			continue
		}
		if s.Tiers = s.Tiers[:i+1]; len(t.Policies)+room < 0 { // not even its end has room
			s.Tiers, s.Otherwise = s.Tiers[:i], vpp_contiv.Policy_DENY
			return true
		}
		t.Policies, t.Otherwise = t.Policies[:len(t.Policies)+room], vpp_contiv.Policy_DENY
		t.HoldsForNode = t.HoldsForNode && len(t.Policies) > 0
		return true
	}
	return false
}
