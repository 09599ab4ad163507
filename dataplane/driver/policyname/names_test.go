package policyname

import (
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

// TestNames tests that a name resolves to the only policy that has it, whatever was announced and removed before, in any order.
func TestNames(t *testing.T) {
	n := New()
	now := map[Key]string{} // the policies to which names resolve; "": no policy
	changed := func(k Key, p *proto.Policy) { now[k] = p.GetNamespace() }
	id := func(tier, namespace, kind string) *proto.PolicyID {
		return &proto.PolicyID{Tier: tier, Name: "p", Namespace: namespace, Kind: kind}
	}
	policy := func(tier, mark string) *proto.Policy { return &proto.Policy{Tier: tier, Namespace: mark} }
	inDefault, inOther := Key{DefaultTier, "p"}, Key{"other", "p"}
	for i, step := range []struct {
		do           func()
		first, other string
		ambiguous    bool
	}{
		{func() { n.Update(id("", "one", "NP"), policy("", "1"), changed) }, "1", "", false},
		{func() { n.Update(id("", "one", "NP"), policy("", "2"), changed) }, "2", "", false},
		{func() { n.Update(id("", "one", "GNP"), policy("default", "3"), changed) }, "", "", true},
		{func() { n.Update(id("", "one", "NP"), policy("other", "4"), changed) }, "3", "4", false},
		{func() { n.Update(id("default", "", ""), policy("", "5"), changed) }, "", "4", true},
		{func() { n.Update(id("other", "", ""), policy("", "6"), changed) }, "", "", true},
		{func() { n.Remove(id("other", "", ""), changed) }, "", "4", true},
		{func() { n.Remove(id("", "one", "GNP"), changed) }, "5", "4", false},
		{func() { n.Remove(id("", "one", "NP"), changed) }, "5", "", false},
		{func() { n.Remove(id("default", "", ""), changed) }, "", "", false},
	} {
		step.do()
		if now[inDefault] != step.first || now[inOther] != step.other {
			t.Errorf("step %d: %v, want %q and %q", i, now, step.first, step.other)
		}
		if why := n.Ambiguous(inDefault); (why != "") != step.ambiguous {
			t.Errorf("step %d: %q", i, why)
		}
	}
	if n.Remove(id("", "one", "NP"), changed) || len(n.tiers)+len(n.named) > 0 {
		t.Errorf("what has gone is kept: %+v", n)
	}
}
