package policy

import (
	"fmt"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// TestSetOfFewNets: a set of a few prefixes is written into the rules that name it, and becomes a set of the kernel and back as its members
// change. Packets are handled in the same way, and a restart writes nothing.
func TestSetOfFewNets(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 2})
	b := open(t, n.Host.NS)
	f := table.IPv4
	members := func(first, count int) (list []table.Member) {
		for i := range count {
			list = append(list, table.Member{Net: pfx(fmt.Sprintf("203.0.113.%d/32", 2*(first+i)))})
		}
		return list
	}
	own := table.Member{Net: pfx(n.Outside.Addr(f).String() + "/32")}
	b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, nil)
	b.SetChains(f, table.Filter,
		table.Chain{Name: "in", Rules: []table.Rule{{Match: table.Match{DstSets: []string{"s"}}, Actions: do(dropIt)}}},
		table.Chain{Name: "not", Rules: []table.Rule{{Match: table.Match{NotDstSets: []string{"s"}}, Actions: do(dropIt)}}})
	b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: map[string]string{"cali1": "in", "cali2": "not"}})
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Match: table.Match{InIface: "cali+"}, Actions: jump("from")})
	for i, step := range []struct {
		change  func()
		inSet   bool
		inRules bool
	}{
		{func() {}, false, true},
		{func() { b.ChangeSet(f, "s", []table.Member{own}, nil) }, true, true},
		{func() { b.ChangeSet(f, "s", members(100, 3), nil) }, true, true},
		{func() { b.ChangeSet(f, "s", members(103, 1), nil) }, true, false},
		{func() { b.ChangeSet(f, "s", nil, []table.Member{own}) }, false, true},
		{func() { b.ChangeSet(f, "s", []table.Member{{Net: pfx("0.0.0.0/0")}}, nil) }, true, true},
		{func() { b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, members(1, 9)) }, false, false},
		{func() { b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, nil) }, false, true},
		{func() { b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetIP}, []table.Member{own}) }, true, false},
		{func() { b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, []table.Member{own}) }, true, true},
	} {
		step.change()
		mustApply(t, b)
		want := [2]tabletest.Verdict{tabletest.Pass, tabletest.Drop}
		if step.inSet {
			want = [2]tabletest.Verdict{tabletest.Drop, tabletest.Pass}
		}
		n.Expect(t, tabletest.Case{Want: want[0], Probe: n.Pods[0].UDP(n.Outside.Addr(f), 1)},
			tabletest.Case{Want: want[1], Probe: n.Pods[1].UDP(n.Outside.Addr(f), 1)})
		if has := strings.Contains(nft(t, n, "list", "sets", "ip"), "set set-s "); has == step.inRules {
			t.Errorf("step %d: the kernel has the set: %v", i, has)
		}
		b.Resync(true, true)
		if res := mustApply(t, b); res.Writes > 0 {
			t.Errorf("step %d: an audit wrote %d objects", i, res.Writes)
		}
	}
}
