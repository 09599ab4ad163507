package feed

import (
	"errors"
	"slices"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/txn"
)

func tiers(policy string) []*proto.TierInfo {
	return []*proto.TierInfo{{Name: "t", IngressPolicies: []string{policy}}}
}

// TestEndpointWaitsForItsPolicy tests that the driver receives an endpoint together with its policy, and a change of the policy as a change of
// the endpoint. Without the policy there is no endpoint.
func TestEndpointWaitsForItsPolicy(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, base()...)); err != nil {
		t.Fatal(err)
	}
	ep := endpoint("a")
	if err := r.commit(txn.Update, true, values(t, false, ep)); err == nil || !strings.Contains(err.Error(), "workload-policy") {
		t.Errorf("an endpoint without policy: error %v", err)
	}
	r.driver.take()
	if err := r.commit(txn.Update, true, values(t, true, ep)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.driver.take(), []string{"WorkloadEndpointUpdate a", "flush", "link/a"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	changed := &proto.WorkloadPolicy{Id: ep.GetId(), Tiers: tiers("x")}
	if err := r.commit(txn.Update, false, values(t, false, changed)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.driver.take(), []string{"WorkloadEndpointUpdate a", "flush"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	want := pb.CloneOf(ep)
	want.Endpoint.Tiers = tiers("x")
	if got := r.driver.last.(pb.Message); !pb.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	both := pb.CloneOf(ep)
	both.Endpoint.Mac = "02:00:00:00:00:01"
	changed = &proto.WorkloadPolicy{Id: ep.GetId(), Tiers: tiers("y")}
	if err := r.commit(txn.Update, false, values(t, false, changed, both)); err != nil {
		t.Fatal(err)
	}
	want = pb.CloneOf(both)
	want.Endpoint.Tiers = tiers("y")
	if got := r.driver.last.(pb.Message); !pb.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

// TestPolicyIsOneBatch tests that sets, members, policies and the policy of endpoints reach the driver in this order and are applied together.
// Members of a set are one message.
func TestPolicyIsOneBatch(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, append(base(), endpoint("a"))...)); err != nil {
		t.Fatal(err)
	}
	r.driver.take()
	batches := r.driver.batches
	kvs := values(t, false,
		&proto.WorkloadPolicy{Id: endpoint("a").GetId(), Tiers: tiers("x")},
		&proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "t", Name: "x"}},
		&proto.IPSetMember{SetId: "s", Member: "10.0.0.1"}, &proto.IPSetMember{SetId: "s", Member: "10.0.0.0/8"},
		&proto.IPSetMember{SetId: "s", Member: "fd00::/64"}, &proto.IPSetUpdate{Id: "s"}, &proto.IPSetUpdate{Id: "r"},
		&proto.IPSetMember{SetId: "r", Member: "10.0.0.1,tcp:80"})
	if err := r.commit(txn.Update, false, kvs); err != nil {
		t.Fatal(err)
	}
	want := []string{"IPSetUpdate", "IPSetUpdate", "IPSetDeltaUpdate", "IPSetDeltaUpdate", "ActivePolicyUpdate", "WorkloadEndpointUpdate a",
		"flush"}
	if got := r.driver.take(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if n := r.driver.batches - batches; n != 1 {
		t.Errorf("an event was %d batches", n)
	}
	// A resync without changes sends no message to the driver.
	all := append(values(t, true, append(base(), endpoint("a"))...), kvs...)
	i := slices.IndexFunc(all, func(kv txn.KV) bool { return kv.Key == nb.DriverWorkloadPolicyKey(endpoint("a").GetId()) })
	if err := r.commit(txn.FullResync, false, slices.Delete(all, i, i+1)); err != nil {
		t.Fatal(err)
	}
	if got := r.driver.take(); !slices.Equal(got, []string{"flush"}) {
		t.Errorf("told %q for nothing", got)
	}
	if err := r.commit(txn.Update, false, []txn.KV{{Key: kvs[2].Key}, {Key: kvs[3].Key}}); err != nil {
		t.Fatal(err)
	}
	if got := r.driver.take(); !slices.Equal(got, []string{"IPSetDeltaUpdate", "flush"}) {
		t.Errorf("told %q", got)
	}
	d := r.driver.last.(*proto.IPSetDeltaUpdate)
	if slices.Sort(d.RemovedMembers); d.Id != "s" || !slices.Equal(d.RemovedMembers, []string{"10.0.0.0/8", "10.0.0.1"}) || len(d.AddedMembers) > 0 {
		t.Errorf("told %v", d)
	}
}

// TestMovesAreInBothSets tests that a pod that moves from one set to another is added before it is removed, and that sets and policies that are
// replaced are removed after the endpoint refers to the new ones, in one batch.
func TestMovesAreInBothSets(t *testing.T) {
	r := newRig(t, newFakeDriver())
	policy := func(name string) pb.Message {
		return &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "t", Name: name}}
	}
	member := func(set, ip string) pb.Message { return &proto.IPSetMember{SetId: set, Member: ip} }
	of := func(name string) pb.Message {
		return &proto.WorkloadPolicy{Id: endpoint("a").GetId(), Tiers: tiers(name)}
	}
	all := append(values(t, true, append(base(), endpoint("a"))...), values(t, false, policy("x"), of("x"), &proto.IPSetUpdate{Id: "r"},
		&proto.IPSetUpdate{Id: "s"}, member("r", "10.0.0.1"), member("s", "10.0.0.2"), member("s", "10.0.0.3"))...)
	if err := r.commit(txn.FullResync, false, all); err != nil {
		t.Fatal(err)
	}
	gone := func(messages ...pb.Message) (deletes []txn.KV) {
		for _, kv := range values(t, false, messages...) {
			deletes = append(deletes, txn.KV{Key: kv.Key})
		}
		return deletes
	}
	r.driver.take()
	if err := r.commit(txn.Update, false, append(gone(member("s", "10.0.0.2")), values(t, false, member("r", "10.0.0.2"))...)); err != nil {
		t.Fatal(err)
	}
	if got, want := r.driver.take(), []string{"IPSetDeltaUpdate", "flush", "IPSetDeltaUpdate", "flush"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if d := r.driver.last.(*proto.IPSetDeltaUpdate); d.GetId() != "s" || !slices.Equal(d.GetRemovedMembers(), []string{"10.0.0.2"}) {
		t.Errorf("the last message is %v, want the removal from the old set", d)
	}
	replaced := append(gone(policy("x"), member("s", "10.0.0.3"), &proto.IPSetUpdate{Id: "s"}), values(t, false, policy("y"), of("y"))...)
	if err := r.commit(txn.Update, false, replaced); err != nil {
		t.Fatal(err)
	}
	want := []string{"ActivePolicyUpdate", "WorkloadEndpointUpdate a", "flush", "ActivePolicyRemove", "IPSetDeltaUpdate", "IPSetRemove", "flush"}
	if got := r.driver.take(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestBatchThatCannotBeSent tests that a driver that has been stopped accepts no message, and that no message counts as sent.
func TestBatchThatCannotBeSent(t *testing.T) {
	r := newRig(t, newFakeDriver())
	if err := r.commit(txn.FullResync, false, values(t, true, append(base(), endpoint("a"))...)); err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	r.driver.refuses = stopped
	kvs := values(t, false, &proto.IPSetUpdate{Id: "s"}, &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "t", Name: "x"}})
	if err := r.commit(txn.Update, false, kvs); !errors.Is(err, stopped) {
		t.Errorf("the event ends with %v", err)
	}
	for _, kv := range kvs {
		if r.feed.reported[kv.Key] != nil {
			t.Errorf("%s counts as sent", kv.Key)
		}
	}
}
