package intdataplane

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// manyPolicies returns a pod and n policies that all select it, each with a separate peer, as plugins/policy/renderer/linux writes them.
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

// BenchmarkPoliciesOfOnePod is a pod that very many policies select: from the messages to the kernel, with the whole driver. Policies whose
// peers are prefixes have no sets in the kernel; those with sets of addresses have one each per family, and the kernel's work grows with
// the square of their number.
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

// BenchmarkPolicyOfManyPods adds a policy to 100 pods, and removes it: from the messages to the kernel, with the whole driver.
func BenchmarkPolicyOfManyPods(b *testing.B) {
	const pods = 100
	config := Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: rules.BackendNFT, NodeAndSelfExempt: true}}
	s := newStepper(b, config, netns(b, fmt.Sprint("b", b.N)))
	defer s.stop()
	pod := func(i int, tiers ...*proto.TierInfo) any {
		return &proto.WorkloadEndpointUpdate{Id: wlID(fmt.Sprint("pod", i)), Endpoint: &proto.WorkloadEndpoint{State: "active", Name: fmt.Sprint("cali", i),
			Ipv4Nets: []string{fmt.Sprintf("10.1.0.%d/32", i)}, ProfileIds: []string{"open"}, Tiers: tiers}}
	}
	web := &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "networkpolicy", Name: "web"},
		Policy: &proto.Policy{InboundRules: []*proto.Rule{{Action: "allow", SrcIpSetIds: []string{"a-0"}}}}}
	tier := &proto.TierInfo{Name: "networkpolicy", DefaultAction: "deny", IngressPolicies: []string{"web"}}
	open, closed := []any{}, []any{web}
	for i := range pods {
		open, closed = append(open, pod(i)), append(closed, pod(i, tier))
	}
	open = append(open, &proto.ActivePolicyRemove{Id: web.Id})
	s.step(openProfile(), &proto.IPSetUpdate{Id: "a-0", Type: proto.IPSetUpdate_IP}, web)
	s.step(open...)
	writes := s.d.progress.writes
	b.ResetTimer()
	for range b.N {
		s.step(closed...)
		s.step(open...)
	}
	b.ReportMetric(float64(s.d.progress.writes-writes)/float64(b.N), "writes/op")
}
