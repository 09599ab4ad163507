package tabletest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// nets returns members for prefixes.
func nets(list ...string) (members []table.Member) {
	for _, s := range list {
		members = append(members, table.Member{Net: netip.MustParsePrefix(s)})
	}
	return members
}

// setRule lets packets from pod 1 pass only if their destination is in the set.
func (r *rig) setRule(f table.Family, id string) {
	r.b.SetChains(f, table.Filter, chain("policy", accept(table.Match{DstSets: []string{id}}), drop(always)))
	r.outgoing(f, "policy")
}

// expectDst sends UDP packets from pod 1 to addresses outside.
func (r *rig) expectDst(pass, drop []string) {
	r.t.Helper()
	var cases []Case
	for _, a := range pass {
		cases = append(cases, Case{Want: Pass, Probe: r.pod(1).UDP(netip.MustParseAddr(a), 1)})
	}
	for _, a := range drop {
		cases = append(cases, Case{Want: Drop, Probe: r.pod(1).UDP(netip.MustParseAddr(a), 1)})
	}
	r.net.Expect(r.t, cases...)
}

// testSets: members of sets of prefixes overlap, are adjacent and reach the ends of the address space.
func testSets(t *testing.T, r *rig) {
	f := table.IPv4
	r.b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, nets("203.0.113.0/28", "203.0.113.4/30", "203.0.113.5/32",
		"203.0.113.16/28", "255.255.255.255/32", "0.0.0.0/32", "128.0.0.0/2"))
	r.setRule(f, "s")
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.5", "203.0.113.15", "203.0.113.16", "203.0.113.31"},
		[]string{"203.0.113.32", "203.0.113.255", "198.51.100.1"})
	// Members that a larger prefix covered still match when the larger one is removed.
	r.b.ChangeSet(f, "s", nil, nets("203.0.113.0/28"))
	r.apply()
	r.expectDst([]string{"203.0.113.4", "203.0.113.5", "203.0.113.7", "203.0.113.16"}, []string{"203.0.113.3", "203.0.113.8",
		"203.0.113.1"})
	r.b.ChangeSet(f, "s", nets("203.0.113.0/24"), nets("203.0.113.4/30", "9.9.9.9/32"))
	r.apply()
	r.expectDst([]string{"203.0.113.4", "203.0.113.200"}, []string{"198.51.100.1"})
	r.b.ChangeSet(f, "s", nets("0.0.0.0/0"), nil)
	r.apply()
	r.expectDst([]string{"203.0.113.4", "198.51.100.1"}, nil)
	r.b.ChangeSet(f, "s", nil, nets("0.0.0.0/0", "203.0.113.0/24"))
	r.apply()
	r.expectDst([]string{"203.0.113.5", "203.0.113.20"}, []string{"203.0.113.4", "203.0.113.200", "198.51.100.1"})
	r.ipv6Sets()
}

func (r *rig) ipv6Sets() {
	f := table.IPv6
	r.b.ReplaceSet(f, table.Set{ID: "s", Type: table.SetNet}, nets("fd00:203::/126", "fd00:203::8/125", "fd00:203::9/128",
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "8000::/1"))
	r.setRule(f, "s")
	r.b.ChangeSet(f, "s", nil, nets("8000::/1"))
	r.apply()
	r.expectDst([]string{"fd00:203::1", "fd00:203::3", "fd00:203::8", "fd00:203::f"}, []string{"fd00:203::4", "fd00:203::10",
		"fd00:198::1"})
	r.b.ChangeSet(f, "s", nets("8000::/1"), nets("fd00:203::8/125"))
	r.apply()
	r.expectDst([]string{"fd00:203::1", "fd00:198::1", "fd00:203::a"}, nil)
	r.b.ChangeSet(f, "s", nil, nets("8000::/1"))
	r.apply()
	r.expectDst([]string{"fd00:203::9"}, []string{"fd00:203::8", "fd00:198::1"})
}

// testSetChanges: members are added, removed, added twice, replaced; the set changes its type and is removed.
func testSetChanges(t *testing.T, r *rig) {
	f := table.IPv4
	ip := table.Set{ID: "changing", Type: table.SetIP}
	r.b.ReplaceSet(f, ip, nets("203.0.113.1/32", "203.0.113.2/32"))
	r.setRule(f, "changing")
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.2"}, []string{"203.0.113.3"})

	r.b.ChangeSet(f, "changing", nets("203.0.113.3/32", "203.0.113.1/32"), nets("203.0.113.2/32", "203.0.113.9/32"))
	r.b.ChangeSet(f, "unknown", nets("203.0.113.3/32"), nil) // ignored
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.3"}, []string{"203.0.113.2"})

	r.b.ChangeSet(f, "changing", nets("203.0.113.4/32"), nil)
	r.b.ChangeSet(f, "changing", nil, nets("203.0.113.4/32"))
	if res := r.apply(); res.Writes != 0 {
		t.Errorf("a member that came and went made %d writes", res.Writes)
	}
	r.b.ReplaceSet(f, ip, nets("203.0.113.5/32", "203.0.113.1/32"))
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.5"}, []string{"203.0.113.3"})

	r.b.ReplaceSet(f, ip, nets("203.0.113.5/32", "203.0.113.1/32"))
	if res := r.apply(); res.Writes != 0 {
		t.Errorf("the same members again made %d writes", res.Writes)
	}
	r.b.ReplaceSet(f, table.Set{ID: "changing", Type: table.SetNet}, nets("203.0.113.0/30"))
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.3"}, []string{"203.0.113.5"})

	r.b.SetChains(f, table.Filter, chain("policy"))
	r.b.DeleteSet(f, "changing")
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.5"}, nil)
	r.b.ReplaceSet(f, ip, nil)
	r.setRule(f, "changing")
	r.apply()
	r.expectDst(nil, []string{"203.0.113.1", "203.0.113.5"})
}

// testLargeSet: 100,000 members, and one more.
func testLargeSet(t *testing.T, r *rig) {
	f := table.IPv4
	members := make([]table.Member, 0, 100_000)
	for i := range 100_000 - 256 {
		a := netip.AddrFrom4([4]byte{20, byte(i >> 16), byte(i >> 8), byte(i)})
		members = append(members, table.Member{Net: host(a)})
	}
	for i := range 256 {
		if i != 77 {
			members = append(members, table.Member{Net: host(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}))})
		}
	}
	r.b.ReplaceSet(f, table.Set{ID: "large", Type: table.SetIP}, members)
	r.setRule(f, "large")
	start := time.Now()
	r.apply()
	t.Logf("%d members in %v", len(members), time.Since(start).Round(time.Millisecond))
	r.expectDst([]string{"203.0.113.1", "203.0.113.255"}, []string{"203.0.113.77", "198.51.100.1"})
	r.b.ChangeSet(f, "large", nets("203.0.113.77/32"), nets("203.0.113.1/32"))
	start = time.Now()
	r.apply()
	t.Logf("one changed among them in %v", time.Since(start).Round(10*time.Microsecond))
	r.expectDst([]string{"203.0.113.77", "203.0.113.255"}, []string{"203.0.113.1"})
}

// testSetOverMax: a set that grows beyond its limit is broken and lets nothing pass; others work; it recovers.
func testSetOverMax(t *testing.T, r *rig) {
	f := table.IPv4
	r.b.ReplaceSet(f, table.Set{ID: "big", Type: table.SetIP, Max: 3}, nets("203.0.113.1/32", "203.0.113.2/32"))
	r.b.ReplaceSet(f, table.Set{ID: "other", Type: table.SetIP, Max: 3}, nets("203.0.113.9/32"))
	r.b.SetChains(f, table.Filter, chain("policy", jump(table.Match{DstNets: Anywhere(f)[1:]}, "apart"),
		accept(table.Match{DstSets: []string{"other"}}), jump(always, "uses")),
		chain("uses", accept(table.Match{DstSets: []string{"big"}}), drop(always)),
		chain("apart", accept(always)))
	r.outgoing(f, "policy")
	r.apply()
	r.expectDst([]string{"203.0.113.1", "203.0.113.9", "198.51.100.1"}, []string{"203.0.113.3"})

	r.b.ReplaceSet(f, table.Set{ID: "big", Type: table.SetIP, Max: 3}, nets("203.0.113.1/32", "203.0.113.2/32",
		"203.0.113.3/32", "203.0.113.4/32"))
	r.b.ChangeSet(f, "other", nets("203.0.113.10/32"), nil)
	res := r.tryApply()
	if res.Broken["set v4 big"] == nil {
		t.Fatalf("broken: %v, want it to have set v4 big", res.Broken)
	}
	r.expectDst([]string{"203.0.113.9", "203.0.113.10", "198.51.100.1"}, []string{"203.0.113.4", "203.0.113.5"})

	r.b.ChangeSet(f, "big", nil, nets("203.0.113.1/32", "203.0.113.9/32"))
	r.apply()
	r.expectDst([]string{"203.0.113.3", "203.0.113.4", "203.0.113.9"}, []string{"203.0.113.1"})
}

// applyLoop applies until nothing is pending, at most ten times.
func (r *rig) applyLoop() {
	r.t.Helper()
	for range 10 {
		if !r.b.Pending() {
			return
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
		r.b.Apply(ctx)
		cancel()
	}
}
