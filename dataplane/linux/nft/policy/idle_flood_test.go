package policy

import (
	"net/netip"
	"regexp"
	"strconv"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// TestIdleUnderFlood: while chains get rules and lose them, no packet passes that a later chain drops, and none is dropped that a later
// chain accepts.
func TestIdleUnderFlood(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		f := nfttest.NewFlooded(t)
		b := open(t, f.Node.Namespace)
		// The flood's packets are counted on arrival with priority -400, and those that pass with -50.
		f.Node.Run("nft add chain ip watch first { type filter hook prerouting priority -400 ; }")
		f.Node.Run("nft add rule ip watch first ip daddr " + nfttest.VIP + " counter")
		l := table.Raw
		undecided := table.Match{MarkMask: 0x30000}
		accepted := table.Match{Mark: 0x10000, MarkMask: 0x10000}
		p := func(m table.Match, name string) table.Rule { return table.Rule{Match: m, Actions: jump(name)} }
		b.SetHook(table.IPv4, l, table.Prerouting, table.Rule{Match: table.Match{InIface: "veth+"}, Actions: jump("from")})
		b.SetDispatch(table.IPv4, l, table.Dispatch{Name: "from", Chains: map[string]string{"veth0": "pod"}, Default: verb(table.Drop)})
		b.SetChains(table.IPv4, l, table.Chain{Name: "pod", Rules: []table.Rule{
			p(undecided, "one"), p(undecided, "two"), p(undecided, "three"), p(undecided, "last"),
			{Match: accepted, Actions: do(accept)}, {Actions: do(dropIt)}}})
		last := []table.Rule{{Match: table.Match{Protocol: 6}, Actions: do(dropIt)}}
		if allowed {
			last[0].Actions = do(table.Action{Verb: table.SetMark, Mark: 0x10000, Mask: 0x10000}, table.Action{Verb: table.Return})
		}
		b.SetChains(table.IPv4, l, table.Chain{Name: "last", Rules: last})
		other := table.Action{Verb: table.Drop}
		if !allowed {
			other.Verb = table.Accept
		}
		some := func(m table.Match) []table.Rule { return []table.Rule{{Match: m, Actions: do(other)}} }
		step := func(n int) {
			one, two, members := []table.Rule(nil), []table.Rule(nil), []table.Member(nil)
			if n&1 > 0 {
				one = some(table.Match{Protocol: 17})
			}
			if n&2 > 0 {
				two = some(table.Match{DstNets: []netip.Prefix{pfx("10.97.0.0/16")}})
			}
			if n&4 > 0 {
				members = []table.Member{{Net: pfx("10.98.0.0/16")}}
			}
			b.ReplaceSet(table.IPv4, table.Set{ID: "s", Type: table.SetNet}, members)
			b.SetChains(table.IPv4, l, table.Chain{Name: "one", Rules: one}, table.Chain{Name: "two", Rules: two},
				table.Chain{Name: "three", Rules: some(table.Match{DstSets: []string{"s"}})})
			if res := b.Apply(t.Context()); res.Err != nil || len(res.Broken) > 0 {
				t.Fatalf("apply: %v, broken %v", res.Err, res.Broken)
			}
		}
		step(0)
		f.Begin(t)
		n := 1
		for end := time.Now().Add(500 * time.Millisecond); n < 30000 && time.Now().Before(end); n++ {
			step(n * 3)
		}
		f.End(t)
		came := func() (n int) {
			if found := regexp.MustCompile(`packets (\d+)`).FindStringSubmatch(f.Node.Run("nft list chain ip watch first")); found != nil {
				n, _ = strconv.Atoi(found[1])
			}
			return n
		}
		passed, _ := f.Counts(t)
		for end := time.Now().Add(5 * time.Second); allowed && passed != came() && time.Now().Before(end); {
			passed, _ = f.Counts(t) // some packets are still being processed
		}
		if want := map[bool]int{true: came()}[allowed]; passed != want || came() == 0 || n < 10 {
			t.Errorf("allowed %v: %d of %d packets passed in %d changes", allowed, passed, came(), n)
		}
	}
}
