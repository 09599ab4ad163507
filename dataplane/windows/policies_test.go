package windataplane

import (
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

// namespaced returns a policy of a namespace in the form of newer senders: the tier is in the policy.
func namespaced(namespace, name string, inbound ...*proto.Rule) (*proto.ActivePolicyUpdate, *proto.ActivePolicyRemove) {
	id := &proto.PolicyID{Name: name, Namespace: namespace, Kind: "NetworkPolicy"}
	return &proto.ActivePolicyUpdate{Id: id, Policy: &proto.Policy{Tier: "default", InboundRules: inbound}}, &proto.ActivePolicyRemove{Id: id}
}

// TestPoliciesOfEqualName: endpoints identify policies by tier and name. If policies of two namespaces have the same tier and name, the
// endpoint is closed and its status contains the reason; after one of them is removed, the other one applies, whatever the order.
func TestPoliciesOfEqualName(t *testing.T) {
	one, oneGone := namespaced("one", "p", tcpPort("allow", 81))
	two, twoGone := namespaced("two", "p", tcpPort("allow", 82))
	for _, tc := range []struct {
		name   string
		before []any
		goes   any
		open   uint16
	}{
		{"the first goes", []any{one, two}, oneGone, 82}, {"the second goes", []any{one, two}, twoGone, 81},
		{"announced the other way, the first goes", []any{two, one}, oneGone, 82},
		{"the first moves to another tier", []any{one, two},
			&proto.ActivePolicyUpdate{Id: one.Id, Policy: &proto.Policy{Tier: "other", InboundRules: one.Policy.InboundRules}}, 82},
	} {
		b := newBench(t, Config{})
		b.must(append(tc.before, openProfile(), endpoint("a", 1, withTiers(ingress("p"))))...)
		for _, port := range []uint16{81, 82} {
			b.expect(tc.name+": two of the name", "a", packet("1.1.1.1", "10.65.0.1", port), false)
		}
		b.expectStatus("a", "error", "policy default/p (2 policies of several namespaces or kinds have this tier and name)")
		b.must(tc.goes)
		for _, port := range []uint16{81, 82} {
			b.expect(tc.name, "a", packet("1.1.1.1", "10.65.0.1", port), port == tc.open)
		}
		b.expectStatus("a", "up", "")
	}
	// A policy that replaces the other one in the same batch is never ambiguous.
	b := newBench(t, Config{})
	b.must(one, openProfile(), endpoint("a", 1, withTiers(ingress("p"))))
	b.must(two, oneGone)
	b.expect("replaced", "a", packet("1.1.1.1", "10.65.0.1", 82), true)
	b.must(twoGone)
	b.expect("both have gone", "a", packet("1.1.1.1", "10.65.0.1", 82), false)
}
