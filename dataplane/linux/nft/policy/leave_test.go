package policy

import (
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
