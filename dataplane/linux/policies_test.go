package intdataplane

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

func (b *bench) chains(substring string) []string {
	var names []string
	for name := range b.fake.Dump() {
		if strings.HasPrefix(name, "chain") && strings.Contains(name, substring) {
			names = append(names, name)
		}
	}
	return names
}

func TestOnlyReferredPoliciesHaveChains(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("p", tcpPort("allow", 80)))
	if got := b.chains("-p"); len(got) > 0 {
		t.Errorf("chains of a policy without users: %v", got)
	}
	b.must(endpoint("a", "calia", 1, withTiers(ingress("p"))))
	if got := b.chains("cali-pi-p"); len(got) != 2 {
		t.Errorf("inbound chains: %v, want one per family", got)
	}
	if got := b.chains("cali-po-p"); len(got) > 0 {
		t.Errorf("outbound chains: %v, want none: no tier names the policy for egress", got)
	}
	b.must(gone("a"))
	if got := append(b.chains("cali-pi-"), b.chains("cali-pri-")...); len(got) > 0 {
		t.Errorf("chains after the endpoint went: %v", got)
	}
	b.must(endpoint("a", "calia", 1, withTiers(ingress("p"))))
	b.expect("used again", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
}

func TestPolicyChainsAreInTheLayersThatUseThem(t *testing.T) {
	b := newBench(t, Config{})
	tiers := []*proto.TierInfo{{Name: "default", IngressPolicies: []string{"p"}, EgressPolicies: []string{"p"}}}
	b.must(policy("p", tcpPort("allow", 80)), ifAddrs("eth0", "192.0.2.1"),
		&proto.HostEndpointUpdate{Id: &proto.HostEndpointID{EndpointId: "h"},
			Endpoint: &proto.HostEndpoint{Name: "eth0", UntrackedTiers: tiers, PreDnatTiers: tiers}})
	for layer, want := range map[string]string{"raw": "in out", "mangle": "in", "filter": ""} {
		got := ""
		if len(b.chains(layer+" cali-pi-p")) > 0 {
			got = "in"
		}
		if len(b.chains(layer+" cali-po-p")) > 0 {
			got += " out"
		}
		if got != want {
			t.Errorf("layer %s has the policy's chains %q, want %q", layer, got, want)
		}
	}
}

func TestPolicyUpdates(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("p", tcpPort("allow", 80)), endpoint("a", "calia", 1, withTiers(ingress("p"))))
	to := func(port uint16) string { return b.verdict(packet("eth0", "calia", "1.1.1.1", "10.65.0.1", port)) }
	b.must(policy("p", tcpPort("allow", 81)))
	if to(80) != "drop" || to(81) != "accept" {
		t.Errorf("after the update: 80 %s, 81 %s", to(80), to(81))
	}
	before := b.fake.Writes
	b.must(policy("p", tcpPort("allow", 81)))
	if b.fake.Writes != before {
		t.Errorf("an update that changes nothing wrote %d objects", b.fake.Writes-before)
	}
	b.must(noPolicy("p"))
	if to(81) != "drop" {
		t.Error("a policy that went while an endpoint uses it: want drop")
	}
	b.must(noPolicy("never heard of"), &proto.ActiveProfileRemove{Id: &proto.ProfileID{Name: "never heard of"}})
}

func TestMissingPolicyDropsAndShows(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), ifUp("calia", 1), endpoint("a", "calia", 1, withTiers(ingress("p"))))
	b.expect("unknown policy", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
	b.expectStatus(wlKey("a"), "error")
	b.must(policy("p", tcpPort("allow", 80)))
	b.expect("known", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
	b.expectStatus(wlKey("a"), "up")
}

func TestPoliciesOfEqualNameInTwoTiers(t *testing.T) {
	b := newBench(t, Config{})
	second := &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "other", Name: "p"},
		Policy: &proto.Policy{InboundRules: []*proto.Rule{tcpPort("allow", 80)}}}
	tiers := withTiers(ingress("p"), &proto.TierInfo{Name: "other", IngressPolicies: []string{"p"}})
	b.must(openProfile(), policy("p", tcpPort("pass", 80), tcpPort("pass", 81)), second, endpoint("a", "calia", 1, tiers))
	b.expect("both tiers", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
	b.expect("second tier's end", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 81), "drop")
}

// TestPolicyWithoutTierInItsID: newer senders put the tier into the policy, and omit it in a removal.
func TestPolicyWithoutTierInItsID(t *testing.T) {
	b := newBench(t, Config{})
	id := &proto.PolicyID{Name: "p", Namespace: "ns", Kind: "NetworkPolicy"}
	b.must(openProfile(), &proto.ActivePolicyUpdate{Id: id, Policy: &proto.Policy{Tier: "sec",
		InboundRules: []*proto.Rule{tcpPort("allow", 80)}}},
		endpoint("a", "calia", 1, withTiers(&proto.TierInfo{Name: "sec", IngressPolicies: []string{"p"}})))
	b.expect("allowed", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
	b.must(&proto.ActivePolicyRemove{Id: id})
	b.expect("removed", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
}

// namespaced returns a policy of a namespace, as newer senders announce it: the tier is in the policy.
func namespaced(tier, namespace, name string, inbound ...*proto.Rule) (*proto.ActivePolicyUpdate, *proto.ActivePolicyRemove) {
	id := &proto.PolicyID{Name: name, Namespace: namespace, Kind: "NetworkPolicy"}
	return &proto.ActivePolicyUpdate{Id: id, Policy: &proto.Policy{Tier: tier, InboundRules: inbound}}, &proto.ActivePolicyRemove{Id: id}
}

// TestPoliciesOfEqualName: endpoints name policies by tier and name. If these stand for policies of two namespaces, the endpoint blocks and
// its status is "error"; when one of them is removed, the other one applies, in either order.
func TestPoliciesOfEqualName(t *testing.T) {
	one, oneGone := namespaced("default", "one", "p", tcpPort("allow", 81))
	two, twoGone := namespaced("default", "two", "p", tcpPort("allow", 82))
	moved, _ := namespaced("other", "one", "p", tcpPort("allow", 81))
	for _, tc := range []struct {
		name   string
		before []any
		goes   any
		open   uint16
	}{
		{"the first goes", []any{one, two}, oneGone, 82}, {"the second goes", []any{one, two}, twoGone, 81},
		{"announced the other way, the first goes", []any{two, one}, oneGone, 82}, {"the first moves to another tier", []any{one, two}, moved, 82},
	} {
		b := newBench(t, both)
		verdicts := func() (open []uint16) {
			for _, port := range []uint16{81, 82} {
				if b.verdict(packet("eth0", "calia", "1.1.1.1", "10.65.0.1", port)) == "accept" {
					open = append(open, port)
				}
			}
			return open
		}
		b.must(append(tc.before, openProfile(), ifUp("calia", 1), endpoint("a", "calia", 1, withTiers(ingress("p"))))...)
		if open := verdicts(); len(open) > 0 {
			t.Errorf("%s: two policies of the name, and ports %v are open", tc.name, open)
		}
		b.expectStatus(wlKey("a"), "error")
		b.must(tc.goes)
		if open := verdicts(); !slices.Equal(open, []uint16{tc.open}) {
			t.Errorf("%s: ports %v are open, want %d", tc.name, open, tc.open)
		}
		b.expectStatus(wlKey("a"), "up")
	}
	// A policy that replaces the other in one batch is never ambiguous.
	b := newBench(t, both)
	b.must(one, openProfile(), endpoint("a", "calia", 1, withTiers(ingress("p"))))
	b.must(two, oneGone)
	b.expect("replaced", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 82), "accept")
	b.must(twoGone)
	b.expect("both have gone", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 82), "drop")
}

func TestUnknownActionBlocksAndIsReported(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("p", tcpPort("quarantine", 80), &proto.Rule{Action: "allow"}), endpoint("a", "calia", 1,
		withTiers(ingress("p"))), ifUp("calia", 1))
	b.expect("matched", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
	b.expect("not matched", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 81), "accept")
	found := false
	for _, cause := range b.d.dump().Policies {
		found = found || strings.Contains(cause, "quarantine")
	}
	if !found {
		t.Errorf("the dump does not name the action: %+v", b.d.dump().Policies)
	}
}

// TestBrokenPolicyChainIsIsolated: a chain that the kernel rejects affects only its endpoints.
func TestBrokenPolicyChainIsIsolated(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("p", tcpPort("allow", 80)), policy("q", tcpPort("allow", 80)), ifUp("calia", 1),
		ifUp("calib", 2), ifUp("calic", 3))
	b.fake.Break = func(object string) error {
		if object == "chain v4 filter cali-pi-p" {
			return errors.New("the kernel does not like it")
		}
		return nil
	}
	if err := b.step(endpoint("a", "calia", 1, withTiers(ingress("p"))), endpoint("b", "calib", 2,
		withTiers(ingress("q")))); err != nil {
		t.Fatal(err)
	}
	b.expectStatus(wlKey("a"), "error")
	b.expectStatus(wlKey("b"), "up")
	b.expect("endpoint with the broken policy", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "drop")
	b.expect("the other", packet("eth0", "calib", "1.1.1.1", "10.65.0.2", 80), "accept")
	b.fake.Break = nil
	b.must()
	b.expectStatus(wlKey("a"), "up")
	b.expect("healed", packet("eth0", "calia", "1.1.1.1", "10.65.0.1", 80), "accept")
}
