package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

func verb(v table.Verb) []table.Rule { return []table.Rule{{Actions: []table.Action{{Verb: v}}}} }

// TestDispatchChainsFirst: chains exist before an element of a dispatch chain's map refers to them. Without new chains there is one
// transaction.
func TestDispatchChainsFirst(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	c, err := wire.Dial(n.Host.NS)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f := table.IPv4
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "from"}}})
	chains := map[string]string{}
	for _, step := range []struct {
		what         string
		do           func()
		transactions uint32
	}{
		{"at first", func() {
			chains["cali1"] = "one"
			b.SetChains(f, table.Filter, table.Chain{Name: "one", Rules: verb(table.Accept)})
		}, 1},
		{"another interface with its chain", func() {
			chains["cali2"] = "two"
			b.SetChains(f, table.Filter, table.Chain{Name: "two", Rules: verb(table.Drop)})
		}, 2},
		{"another interface with a chain that is there", func() { chains["cali3"] = "two" }, 1},
		{"an interface goes to a new chain", func() {
			chains["cali3"] = "three"
			b.SetChains(f, table.Filter, table.Chain{Name: "three", Rules: verb(table.Drop)})
		}, 2},
		{"and back, and the chain goes", func() { chains["cali3"] = "two" }, 2},
		{"other rules of a chain", func() { b.SetChains(f, table.Filter, table.Chain{Name: "two", Rules: verb(table.Accept)}) }, 1},
		{"nothing", func() {}, 0},
		{"interfaces less, with their chain", func() {
			delete(chains, "cali2")
			delete(chains, "cali3")
			b.DeleteChains(f, table.Filter, "two")
		}, 2},
	} {
		before, err := c.Generation()
		if err != nil {
			t.Fatal(err)
		}
		step.do()
		copied := map[string]string{}
		for iface, chain := range chains {
			copied[iface] = chain
		}
		b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: copied, Default: verb(table.Drop)})
		mustApply(t, b)
		after, err := c.Generation()
		if err != nil {
			t.Fatal(err)
		}
		if after-before != step.transactions {
			t.Errorf("%s: %d transactions, want %d", step.what, after-before, step.transactions)
		}
	}
}

// TestDispatchUnderFlood: during all changes, no packet passes a dispatch chain whose default and whose chains drop everything.
func TestDispatchUnderFlood(t *testing.T) {
	f := nfttest.NewFlooded(t)
	b := open(t, f.Node.Namespace)
	b.SetHook(table.IPv4, table.Raw, table.Prerouting, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "from"}}})
	set := func(there bool) {
		d := table.Dispatch{Name: "from", Chains: map[string]string{"other": "other"}, Default: verb(table.Drop)}
		b.SetChains(table.IPv4, table.Raw, table.Chain{Name: "other", Rules: verb(table.Drop)})
		if there {
			d.Chains["veth0"] = "one"
			b.SetChains(table.IPv4, table.Raw, table.Chain{Name: "one", Rules: verb(table.Drop)})
		} else {
			b.DeleteChains(table.IPv4, table.Raw, "one")
		}
		b.SetDispatch(table.IPv4, table.Raw, d)
		if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) > 0 {
			t.Fatalf("apply: %v, broken %v", res.Err, res.Broken)
		}
	}
	set(false)
	f.Begin(t)
	n := 0
	for end := time.Now().Add(10 * time.Second); n < 30000 && time.Now().Before(end); n++ {
		set(n%2 == 0)
	}
	f.End(t)
	if n < 100 {
		t.Errorf("only %d changes in 10 s", n)
	}
	if missed, _ := f.Counts(t); missed > 0 {
		t.Errorf("%d packets passed in %d changes", missed, n)
	}
}

// TestVerdictsUnderFlood: an interface moves from one chain to a new one repeatedly. All chains drop everything, and the default accepts:
// no packet meets the default, or a chain that is still empty.
func TestVerdictsUnderFlood(t *testing.T) {
	f := nfttest.NewFlooded(t)
	b := open(t, f.Node.Namespace)
	b.SetHook(table.IPv4, table.Raw, table.Prerouting, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "from"}}})
	set := func(n int) {
		name := func(n int) string { return "chain" + string(rune('a'+n%26)) }
		b.SetChains(table.IPv4, table.Raw, table.Chain{Name: name(n), Rules: verb(table.Drop)})
		b.DeleteChains(table.IPv4, table.Raw, name(n+25))
		b.SetDispatch(table.IPv4, table.Raw, table.Dispatch{Name: "from", Chains: map[string]string{"veth0": name(n)}, Default: verb(table.Accept)})
		if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) > 0 {
			t.Fatalf("apply: %v, broken %v", res.Err, res.Broken)
		}
	}
	set(0)
	f.Begin(t)
	n := 1
	for end := time.Now().Add(5 * time.Second); n < 30000 && time.Now().Before(end); n++ {
		set(n)
	}
	f.End(t)
	if n < 50 {
		t.Errorf("only %d changes in 5 s", n)
	}
	if missed, _ := f.Counts(t); missed > 0 {
		t.Errorf("%d packets passed in %d changes", missed, n)
	}
}

// TestChangesDuringGrace: a chain that no rule refers to any more is removed after a grace period. A change meanwhile does not wait for it,
// and a chain that is used again is kept.
func TestChangesDuringGrace(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	b := open(t, n.Host.NS)
	f, members := table.IPv4, []table.Member{{Net: netip.MustParsePrefix("10.0.0.1/32")}}
	from := func(chains ...string) {
		var rules []table.Rule
		for _, c := range chains {
			rules = append(rules, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: c}}})
		}
		b.SetChains(f, table.Filter, table.Chain{Name: "from", Rules: rules})
	}
	b.SetHook(f, table.Filter, table.Forward, table.Rule{Actions: []table.Action{{Verb: table.Jump, Chain: "from"}}})
	var nets []netip.Prefix // so many that they are a list
	for i := range 20 {
		nets = append(nets, netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(2 * i)}), 32))
	}
	uses := []table.Rule{{Match: table.Match{SrcSets: []string{"s"}, DstNets: nets}, Actions: []table.Action{{Verb: table.Accept}}}}
	b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetIP}, members)
	b.SetChains(f, table.Filter, table.Chain{Name: "one", Rules: uses}, table.Chain{Name: "two", Rules: verb(table.Drop)})
	from("one", "two")
	mustApply(t, b)

	waiting := make(chan struct{})
	b.view.Grace.Hold(waiting)
	apply := func() {
		t.Helper()
		if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) > 0 || res.Again != wire.GraceLook {
			t.Fatalf("apply: %+v", res)
		}
	}
	from("two")
	b.DeleteChains(f, table.Filter, "one")
	b.DeleteSet(f, "s")
	apply()
	for _, there := range []string{"filter-one", "set-s", "list-"} {
		if !strings.Contains(dump(t, b), there) {
			t.Errorf("%s has gone while packets may be on their way to it:\n%s", there, dump(t, b))
		}
	}
	b.SetChains(f, table.Filter, table.Chain{Name: "three", Rules: verb(table.Accept)})
	from("three")
	b.DeleteChains(f, table.Filter, "two")
	apply() // does not wait for the grace period
	if !strings.Contains(dump(t, b), "verdict -3 filter-three") {
		t.Errorf("the change waits:\n%s", dump(t, b))
	}
	b.SetChains(f, table.Filter, table.Chain{Name: "two", Rules: verb(table.Accept)})
	from("two", "three")
	apply()
	close(waiting)
	mustApply(t, b)
	if text := dump(t, b); strings.Contains(text, "filter-one") || strings.Contains(text, "set-s") || strings.Contains(text, "list-") ||
		!strings.Contains(text, "filter-two") {
		t.Errorf("after the grace period there is:\n%s", text)
	}
	b.Resync(true, true)
	if res := b.Apply(t.Context()); res.Err != nil || res.Writes != 0 {
		t.Errorf("the audit wrote %d objects, error %v", res.Writes, res.Err)
	}
}
