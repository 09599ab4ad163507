package intdataplane

import (
	"fmt"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// TestSharedPolicies: a policy that is added to many workloads, or removed, changes the dispatch and the chain that they share, and no
// chain of their own. A chain without workloads is removed.
func TestSharedPolicies(t *testing.T) {
	b := newBench(t, Config{IPv6Enabled: true, RulesConfig: rules.Config{SharePolicies: true, NodeAndSelfExempt: true}})
	all := func(change ...func(*proto.WorkloadEndpoint)) (msgs []any) {
		for i := range 20 {
			msgs = append(msgs, endpoint(fmt.Sprint("pod", i), fmt.Sprint("cali", i), i+1, change...))
		}
		return msgs
	}
	shared := func() (n int) {
		for _, m := range b.d.families {
			n += len(m.endpoints.shared.chains)
		}
		return n
	}
	packet := packet("eth0", "cali3", "198.51.100.1", "10.65.0.4", 80)
	b.must(append([]any{openProfile(), policy("web", &proto.Rule{Action: "allow", SrcNet: []string{"192.0.2.0/24"}})}, all()...)...)
	for _, step := range []struct {
		msgs []any
		want string
	}{{all(withTiers(ingress("web"))), "drop"}, {all(), "accept"}} {
		b.must(step.msgs...)
		for _, object := range b.fake.Order {
			if strings.Contains(object, rules.WorkloadToEndpointPfx) || strings.Contains(object, rules.WorkloadFromEndpointPfx) {
				t.Errorf("%s was written", object)
			}
		}
		if got := b.verdict(packet); got != step.want {
			t.Errorf("%s, want %s", got, step.want)
		}
		if n := shared(); n != 4 {
			t.Errorf("%d chains are shared, want one for each direction and family", n)
		}
	}
	b.must(all(func(ep *proto.WorkloadEndpoint) { ep.State = "inactive" })...)
	for i := range 20 {
		b.must(&proto.WorkloadEndpointRemove{Id: wlID(fmt.Sprint("pod", i))})
	}
	if n := shared(); n != 0 {
		t.Errorf("%d chains are left", n)
	}
}
