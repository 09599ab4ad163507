package iptables

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/filelock"
)

// stepClock is real time, which tests can advance.
type stepClock struct {
	realClock
	ahead time.Duration
}

func (c *stepClock) Now() time.Time { return c.realClock.Now().Add(c.ahead) }

func ruleset(n *namespace, v Variant) string {
	return n.sh(fmt.Sprintf("iptables-%s-save -t filter | grep -v '^[#:]'", v))
}

func basics(b *Backend) {
	b.SetChains(4, table.Filter, numberedChain("cali-a", 1, 2), numberedChain("cali-b", 3))
	b.SetHook(4, table.Filter, table.Forward, jump("cali-a"), jump("cali-b"))
}

// Changes of other programs to our rules in the kernel are repaired at the next check; their own rules are kept.
func TestClobberedInTheKernel(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		clock := &stepClock{}
		b := n.open(Config{Variant: v, Clock: clock})
		tool := "iptables-" + string(v)
		n.sh(tool + " -N THEIRS; " + tool + " -A FORWARD -s 192.0.2.1 -j THEIRS")
		before := ruleset(n, v)
		basics(b)
		apply(t, b)
		want := ruleset(n, v)
		for _, interferer := range []string{
			tool + " -F cali-a",
			tool + " -F FORWARD; " + tool + " -F cali-a; " + tool + " -X cali-a; " + tool + " -A FORWARD -s 192.0.2.1 -j THEIRS",
			tool + " -D cali-a 1; " + tool + " -I cali-b -j ACCEPT",
			"printf '*filter\\n:THEIRS - [0:0]\\n-A FORWARD -s 192.0.2.1 -j THEIRS\\nCOMMIT\\n' | " + tool + "-restore",
		} {
			n.sh(interferer)
			clock.ahead += time.Minute
			if r := apply(t, b); r.Writes == 0 {
				t.Errorf("%s: not noticed", interferer)
			}
			if got := ruleset(n, v); got != want {
				t.Errorf("%s\nleft  %s\nwant %s", interferer, got, want)
			}
		}
		n.sh(tool + " -I FORWARD -s 192.0.2.9 -j ACCEPT")
		clock.ahead += time.Minute
		apply(t, b)
		forward := n.sh(tool + "-save -t filter | grep 'A FORWARD'")
		if first, _, _ := strings.Cut(forward, "\n"); !strings.Contains(first, "cali-a") || !strings.Contains(forward, "192.0.2.9") {
			t.Errorf("a foreign rule is above ours, or lost:\n%s", forward)
		}
		n.sh(tool + " -D FORWARD -s 192.0.2.9 -j ACCEPT")
		apply(t, n.open(Config{Variant: v}))
		if got := ruleset(n, v); got != before {
			t.Errorf("uninstalled: %s\nwant %s", got, before)
		}
	})
}

// A chain that the kernel rejects (it may not be reached from FORWARD) is isolated, whether or not the variant reports the line.
func TestRefusedByTheKernel(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		b := n.open(Config{Variant: v})
		var hooks []table.Rule
		for i := range 20 {
			c := numberedChain(fmt.Sprintf("cali-%d", i), i)
			if i%9 == 4 {
				c.Rules = append(c.Rules, table.Rule{Match: table.Match{NoReversePath: true}, Actions: act(table.Accept)})
			}
			b.SetChains(4, table.Filter, c)
			hooks = append(hooks, jump(c.Name))
		}
		b.SetHook(4, table.Filter, table.Forward, hooks...)
		for range 2 {
			r := b.Apply(context.Background())
			want := []string{"chain v4 filter cali-13", "chain v4 filter cali-4"}
			if r.Err != nil || !slices.Equal(sortedKeys(r.Broken), want) {
				t.Fatalf("result %+v", r)
			}
		}
		rules := ruleset(n, v)
		if got := strings.Count(rules, "-j DROP"); got != 20 {
			t.Errorf("%d chains drop: %s", got, rules)
		}
		if strings.Contains(rules, "rpfilter") || strings.Count(rules, "-A FORWARD") != 20 {
			t.Errorf("rules: %s", rules)
		}
		b.SetChains(4, table.Filter, numberedChain("cali-4", 4), numberedChain("cali-13", 13))
		apply(t, b)
	})
}

// While another process holds the lock nothing is written; afterwards everything is.
func TestLockHeldByAnotherProcess(t *testing.T) {
	if !(system{}).has("iptables-legacy-restore") {
		t.Skip("SKIPPED: iptables-legacy-restore is not installed")
	}
	n := newNS(t)
	path := filepath.Join(t.TempDir(), "xtables.lock")
	b := n.open(Config{Variant: VariantLegacy, LockFilePath: path, LockTimeout: time.Second})
	unlock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	basics(b)
	start := time.Now()
	r := b.Apply(context.Background())
	if !errors.Is(r.Err, errLocked) || !strings.Contains(r.Err.Error(), path) {
		t.Fatalf("result %+v", r)
	}
	if d := time.Since(start); d < 900*time.Millisecond || d > 4*time.Second {
		t.Errorf("waited %v for a lock that may take a second", d)
	}
	if rules := ruleset(n, VariantLegacy); strings.Contains(rules, "cali") {
		t.Errorf("rules: %s", rules)
	}
	unlock()
	apply(t, b)
	if rules := ruleset(n, VariantLegacy); !strings.Contains(rules, "cali-a") {
		t.Errorf("rules: %s", rules)
	}
}

// The variant that already has rules is used, so that ours and kube-proxy's are in the same one.
func TestAutoVariant(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		n.sh("iptables-" + string(v) + " -A FORWARD -s 192.0.2.1 -j DROP")
		if got := n.open(Config{}).Variant(); got != v {
			t.Errorf("chose %s", got)
		}
	})
	n := newNS(t)
	want := VariantLegacy
	if strings.Contains(n.sh("iptables --version"), "nf_tables") {
		want = VariantNFT
	}
	if got := n.open(Config{}).Variant(); got != want {
		t.Errorf("with no rules chose %s; iptables is %s", got, want)
	}
	if names := n.sh("cat /proc/thread-self/net/ip_tables_names 2>/dev/null || true"); names != "" {
		t.Errorf("asking has set up legacy tables: %s", names)
	}
}

// Where the kernel has no table of iptables, the sets of an earlier process are removed without a program; otherwise the rules are, too.
func TestLeftovers(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		remove := func() table.Result {
			t.Helper()
			left, err := OpenLeftovers(context.Background(), Config{NS: n.ns})
			if err != nil {
				t.Fatal(err)
			}
			defer left.Close()
			if _, sets := left.(*setsOnly); sets != noTables(system{n.ns}) {
				t.Errorf("%T, though the kernel has no tables: %v", left, noTables(system{n.ns}))
			}
			return left.Apply(context.Background())
		}
		if res := remove(); res.Err != nil || res.Writes != 0 || !noTables(system{n.ns}) {
			t.Errorf("an empty namespace: %+v", res)
		}
		n.sh("ipset create cv40old hash:net; ipset create theirs hash:net")
		if res := remove(); res.Err != nil || res.Writes != 1 {
			t.Errorf("a set: %+v", res)
		}
		b := n.open(Config{Variant: v})
		basics(b)
		b.ReplaceSet(4, table.Set{ID: "s", Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
		apply(t, b)
		if res := remove(); res.Err != nil || res.Writes == 0 || noTables(system{n.ns}) {
			t.Errorf("rules: %+v", res)
		}
		if rules, sets := ruleset(n, v), n.sh("ipset list -n"); strings.Contains(rules, "cali-") || sets != "theirs\n" {
			t.Errorf("left over: rules %s, sets %s", rules, sets)
		}
	})
}

// When the variant changes, our rules move and the sets that they use are kept; rules of others are kept where they are.
func TestVariantChanges(t *testing.T) {
	n := newNS(t)
	for _, v := range []Variant{VariantNFT, VariantLegacy} {
		if !(system{}).has("iptables-" + string(v) + "-restore") {
			t.Skipf("SKIPPED: iptables-%s-restore is not installed", v)
		}
		n.sh("iptables-" + string(v) + " -A FORWARD -s 192.0.2.1 -j DROP")
	}
	for i := range 4 {
		v, other := VariantNFT, VariantLegacy
		if i%2 == 1 {
			v, other = other, v
		}
		b := n.open(Config{Variant: v})
		basics(b)
		b.ReplaceSet(4, table.Set{ID: "s", Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
		b.SetChains(4, table.Filter, table.Chain{Name: "cali-b", Rules: []table.Rule{
			{Match: table.Match{SrcSets: []string{"s"}}, Actions: act(table.Drop)}}})
		if r := apply(t, b); i > 0 && r.Writes > 30 {
			t.Errorf("step %d: %d writes", i, r.Writes)
		}
		if rules := ruleset(n, v); !strings.Contains(rules, "cali-a") || !strings.Contains(rules, "192.0.2.1") {
			t.Errorf("step %d: %s has %s", i, v, rules)
		}
		if rules := ruleset(n, other); strings.Contains(rules, "cali-") || !strings.Contains(rules, "192.0.2.1") {
			t.Errorf("step %d: %s still has %s", i, other, rules)
		}
		if names := n.sh("ipset list -n"); strings.TrimSpace(names) != "cv40s" {
			t.Errorf("step %d: sets %s", i, names)
		}
		before := ruleset(n, v)
		if apply(t, b); ruleset(n, v) != before {
			t.Error("a second apply has changed something")
		}
	}
}

// An apply that repairs the members of a set reports it, as it does for rules: the driver checks the connections that were opened meanwhile.
func TestFlushedSet(t *testing.T) {
	n := newNS(t)
	b := n.open(Config{Variant: VariantNFT})
	b.ReplaceSet(4, table.Set{ID: "s", Type: table.SetIP}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
	for i, flushed := range []bool{false, false, true, false} {
		if flushed {
			n.sh("ipset flush")
		}
		b.Resync(true, false)
		if r := apply(t, b); r.Repaired != flushed {
			t.Errorf("apply %d: %+v, want repaired %t", i, r, flushed)
		}
	}
}

// A rule changes to a set of another type without a moment in which the set is empty, and the old set is removed.
func TestSetChangesType(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		n := newNS(t)
		b := n.open(Config{Variant: v})
		b.SetChains(4, table.Filter, table.Chain{Name: "cali-a", Rules: []table.Rule{
			{Match: table.Match{SrcSets: []string{"s"}}, Actions: act(table.Drop)}}})
		b.SetHook(4, table.Filter, table.Forward, jump("cali-a"))
		for i, typ := range []table.SetType{table.SetIP, table.SetNet, table.SetIP, table.SetNet} {
			b.ReplaceSet(4, table.Set{ID: "s", Type: typ}, []table.Member{{Net: nets("10.0.0.1/32")[0]}})
			r := apply(t, b)
			for tries := 0; r.Again > 0 && r.Again < 500*time.Millisecond; tries++ {
				if tries > 20 {
					t.Fatal("the old set does not go")
				}
				time.Sleep(r.Again)
				r = apply(t, b)
			}
			sets := strings.Fields(n.sh("ipset list -n"))
			if len(sets) != 1 || !strings.Contains(ruleset(n, v), "--match-set "+sets[0]+" src") {
				t.Errorf("step %d: sets %v, rules %s", i, sets, ruleset(n, v))
			}
		}
	})
}
