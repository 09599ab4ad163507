package policy

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// TestChainsOfTheProcessBefore: a chain of an earlier process that is desired again before its removal is like any other.
func TestChainsOfTheProcessBefore(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	f := table.IPv4
	drops := table.Chain{Name: "drops", Rules: []table.Rule{{Match: table.Match{Protocol: 17}, Actions: do(dropIt)}}}
	pod := table.Chain{Name: "pod", Rules: []table.Rule{{Actions: jump("drops")}}}
	hook := func(b *Backend, chain string) {
		b.SetHook(f, table.Filter, table.Forward, table.Rule{Actions: jump(chain)})
	}
	b := open(t, n.Host.NS)
	b.SetChains(f, table.Filter, drops, pod)
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "pod"}})
	hook(b, "from")
	mustApply(t, b)
	b.Close()

	b = open(t, n.Host.NS)
	defer b.Close()
	waiting := make(chan struct{})
	b.view.Grace.Hold(waiting)
	b.SetChains(f, table.Filter, drops)
	hook(b, "drops")
	if res := b.Apply(t.Context()); res.Err != nil || res.Broken != nil {
		t.Fatalf("apply: %v, broken %v", res.Err, res.Broken)
	}
	b.SetChains(f, table.Filter, pod)
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "pod"}})
	hook(b, "from")
	res := b.Apply(t.Context())
	close(waiting)
	if settled(t, b, res); res.Err != nil || res.Broken != nil {
		t.Errorf("apply: %v, broken %v", res.Err, res.Broken)
	}
	outside := n.Outside.Addr(f)
	n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(outside, 1)}, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].TCP(outside, 1)})
}

// TestChainThatIsReachedAgain: while packets do not reach a dispatch chain and it waits for its removal, the chain of an interface is
// deleted. When the dispatch chain is reached again, packets of that interface are dropped, and do not go to the chain that it had before.
func TestChainThatIsReachedAgain(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	defer b.Close()
	held := make(chan struct{})
	defer close(held)
	dispatch := func(chain string) {
		b.SetDispatch(table.IPv4, table.Filter, table.Dispatch{Name: "pods", Chains: map[string]string{"cali0": "p0", "cali1": chain}})
	}
	for _, name := range []string{"p0", "p1"} {
		b.SetChains(table.IPv4, table.Filter, table.Chain{Name: name, Rules: []table.Rule{{Actions: do(accept)}}})
	}
	dispatch("p1")
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: jump("pods")})
	mustApply(t, b)
	b.view.Grace.Hold(held)
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: do(dropIt)})
	dispatch("p2") // which does not exist
	b.Apply(t.Context())
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: jump("pods")})
	b.Apply(t.Context())
	if state := dump(t, b); !strings.Contains(state, `"cali0" → filter-p0`) || strings.Contains(state, `"cali1" →`) {
		t.Errorf("packets of cali1 go to a chain that is no longer theirs:\n%s", state)
	}
}

// TestSetThatIsNeededAgain: a process starts while a set of the process before is not needed, and so does not read its elements. When the
// set is needed again, it has no elements but the desired ones.
func TestSetThatIsNeededAgain(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	set := table.Set{ID: "s:peers", Type: table.SetIP}
	policy := table.Chain{Name: "policy", Rules: []table.Rule{{Match: table.Match{SrcSets: []string{"s:peers"}}, Actions: do(accept)}}}
	before := open(t, n.Host.NS)
	before.ReplaceSet(table.IPv4, set, []table.Member{{Net: pfx("10.0.0.1/32")}, {Net: pfx("10.0.0.2/32")}})
	before.SetChains(table.IPv4, table.Filter, policy)
	before.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: jump("policy")})
	mustApply(t, before)
	before.Close()

	b := open(t, n.Host.NS)
	defer b.Close()
	held := make(chan struct{})
	defer close(held)
	b.view.Grace.Hold(held)
	b.SetChains(table.IPv4, table.Filter, table.Chain{Name: "all", Rules: []table.Rule{{Actions: do(dropIt)}}})
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: jump("all")})
	b.Apply(t.Context())
	b.ReplaceSet(table.IPv4, set, []table.Member{{Net: pfx("10.0.0.2/32")}, {Net: pfx("10.0.0.3/32")}})
	b.SetChains(table.IPv4, table.Filter, policy)
	b.SetHook(table.IPv4, table.Filter, table.Forward, table.Rule{Actions: jump("policy")})
	b.Apply(t.Context())
	if state := dump(t, b); strings.Contains(state, "0a000001") || !strings.Contains(state, "0a000002") || !strings.Contains(state, "0a000003") {
		t.Errorf("the set does not have the desired elements, 10.0.0.2 and 10.0.0.3:\n%s", state)
	}
}
