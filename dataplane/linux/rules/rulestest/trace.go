package rulestest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Packet is a packet, with the node's data about it.
type Packet struct {
	In, Out   string // interfaces; In "": sent by the node, Out "": for the node
	Src, Dst  netip.Addr
	Proto     uint8
	SrcPort   uint16
	DstPort   uint16
	ICMPType  uint8
	ICMPCode  uint8
	CT        table.CTState // default CTNew
	Spoofed   bool          // no route back through In
	OtherSrc  bool          // the source is not one of Out's addresses
	Local     []netip.Addr  // the node's own addresses
	Mark      uint32
	Untracked bool // set by NoTrack
	MidStream bool // a TCP segment that does not open a connection
	DNATed    bool // set by DNAT; DNAT of another table counts too
	// OrigSrc and ReplSrc are the sources of the two directions of the packet's connection. If they are not valid, rules that match them do
	// not hold.
	OrigSrc, ReplSrc netip.Addr
}

// Outcome is the result of sending a packet.
type Outcome struct {
	Verdict  string          // accept, drop, reject
	Packet   Packet          // as it leaves
	SNAT     string          // "masquerade", or the new source
	SNATPort table.PortRange // range from which the source port is chosen; zero: any
	Logged   []string
	Reported []string // prefixes of table.Report
	Path     []string // chains passed, as "layer chain"
	Accepted bool     // a rule in layer filter has accepted it; otherwise the kernel's policy applies
}

// walker evaluates chains for one packet.
type walker struct {
	f     *Fake
	fam   table.Family
	layer table.Layer
	Outcome
	depth int
	err   error
}

type step struct {
	layer table.Layer
	hook  table.Hook
}

// Send evaluates the rules for a packet: it is forwarded if it has both interfaces, delivered with In only, sent with Out only. An unknown
// part of a rule is an error.
func (f *Fake) Send(p Packet) (Outcome, error) {
	steps := []step{{table.Raw, table.Output}, {table.NAT, table.Output}, {table.Filter, table.Output},
		{table.Mangle, table.Postrouting}, {table.NAT, table.Postrouting}}
	if p.In != "" {
		steps = []step{{table.Raw, table.Prerouting}, {table.Mangle, table.Prerouting}, {table.NAT, table.Prerouting}}
		if p.Out != "" {
			steps = append(steps, step{table.Filter, table.Forward},
				step{table.Mangle, table.Postrouting}, step{table.NAT, table.Postrouting})
		} else {
			steps = append(steps, step{table.Filter, table.Input})
		}
	}
	return f.carry(p, steps)
}

// SendFrom is like Send, for a packet that the node sends and that starts at a layer of OUTPUT.
func (f *Fake) SendFrom(l table.Layer, p Packet) (Outcome, error) {
	steps := []step{{table.Raw, table.Output}, {table.NAT, table.Output}, {table.Filter, table.Output}}
	return f.carry(p, slices.DeleteFunc(steps, func(s step) bool { return s.layer < l }))
}

func (f *Fake) carry(p Packet, steps []step) (Outcome, error) {
	w := &walker{f: f, fam: table.IPv6, Outcome: Outcome{Packet: p, Verdict: "accept"}}
	if p.Src.Is4() {
		w.fam = table.IPv4
	}
	if p.CT == 0 {
		w.Packet.CT = table.CTNew
	}
	for _, s := range steps {
		if s.layer == table.NAT && w.Packet.CT != table.CTNew {
			continue
		}
		w.layer = s.layer
		key := hookKey(w.fam, s.layer, s.hook)
		verdict := w.walk(slices.Concat(f.kernel.hooks[key], f.others[key]), s.hook)
		if verdict == "drop" || verdict == "reject" {
			w.Verdict = verdict
			break
		}
		w.Accepted = w.Accepted || verdict == "accept" && s.layer == table.Filter
		if w.Packet.Untracked {
			w.Packet.CT = table.CTUntracked
		}
	}
	return w.Outcome, w.err
}

// walk evaluates rules. It returns "" at the end, or a verdict.
func (w *walker) walk(rules []table.Rule, hook table.Hook) string {
	if w.depth++; w.depth > 50 {
		w.err = fmt.Errorf("the chains loop: %v", w.Path[len(w.Path)-10:])
		return "drop"
	}
	defer func() { w.depth-- }()
	for _, r := range rules {
		if !w.matches(r.Match, hook) {
			continue
		}
		for _, a := range r.Actions {
			if verdict := w.do(a, hook); verdict != "" {
				if verdict == "return" {
					return ""
				}
				return verdict
			}
		}
	}
	return ""
}

// do executes an action. "return" leaves the current chain.
func (w *walker) do(a table.Action, hook table.Hook) string {
	switch a.Verb {
	case table.SetMark:
		w.Packet.Mark = w.Packet.Mark&^a.Mask | a.Mark
	case table.NoTrack:
		w.Packet.Untracked = true
	case table.Report:
		w.Reported = append(w.Reported, a.Prefix)
	case table.Log:
		w.Logged = append(w.Logged, a.Prefix)
	case table.Jump:
		return w.enter(a.Chain, hook)
	case table.Goto:
		if v := w.enter(a.Chain, hook); v != "" {
			return v
		}
		return "return"
	case table.Return:
		return "return"
	case table.Accept:
		return "accept"
	case table.Drop:
		return "drop"
	case table.Reject:
		return "reject"
	case table.DNAT:
		w.Packet.Dst, w.Packet.DNATed = a.To, true
		if a.Ports.First != 0 {
			w.Packet.DstPort = a.Ports.First
		}
		return "accept"
	case table.SNAT:
		w.SNAT = a.To.String()
		return "accept"
	case table.Masquerade:
		w.SNAT, w.SNATPort = "masquerade", a.Ports
		return "accept"
	default:
		w.err = fmt.Errorf("unknown verb %d", a.Verb)
		return "drop"
	}
	return ""
}

func (w *walker) enter(name string, hook table.Hook) string {
	k := key{w.fam, w.layer, name}
	w.Path = append(w.Path, layerName(w.layer)+" "+name)
	if d, is := w.f.kernel.dispatches[k]; is {
		iface := w.Packet.In
		if d.ByOut {
			iface = w.Packet.Out
		}
		if chain, has := d.Chains[iface]; has {
			return w.enter(chain, hook)
		}
		return w.walk(d.Default, hook)
	}
	rules, is := w.f.kernel.chains[k]
	if !is {
		w.err = fmt.Errorf("%s is not there", chainName(k))
		return "drop"
	}
	return w.walk(rules, hook)
}

func (w *walker) matches(m table.Match, hook table.Hook) bool {
	p := &w.Packet
	inKnown := hook == table.Prerouting || hook == table.Input || hook == table.Forward
	outKnown := hook == table.Forward || hook == table.Output || hook == table.Postrouting
	switch {
	case m.InIface != "" && !(inKnown && ifaceMatches(m.InIface, p.In)),
		m.OutIface != "" && !(outKnown && ifaceMatches(m.OutIface, p.Out)),
		m.Protocol != 0 && m.Protocol != p.Proto,
		m.NotProtocol != 0 && m.NotProtocol == p.Proto,
		m.CT != 0 && m.CT&p.CT == 0,
		m.MarkMask != 0 && (p.Mark&m.MarkMask == m.Mark) == m.MarkNot,
		!w.addrType(m.Src, p.Src), !w.addrType(m.Dst, p.Dst),
		m.SrcNotOnOut && !p.OtherSrc,
		m.NoReversePath && !p.Spoofed,
		m.MidStream && !(p.Proto == 6 && p.MidStream),
		m.DNATed && !p.DNATed:
		return false
	}
	if len(m.CTOrigDst) > 0 {
		w.err = fmt.Errorf("CTOrigDst is not known here")
		return false
	}
	tracked := func(nets []netip.Prefix, a netip.Addr) bool {
		return len(nets) == 0 || slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	if !tracked(m.CTOrigSrc, p.OrigSrc) || !tracked(m.CTReplSrc, p.ReplSrc) {
		return false
	}
	return w.matchAddresses(m) && w.matchPorts(m) && w.matchICMP(m)
}

func ifaceMatches(pattern, iface string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "+"); wild {
		return strings.HasPrefix(iface, prefix)
	}
	return pattern == iface
}

func (w *walker) addrType(t table.AddrType, a netip.Addr) bool {
	return t == table.AddrAny || slices.Contains(w.Packet.Local, a) == (t == table.AddrLocal)
}

func (w *walker) matchAddresses(m table.Match) bool {
	p := &w.Packet
	side := func(a netip.Addr, nets, notNets []netip.Prefix, sets, notSets []string) bool {
		if len(nets) > 0 && !inNets(a, nets) || inNets(a, notNets) {
			return false
		}
		for _, id := range sets {
			if !w.inSet(id, a) {
				return false
			}
		}
		return !slices.ContainsFunc(notSets, func(id string) bool { return w.inSet(id, a) })
	}
	return side(p.Src, m.SrcNets, m.NotSrcNets, m.SrcSets, m.NotSrcSets) &&
		side(p.Dst, m.DstNets, m.NotDstNets, m.DstSets, m.NotDstSets)
}

func inNets(a netip.Addr, nets []netip.Prefix) bool {
	return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

func (w *walker) inSet(id string, a netip.Addr) bool {
	s, known := w.f.kernel.sets[setKey{w.fam, id}]
	if !known {
		w.err = fmt.Errorf("set %s is not there", id)
	}
	for m := range s.members {
		if m.Net.Contains(a) {
			return true
		}
	}
	return false
}

func (w *walker) matchPorts(m table.Match) bool {
	p := &w.Packet
	side := func(a netip.Addr, port uint16, ranges []table.PortRange, sets []string) bool {
		in := slices.ContainsFunc(ranges, func(r table.PortRange) bool { return r.First <= port && port <= r.Last })
		for _, id := range sets {
			member := table.Member{Net: netip.PrefixFrom(a, a.BitLen()), Proto: p.Proto, Port: port}
			in = in || w.f.kernel.sets[setKey{w.fam, id}].members[member]
		}
		return in
	}
	if len(m.SrcPorts)+len(m.SrcPortSets) > 0 && !side(p.Src, p.SrcPort, m.SrcPorts, m.SrcPortSets) ||
		len(m.DstPorts)+len(m.DstPortSets) > 0 && !side(p.Dst, p.DstPort, m.DstPorts, m.DstPortSets) {
		return false
	}
	return !side(p.Src, p.SrcPort, m.NotSrcPorts, m.NotSrcPortSets) && !side(p.Dst, p.DstPort, m.NotDstPorts, m.NotDstPortSets)
}

func (w *walker) matchICMP(m table.Match) bool {
	is := func(c *table.ICMP) bool {
		return c.Type == w.Packet.ICMPType && (c.AnyCode || c.Code == w.Packet.ICMPCode)
	}
	return (m.ICMP == nil || is(m.ICMP)) && (m.NotICMP == nil || !is(m.NotICMP))
}
