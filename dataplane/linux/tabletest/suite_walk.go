package tabletest

import (
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// testConntrack: states of connections, packets that are not tracked, and packets that belong to no connection.
func testConntrack(t *testing.T, r *rig) {
	both(func(f table.Family) {
		to := func(i int) table.Match { return table.Match{DstNets: []netip.Prefix{host(anywhere(f, 0, i))}} }
		from := func(i int) table.Match { return table.Match{SrcNets: []netip.Prefix{host(anywhere(f, 0, i))}} }
		with := func(m table.Match, s table.CTState) table.Match { m.CT = s; return m }
		untracked := to(5)
		untracked.Protocol = 17
		r.b.SetHook(f, table.Raw, table.Prerouting, rule(untracked, table.Action{Verb: table.NoTrack}))
		r.b.SetChains(f, table.Filter, chain("policy",
			accept(with(to(1), table.CTNew)), drop(to(1)), drop(with(from(1), table.CTNew|table.CTInvalid)),
			accept(with(to(2), table.CTEstablished|table.CTRelated)), drop(to(2)),
			drop(with(from(3), table.CTEstablished)),
			drop(with(to(4), table.CTInvalid)),
			accept(with(to(5), table.CTUntracked)), drop(to(5)), drop(with(to(6), table.CTUntracked)),
			drop(with(from(7), table.CTRelated)),
		))
		r.b.SetHook(f, table.Filter, table.Forward, jump(always, "policy"))
	})
	r.apply()
	r.families(func(f table.Family) {
		p := r.pod(1)
		a := func(i int) netip.Addr { return anywhere(f, 0, i) }
		reply := uint8(0)
		if f == table.IPv6 {
			reply = 129
		}
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: p.UDP(a(1), 1)}, Case{Want: Pass, Probe: p.Ping(a(1))},
			Case{Want: Drop, Probe: r.net.Outside.UDP(p.Addr(f), 1).FromAddr(a(1))},
			Case{Want: Drop, Probe: p.UDP(a(2), 1)}, Case{Want: Drop, Probe: p.TCP(a(2), 1)},
			Case{Want: Pass, Probe: r.net.Outside.UDP(p.Addr(f), 2).FromAddr(a(2))}, // its answers are established
			Case{Want: Arrive, Probe: p.UDP(a(3), 1)}, Case{Want: Pass, Probe: r.net.Outside.UDP(p.Addr(f), 3).FromAddr(a(3))},
			Case{Want: Drop, Probe: p.Message(a(4), reply, 0), Why: "answer without request"}, Case{Want: Pass, Probe: p.UDP(a(4), 1)},
			Case{Want: Arrive, Probe: p.UDP(a(5), 1)}, Case{Want: Drop, Probe: p.TCP(a(5), 1)}, Case{Want: Pass, Probe: p.UDP(a(6), 1)})
	})
}

// testWalk: processing continues after a jump but not after a goto, returns leave the chain, and the end of a chain continues in its
// caller.
func testWalk(t *testing.T, r *rig) {
	both(func(f table.Family) {
		to := func(i int) table.Match { return table.Match{DstNets: []netip.Prefix{host(anywhere(f, 0, i))}} }
		r.b.SetChains(f, table.Filter,
			chain("policy", jump(to(1), "empty"), drop(to(1)),
				gotoChain(to(2), "empty"), drop(to(2)), // after the goto, processing continues in the hook, not with the drop
				jump(to(3), "goes"), drop(to(3)),
				jump(to(4), "returns"), drop(to(4)),
				jump(to(5), "returns-some"), accept(to(5)),
				jump(to(6), "deep-1"), drop(to(6)),
				returns(to(7)), drop(to(7)),
				accept(to(8))),
			chain("empty"),
			chain("goes", gotoChain(always, "accepts-udp"), accept(always)),
			chain("accepts-udp", accept(table.Match{Protocol: 17})),
			chain("returns", returns(always), accept(always)),
			chain("returns-some", returns(table.Match{Protocol: 17}), drop(always)),
			chain("deep-1", jump(always, "deep-2")), chain("deep-2", jump(always, "deep-3")),
			chain("deep-3", accept(table.Match{Protocol: 17}), returns(always), accept(always)),
			chain("after", drop(to(2)), drop(to(8))),
		)
		r.b.SetHook(f, table.Filter, table.Forward, jump(table.Match{InIface: "cali+"}, "policy"),
			accept(to(2)), jump(always, "after"))
	})
	r.apply()
	r.families(func(f table.Family) {
		p := r.pod(1)
		a := func(i int) netip.Addr { return anywhere(f, 0, i) }
		r.net.Expect(r.t,
			Case{Want: Drop, Probe: p.UDP(a(1), 1), Why: "end of a jump's chain"},
			Case{Want: Pass, Probe: p.UDP(a(2), 1), Why: "end of a goto's chain"},
			Case{Want: Pass, Probe: p.UDP(a(3), 1), Why: "goto in a jump"}, Case{Want: Drop, Probe: p.TCP(a(3), 1),
				Why: "goto in a jump"},
			Case{Want: Drop, Probe: p.UDP(a(4), 1), Why: "return"},
			Case{Want: Pass, Probe: p.UDP(a(5), 1), Why: "return"}, Case{Want: Drop, Probe: p.TCP(a(5), 1), Why: "no return"},
			Case{Want: Pass, Probe: p.UDP(a(6), 1), Why: "three deep"}, Case{Want: Drop, Probe: p.TCP(a(6), 1), Why: "three deep"},
			Case{Want: Pass, Probe: p.UDP(a(7), 1), Why: "return to the hook"},
			Case{Want: Pass, Probe: p.UDP(a(8), 1), Why: "accept ends the hook"})
	})
}

// testActions: marks over layers, rules with many actions, reject, log.
func testActions(t *testing.T, r *rig) {
	both(func(f table.Family) {
		to := func(i int) table.Match { return table.Match{DstNets: []netip.Prefix{host(anywhere(f, 0, i))}} }
		marked := func(i int, value, mask uint32, not bool) table.Match {
			m := to(i)
			m.Mark, m.MarkMask, m.MarkNot = value, mask, not
			return m
		}
		r.b.SetHook(f, table.Mangle, table.Prerouting, mark(always, 0, 0xffffffff), mark(to(1), 0x10000, 0x10000),
			mark(to(2), 0x50000, 0xf0000), mark(to(2), 0, 0x10000))
		set := table.Action{Verb: table.SetMark, Mark: 0x20000, Mask: 0x20000}
		r.b.SetChains(f, table.Filter, chain("policy",
			accept(marked(1, 0x10000, 0x10000, false)), drop(to(1)),
			drop(marked(2, 0x50000, 0xf0000, false)), drop(marked(2, 0x40000, 0xf0000, true)),
			rule(to(3), set, table.Action{Verb: table.Log, Prefix: "tabletest "}, table.Action{Verb: table.Jump, Chain: "checks"}),
			drop(to(3)),
			rule(to(4), set, table.Action{Verb: table.Return}), drop(to(4)),
			rule(to(5), table.Action{Verb: table.Reject}),
			rule(to(6)), // counts only
			rule(to(7), table.Action{Verb: table.Log, Prefix: "x"}), drop(to(7)),
			rule(to(8), table.Action{Verb: table.SetMark, Mark: 0x80000000, Mask: 0xffffffff}),
			accept(marked(8, 0x80000000, 0xffffffff, false)), drop(to(8)),
		), chain("checks", accept(marked(3, 0x20000, 0x20000, false))))
		r.b.SetHook(f, table.Filter, table.Forward, jump(table.Match{InIface: "cali+"}, "policy"),
			drop(marked(4, 0, 0x20000, false)))
	})
	r.apply()
	r.families(func(f table.Family) {
		p := r.pod(1)
		a := func(i int) netip.Addr { return anywhere(f, 0, i) }
		r.net.Expect(r.t, Case{Want: Pass, Probe: p.UDP(a(1), 1), Why: "mark"}, Case{Want: Pass, Probe: p.UDP(a(2), 1),
			Why: "masked mark"},
			Case{Want: Pass, Probe: p.UDP(a(3), 1), Why: "mark, log and jump"}, Case{Want: Pass, Probe: p.UDP(a(4), 1),
				Why: "mark and return"},
			Case{Want: Refuse, Probe: p.UDP(a(5), 1)}, Case{Want: Refuse, Probe: p.TCP(a(5), 1)},
			Case{Want: Pass, Probe: p.UDP(a(6), 1), Why: "no action"}, Case{Want: Drop, Probe: p.UDP(a(7), 1), Why: "log"},
			Case{Want: Pass, Probe: p.UDP(a(8), 1), Why: "whole mark"})
	})
}

// testOnce: a packet for which several alternatives of a match hold is processed by the rule's actions once.
func testOnce(t *testing.T, r *rig) {
	r.families(func(f table.Family) {
		to := anywhere(f, 0, 1)
		in := func(ports ...uint16) (list []table.Member) {
			for _, p := range ports {
				list = append(list, table.Member{Net: host(to), Proto: 17, Port: p})
			}
			return list
		}
		r.b.ReplaceSet(f, table.Set{ID: "once-a", Type: table.SetIPAndPort}, in(5, 6))
		r.b.ReplaceSet(f, table.Set{ID: "once-b", Type: table.SetIPAndPort}, in(5, 7))
		m := table.Match{Protocol: 17, DstPortSets: []string{"once-a", "once-b"},
			DstPorts: []table.PortRange{{First: 1, Last: 5}, {First: 20, Last: 22}, {First: 30, Last: 30}}}
		r.b.SetChains(f, table.Filter,
			chain("policy", mark(always, 0, onceMark), jump(m, "once"), accept(table.Match{Mark: onceMark, MarkMask: onceMark}),
				drop(always)),
			chain("once", drop(table.Match{Mark: onceMark, MarkMask: onceMark}), mark(always, onceMark, onceMark)))
		r.outgoing(f, "policy")
		r.apply()
		p := r.pod(1)
		r.net.Expect(r.t, Case{Want: Pass, Probe: p.UDP(to, 5), Why: "ports and both sets"}, Case{Want: Pass, Probe: p.UDP(to, 6)},
			Case{Want: Pass, Probe: p.UDP(to, 7)}, Case{Want: Pass, Probe: p.UDP(to, 4)}, Case{Want: Pass, Probe: p.UDP(to, 21)},
			Case{Want: Drop, Probe: p.UDP(to, 8)}, Case{Want: Pass, Probe: p.UDP(to, 30)}, Case{Want: Drop, Probe: p.TCP(to, 5)})
	})
}
