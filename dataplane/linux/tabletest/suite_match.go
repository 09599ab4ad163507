package tabletest

import (
	"fmt"
	"net/netip"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// matchCase is one match, tested with packets to a separate address.
type matchCase struct {
	name  string
	match table.Match
	pass  []Probe // packets that match
	drop  []Probe // packets that do not match
}

// testMatches: all cases are programmed at once. Packets to the i-th address are tested against the i-th match, and pass if it holds.
func testMatches(t *testing.T, r *rig) {
	r.families(func(f table.Family) {
		matchSets(r, f)
		var chains []table.Chain
		var sends []Case
		all := chain("all")
		for i, mk := range matchCases() {
			to := anywhere(f, 0, i+1)
			c := mk(r, f, to)
			name := fmt.Sprintf("case-%d", i)
			all.Rules = append(all.Rules, gotoChain(table.Match{DstNets: []netip.Prefix{host(to)}}, name))
			chains = append(chains, chain(name, accept(c.match), drop(always)))
			for _, p := range c.pass {
				sends = append(sends, Case{Want: Pass, Probe: p, Why: c.name})
			}
			for _, p := range c.drop {
				sends = append(sends, Case{Want: Drop, Probe: p, Why: c.name})
			}
		}
		r.b.SetChains(f, table.Filter, append(chains, all)...)
		r.b.SetHook(f, table.Filter, table.Forward, jump(table.Match{DstNets: Anywhere(f)[:1]}, "all"))
		r.apply()
		r.net.Expect(r.t, sends...)
	})
}

// matchSets creates the sets that the cases use: pod 1's address, prefixes with pods 2 and 3, and pod 1's port 7000.
func matchSets(r *rig, f table.Family) {
	pod := func(i int) netip.Prefix { return host(r.pod(i).Addr(f)) }
	r.b.ReplaceSet(f, table.Set{ID: "ip", Type: table.SetIP}, []table.Member{{Net: pod(1)}})
	r.b.ReplaceSet(f, table.Set{ID: "net", Type: table.SetNet}, []table.Member{{Net: pod(2)}, {Net: pod(3)}})
	r.b.ReplaceSet(f, table.Set{ID: "everything", Type: table.SetNet},
		[]table.Member{{Net: netip.PrefixFrom(unspecified(f), 0)}})
	r.b.ReplaceSet(f, table.Set{ID: "empty", Type: table.SetIP}, nil)
	r.b.ReplaceSet(f, table.Set{ID: "srcport", Type: table.SetIPAndPort}, []table.Member{
		{Net: pod(1), Proto: 17, Port: 7000}, {Net: pod(1), Proto: 6, Port: 7001}, {Net: pod(1), Proto: 132, Port: 7002},
	})
}

func otherFamily(f table.Family) []netip.Prefix {
	if f == table.IPv4 {
		return []netip.Prefix{netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("::/0")}
	}
	return []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("0.0.0.0/0")}
}

type makeCase func(r *rig, f table.Family, to netip.Addr) matchCase

func matchCases() []makeCase {
	var all []makeCase
	for _, group := range [][]makeCase{protocolCases(), netCases(), setCases(), portCases(), portSetCases(), icmpCases()} {
		all = append(all, group...)
	}
	return all
}

func protocolCases() []makeCase {
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"any", always, []Probe{p.UDP(to, 1), p.TCP(to, 2), p.Ping(to), p.SCTP(to, 3)}, nil}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"protocol", table.Match{Protocol: 6}, []Probe{p.TCP(to, 1)}, []Probe{p.UDP(to, 1), p.Ping(to)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"not protocol", table.Match{NotProtocol: 6}, []Probe{p.UDP(to, 1), p.Ping(to)}, []Probe{p.TCP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"protocol icmp", table.Match{Protocol: icmpProto(f)}, []Probe{p.Ping(to)}, []Probe{p.UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"protocol sctp", table.Match{Protocol: 132}, []Probe{p.SCTP(to, 9)}, []Probe{p.UDP(to, 1)}}
		},
	}
}

func netCases() []makeCase {
	pods := func(r *rig, f table.Family, list ...int) []netip.Prefix {
		var nets []netip.Prefix
		for _, i := range list {
			nets = append(nets, host(r.pod(i).Addr(f)))
		}
		return nets
	}
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"src net", table.Match{SrcNets: pods(r, f, 1)},
				[]Probe{r.pod(1).UDP(to, 1)}, []Probe{r.pod(2).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			// An address twice, and a prefix inside another.
			nets := append(pods(r, f, 1, 3, 1), otherFamily(f)[:1]...)
			return matchCase{"src nets", table.Match{SrcNets: nets},
				[]Probe{r.pod(1).UDP(to, 1), r.pod(3).TCP(to, 1)}, []Probe{r.pod(2).UDP(to, 1), r.pod(2).Ping(to)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"not src nets", table.Match{NotSrcNets: pods(r, f, 1, 3)},
				[]Probe{r.pod(2).UDP(to, 1)}, []Probe{r.pod(1).UDP(to, 1), r.pod(3).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			nets := []netip.Prefix{host(to), netip.PrefixFrom(to, to.BitLen()-4).Masked(), host(p.Addr(f))}
			return matchCase{"overlapping dst nets", table.Match{DstNets: nets}, []Probe{p.UDP(to, 1)}, nil}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"not dst net", table.Match{NotDstNets: []netip.Prefix{host(to)}}, nil, []Probe{p.UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			m := table.Match{SrcNets: append(pods(r, f, 1), pods(r, f, 2)...), NotSrcNets: pods(r, f, 2),
				DstNets: Anywhere(f), NotDstNets: Anywhere(f)[1:]}
			return matchCase{"nets and not nets", m, []Probe{r.pod(1).UDP(to, 1)}, []Probe{r.pod(2).UDP(to, 1), r.pod(3).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			nets := []netip.Prefix{netip.PrefixFrom(unspecified(f), 0)}
			return matchCase{"all nets", table.Match{SrcNets: nets}, []Probe{p.UDP(to, 1)}, nil}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			nets := []netip.Prefix{netip.PrefixFrom(unspecified(f), 0), host(to)}
			return matchCase{"not all nets", table.Match{NotDstNets: nets}, nil, []Probe{p.UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"nets of the other family", table.Match{SrcNets: otherFamily(f)}, nil, []Probe{r.pod(1).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"not nets of the other family", table.Match{NotSrcNets: otherFamily(f)}, []Probe{r.pod(1).UDP(to, 1)}, nil}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			half := netip.PrefixFrom(r.pod(2).Addr(f), to.BitLen()-1) // pods 2 and 3, with host bits set
			return matchCase{"a net with host bits", table.Match{SrcNets: []netip.Prefix{half}},
				[]Probe{r.pod(2).UDP(to, 1), r.pod(3).UDP(to, 1)}, []Probe{r.pod(1).UDP(to, 1)}}
		},
	}
}

func setCases() []makeCase {
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"set of addresses", table.Match{SrcSets: []string{"ip"}},
				[]Probe{r.pod(1).UDP(to, 1), r.pod(1).Ping(to)}, []Probe{r.pod(2).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"set of nets", table.Match{SrcSets: []string{"net"}},
				[]Probe{r.pod(2).UDP(to, 1), r.pod(3).TCP(to, 1)}, []Probe{r.pod(1).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"not sets", table.Match{NotSrcSets: []string{"net", "empty"}, NotDstSets: []string{"ip"}},
				[]Probe{r.pod(1).UDP(to, 1)}, []Probe{r.pod(2).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"two sets", table.Match{SrcSets: []string{"everything", "ip"}, DstSets: []string{"everything"}},
				[]Probe{r.pod(1).UDP(to, 1)}, []Probe{r.pod(2).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"empty set", table.Match{SrcSets: []string{"everything", "empty"}}, nil,
				[]Probe{r.pod(1).UDP(to, 1), r.pod(2).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			return matchCase{"not the set of all", table.Match{NotDstSets: []string{"everything"}}, nil, []Probe{r.pod(1).UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			m := table.Match{SrcSets: []string{"net"}, NotSrcNets: []netip.Prefix{host(r.pod(2).Addr(f))}}
			return matchCase{"set and not net", m, []Probe{r.pod(3).UDP(to, 1)}, []Probe{r.pod(2).UDP(to, 1), r.pod(1).UDP(to, 1)}}
		},
	}
}

func portCases() []makeCase {
	many := func(odd uint16) (list []table.PortRange) {
		for i := range uint16(20) {
			list = append(list, table.PortRange{First: odd + 10*i, Last: odd + 10*i + i%3})
		}
		return list
	}
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 17, DstPorts: []table.PortRange{{First: 80, Last: 80}}}
			return matchCase{"dst port", m, []Probe{p.UDP(to, 80)}, []Probe{p.UDP(to, 81), p.TCP(to, 80), p.Ping(to)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 6, DstPorts: []table.PortRange{{First: 80, Last: 82}, {First: 82, Last: 90},
				{First: 65535, Last: 65535}}}
			return matchCase{"overlapping dst ports", m, []Probe{p.TCP(to, 80), p.TCP(to, 82), p.TCP(to, 90), p.TCP(to, 65535)},
				[]Probe{p.TCP(to, 79), p.TCP(to, 91), p.TCP(to, 65534), p.UDP(to, 80)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 17, DstPorts: many(1000)} // more than one multiport match can hold
			return matchCase{"many dst ports", m, []Probe{p.UDP(to, 1000), p.UDP(to, 1022), p.UDP(to, 1190), p.UDP(to, 1191)},
				[]Probe{p.UDP(to, 999), p.UDP(to, 1001), p.UDP(to, 1023), p.UDP(to, 1192)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 17, NotDstPorts: many(1000)}
			return matchCase{"not many dst ports", m, []Probe{p.UDP(to, 1001), p.UDP(to, 999)},
				[]Probe{p.UDP(to, 1000), p.UDP(to, 1022), p.UDP(to, 1190)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 17, SrcPorts: []table.PortRange{{First: 1, Last: 7100}},
				NotSrcPorts: []table.PortRange{{First: 7099, Last: 7100}}}
			return matchCase{"src ports", m, []Probe{p.UDP(to, 5).FromPort(7098)},
				[]Probe{p.UDP(to, 5).FromPort(7099), p.UDP(to, 5).FromPort(7101)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 17, DstPorts: []table.PortRange{{First: 0, Last: 65535}}}
			return matchCase{"all ports", m, []Probe{p.UDP(to, 5), p.UDP(to, 65535)}, []Probe{p.TCP(to, 5)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			m := table.Match{Protocol: 132, DstPorts: []table.PortRange{{First: 5, Last: 6}}}
			return matchCase{"sctp ports", m, []Probe{p.SCTP(to, 5)}, []Probe{p.SCTP(to, 7)}}
		},
	}
}

func portSetCases() []makeCase {
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			m := table.Match{SrcPortSets: []string{"srcport"}}
			return matchCase{"port set", m,
				[]Probe{r.pod(1).UDP(to, 1).FromPort(7000), r.pod(1).TCP(to, 1).FromPort(7001), r.pod(1).SCTP(to, 1).FromPort(7002)},
				[]Probe{r.pod(1).UDP(to, 1).FromPort(7001), r.pod(2).UDP(to, 1).FromPort(7000), r.pod(1).Ping(to)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			m := table.Match{Protocol: 17, SrcPortSets: []string{"srcport"}, SrcPorts: []table.PortRange{{First: 7005, Last: 7006}}}
			return matchCase{"ports or port set", m,
				[]Probe{r.pod(1).UDP(to, 2).FromPort(7000), r.pod(1).UDP(to, 1).FromPort(7005), r.pod(2).UDP(to, 1).FromPort(7006)},
				[]Probe{r.pod(1).UDP(to, 1).FromPort(7004), r.pod(2).UDP(to, 1).FromPort(7000)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			m := table.Match{Protocol: 17, NotSrcPortSets: []string{"srcport"},
				NotSrcPorts: []table.PortRange{{First: 7005, Last: 7006}}}
			return matchCase{"neither ports nor port set", m,
				[]Probe{r.pod(1).UDP(to, 1).FromPort(7008), r.pod(2).UDP(to, 1).FromPort(7000)},
				[]Probe{r.pod(1).UDP(to, 3).FromPort(7000), r.pod(2).UDP(to, 1).FromPort(7005)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			id := fmt.Sprintf("dst-%d", f)
			r.b.ReplaceSet(f, table.Set{ID: id, Type: table.SetIPAndPort}, []table.Member{{Net: host(to), Proto: 6, Port: 443}})
			id2 := id + "-2"
			r.b.ReplaceSet(f, table.Set{ID: id2, Type: table.SetIPAndPort}, []table.Member{{Net: host(to), Proto: 17, Port: 53}})
			p := r.pod(1)
			return matchCase{"either of two dst port sets", table.Match{DstPortSets: []string{id, id2}},
				[]Probe{p.TCP(to, 443), p.UDP(to, 53)}, []Probe{p.UDP(to, 443), p.TCP(to, 53), p.Ping(to)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			// Both sides have two alternatives; every combination counts.
			id := fmt.Sprintf("both-%d", f)
			r.b.ReplaceSet(f, table.Set{ID: id, Type: table.SetIPAndPort}, []table.Member{{Net: host(to), Proto: 17, Port: 53}})
			m := table.Match{Protocol: 17, SrcPortSets: []string{"srcport"}, SrcPorts: []table.PortRange{{First: 7010, Last: 7010}},
				DstPortSets: []string{id}, DstPorts: []table.PortRange{{First: 54, Last: 54}}}
			p := r.pod(1)
			return matchCase{"alternatives on both sides", m,
				[]Probe{p.UDP(to, 53).FromPort(7000), p.UDP(to, 54).FromPort(7000), p.UDP(to, 53).FromPort(7010),
					p.UDP(to, 54).FromPort(7010)},
				[]Probe{p.UDP(to, 55).FromPort(7000), p.UDP(to, 53).FromPort(7011), p.UDP(to, 55).FromPort(7011)}}
		},
	}
}

func icmpCases() []makeCase {
	return []makeCase{
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			echo := p.Ping(to)
			return matchCase{"icmp type and code", table.Match{Protocol: icmpProto(f), ICMP: &table.ICMP{Type: echo.ICMP.Type}},
				[]Probe{echo}, []Probe{p.Message(to, echo.ICMP.Type, 1), p.Message(to, 200, 0), p.UDP(to, 8)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"icmp type", table.Match{Protocol: icmpProto(f), ICMP: &table.ICMP{Type: 200, AnyCode: true}},
				[]Probe{p.Message(to, 200, 0), p.Message(to, 200, 3)}, []Probe{p.Message(to, 201, 0)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"not icmp code", table.Match{Protocol: icmpProto(f), NotICMP: &table.ICMP{Type: 200, Code: 3}},
				[]Probe{p.Message(to, 200, 0), p.Message(to, 201, 3), p.Ping(to)}, []Probe{p.Message(to, 200, 3), p.UDP(to, 1)}}
		},
		func(r *rig, f table.Family, to netip.Addr) matchCase {
			p := r.pod(1)
			return matchCase{"not icmp type", table.Match{Protocol: icmpProto(f), NotICMP: &table.ICMP{Type: 200, AnyCode: true}},
				[]Probe{p.Message(to, 201, 3)}, []Probe{p.Message(to, 200, 3), p.Message(to, 200, 0)}}
		},
	}
}
