package tabletest

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// testInterfaces: packets are matched by their incoming and outgoing interfaces, by whole names and by prefixes.
func testInterfaces(t *testing.T, r *rig) {
	both(func(f table.Family) {
		in, out := table.PortRange{First: 1, Last: 1}, table.PortRange{First: 2, Last: 2}
		udp := func(p table.PortRange, m table.Match) table.Match {
			m.Protocol, m.DstPorts = 17, []table.PortRange{p}
			return m
		}
		r.b.SetChains(f, table.Filter, chain("policy",
			drop(udp(in, table.Match{InIface: "cali2"})),
			drop(udp(in, table.Match{InIface: "cali", OutIface: "eth0"})), // no interface has this name
			drop(udp(in, table.Match{InIface: "eth+", OutIface: "cali3"})),
			drop(udp(out, table.Match{OutIface: "cali2"})),
			drop(udp(out, table.Match{InIface: "cali+", OutIface: "e+"})),
			drop(table.Match{InIface: "cali3", OutIface: "+", Protocol: 6}),
		))
		r.b.SetHook(f, table.Filter, table.Forward, jump(always, "policy"))
	})
	r.apply()
	r.families(func(f table.Family) {
		p1, p2, p3, out := r.pod(1), r.pod(2), r.pod(3), r.net.Outside
		a1, a2, a3, o := p1.Addr(f), p2.Addr(f), p3.Addr(f), out.Addr(f)
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: p1.UDP(o, 1)}, Case{Want: Drop, Probe: p2.UDP(o, 1)}, Case{Want: Drop, Probe: p2.UDP(a3, 1)},
			Case{Want: Drop, Probe: out.UDP(a3, 1)}, Case{Want: Pass, Probe: out.UDP(a1, 1)}, Case{Want: Pass, Probe: p1.UDP(a3, 1)},
			Case{Want: Drop, Probe: p1.UDP(a2, 2)}, Case{Want: Drop, Probe: out.UDP(a2, 2)}, Case{Want: Pass, Probe: p2.UDP(a3, 2)},
			Case{Want: Drop, Probe: p1.UDP(o, 2)}, Case{Want: Drop, Probe: p3.TCP(o, 3)}, Case{Want: Drop, Probe: p3.TCP(a1, 3)},
			Case{Want: Pass, Probe: p2.TCP(o, 3)})
	})
}

// testAddressTypes: matches on the relation of an address to the node.
func testAddressTypes(t *testing.T, r *rig) {
	port := func(p uint16, m table.Match) table.Match {
		m.Protocol, m.DstPorts = 17, []table.PortRange{{First: p, Last: p}}
		return m
	}
	both(func(f table.Family) {
		r.b.SetHook(f, table.Mangle, table.Prerouting, jump(table.Match{InIface: "cali+"}, "types"))
		r.b.SetChains(f, table.Mangle, chain("types",
			drop(port(1, table.Match{Dst: table.AddrLocal})), drop(port(2, table.Match{Dst: table.AddrNotLocal}))))
		r.b.SetHook(f, table.Filter, table.Output, jump(always, "out"))
		r.b.SetChains(f, table.Filter, chain("out",
			drop(port(3, table.Match{Src: table.AddrLocal})), drop(port(4, table.Match{Src: table.AddrNotLocal}))))
		r.b.SetHook(f, table.Filter, table.Postrouting)
		r.b.SetHook(f, table.Mangle, table.Postrouting, jump(table.Match{OutIface: "eth0"}, "post"))
		r.b.SetChains(f, table.Mangle, chain("post",
			drop(port(5, table.Match{Src: table.AddrLocal, SrcNotOnOut: true})), drop(port(6, table.Match{SrcNotOnOut: true}))))
	})
	r.apply()
	extra := map[table.Family]netip.Addr{table.IPv4: netip.MustParseAddr("10.99.0.1"),
		table.IPv6: netip.MustParseAddr("fd00:99::1")}
	for _, a := range extra {
		if err := r.net.Host.NS.Do(func() error { return addAddr("lo", a, a.BitLen()) }); err != nil {
			t.Fatal(err)
		}
		// The kernel creates the local route of an IPv6 address later. Until then its match of address types does not treat the address as
		// local.
		if err := r.net.Host.waitAddress(a); err != nil {
			t.Fatal(err)
		}
	}
	r.families(func(f table.Family) {
		p, h, out := r.pod(1), r.net.Host, r.net.Outside
		o, ha := out.Addr(f), h.Addr(f)
		r.net.Expect(r.t,
			Case{Want: Drop, Probe: p.UDP(ha, 1)}, Case{Want: Pass, Probe: p.UDP(o, 1)},
			Case{Want: Pass, Probe: p.UDP(ha, 2)}, Case{Want: Drop, Probe: p.UDP(o, 2)},
			Case{Want: Drop, Probe: h.UDP(o, 3)}, Case{Want: Pass, Probe: h.UDP(o, 4)},
			Case{Want: Drop, Probe: h.UDP(o, 4).FromAddr(p.Addr(f))},
			Case{Want: Pass, Probe: h.UDP(o, 5)}, Case{Want: Pass, Probe: h.UDP(o, 6)},
			Case{Want: Drop, Probe: h.UDP(o, 5).FromAddr(extra[f])}, Case{Want: Pass, Probe: p.UDP(o, 5)},
			Case{Want: Drop, Probe: h.UDP(o, 6).FromAddr(extra[f])}, Case{Want: Drop, Probe: p.UDP(o, 6)})
	})
}

// testReversePath: packets whose source is not routed back to the interface they arrive on are distinguished from others.
func testReversePath(t *testing.T, r *rig) {
	both(func(f table.Family) {
		r.b.SetHook(f, table.Raw, table.Prerouting, drop(table.Match{InIface: "cali+", NoReversePath: true}))
	})
	r.apply()
	r.families(func(f table.Family) {
		o := r.net.Outside.Addr(f)
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: r.pod(1).UDP(o, 1)}, Case{Want: Pass, Probe: r.pod(1).UDP(r.pod(2).Addr(f), 1)},
			Case{Want: Drop, Probe: r.pod(1).UDP(o, 1).FromAddr(r.pod(2).Addr(f))},
			Case{Want: Drop, Probe: r.pod(1).UDP(o, 1).FromAddr(anywhere(f, 0, 9))},
			Case{Want: Pass, Probe: r.net.Outside.UDP(r.pod(1).Addr(f), 1).FromAddr(anywhere(f, 0, 9))})
	})
}

// testDispatch: packets go to their interface's chain; those of other interfaces go to the default rules.
func testDispatch(t *testing.T, r *rig) {
	both(func(f table.Family) {
		port := func(p uint16) table.Match {
			return table.Match{Protocol: 17, DstPorts: []table.PortRange{{First: p, Last: p}}}
		}
		r.b.SetChains(f, table.Filter, chain("from-1", accept(port(1)), drop(always)), chain("from-2", accept(port(2)), drop(always)),
			chain("to-2", drop(port(3))), // at its end the processing continues in the caller of the dispatch chain
			chain("policy",
				jump(table.Match{InIface: "cali+"}, "from"),
				jump(table.Match{OutIface: "cali+"}, "to"),
				drop(port(4))))
		r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Default: []table.Rule{drop(always)},
			Chains: map[string]string{"cali1": "from-1", "cali2": "from-2"}})
		r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "to", ByOut: true, Default: []table.Rule{drop(port(5))},
			Chains: map[string]string{"cali2": "to-2"}})
		r.b.SetHook(f, table.Filter, table.Forward,
			accept(table.Match{CT: table.CTEstablished}), jump(always, "policy"))
	})
	r.apply()
	r.families(func(f table.Family) {
		p1, p2, p3, out := r.pod(1), r.pod(2), r.pod(3), r.net.Outside
		a1, a2, o := p1.Addr(f), p2.Addr(f), out.Addr(f)
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: p1.UDP(o, 1)}, Case{Want: Drop, Probe: p1.UDP(o, 2)},
			Case{Want: Pass, Probe: p2.UDP(o, 2)}, Case{Want: Drop, Probe: p2.UDP(o, 1)},
			Case{Want: Drop, Probe: p3.UDP(o, 1)}, Case{Want: Drop, Probe: p3.TCP(a1, 1)},
			Case{Want: Drop, Probe: out.UDP(a2, 3)}, Case{Want: Drop, Probe: out.UDP(a2, 4)}, Case{Want: Pass, Probe: out.UDP(a2, 5)},
			Case{Want: Pass, Probe: out.UDP(a1, 3)}, Case{Want: Drop, Probe: out.UDP(a1, 4)}, Case{Want: Drop, Probe: out.UDP(a1, 5)})
	})
}

// testDispatchDelta: interfaces are added, change their chain and are removed, including interfaces that do not exist yet.
func testDispatchDelta(t *testing.T, r *rig) {
	f := table.IPv4
	d := func(chains map[string]string) {
		r.b.SetDispatch(f, table.Filter, table.Dispatch{Name: "from", Chains: chains, Default: []table.Rule{drop(always)}})
	}
	r.b.SetChains(f, table.Filter, chain("yes", accept(always)), chain("no", rule(always, table.Action{Verb: table.Reject})))
	r.b.SetHook(f, table.Filter, table.Forward, jump(table.Match{InIface: "cali+"}, "from"))
	o := r.net.Outside.Addr(f)
	expect := func(v1, v2, v3 Verdict) {
		t.Helper()
		r.net.Expect(t, Case{Want: v1, Probe: r.pod(1).UDP(o, 1)}, Case{Want: v2, Probe: r.pod(2).UDP(o, 1)},
			Case{Want: v3, Probe: r.pod(3).UDP(o, 1)})
	}
	d(nil)
	r.apply()
	expect(Drop, Drop, Drop)
	d(map[string]string{"cali1": "yes", "cali-later": "yes"})
	r.apply()
	expect(Pass, Drop, Drop)
	d(map[string]string{"cali1": "no", "cali2": "yes", "cali-later": "yes", "cali3": "yes"})
	r.apply()
	expect(Refuse, Pass, Pass)
	d(map[string]string{"cali2": "yes", "cali-later": "no"})
	r.apply()
	expect(Drop, Pass, Drop)
	// An interface that is created after its rules.
	if err := r.net.Host.NS.Do(func() error {
		link, err := netlink.LinkByName("cali3")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
		return netlink.LinkSetName(link, "cali-later")
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.net.Host.NS.Do(func() error {
		a := r.pod(3).Addr(f)
		return joinErrors(up("cali-later"), addNeigh("cali-later", a,
			r.pod(3).MAC), addRoute("cali-later", host(a), netip.Addr{}, netip.Addr{}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := joinErrors(r.net.Host.waitCarrier("cali-later"), r.pod(3).waitCarrier("eth0")); err != nil {
		t.Fatal(err)
	}
	expect(Drop, Pass, Refuse)
}
