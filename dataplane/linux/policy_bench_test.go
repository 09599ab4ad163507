package intdataplane

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// manyPolicies are n policies that all select one pod, each with a peer of its own, as plugins/policy/renderer/linux writes them, and the pod.
func manyPolicies(n int, kind proto.IPSetUpdate_IPSetType) (msgs []any) {
	tier := &proto.TierInfo{Name: "networkpolicy", DefaultAction: "deny"}
	for i := range n {
		set := fmt.Sprint("n-", i)
		name := fmt.Sprint("NetworkPolicy/default/many", i)
		msgs = append(msgs, &proto.IPSetUpdate{Id: set, Type: kind, Members: []string{fmt.Sprintf("198.18.%d.%d", i>>8&255, i&255)}},
			&proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "networkpolicy", Name: name},
				Policy: &proto.Policy{OutboundRules: []*proto.Rule{{Action: "allow", DstIpSetIds: []string{set}, RuleId: "egress[0] of default/many"}}}})
		tier.EgressPolicies = append(tier.EgressPolicies, name)
	}
	pod := &proto.WorkloadEndpoint{State: "active", Name: "cali1", Ipv4Nets: []string{"10.1.0.1/32"}, Ipv6Nets: []string{"2001:db8::1/128"},
		Tiers: []*proto.TierInfo{tier}}
	return append(msgs, &proto.WorkloadEndpointUpdate{Id: wlID("pod"), Endpoint: pod})
}

// BenchmarkPoliciesOfOnePod is a pod that very many policies select: from the messages to the kernel, by the whole driver. Policies whose peers are
// nets have no sets in the kernel; those with sets of addresses have one each and family, and the kernel's work grows with the square of that.
func BenchmarkPoliciesOfOnePod(b *testing.B) {
	for _, c := range []struct {
		kind proto.IPSetUpdate_IPSetType
		n    int
	}{{proto.IPSetUpdate_NET, 1000}, {proto.IPSetUpdate_NET, 14000}, {proto.IPSetUpdate_IP, 1000}, {proto.IPSetUpdate_IP, 4000}} {
		b.Run(fmt.Sprintf("%s/%d", c.kind, c.n), func(b *testing.B) {
			for i := range b.N {
				b.StopTimer()
				config := Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: rules.BackendNFT}}
				s := newStepper(b, config, netns(b, fmt.Sprintf("b%d-%d", b.N, i)))
				msgs := manyPolicies(c.n, c.kind)
				b.StartTimer()
				s.step(msgs...)
				b.StopTimer()
				s.stop()
			}
		})
	}
}
