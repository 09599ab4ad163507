package tabletest

import (
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// testDNAT: destinations are translated, with and without ports, for packets that arrive and for the host's own.
func testDNAT(t *testing.T, r *rig) {
	both(func(f table.Family) {
		to := func(i int, m table.Match) table.Match {
			m.DstNets = []netip.Prefix{host(anywhere(f, 0, i))}
			return m
		}
		a2 := r.pod(2).Addr(f)
		r.b.SetChains(f, table.NAT, chain("dnat",
			rule(to(1, table.Match{}), table.Action{Verb: table.DNAT, To: a2}),
			rule(to(2, table.Match{Protocol: 17, DstPorts: []table.PortRange{{First: 80, Last: 80}}}),
				table.Action{Verb: table.DNAT, To: a2, Ports: table.PortRange{First: 8080, Last: 8080}}),
			rule(to(3, table.Match{Protocol: 6}),
				table.Action{Verb: table.DNAT, To: a2, Ports: table.PortRange{First: 9000, Last: 9000}})))
		r.b.SetHook(f, table.NAT, table.Prerouting, jump(always, "dnat"))
		r.b.SetHook(f, table.NAT, table.Output, jump(always, "dnat"))
		orig := table.Match{CTOrigDst: []netip.Prefix{host(anywhere(f, 0, 2))}, CT: table.CTNew}
		r.b.SetChains(f, table.Filter, chain("policy", drop(orig), accept(table.Match{DNATed: true}),
			drop(table.Match{Protocol: 17, DstPorts: []table.PortRange{{First: 7, Last: 7}}})))
		r.b.SetHook(f, table.Filter, table.Forward, jump(always, "policy"))
	})
	r.apply()
	r.families(func(f table.Family) {
		p, h, out, a2 := r.pod(1), r.net.Host, r.net.Outside, r.pod(2).Addr(f)
		a := func(i int) netip.Addr { return anywhere(f, 0, i) }
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: p.UDP(a(1), 7).ArrivesAt(a2, 7), Why: "translated"},
			Case{Want: Drop, Probe: p.UDP(a2, 7), Why: "not translated"},
			Case{Want: Pass, Probe: p.TCP(a(1), 5).ArrivesAt(a2, 5)}, Case{Want: Pass, Probe: p.Ping(a(1)).ArrivesAt(a2, 0)},
			Case{Want: Pass, Probe: out.UDP(a2, 6)},
			Case{Want: Drop, Probe: p.UDP(a(2), 80).ArrivesAt(a2, 8080), Why: "asked for an address that is not let through"},
			Case{Want: Pass, Probe: h.UDP(a(2), 80).ArrivesAt(a2, 8080), Why: "the host's own"},
			Case{Want: Pass, Probe: h.TCP(a(3), 80).ArrivesAt(a2, 9000), Why: "the host's own"},
			Case{Want: Pass, Probe: p.TCP(a(3), 80).ArrivesAt(a2, 9000), Why: "to another port"},
			Case{Want: Pass, Probe: p.UDP(a(3), 80), Why: "another protocol"})
	})
}

// testSNAT: sources are translated, to a given address or to that of the outgoing interface; floating addresses work in both directions.
func testSNAT(t *testing.T, r *rig) {
	floating := func(f table.Family) netip.Addr {
		return map[table.Family]netip.Addr{
			table.IPv4: netip.MustParseAddr("192.0.2.5"), table.IPv6: netip.MustParseAddr("fd00:192::5")}[f]
	}
	both(func(f table.Family) {
		src := func(i int, out string) table.Match {
			return table.Match{SrcNets: []netip.Prefix{host(r.pod(i).Addr(f))}, OutIface: out}
		}
		udp := src(2, "eth0")
		udp.Protocol = 17
		r.b.SetChains(f, table.NAT,
			chain("snat", rule(src(1, "eth0"), table.Action{Verb: table.Masquerade}),
				rule(udp, table.Action{Verb: table.Masquerade, Ports: table.PortRange{First: 40000, Last: 40100}, FullRandom: true}),
				rule(src(3, "eth0"), table.Action{Verb: table.SNAT, To: floating(f)})),
			chain("dnat", rule(table.Match{DstNets: []netip.Prefix{host(floating(f))}},
				table.Action{Verb: table.DNAT, To: r.pod(3).Addr(f)})))
		r.b.SetHook(f, table.NAT, table.Postrouting, jump(always, "snat"))
		r.b.SetHook(f, table.NAT, table.Prerouting, jump(always, "dnat"))
		r.b.SetHook(f, table.NAT, table.Output, jump(always, "dnat"))
	})
	r.apply()
	r.families(func(f table.Family) {
		h, out := r.net.Host.Addr(f), r.net.Outside
		o, a3, fl := out.Addr(f), r.pod(3).Addr(f), floating(f)
		r.net.Expect(r.t,
			Case{Want: Pass, Probe: r.pod(1).UDP(o, 1), SeenAs: h}, Case{Want: Pass, Probe: r.pod(1).TCP(o, 1), SeenAs: h},
			Case{Want: Pass, Probe: r.pod(1).Ping(o), SeenAs: h}, Case{Want: Pass, Probe: r.pod(1).UDP(a3, 1)},
			Case{Want: Pass, Probe: r.pod(2).UDP(o, 1), SeenAs: h}, Case{Want: Pass, Probe: r.pod(2).TCP(o, 1)},
			Case{Want: Pass, Probe: r.pod(3).UDP(o, 1), SeenAs: fl}, Case{Want: Pass, Probe: r.pod(3).UDP(r.pod(1).Addr(f), 1)},
			Case{Want: Pass, Probe: out.UDP(fl, 3).ArrivesAt(a3, 3)}, Case{Want: Pass, Probe: r.pod(1).TCP(fl, 3).ArrivesAt(a3, 3)},
			Case{Want: Pass, Probe: r.net.Host.UDP(fl, 4).ArrivesAt(a3, 4)})
		ports := r.net.mustSend(r.t, r.pod(2).UDP(o, 2))
		if p := ports.SeenAs.Port(); p < 40000 || p > 40100 {
			r.t.Errorf("masqueraded to port %d, want one of 40000-40100", p)
		}
	})
}
