package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// TestIdleChains: a chain without rules and the jumps to it are not in the kernel, and are added when it gets rules. Packets are handled
// correctly at each step, and neither an audit nor a restart writes anything.
func TestIdleChains(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 3})
	b := open(t, n.Host.NS)
	f := table.IPv4
	set := func(members ...table.Member) { b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, members) }
	all := table.Member{Net: pfx("0.0.0.0/0")}
	one := func(c string, rules ...table.Rule) { b.SetChains(f, table.Filter, table.Chain{Name: c, Rules: rules}) }
	drops := table.Rule{Actions: do(dropIt)}
	bySet := table.Rule{Match: table.Match{DstSets: []string{"s"}}, Actions: do(dropIt)}
	otherFamily := table.Rule{Match: table.Match{DstNets: []netip.Prefix{pfx("2001:db8::/32")}}, Actions: do(dropIt)}
	set()
	desire := func() {
		one("jumps", table.Rule{Actions: jump("target")}, table.Rule{Match: table.Match{Protocol: 17}, Actions: jump("target")})
		one("goes", table.Rule{Actions: do(table.Action{Verb: table.Goto, Chain: "target"})}, drops)
		one("counts", table.Rule{Actions: jump("target"), Counted: true, Comment: "counted"})
		b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "jumps", "cali2": "goes", "cali3": "counts"}})
		b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali+"}, Actions: jump("from")})
	}
	desire()
	for i, step := range []struct {
		change func()
		drops  bool
		idle   bool
	}{
		{func() { one("target") }, false, true},
		{func() { one("target", drops) }, true, false},
		{func() { one("target", otherFamily) }, false, true},
		{func() { one("target", bySet) }, false, true},
		{func() { set(all) }, true, false},
		{func() { set() }, false, true},
		{func() { one("target", bySet, drops) }, true, false},
		{func() { one("target", otherFamily, bySet) }, false, true},
		{func() { one("between"); one("target", table.Rule{Actions: jump("between")}) }, false, false},
		{func() { one("between", drops) }, true, false},
		{func() { one("between"); one("target") }, false, true},
	} {
		step.change()
		mustApply(t, b)
		want := tabletest.Pass
		if step.drops {
			want = tabletest.Drop
		}
		for _, pod := range n.Pods[:3] {
			n.Expect(t, tabletest.Case{Want: want, Probe: pod.UDP(n.Outside.Addr(f), 1)})
		}
		text := nft(t, n, "list", "chain", "ip", defaultTable, "filter-jumps")
		if jumps := strings.Count(text, "jump filter-target"); jumps != map[bool]int{true: 0, false: 2}[step.idle] {
			t.Errorf("step %d: %d jumps: %s", i, jumps, text)
		}
		if text := nft(t, n, "list", "chain", "ip", defaultTable, "filter-counts"); !strings.Contains(text, "jump filter-target") {
			t.Errorf("step %d: a rule that counts is not there: %s", i, text)
		}
		b.Resync(true, true)
		if res := mustApply(t, b); res.Writes > 0 {
			t.Errorf("step %d: an audit wrote %d objects", i, res.Writes)
		}
	}
	b.Close()
	b = open(t, n.Host.NS)
	set()
	one("target")
	one("between")
	desire()
	if res := mustApply(t, b); res.Writes > 0 {
		t.Errorf("a restart wrote %d objects", res.Writes)
	}
}

// TestIdleChainOnly: a chain that only jumps refer to is not in the kernel as long as it is idle. It can be broken, or missing, like any
// other.
func TestIdleChainOnly(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	f := table.IPv4
	var rules []table.Rule
	for i := range 20 {
		b.SetChains(f, table.Filter, table.Chain{Name: fmt.Sprint("idle-", i)})
		rules = append(rules, table.Rule{Actions: jump(fmt.Sprint("idle-", i))})
	}
	b.SetChains(f, table.Filter, table.Chain{Name: "end", Rules: []table.Rule{{Match: table.Match{Protocol: 1}, Actions: do(dropIt)}}})
	b.SetHook(f, table.Filter, table.Forward, append(rules, table.Rule{Actions: jump("end")})...)
	expect := func(what string, chains int, want tabletest.Verdict, broken int) {
		t.Helper()
		res := settled(t, b, b.Apply(t.Context()))
		if res.Err != nil || len(res.Broken) != broken {
			t.Errorf("%s: %v, broken %v", what, res.Err, res.Broken)
		}
		n.Expect(t, tabletest.Case{Want: want, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 1)})
		if got := strings.Count(nft(t, n, "list", "table", "ip", defaultTable), "chain "); got != chains {
			t.Errorf("%s: %d chains, want %d", what, got, chains)
		}
	}
	expect("idle", 2, tabletest.Pass, 0)
	b.SetChains(f, table.Filter, table.Chain{Name: "idle-7", Rules: []table.Rule{{Match: table.Match{DstSets: []string{"none"}}, Actions: do(accept)}}})
	expect("a set is missing", 3, tabletest.Drop, 1)
	b.SetChains(f, table.Filter, table.Chain{Name: "idle-7"})
	expect("idle again", 2, tabletest.Pass, 0)
	b.DeleteChains(f, table.Filter, "idle-7")
	expect("missing", 1, tabletest.Drop, 1)
	b.SetChains(f, table.Filter, table.Chain{Name: "idle-7"})
	expect("there again", 2, tabletest.Pass, 0)
	for i := range 2 { // a loop is found, whichever chain was idle before
		b.SetChains(f, table.Filter, table.Chain{Name: fmt.Sprint("idle-", i), Rules: []table.Rule{{Actions: jump(fmt.Sprint("idle-", 1-i))}}})
	}
	expect("a loop", 4, tabletest.Drop, 1)
}
