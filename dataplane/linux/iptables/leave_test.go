package iptables

import (
	"context"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// TestChainsGoLast: with the variant nft, a chain is removed only when no rule refers to it and no packet is being sent to it any more, and
// so is a set that it uses; the same holds for chains of another process. If nothing is desired, everything is removed at once.
func TestChainsGoLast(t *testing.T) {
	r := newRig(t, Config{})
	graces := 0
	r.env.grace = func() {
		graces++
		if want := []string{"FORWARD", "one", "two"}; graces == 2 {
			for _, name := range want {
				if _, there := r.filter().chains[name]; !there {
					t.Errorf("chain %s is not there during the grace period", name)
				}
			}
			r.expect(map[string]string{"FORWARD": "two", "two": "3"})
		}
	}
	apply := func(periods int) {
		t.Helper()
		before := graces
		if res := r.Apply(context.Background()); res.Err != nil || len(res.Broken) > 0 {
			t.Fatalf("%+v", res)
		}
		if n := graces - before; n != periods {
			t.Errorf("%d grace periods, want %d", n, periods)
		}
	}
	r.filter().chains["cali-old"] = []string{"-j DROP"}
	r.ReplaceSet(table.IPv4, table.Set{ID: "s", Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
	uses := table.Chain{Name: "one", Rules: []table.Rule{{Match: table.Match{SrcSets: []string{"s"}}, Actions: act(table.Drop)}}}
	r.SetChains(table.IPv4, table.Filter, uses, numberedChain("two", 2))
	r.SetHook(table.IPv4, table.Filter, table.Forward, jump("one"), jump("two"))
	apply(1)
	r.expect(map[string]string{"cali-old": "none", "two": "2"})

	r.DeleteChains(table.IPv4, table.Filter, "one")
	r.DeleteSet(table.IPv4, "s")
	r.SetChains(table.IPv4, table.Filter, numberedChain("two", 3))
	r.SetHook(table.IPv4, table.Filter, table.Forward, jump("two"))
	apply(1)
	r.expect(map[string]string{"one": "none", "two": "3"})
	r.SetChains(table.IPv4, table.Filter, numberedChain("two", 4))
	apply(0)
	r.SetHook(table.IPv4, table.Filter, table.Forward)
	apply(0)
	r.expect(map[string]string{"two": "none"})
}
