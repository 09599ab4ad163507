package tabletest

import (
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
)

const (
	swapTime  = time.Second     // at least, while packets are sent
	swapLimit = 3 * time.Second // for a backend that needs processes for every change
	minSwaps  = 40
	swaps     = 300
	pace      = 20 * time.Microsecond
)

// enough reports whether there were enough changes for a long enough time.
func enough(done int, since time.Time) bool {
	t := time.Since(since)
	return done >= swaps && t >= swapTime || done >= minSwaps && t >= swapLimit
}

// swapping runs change repeatedly while one stream must pass and another must not.
func (r *rig) swapping(f table.Family, change func(i int)) {
	r.t.Helper()
	good := r.net.Stream(r.t, r.pod(1).UDP(anywhere(f, 0, 1), 1), pace)
	bad := r.net.Stream(r.t, r.pod(1).UDP(anywhere(f, 0, 2), 1), pace)
	done := 0
	for start := time.Now(); !enough(done, start); done++ {
		change(done)
		r.apply()
	}
	for good.Sent() < 100 || bad.Sent() < 100 {
		time.Sleep(time.Millisecond)
	}
	sent, arrived := good.Stop()
	wrong, passed := bad.Stop()
	r.t.Logf("%d changes; %d of %d packets passed, %d of %d that may not", done, arrived, sent, passed, wrong)
	if arrived != sent {
		r.t.Errorf("%d of %d packets were lost during %d changes", sent-arrived, sent, done)
	}
	if passed != 0 {
		r.t.Errorf("%d of %d packets passed wrongly during %d changes", passed, wrong, done)
	}
}

// testSwapChain: a chain is replaced by others with the same effect in another form.
func testSwapChain(t *testing.T, r *rig) {
	r.families(func(f table.Family) {
		good, bad := host(anywhere(f, 0, 1)), host(anywhere(f, 0, 2))
		bodies := [][]table.Rule{
			{accept(table.Match{DstNets: []netip.Prefix{good}}), drop(always)},
			{drop(table.Match{DstNets: []netip.Prefix{bad}}), mark(always, 0x10000, 0x10000), accept(always)},
			{jump(always, "inner"), drop(always)},
			{mark(always, 0x20000, 0xffffffff), drop(table.Match{NotDstNets: []netip.Prefix{good}}), returns(always), drop(always)},
		}
		r.outgoing(f, "policy")
		set := func(i int) {
			chains := []table.Chain{chain("policy", bodies[i%len(bodies)]...)}
			if i%len(bodies) == 2 {
				chains = append(chains, chain("inner", accept(table.Match{DstNets: []netip.Prefix{good}, Protocol: 17})))
			} else {
				r.b.DeleteChains(f, table.Filter, "inner")
			}
			r.b.SetChains(f, table.Filter, chains...)
		}
		set(0)
		r.apply()
		r.swapping(f, set)
	})
}

// testSwapSet: a set is replaced, changed and exchanged for another in the rule.
func testSwapSet(t *testing.T, r *rig) {
	r.families(func(f table.Family) {
		good := host(anywhere(f, 0, 1))
		filler := func(i int) table.Member { return table.Member{Net: host(anywhere(f, 1, 1+i%200))} }
		r.b.ReplaceSet(f, table.Set{ID: "a", Type: table.SetNet}, []table.Member{{Net: good}})
		r.b.ReplaceSet(f, table.Set{ID: "b", Type: table.SetIP}, []table.Member{{Net: good}})
		r.setRule(f, "a")
		r.apply()
		r.swapping(f, func(i int) {
			switch i % 4 {
			case 0:
				r.b.ReplaceSet(f, table.Set{ID: "a", Type: table.SetNet}, []table.Member{{Net: good}, filler(i), filler(i + 7)})
			case 1:
				// Another prefix covers the address, then the address itself is removed.
				wide := netip.PrefixFrom(good.Addr(), good.Bits()-1).Masked()
				r.b.ChangeSet(f, "a", []table.Member{{Net: wide}}, []table.Member{{Net: good}, filler(i)})
			case 2:
				r.b.ReplaceSet(f, table.Set{ID: "b", Type: table.SetIP}, []table.Member{{Net: good}, filler(i)})
				r.setRule(f, "b")
			case 3:
				r.b.ReplaceSet(f, table.Set{ID: "a", Type: table.SetNet}, []table.Member{{Net: good}})
				r.setRule(f, "a")
			}

		})
	})
}

// sample adds a desired state that uses everything once.
func (r *rig) sample() {
	both(func(f table.Family) {
		r.b.ReplaceSet(f, table.Set{ID: "s-ip", Type: table.SetIP}, []table.Member{{Net: host(anywhere(f, 0, 1))},
			{Net: host(anywhere(f, 0, 3))}})
		r.b.ReplaceSet(f, table.Set{ID: "s-net", Type: table.SetNet}, []table.Member{
			{Net: Anywhere(f)[1]}, {Net: host(anywhere(f, 1, 1))},
			{Net: netip.PrefixFrom(anywhere(f, 0, 200), anywhere(f, 0, 0).BitLen()-3).Masked()}})
		r.b.ReplaceSet(f,
			table.Set{ID: "s-port", Type: table.SetIPAndPort}, []table.Member{{Net: host(anywhere(f, 0, 4)), Proto: 17, Port: 1}})
		r.b.SetChains(f, table.Filter,
			chain("policy", accept(table.Match{CT: table.CTEstablished | table.CTRelated}), jump(table.Match{InIface: "cali+"}, "from")),
			chain("pod-1", jump(always, "rules"), drop(always)), chain("pod-2", accept(always)),
			chain("rules", accept(table.Match{DstSets: []string{"s-ip"}}), accept(table.Match{DstSets: []string{"s-net"}}),
				accept(table.Match{DstPortSets: []string{"s-port"}}),
				accept(table.Match{Protocol: 6, DstPorts: []table.PortRange{{First: 80, Last: 88}, {First: 443, Last: 443}}}),
				table.Rule{Match: table.Match{Protocol: icmpProto(f), ICMP: &table.ICMP{Type: 8}}, Comment: "echo",
					Actions: []table.Action{{Verb: table.SetMark, Mark: 0x10000, Mask: 0x10000}, {Verb: table.Return}}}))
		r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Default: []table.Rule{drop(always)},
			Chains: map[string]string{"cali1": "pod-1", "cali2": "pod-2"}})
		r.b.SetHook(f, table.Filter, table.Forward, jump(always, "policy"))
		r.b.SetHook(f, table.NAT, table.Postrouting, jump(table.Match{OutIface: "eth0"}, "masq"))
		r.b.SetChains(f, table.NAT, chain("masq", rule(table.Match{SrcNets: []netip.Prefix{host(r.pod(2).Addr(f))}},
			table.Action{Verb: table.Masquerade})))
		r.b.SetHook(f, table.Raw, table.Prerouting, mark(always, 0, 0xffff0000))
	})
}

// expectSample checks the sample's effects.
func (r *rig) expectSample() {
	r.t.Helper()
	both(func(f table.Family) {
		p1, p2, p3 := r.pod(1), r.pod(2), r.pod(3)
		a := func(i int) netip.Addr { return anywhere(f, 0, i) }
		r.net.Expect(r.t, Case{Want: Pass, Probe: p1.UDP(a(1), 1)}, Case{Want: Drop, Probe: p1.UDP(a(2), 1)},
			Case{Want: Pass, Probe: p1.UDP(anywhere(f, 1, 9), 1)}, Case{Want: Pass, Probe: p1.UDP(a(4), 1)},
			Case{Want: Drop, Probe: p1.UDP(a(4), 2)}, Case{Want: Pass, Probe: p1.TCP(a(5), 85)},
			Case{Want: Drop, Probe: p1.TCP(a(5), 89)},
			Case{Want: Pass, Probe: p2.UDP(a(2), 1), SeenAs: r.net.Host.Addr(f)}, Case{Want: Drop, Probe: p3.UDP(a(1), 1)})
	})
}

// testRestart: a new process with the same desired state writes nothing and disturbs nothing.
func testRestart(t *testing.T, r *rig) {
	r.sample()
	if !r.b.Pending() {
		t.Error("nothing pending before the first apply")
	}
	if res := r.apply(); res.Writes == 0 {
		t.Error("the first apply wrote nothing")
	}
	if res := r.apply(); res.Writes != 0 {
		t.Errorf("a second apply without changes wrote %d objects", res.Writes)
	}
	r.expectSample()
	before := r.dump()
	for range 2 {
		good := r.net.Stream(t, r.pod(1).UDP(anywhere(table.IPv4, 0, 1), 1), pace)
		bad := r.net.Stream(t, r.pod(1).UDP(anywhere(table.IPv4, 0, 2), 1), pace)
		r.restart()
		r.sample()
		if res := r.apply(); res.Writes != 0 {
			t.Errorf("a restart wrote %d objects though nothing had changed", res.Writes)
		}
		for good.Sent() < 50 || bad.Sent() < 50 {
			time.Sleep(time.Millisecond)
		}
		if sent, arrived := good.Stop(); sent != arrived {
			t.Errorf("%d of %d packets were lost over a restart", sent-arrived, sent)
		}
		if _, passed := bad.Stop(); passed > 0 {
			t.Errorf("%d packets passed wrongly over a restart", passed)
		}
	}
	if after := r.dump(); after != before {
		t.Errorf("the restart changed the kernel's state:\n%s", diff(before, after))
	}
	r.expectSample()
}

// testLeftovers: unwanted objects of an earlier process are removed; those that changed meanwhile are updated.
func testLeftovers(t *testing.T, r *rig) {
	r.sample()
	r.apply()
	sample := r.dump()
	both(func(f table.Family) {
		r.b.ReplaceSet(f, table.Set{ID: "old", Type: table.SetNet}, []table.Member{{Net: host(anywhere(f, 0, 1))}})
		r.b.ChangeSet(f, "s-ip", []table.Member{{Net: host(anywhere(f, 0, 2))}}, []table.Member{{Net: host(anywhere(f, 0, 1))}})
		r.b.SetChains(f, table.Filter, chain("old-chain", drop(table.Match{SrcSets: []string{"old"}})),
			chain("policy", jump(always, "old-chain"), jump(always, "old-dispatch")), chain("rules", drop(always)))
		r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "old-dispatch", Chains: map[string]string{"cali9": "old-chain"}})
		r.b.SetHook(f, table.Mangle, table.Prerouting, drop(table.Match{InIface: "cali2"}))
		r.b.SetChains(f, table.NAT, chain("masq"))
	})
	r.apply()
	if r.dump() == sample {
		t.Fatal("the dump does not show the differences")
	}
	r.restart()
	r.sample()
	if res := r.apply(); res.Writes == 0 {
		t.Error("nothing was written")
	}
	if got := r.dump(); got != sample {
		t.Errorf("leftovers:\n%s", diff(sample, got))
	}
	r.expectSample()
	// All of it is removed when nothing is desired.
	r.restart()
	r.apply()
	r.net.Expect(t, Case{Want: Pass, Probe: r.pod(3).UDP(anywhere(table.IPv4, 0, 2), 1)},
		Case{Want: Pass, Probe: r.pod(2).UDP(anywhere(table.IPv6, 0, 2), 1)})
}

// testBadChain: chains that cannot be programmed are reported, packets that enter them are dropped, and everything else works.
func testBadChain(t *testing.T, r *rig) {
	bad := map[string][]table.Rule{
		"jumps to a chain that is not there":  {jump(always, "missing"), accept(always)},
		"uses a set that is not there":        {drop(table.Match{SrcSets: []string{"missing"}}), accept(always)},
		"translates in a layer that does not": {rule(always, table.Action{Verb: table.DNAT, To: netip.MustParseAddr("10.0.0.1")})},
	}
	f := table.IPv4
	r.b.SetHook(f, table.Filter, table.Forward, accept(table.Match{CT: table.CTEstablished}),
		jump(table.Match{InIface: "cali+"}, "from"))
	for name, rules := range bad {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.b.SetChains(f, table.Filter, chain("bad", rules...),
				chain("good", drop(table.Match{DstNets: []netip.Prefix{host(anywhere(f, 0, 2))}}), accept(always)))
			r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Default: []table.Rule{drop(always)},
				Chains: map[string]string{"cali1": "bad", "cali2": "good"}})
			r.broken("chain v4 filter bad")
			r.expectBad()
			r.broken("chain v4 filter bad")
			r.b.SetChains(f, table.Filter, chain("bad", accept(always)))
			r.apply()
			r.net.Expect(t, Case{Want: Pass, Probe: r.pod(1).UDP(anywhere(f, 0, 1), 1)})
			r.b.SetChains(f, table.Filter, chain("bad", rules...)) // a working chain becomes bad
			r.broken("chain v4 filter bad")
			r.expectBad()
		})
	}
	r.t = t
}

func (r *rig) expectBad() {
	r.t.Helper()
	f := table.IPv4
	r.net.Expect(r.t, Case{Want: Drop, Probe: r.pod(1).UDP(anywhere(f, 0, 1), 1), Why: "through the bad chain"},
		Case{Want: Pass, Probe: r.pod(2).UDP(anywhere(f, 0, 1), 1)}, Case{Want: Drop, Probe: r.pod(2).UDP(anywhere(f, 0, 2), 1)},
		Case{Want: Drop, Probe: r.pod(3).UDP(anywhere(f, 0, 1), 1)})
}
