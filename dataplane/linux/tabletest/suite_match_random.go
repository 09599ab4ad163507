package tabletest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
)

const (
	randomMatches = 60
	probesOfEach  = 6
	onceMark      = 0x40000000
)

// testRandomMatches: random matches hold for exactly the packets that a simple evaluation selects; and a chain that they jump to is passed
// once, regardless of the number of rules in which a backend writes them.
func testRandomMatches(t *testing.T, r *rig) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r.families(func(f table.Family) {
		g := &matchMaker{rng: rand.New(rand.NewPCG(seed, uint64(f))), f: f, r: r, sets: map[string][]table.Member{}}
		g.makeSets()
		chains := []table.Chain{chain("once",
			drop(table.Match{Mark: onceMark, MarkMask: onceMark}), mark(always, onceMark, onceMark))}
		all := chain("all")
		var sends []Case
		for i := range randomMatches {
			to := anywhere(f, 0, i+1)
			m := g.match(to)
			name := fmt.Sprintf("case-%d", i)
			body := chain(name, accept(m), drop(always))
			if i%2 == 0 {
				body.Rules = []table.Rule{jump(m, "once"), accept(table.Match{Mark: onceMark, MarkMask: onceMark}), drop(always)}
			}
			chains = append(chains, body)
			all.Rules = append(all.Rules, gotoChain(table.Match{DstNets: []netip.Prefix{host(to)}}, name))
			for range probesOfEach {
				p := g.probe(to)
				want := Drop
				if g.holds(&m, p) {
					want = Pass
				}
				sends = append(sends, Case{Want: want, Probe: p, Why: fmt.Sprintf("%+v", m)})
			}
		}
		r.b.SetChains(f, table.Filter, append(chains, all)...)
		r.b.SetHook(f, table.Filter, table.Forward, mark(always, 0, onceMark), jump(table.Match{DstNets: Anywhere(f)[:1]}, "all"))
		r.apply()
		r.net.Expect(r.t, sends...)
	})
}

// matchMaker generates matches and packets, and evaluates the matches.
type matchMaker struct {
	rng  *rand.Rand
	f    table.Family
	r    *rig
	sets map[string][]table.Member
	port uint16 // the next source port: every probe is a new flow
}

func (g *matchMaker) makeSets() {
	for i, typ := range []table.SetType{table.SetIP, table.SetNet, table.SetIPAndPort, table.SetIPAndPort} {
		s := table.Set{ID: fmt.Sprintf("r%d", i), Type: typ}
		var members []table.Member
		for range 6 {
			m := table.Member{Net: host(g.r.pod(1 + g.rng.IntN(3)).Addr(g.f))}
			switch typ {
			case table.SetNet:
				m.Net = netip.PrefixFrom(m.Net.Addr(), m.Net.Bits()-g.rng.IntN(3)).Masked()
			case table.SetIPAndPort:
				m.Net, m.Proto, m.Port = host(anywhere(g.f, 0, 1+g.rng.IntN(randomMatches))), 17, uint16(1+g.rng.IntN(12))
			}
			if !slices.Contains(members, m) {
				members = append(members, m)
			}
		}
		g.sets[s.ID] = members
		g.r.b.ReplaceSet(g.f, s, members)
	}
}

func (g *matchMaker) some(n int) bool { return g.rng.IntN(n) == 0 }

func (g *matchMaker) match(to netip.Addr) (m table.Match) {
	srcNet := func() netip.Prefix {
		a := g.r.pod(1 + g.rng.IntN(3)).Addr(g.f)
		return netip.PrefixFrom(a, a.BitLen()-g.rng.IntN(3))
	}
	dstNet := func() netip.Prefix {
		a := anywhere(g.f, 0, g.rng.IntN(256))
		if g.some(3) {
			a = to
		}
		return netip.PrefixFrom(a, a.BitLen()-g.rng.IntN(6))
	}
	nets := func(chance int, net func() netip.Prefix) (list []netip.Prefix) {
		if g.some(chance) {
			for range 1 + g.rng.IntN(10) {
				list = append(list, net())
			}
		}
		return list
	}
	m.SrcNets, m.DstNets = nets(3, srcNet), nets(3, dstNet)
	m.NotDstNets = nets(6, dstNet)
	if g.some(8) {
		m.NotSrcNets = []netip.Prefix{srcNet()}
	}
	g.addSets(&m)
	if g.some(2) {
		m.Protocol = 17
		m.DstPorts, m.NotDstPorts = g.ports(2), g.ports(5)
	} else if g.some(4) {
		m.NotProtocol = 6
	}
	return m
}

func (g *matchMaker) addSets(m *table.Match) {
	if g.some(5) {
		m.SrcSets = append(m.SrcSets, fmt.Sprintf("r%d", g.rng.IntN(2)))
	}
	if g.some(8) {
		m.NotSrcSets = append(m.NotSrcSets, fmt.Sprintf("r%d", g.rng.IntN(2)))
	}
	if g.some(4) {
		m.DstPortSets = [][]string{{"r2"}, {"r3"}, {"r2", "r3"}}[g.rng.IntN(3)]
	}
	if g.some(8) {
		m.NotDstPortSets = []string{"r3"}
	}
}

func (g *matchMaker) ports(chance int) (list []table.PortRange) {
	if g.some(chance) {
		for range 1 + g.rng.IntN(9) {
			first := uint16(1 + g.rng.IntN(20))
			list = append(list, table.PortRange{First: first, Last: first + uint16(g.rng.IntN(3))})
		}
	}
	return list
}

func (g *matchMaker) probe(to netip.Addr) Probe {
	g.port++
	p := g.r.pod(1+g.rng.IntN(3)).UDP(to, uint16(1+g.rng.IntN(12))).FromPort(20000 + g.port)
	if g.some(5) {
		p.Proto = 6
	}
	return p
}

// holds reports whether a match holds for a packet.
func (g *matchMaker) holds(m *table.Match, p Probe) bool {
	src, dst := p.source().Addr(), p.To.Addr()
	in := func(list []netip.Prefix, a netip.Addr) bool {
		return slices.ContainsFunc(list, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	inSet := func(id string) bool {
		return slices.ContainsFunc(g.sets[id], func(mem table.Member) bool { return mem.Net.Contains(src) })
	}
	inPortSet := func(id string) bool {
		return slices.Contains(g.sets[id], table.Member{Net: host(dst), Proto: p.Proto, Port: p.To.Port()})
	}
	inPorts := func(list []table.PortRange) bool {
		return slices.ContainsFunc(list, func(r table.PortRange) bool { return r.First <= p.To.Port() && p.To.Port() <= r.Last })
	}
	switch {
	case m.Protocol != 0 && m.Protocol != p.Proto, m.NotProtocol != 0 && m.NotProtocol == p.Proto,
		len(m.SrcNets) > 0 && !in(m.SrcNets, src), len(m.DstNets) > 0 && !in(m.DstNets, dst),
		in(m.NotSrcNets, src), in(m.NotDstNets, dst), inPorts(m.NotDstPorts),
		slices.ContainsFunc(m.SrcSets, func(id string) bool { return !inSet(id) }),
		slices.ContainsFunc(m.NotSrcSets, inSet), slices.ContainsFunc(m.NotDstPortSets, inPortSet):
		return false
	}
	return len(m.DstPorts)+len(m.DstPortSets) == 0 || inPorts(m.DstPorts) || slices.ContainsFunc(m.DstPortSets, inPortSet)
}
