package policy

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// maximal returns the members that no other member covers.
func maximal(members map[netip.Prefix]bool) map[netip.Prefix]bool {
	out := map[netip.Prefix]bool{}
	for p := range members {
		covered := false
		for q := range members {
			covered = covered || q != p && covers(q, p)
		}
		if !covered {
			out[p] = true
		}
	}
	return out
}

// TestTrie compares the trie with a direct evaluation of a set of prefixes, over random insertions and removals.
func TestTrie(t *testing.T) {
	rng := nfttest.Seeded(t)
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		var trie netTrie
		members := map[netip.Prefix]bool{}
		for range 3000 {
			p := nfttest.Prefix(rng, wire.AddressBytes(f))
			before := maximal(members)
			wasCovered := slices.ContainsFunc(slices.Collect(maps.Keys(members)),
				func(q netip.Prefix) bool { return q != p && covers(q, p) })
			if rng.IntN(2) == 0 {
				added, covered := trie.insert(p)
				if added == members[p] || covered != wasCovered && added {
					t.Fatalf("insert %s: added %v, covered %v, it was there: %v, covered: %v", p, added, covered, members[p], wasCovered)
				}
				members[p] = true
			} else {
				removed, covered := trie.remove(p)
				if removed != members[p] || removed && covered != wasCovered {
					t.Fatalf("remove %s: removed %v, covered %v, it was there: %v, covered: %v", p, removed, covered, members[p], wasCovered)
				}
				delete(members, p)
			}
			got := map[netip.Prefix]bool{}
			trie.root.outermost(func(q netip.Prefix) { got[q] = true })
			if want := maximal(members); !maps.Equal(got, want) || trie.size != len(members) {
				t.Fatalf("after %s: elements %v, want %v (before: %v)", p, got, want, before)
			}
			if len(members) > 60 {
				for q := range members {
					trie.remove(q)
					delete(members, q)
					if len(members) < 20 {
						break
					}
				}
			}
		}
	}
}

// TestSetOps: for any changes of members, the recorded differences turn the kernel's content into the desired one.
func TestSetOps(t *testing.T) {
	rng := nfttest.Seeded(t)
	for _, typ := range []table.SetType{table.SetIP, table.SetIPAndPort, table.SetNet} {
		f := newFamily(table.IPv4)
		s := f.set("s")
		s.replace(table.Set{ID: "s", Type: typ}, nil)
		s.present, s.typ = true, typ
		kernel := map[table.Member]struct{}{}
		random := func() (list []table.Member) {
			for range rng.IntN(12) {
				m := table.Member{Net: nfttest.Prefix(rng, 4), Proto: 6, Port: uint16(rng.IntN(3))}
				if typ != table.SetNet {
					m.Net = netip.PrefixFrom(m.Net.Addr(), 32)
				}
				list = append(list, m)
			}
			return list
		}
		for i := range 2000 {
			switch rng.IntN(6) {
			case 0:
				s.replace(s.spec, random())
			case 1:
				s.compare(maps.Clone(kernel)) // as an audit does
			default:
				s.change(random(), random())
			}
			if rng.IntN(3) != 0 {
				continue
			}
			for m, lacks := range s.ops {
				_, there := kernel[m]
				if there == lacks {
					t.Fatalf("type %d, step %d: %v lacks %v, but the kernel has it: %v", typ, i, m, lacks, there)
				}
				if lacks {
					kernel[m] = struct{}{}
				} else {
					delete(kernel, m)
				}
			}
			s.ops = nil
			want := map[table.Member]struct{}{}
			s.eachElement(func(m table.Member) { want[m] = struct{}{} })
			if !maps.Equal(kernel, want) {
				t.Fatalf("type %d, step %d: kernel %v, want %v", typ, i, kernel, want)
			}
		}
	}
}

// TestBounds: intervals that are written as bounds are read as the same intervals, for any order of the kernel's listing.
func TestBounds(t *testing.T) {
	rng := nfttest.Seeded(t)
	for range 300 {
		var trie netTrie
		for range rng.IntN(20) {
			trie.insert(nfttest.Prefix(rng, 4))
		}
		want := map[netip.Prefix]bool{}
		var bounds []bound
		trie.root.outermost(func(p netip.Prefix) {
			want[p] = true
			one := wire.SpanOf(p)
			bounds = append(bounds, bound{key: one.First})
			if after, more := (wire.Spans{Size: 4}).Next(one.Last); more {
				bounds = append(bounds, bound{key: after, end: true})
			}
		})
		rng.Shuffle(len(bounds), func(i, j int) { bounds[i], bounds[j] = bounds[j], bounds[i] })
		got := map[netip.Prefix]bool{}
		if !eachSpan(bounds, 4, func(one wire.Span) {
			p, ok := one.Prefix(4)
			got[p] = ok
		}) || !maps.Equal(got, want) {
			t.Fatalf("read %v, want %v", got, want)
		}
	}
	if eachSpan([]bound{{end: true}}, 4, func(wire.Span) {}) || eachSpan([]bound{{}, {key: [16]byte{1}}}, 4, func(wire.Span) {}) {
		t.Error("bounds that do not fit together are taken")
	}
}

// TestDifferentRulesHaveDifferentHashes: rules with different effects have different hashes, even if they differ only in a list's content.
func TestDifferentRulesHaveDifferentHashes(t *testing.T) {
	f := newFamily(table.IPv4)
	n := f.node(table.Filter, "x")
	many := func(last byte) (list []netip.Prefix) {
		for i := range 20 {
			list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(2 * i), 0, last}), 32))
		}
		return list
	}
	seen := map[wire.Hash]int{}
	for i, m := range []table.Match{
		{}, {SrcNets: many(1)}, {SrcNets: many(2)}, {DstNets: many(1)}, {NotSrcNets: many(1)}, {Protocol: 6}, {NotProtocol: 6},
		{InIface: "a"}, {InIface: "a+"}, {OutIface: "a"}, {Mark: 1, MarkMask: 1}, {Mark: 1, MarkMask: 1, MarkNot: true},
		{CT: table.CTNew}, {CT: table.CTEstablished}, {Src: table.AddrLocal}, {Dst: table.AddrLocal}, {Src: table.AddrNotLocal},
	} {
		c := compile(n, []table.Rule{{Match: m, Actions: []table.Action{{Verb: table.Accept}}}})
		if c.err != nil || len(c.programs) != 1 {
			t.Fatalf("%+v: %d programs, %v", m, len(c.programs), c.err)
		}
		if j, dup := seen[c.programs[0].Hash]; dup {
			t.Errorf("matches %d and %d have the same hash", i, j)
		}
		seen[c.programs[0].Hash] = i
	}
}

// TestBadRules: invalid rules are rejected, with a reason.
func TestBadRules(t *testing.T) {
	do := func(a ...table.Action) table.Rule { return table.Rule{Actions: a} }
	accept := table.Action{Verb: table.Accept}
	to, one := netip.MustParseAddr("10.0.0.1"), table.PortRange{First: 1, Last: 1}
	for name, c := range map[string]struct {
		l table.Layer
		r table.Rule
	}{
		"ports without protocol":      {table.Filter, table.Rule{Match: table.Match{DstPorts: []table.PortRange{one}}}},
		"ports of ICMP":               {table.Filter, table.Rule{Match: table.Match{Protocol: 1, SrcPorts: []table.PortRange{one}}}},
		"ICMP type of TCP":            {table.Filter, table.Rule{Match: table.Match{Protocol: 6, ICMP: &table.ICMP{}}}},
		"interface with a long name":  {table.Filter, table.Rule{Match: table.Match{InIface: "a234567890123456"}}},
		"accept before something":     {table.Filter, do(accept, accept)},
		"unknown verb":                {table.Filter, do(table.Action{Verb: 99})},
		"no verb":                     {table.Filter, do(table.Action{})},
		"notrack in filter":           {table.Filter, do(table.Action{Verb: table.NoTrack})},
		"DNAT in mangle":              {table.Mangle, do(table.Action{Verb: table.DNAT, To: to})},
		"DNAT to the other family":    {table.NAT, do(table.Action{Verb: table.DNAT, To: netip.IPv6Unspecified()})},
		"DNAT to nowhere":             {table.NAT, do(table.Action{Verb: table.DNAT})},
		"DNAT to ports of anything":   {table.NAT, do(table.Action{Verb: table.DNAT, To: to, Ports: one})},
		"jump to nowhere":             {table.Filter, do(table.Action{Verb: table.Jump, Chain: "nowhere"})},
		"log with a very long prefix": {table.Filter, do(table.Action{Verb: table.Log, Prefix: string(make([]byte, 200))})},
	} {
		if c := compile(newFamily(table.IPv4).node(c.l, "x"), []table.Rule{c.r}); c.err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
