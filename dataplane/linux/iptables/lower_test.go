package iptables

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/ipset"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// gen generates random chains and packets in a small world, so that conditions often hold.
type gen struct {
	*rand.Rand
	family table.Family
	layer  table.Layer
}

func (g *gen) maybe(p float64) bool { return g.Float64() < p }

func (g *gen) addr() netip.Addr {
	if g.family == table.IPv4 {
		return netip.AddrFrom4([4]byte{byte(g.IntN(4) << 6), 0, 0, byte(g.IntN(2))})
	}
	var a [16]byte
	a[0], a[15] = byte(g.IntN(4)<<6), byte(g.IntN(2))
	return netip.AddrFrom16(a)
}

func (g *gen) nets(p float64) []netip.Prefix {
	if !g.maybe(p) {
		return nil
	}
	var out []netip.Prefix
	for range 1 + g.IntN(3) {
		a := g.addr()
		if g.maybe(0.15) { // the other family's
			other := gen{g.Rand, 10 - g.family, g.layer}
			a = other.addr()
		}
		bits := []int{1, 2, 2, 2, a.BitLen()}[g.IntN(5)]
		if g.maybe(0.05) {
			bits = 0
		}
		out = append(out, netip.PrefixFrom(a, bits))
	}
	return out
}

func (g *gen) ids(p float64, prefix string) []string {
	var out []string
	for g.maybe(p) {
		out = append(out, fmt.Sprint(prefix, g.IntN(2)))
		p /= 2
	}
	return out
}

func (g *gen) ports(p float64) []table.PortRange {
	if !g.maybe(p) {
		return nil
	}
	var out []table.PortRange
	n := 1 + g.IntN(3)
	if g.maybe(0.3) {
		n = 14 + g.IntN(10)
	}
	for range n {
		first := uint16(g.IntN(40))
		out = append(out, table.PortRange{First: first, Last: first + uint16(g.IntN(2)*g.IntN(3))})
	}
	return out
}

func (g *gen) match() table.Match {
	m := table.Match{
		SrcNets: g.nets(0.25), DstNets: g.nets(0.25), NotSrcNets: g.nets(0.2), NotDstNets: g.nets(0.2),
		SrcSets: g.ids(0.1, "n"), DstSets: g.ids(0.1, "n"), NotSrcSets: g.ids(0.1, "n"), NotDstSets: g.ids(0.1, "n"),
		CTOrigDst: g.nets(0.05), CTOrigSrc: g.nets(0.05), CTReplSrc: g.nets(0.05), DNATed: g.maybe(0.05), SrcNotOnOut: g.maybe(0.05), NoReversePath: g.maybe(0.05),
	}
	if g.maybe(0.2) {
		m.InIface = []string{"eth0", "cali1", "cali+", "c+", "+"}[g.IntN(5)]
	}
	if g.maybe(0.2) {
		m.OutIface = []string{"eth0", "cali1", "cali+"}[g.IntN(3)]
	}
	m.DstPortSets, m.NotSrcPortSets = g.ids(0.1, "p"), g.ids(0.1, "p")
	switch g.IntN(4) {
	case 0:
		m.Protocol = []uint8{6, 17, 132}[g.IntN(3)]
		m.SrcPorts, m.DstPorts, m.NotSrcPorts, m.NotDstPorts = g.ports(0.2), g.ports(0.3), g.ports(0.2), g.ports(0.2)
	case 1:
		m.Protocol = map[table.Family]uint8{4: 1, 6: 58}[g.family]
		if g.maybe(0.5) {
			m.ICMP = &table.ICMP{Type: uint8(g.IntN(3)), Code: uint8(g.IntN(2)), AnyCode: g.maybe(0.5)}
		}
		if g.maybe(0.3) {
			m.NotICMP = &table.ICMP{Type: uint8(g.IntN(3)), Code: uint8(g.IntN(2)), AnyCode: g.maybe(0.5)}
		}
	case 2:
		m.NotProtocol = []uint8{1, 6, 17}[g.IntN(3)]
	}
	if g.maybe(0.15) {
		m.CT = table.CTState(1 + g.IntN(31))
	}
	if g.maybe(0.3) {
		m.MarkMask = uint32(1 + g.IntN(15))
		m.Mark, m.MarkNot = g.Uint32()&m.MarkMask, g.maybe(0.5)
	}
	if g.maybe(0.1) {
		m.Src, m.Dst = table.AddrType(g.IntN(3)), table.AddrType(g.IntN(3))
	}
	return m
}

// rule returns a random rule that refers only to chains with a higher number.
func (g *gen) rule(chain, chains int) table.Rule {
	r := table.Rule{Match: g.match(), Comment: []string{"", "why", "a \"b\" \\c\nd"}[g.IntN(3)]}
	target := fmt.Sprintf("cali-%d", chain+1+g.IntN(max(1, chains-chain-1)))
	leads := chain+1 < chains
	for range g.IntN(3) {
		switch k := g.IntN(4); {
		case k == 0 && leads:
			r.Actions = append(r.Actions, table.Action{Verb: table.Jump, Chain: target})
		case k == 1:
			r.Actions = append(r.Actions, table.Action{Verb: table.Log, Prefix: fmt.Sprintf("log %d: ", g.IntN(100))})
		case k == 2 && g.layer == table.Raw:
			r.Actions = append(r.Actions, table.Action{Verb: table.NoTrack})
		default:
			mask := uint32(1 + g.IntN(15))
			r.Actions = append(r.Actions, table.Action{Verb: table.SetMark, Mask: mask, Mark: g.Uint32() & 15})
		}
	}
	if a, ok := g.last(r.Match, target, leads); ok && g.maybe(0.7) {
		r.Actions = append(r.Actions, a)
	}
	return r
}

func (g *gen) last(m table.Match, target string, leads bool) (table.Action, bool) {
	switch v := []table.Verb{table.Goto, table.Return, table.Accept, table.Drop, table.Reject, table.DNAT, table.SNAT,
		table.Masquerade, table.Return, table.Goto}[g.IntN(10)]; v {
	case table.Goto:
		return table.Action{Verb: v, Chain: target}, leads
	case table.Drop:
		return table.Action{Verb: v}, g.layer != table.NAT
	case table.Reject:
		return table.Action{Verb: v}, g.layer == table.Filter
	case table.DNAT, table.SNAT, table.Masquerade:
		a := table.Action{Verb: v}
		if v != table.Masquerade {
			a.To = g.addr()
			if hasPorts(m.Protocol) && g.maybe(0.5) {
				a.Ports = table.PortRange{First: 1, Last: 9}
			}
		}
		return a, g.layer == table.NAT
	default:
		return table.Action{Verb: v}, true
	}
}

func (g *gen) packet() packet {
	p := packet{
		in: []string{"eth0", "cali1", "cali22", "cx"}[g.IntN(4)], out: []string{"eth0", "cali1", "cali22"}[g.IntN(3)],
		proto: []uint8{map[table.Family]uint8{4: 1, 6: 58}[g.family], 6, 17, 132, 47}[g.IntN(5)],
		src:   g.addr(), dst: g.addr(), origDst: g.addr(), origSrc: g.addr(), replSrc: g.addr(),
		ct: 1 << g.IntN(5), mark: uint32(g.IntN(16)), srcLocal: g.maybe(0.5), dstLocal: g.maybe(0.5), srcOnOut: g.maybe(0.5),
		noWayBack: g.maybe(0.5), dnated: g.maybe(0.5), inSet: map[string]bool{},
	}
	if p.proto == 1 || p.proto == 58 {
		p.icmpType, p.icmpCode = uint8(g.IntN(3)), uint8(g.IntN(2))
	}
	if hasPorts(p.proto) {
		p.sport, p.dport = uint16(g.IntN(44)), uint16(g.IntN(44))
	}
	for _, id := range []string{"n0", "n1", "p0", "p1"} {
		for _, dir := range []string{"src", "dst", "src,src", "dst,dst"} {
			// Only packets of protocols with ports have ports, and can be in port sets.
			p.inSet[ipset.Name(g.family, id)+" "+dir] = g.maybe(0.5) && (id[0] == 'n' || hasPorts(p.proto))
		}
	}
	return p
}

// iptables handles a packet as the model specifies, for random chains of all layers.
func TestLoweringAgainstOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	hits := map[string]int{}
	for round := range 1500 {
		g := &gen{rnd, []table.Family{4, 6}[round%2], table.Layer(round / 2 % 4)}
		chains := map[string]table.Chain{}
		pieces := map[string]*piece{}
		const n = 4
		l := lowerer{family: g.family, layer: g.layer, scratch: testMarks, random: true, helpers: "cali-",
			setName: func(id string) string { return ipset.Name(g.family, id) }}
		for i := range n {
			c := table.Chain{Name: fmt.Sprintf("cali-%d", i)}
			for range 1 + rnd.IntN(4) {
				c.Rules = append(c.Rules, g.rule(i, n))
			}
			chains[c.Name] = c
			ps, err := l.chain(c)
			if err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			for _, p := range ps {
				pieces[p.name] = p
			}
		}
		for range 60 {
			pkt := g.packet()
			o := &oracle{family: g.family, layer: g.layer, chains: chains, pkt: pkt}
			o.walk("cali-0")
			o.out.mark = o.pkt.mark
			e := &evaluator{t: t, family: g.family, chains: pieces, pkt: pkt,
				seen: func(c string) bool { _, ok := chains[c]; return ok }}
			e.walk("cali-0")
			e.out.mark = e.pkt.mark &^ (testMarks[0] | testMarks[1])
			verdict, _, _ := strings.Cut(o.out.verdict, " ")
			hits[verdict]++
			if !e.out.equal(o.out) {
				t.Fatalf("round %d, v%d %s: packet %+v\nmodel:    %+v\niptables: %+v\n%s", round, g.family,
					layerNames[g.layer], pkt, o.out, e.out, dumpPieces(pieces))
			}
		}
	}
	for _, v := range []string{"", "ACCEPT", "DROP", "REJECT", "DNAT", "SNAT", "MASQUERADE"} {
		if hits[v] < 100 {
			t.Errorf("only %d packets met with %q: the test tests little", hits[v], v)
		}
	}
}

func dumpPieces(pieces map[string]*piece) string {
	var b strings.Builder
	for _, name := range sortedKeys(pieces) {
		fmt.Fprintln(&b, name)
		for _, r := range pieces[name].rules {
			fmt.Fprintln(&b, "   ", r)
		}
	}
	return b.String()
}

// Each packet reaches its interface's chain, or the default, and passes few rules before.
func TestDispatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	for _, n := range []int{0, 1, 2, 16, 17, 100, 2000} {
		for _, byOut := range []bool{false, true} {
			d := table.Dispatch{Name: "cali-from-workload-dispatch"[:26], ByOut: byOut, Chains: map[string]string{},
				Default: []table.Rule{{Match: table.Match{Protocol: 6}, Actions: act(table.Drop)}, {Actions: act(table.Accept)}}}
			chains := map[string]table.Chain{"cali-ep": {Name: "cali-ep"}}
			for i := range n {
				name := fmt.Sprintf("cali%011x", rnd.Uint64())[:4+rnd.IntN(12)]
				target := "cali-ep"
				if i%2 == 0 {
					target = fmt.Sprintf("cali-ep%d", i)
					chains[target] = table.Chain{Name: target}
				}
				d.Chains[name] = target
			}
			l := lowerer{family: 4, layer: table.Filter, helpers: "cali-"}
			ps, err := l.dispatch(d)
			if err != nil {
				t.Fatal(err)
			}
			pieces := map[string]*piece{}
			for _, p := range ps {
				if pieces[p.name] != nil {
					t.Fatalf("two parts are called %s", p.name)
				}
				if len(p.name) > maxChainName || len(p.rules) > 40 {
					t.Errorf("%s has %d rules", p.name, len(p.rules))
				}
				pieces[p.name] = p
			}
			for name := range chains {
				pieces[name] = &piece{name: name}
			}
			ifaces := append(sortedKeys(d.Chains), "", "c", "cali", "calix", "eth0", "cali0", "calif")
			for _, iface := range ifaces {
				for _, proto := range []uint8{6, 17} {
					pkt := packet{in: iface, out: "x", proto: proto}
					if byOut {
						pkt.in, pkt.out = "x", iface
					}
					o := &oracle{family: 4, chains: chains, disp: map[string]table.Dispatch{d.Name: d}, pkt: pkt}
					o.walk(d.Name)
					e := &evaluator{t: t, family: 4, chains: pieces, pkt: pkt, seen: func(c string) bool {
						_, ok := chains[c]
						return ok || c == d.Name
					}}
					e.walk(d.Name)
					if !e.out.equal(o.out) {
						t.Fatalf("%d interfaces, %q: model %+v, iptables %+v", n, iface, o.out, e.out)
					}
				}
			}
		}
	}
}

// Rules that iptables would reject, or interpret differently, are rejected with a reason.
func TestRefusedByLowering(t *testing.T) {
	port := []table.PortRange{{First: 80, Last: 80}}
	filter := func(m table.Match, a ...table.Action) (table.Layer, table.Rule) {
		return table.Filter, table.Rule{Match: m, Actions: a}
	}
	v6 := netip.MustParseAddr("fd00::1")
	for name, c := range map[string]func() (table.Layer, table.Rule){
		"ports without protocol": func() (table.Layer, table.Rule) { return filter(table.Match{DstPorts: port}) },
		"ports of ICMP":          func() (table.Layer, table.Rule) { return filter(table.Match{Protocol: 1, DstPorts: port}) },
		"types of TCP": func() (table.Layer, table.Rule) {
			return filter(table.Match{Protocol: 6, ICMP: &table.ICMP{}})
		},
		"any type": func() (table.Layer, table.Rule) {
			return filter(table.Match{Protocol: 1, ICMP: &table.ICMP{Type: 255}})
		},
		"reverse range": func() (table.Layer, table.Rule) {
			return filter(table.Match{Protocol: 6, SrcPorts: []table.PortRange{{First: 2, Last: 1}}})
		},
		"interface with spaces": func() (table.Layer, table.Rule) { return filter(table.Match{InIface: "a -j ACCEPT"}) },
		"long interface":        func() (table.Layer, table.Rule) { return filter(table.Match{InIface: "1234567890123456"}) },
		"line end in a chain": func() (table.Layer, table.Rule) {
			return filter(table.Match{}, table.Action{Verb: table.Jump, Chain: "a\n-A INPUT -j ACCEPT"})
		},
		"no chain":     func() (table.Layer, table.Rule) { return filter(table.Match{}, table.Action{Verb: table.Goto}) },
		"invalid net":  func() (table.Layer, table.Rule) { return filter(table.Match{SrcNets: make([]netip.Prefix, 1)}) },
		"unknown verb": func() (table.Layer, table.Rule) { return filter(table.Match{}, table.Action{Verb: 99}) },
		"zero verb":    func() (table.Layer, table.Rule) { return filter(table.Match{}, table.Action{}) },
		"after the end": func() (table.Layer, table.Rule) {
			return filter(table.Match{}, act(table.Drop)[0], act(table.Accept)[0])
		},
		"notrack":       func() (table.Layer, table.Rule) { return filter(table.Match{}, act(table.NoTrack)...) },
		"nat in filter": func() (table.Layer, table.Rule) { return filter(table.Match{}, act(table.Masquerade)...) },
		"drop in nat": func() (table.Layer, table.Rule) {
			return table.NAT, table.Rule{Actions: act(table.Drop)}
		},
		"other family": func() (table.Layer, table.Rule) {
			return table.NAT, table.Rule{Actions: []table.Action{{Verb: table.DNAT, To: v6}}}
		},
		"translated ports": func() (table.Layer, table.Rule) {
			return table.NAT, table.Rule{Actions: []table.Action{{Verb: table.Masquerade, Ports: port[0]}}}
		},
		"scratch bits": func() (table.Layer, table.Rule) {
			m := table.Match{NotSrcNets: nets("10.0.0.0/8", "11.0.0.0/8"), MarkMask: testMarks[1]}
			return filter(m)
		},
	} {
		l, r := c()
		lower := lowerer{family: 4, layer: l, scratch: testMarks, helpers: "cali-"}
		if ps, err := lower.chain(table.Chain{Name: "cali-x", Rules: []table.Rule{r}}); err == nil {
			t.Errorf("%s: lowered to %q", name, ps[0].rules)
		}
	}
}

// Hashes depend on position, content and chain.
func TestHashes(t *testing.T) {
	a := hashRules("c", []string{"1", "2", "3"})
	b := hashRules("c", []string{"1", "x", "3"})
	if a[0] != b[0] || a[1] == b[1] || a[2] == b[2] {
		t.Error("a hash does not stand for what comes before")
	}
	if c := hashRules("d", []string{"1"}); c[0] == a[0] {
		t.Error("a hash does not depend on its chain")
	}
	line := []byte(`-p tcp -m comment --comment "cv:` + string(a[0][:]) + `" -m comment --comment "cv:0123456789abcdef" -j DROP`)
	if got := findHash(line); got != a[0] {
		t.Errorf("found %q", got)
	}
	for _, bad := range []string{``, `-m comment --comment "cv:short" -j X`, `-m comment --comment "cv:0123456789abcdefg"`,
		`-m comment --comment other -m comment --comment "cv:0123456789abcdef"`} {
		if got := findHash([]byte(bad)); got != (ruleHash{}) {
			t.Errorf("found %q in %s", got, bad)
		}
	}
}
