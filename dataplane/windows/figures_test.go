package windataplane

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// crowd returns a node with n workloads under policies p and q, where q uses the set peers and selects each tenth workload.
func crowd(n, members int) []any {
	set := ipSet("peers")
	for i := range members {
		set.Members = append(set.Members, fmt.Sprintf("198.%d.%d.%d", 18+i/62500, i/250%250, i%250+1))
	}
	msgs := []any{openProfile(), set, policy("p", tcpPort("allow", 80), tcpPort("pass", 443)), policy("q", fromSet("allow", "peers"))}
	for i := range n {
		names := []string{"p"}
		if i%10 == 0 {
			names = append(names, "q")
		}
		msgs = append(msgs, endpoint(fmt.Sprintf("w%03d", i), i+1, withTiers(ingress(names...))))
	}
	return msgs
}

// count returns the number of writes and lists since the last time.
func (b *bench) count() (writes, lists int) {
	for _, c := range b.host.Calls() {
		switch {
		case c.Writes():
			writes++
		case c.Op == "ListEndpoints":
			lists++
		}
	}
	return writes, lists
}

func (b *bench) expectCalls(what string, wantWrites, wantLists int) {
	b.t.Helper()
	writes, lists := b.count()
	b.t.Logf("%s: %d writes, %d lists", what, writes, lists)
	if writes != wantWrites || lists != wantLists {
		b.t.Errorf("%s: %d writes and %d lists, want %d and %d", what, writes, lists, wantWrites, wantLists)
	}
}

// TestCallsPerChange checks how many calls of HNS changes need on a node with 500 workloads.
func TestCallsPerChange(t *testing.T) {
	b := newBench(t, both)
	msgs := crowd(500, 2000)
	b.must(msgs...)
	b.expectCalls("start of 500 workloads", 500, 1)
	b.must(msgs...)
	b.expectCalls("everything told again", 0, 1)
	b.must(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"203.0.113.1"}})
	b.expectCalls("one member among 2000, which 50 of 500 workloads use", 50, 0)
	b.must(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"203.0.113.2"}, RemovedMembers: []string{"203.0.113.2"}})
	b.expectCalls("a member that comes and goes", 0, 0)
	b.must(policy("p", tcpPort("allow", 81), tcpPort("pass", 443)))
	b.expectCalls("a policy of all 500", 500, 0)
	b.must(policy("unused", tcpPort("allow", 81)), ipSet("unused", "1.1.1.1"))
	b.expectCalls("a policy and a set that no workload uses", 0, 0)
	b.must(endpoint("w007", 8, withTiers(ingress("q"))))
	b.expectCalls("one workload", 1, 1)
	b.must(endpoint("new", 777, withTiers(ingress("p"))))
	b.expectCalls("a new workload", 1, 1)
	b.must(gone("new"))
	b.expectCalls("a workload that goes", 0, 1)
	b.d.resync()
	b.must()
	b.expectCalls("a refresh of an HNS that is as it should be", 0, 1)
	b.must()
	b.expectCalls("no news", 0, 0)

	restarted := newBenchOn(t, both, b.host)
	restarted.pods = b.pods
	restarted.must(append(msgs, &proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"203.0.113.1"}},
		policy("p", tcpPort("allow", 81), tcpPort("pass", 443)), endpoint("w007", 8, withTiers(ingress("q"))))...)
	restarted.expectCalls("a restart with nothing changed", 0, 1)
	restarted.expectStatus("w007", "up", "")
}

// TestRefreshRepairs: changes of another program are repaired, and nothing else is written.
func TestRefreshRepairs(t *testing.T) {
	b := newBench(t, both)
	b.must(crowd(20, 10)...)
	b.host.Calls()
	b.host.SetACLs(b.pods["w003"], nil)
	b.d.resync()
	b.must()
	if writes, _ := b.count(); writes != 1 {
		t.Errorf("%d writes for one endpoint that was changed", writes)
	}
	b.expect("repaired", "w003", packet("1.1.1.1", "10.65.0.4", 81), false)
	// The same program makes the change again: it is repaired again.
	for range 3 {
		b.host.SetACLs(b.pods["w003"], nil)
		b.d.resync()
		b.must()
		b.expect("repaired again", "w003", packet("1.1.1.1", "10.65.0.4", 81), false)
	}
}

// TestHNSListsRulesDifferently: a Windows that lists rules in another form than they were written needs one write more, not one for each
// refresh.
func TestHNSListsRulesDifferently(t *testing.T) {
	b := newBench(t, both)
	own := func() { // for example, HNS joins the two rules of the list into one
		acls := b.host.ACLs(b.pods["a"])
		b.host.SetACLs(b.pods["a"], acls[:len(acls)-1])
	}
	b.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "ListEndpoints" && len(b.host.ACLs(b.pods["a"])) > 4 {
			own()
		}
		return nil
	})
	b.must(openProfile(), endpoint("a", 1))
	b.count()
	for range 5 {
		b.d.resync()
		b.must()
	}
	if writes, _ := b.count(); writes != 1 {
		t.Errorf("%d writes in 5 refreshes, want one", writes)
	}
}

// BenchmarkSetMember adds one member to a set of 2000 that 50 of 500 workloads use.
func BenchmarkSetMember(b *testing.B) {
	bench := newBench(b, both)
	bench.must(crowd(500, 2000)...)
	bench.count()
	calls := 0
	for i := range b.N {
		bench.must(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{fmt.Sprintf("203.%d.%d.%d", i>>16&255, i>>8&255, i&255)}})
		writes, _ := bench.count()
		calls += writes
	}
	b.ReportMetric(float64(calls)/float64(b.N), "writes/op")
}

// BenchmarkPolicy changes a policy of all 500 workloads.
func BenchmarkPolicy(b *testing.B) {
	bench := newBench(b, both)
	bench.must(crowd(500, 2000)...)
	bench.count()
	calls := 0
	for i := range b.N {
		bench.must(policy("p", tcpPort("allow", int32(1000+i%50000))))
		writes, _ := bench.count()
		calls += writes
	}
	b.ReportMetric(float64(calls)/float64(b.N), "writes/op")
}

// BenchmarkRestart starts a driver that finds 500 workloads as they should be.
func BenchmarkRestart(b *testing.B) {
	first := newBench(b, both)
	msgs := crowd(500, 2000)
	first.must(msgs...)
	first.count()
	calls := 0
	for range b.N {
		again := newBenchOn(b, both, first.host)
		again.pods = first.pods
		again.must(msgs...)
		writes, _ := again.count()
		calls += writes
	}
	b.ReportMetric(float64(calls)/float64(b.N), "writes/op")
}

// Overlay networks.

func overlayBench(t *testing.T, change func(*Config), policies ...hcn.Policy) *bench {
	config := Config{VXLANEnabled: true}
	if change != nil {
		change(&config)
	}
	return newBenchOn(t, config, newHost(t, hcn.Overlay, policies...))
}
