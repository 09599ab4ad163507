package policy

import (
	"net/netip"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// A list of prefixes or ports could be an anonymous set of the rule. But the kernel's work for each such set grows with the number of all
// sets and, while it is created, with the size of the transaction: 5,000 of them take many seconds. So short lists become several rules, or
// several conditions of one rule. Long lists become named sets, whose name identifies their content and which are shared by all rules with
// the same list.
const (
	maxRules   = 6 // maximum number of rules that alternatives of prefixes and ports may make of one rule
	maxWithout = 8 // maximum number of conditions that a negated list may become
)

// alternative is one of several conditions, one of which must hold.
type alternative struct {
	test func(not bool) (possible bool) // adds the condition or its opposite
	span bool                           // never holds for a packet for which another span of the list holds
}

// choices returns the lists of a match; of each list one entry must hold. possible is false if a list has no entry that can hold.
func (c *compiler) choices(m *table.Match) (all [][]alternative, possible bool, err error) {
	rules := 1
	add := func(s wire.Spans, given bool, load func(), sets []alternative) {
		if !given && len(sets) == 0 {
			return
		}
		list := c.entries(s, given, load, &rules)
		list = append(list, sets...)
		possible = possible && len(list) > 0
		all = append(all, list)
	}
	possible = true
	if t := m.NotICMP; t != nil && !t.AnyCode {
		all = append(all, c.otherICMP(t))
	}
	add(c.netSpans(m.SrcNets), len(m.SrcNets) > 0, c.loadSrc, nil)
	add(c.netSpans(m.DstNets), len(m.DstNets) > 0, c.loadDst, nil)
	add(c.netSpans(m.CTOrigDst), len(m.CTOrigDst) > 0, c.loadOrigDst, nil)
	add(c.netSpans(m.CTOrigSrc), len(m.CTOrigSrc) > 0, c.loadOrigSrc, nil)
	add(c.netSpans(m.CTReplSrc), len(m.CTReplSrc) > 0, c.loadReplSrc, nil)
	for _, s := range c.inlined {
		if s.not {
			possible = c.without(s.spans, s.load) && possible
		} else {
			add(s.spans, true, s.load, nil)
		}
	}
	src, err := c.portSets(m.SrcPortSets, true)
	if err != nil {
		return nil, false, err
	}
	dst, err := c.portSets(m.DstPortSets, false)
	if err != nil {
		return nil, false, err
	}
	add(wire.Ports(m.SrcPorts), len(m.SrcPorts) > 0, c.loadSrcPort, src)
	add(wire.Ports(m.DstPorts), len(m.DstPorts) > 0, c.loadDstPort, dst)
	return all, possible, nil
}

// entries returns the alternatives of a list. rules is the number of rules that the match is split into so far; entries updates it.
func (c *compiler) entries(s wire.Spans, given bool, load func(), rules *int) (list []alternative) {
	if !given || len(s.List) == 0 {
		return nil
	}
	if len(s.List) > 1 && len(s.List)*(*rules) > maxRules {
		return []alternative{{test: func(not bool) bool {
			load()
			c.inList(s, not)
			return true
		}}}
	}
	*rules *= len(s.List)
	for i := range s.List {
		list = append(list, alternative{span: true, test: func(not bool) bool { return c.spanTest(s, &s.List[i], load, not) }})
	}
	return list
}

// otherICMP returns the alternatives for "not a message of this type and code".
func (c *compiler) otherICMP(t *table.ICMP) []alternative {
	return []alternative{
		{span: true, test: func(bool) bool { c.icmpType(t.Type, true); return true }},
		{span: true, test: func(bool) bool { c.icmpType(t.Type, false); c.icmpCode(t.Code, true); return true }},
	}
}

// portSets returns the alternatives for sets of ports.
func (c *compiler) portSets(ids []string, src bool) (list []alternative, err error) {
	for _, id := range ids {
		s, err := c.set(id, table.SetIPAndPort)
		if err != nil {
			return nil, err
		}
		list = append(list, alternative{test: func(not bool) bool { c.portSet(s, src, not); return true }})
	}
	return list, nil
}

// choose adds the i-th alternative and, unless the rule ends the processing, the opposites of those before it.
func (c *compiler) choose(list []alternative, i int, ends bool) (possible bool) {
	if !ends {
		for _, before := range list[:i] {
			if before.span && list[i].span {
				continue // at most one of them can hold
			}
			if !before.test(true) {
				return false
			}
		}
	}
	return list[i].test(false)
}

func (c *compiler) netSpans(list []netip.Prefix) wire.Spans { return wire.Nets(c.n.f.ID, list) }

// spanTest loads a value and tests that it is in a span, or with not, that it is outside; it returns false if that is impossible.
func (c *compiler) spanTest(s wire.Spans, one *wire.Span, load func(), not bool) (possible bool) {
	if (wire.Spans{Size: s.Size, List: []wire.Span{*one}}).All() {
		return !not
	}
	load()
	first, last := one.First[:s.Size], one.Last[:s.Size]
	if *one == (wire.Span{First: one.First, Last: one.First}) {
		c.Equal(first, not)
		return true
	}
	if p, ok := one.Prefix(s.Size); ok && s.Size > wire.PortBytes {
		c.Bitwise(maskOf(p.Bits(), s.Size), make([]byte, s.Size))
		c.Equal(first, not)
		return true
	}
	c.Between(first, last, not)
	return true
}

// without tests that a value is in none of the spans; it returns false if that is impossible.
func (c *compiler) without(s wire.Spans, load func()) (possible bool) {
	if len(s.List) > maxWithout {
		load()
		c.inList(s, true)
		return true
	}
	for i := range s.List {
		if !c.spanTest(s, &s.List[i], load, true) {
			return false
		}
	}
	return true
}

func maskOf(bits, size int) []byte {
	m := make([]byte, size)
	for i := range bits {
		m[i/8] |= 0x80 >> (i % 8)
	}
	return m
}

// inList looks up the loaded value in the named list with these spans.
func (c *compiler) inList(s wire.Spans, not bool) {
	typ := c.n.f.AddrType
	if s.Size == wire.PortBytes {
		typ = wire.TypePort
	}
	l := c.n.f.list(typ, s)
	c.lists = append(c.lists, l)
	c.Lookup(l.name, not)
}
