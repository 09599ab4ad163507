package walk

import (
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/ipaddr"
)

// Packet is the first packet of a connection.
type Packet struct {
	In, Out          string // interfaces; empty: not known, no rule that names one matches
	Proto            uint8
	Src, Dst         netip.Addr
	SrcPort, DstPort uint16
}

// State provides the chains and sets that rules refer to.
type State interface {
	// Chain returns the rules of a chain of layer Filter; false: the chain does not exist.
	Chain(name string) ([]table.Rule, bool)
	// InSet reports whether a set has a member or, for sets of networks, one that contains it.
	InSet(id string, m table.Member) bool
	// Local reports whether an address is one of the node's own.
	Local(a netip.Addr) bool
}

// depth limits nested jumps. Ours are three deep.
const depth = 16

type verdict uint8

const (
	goesOn verdict = iota
	returned
	accepted
	dropped
)

// Allowed evaluates chains for a packet, one after the other. The packet is allowed if it is accepted, or leaves one of them with the mark
// accept. A packet that meets an unknown action, a missing chain or too many nested jumps is not allowed.
func Allowed(s State, chains []string, accept uint32, p Packet) bool {
	w := walker{State: s, Packet: p}
	for _, chain := range chains {
		switch w.chain(chain, depth) {
		case accepted:
			return true
		case dropped:
			return false
		}
		if w.mark&accept != 0 {
			return true
		}
	}
	return false
}

type walker struct {
	State
	Packet
	mark uint32
}

func (w *walker) chain(name string, depth int) verdict {
	rules, known := w.Chain(name)
	if !known || depth == 0 {
		return dropped
	}
	for i := range rules {
		if !w.matches(&rules[i].Match) {
			continue
		}
		for _, a := range rules[i].Actions {
			if v := w.act(a, depth); v == returned {
				return goesOn
			} else if v != goesOn {
				return v
			}
		}
	}
	return goesOn
}

func (w *walker) act(a table.Action, depth int) verdict {
	switch a.Verb {
	case table.SetMark:
		w.mark = w.mark&^a.Mask | a.Mark
	case table.NoTrack, table.Log, table.Report:
	case table.Jump:
		return w.chain(a.Chain, depth-1)
	case table.Goto:
		if v := w.chain(a.Chain, depth-1); v != goesOn {
			return v
		}
		return returned
	case table.Return:
		return returned
	case table.Accept:
		return accepted
	default:
		return dropped
	}
	return goesOn
}

func (w *walker) matches(m *table.Match) bool {
	switch {
	case m.InIface != "" && !ifaceMatches(m.InIface, w.In),
		m.OutIface != "" && !ifaceMatches(m.OutIface, w.Out),
		m.Protocol != 0 && m.Protocol != w.Proto,
		m.NotProtocol != 0 && m.NotProtocol == w.Proto,
		m.CT != 0 && m.CT&table.CTNew == 0,
		m.MarkMask != 0 && (w.mark&m.MarkMask == m.Mark) == m.MarkNot,
		!w.addrType(m.Src, w.Src), !w.addrType(m.Dst, w.Dst),
		// The first packet of a connection has none of these properties; with ICMP it is an echo request
		m.MidStream, m.NoReversePath, m.ICMP != nil, m.NotICMP != nil, len(m.CTOrigDst)+len(m.CTOrigSrc)+len(m.CTReplSrc) > 0:
		return false
	}
	return w.addresses(m) && w.ports(m)
}

func ifaceMatches(pattern, iface string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "+"); wild {
		return strings.HasPrefix(iface, prefix)
	}
	return pattern == iface
}

func (w *walker) addrType(t table.AddrType, a netip.Addr) bool {
	return t == table.AddrAny || w.Local(a) == (t == table.AddrLocal)
}

func (w *walker) addresses(m *table.Match) bool {
	side := func(a netip.Addr, nets, notNets []netip.Prefix, sets, notSets []string) bool {
		if len(nets) > 0 && !inNets(a, nets) || inNets(a, notNets) {
			return false
		}
		in := func(id string) bool { return w.InSet(id, table.Member{Net: ipaddr.HostPrefix(a)}) }
		return !slices.ContainsFunc(sets, func(id string) bool { return !in(id) }) && !slices.ContainsFunc(notSets, in)
	}
	return side(w.Src, m.SrcNets, m.NotSrcNets, m.SrcSets, m.NotSrcSets) &&
		side(w.Dst, m.DstNets, m.NotDstNets, m.DstSets, m.NotDstSets)
}

func inNets(a netip.Addr, nets []netip.Prefix) bool {
	return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

func (w *walker) ports(m *table.Match) bool {
	in := func(a netip.Addr, port uint16, ranges []table.PortRange, sets []string) bool {
		member := table.Member{Net: ipaddr.HostPrefix(a), Proto: w.Proto, Port: port}
		return slices.ContainsFunc(ranges, func(r table.PortRange) bool { return r.First <= port && port <= r.Last }) ||
			slices.ContainsFunc(sets, func(id string) bool { return w.InSet(id, member) })
	}
	if len(m.SrcPorts)+len(m.SrcPortSets) > 0 && !in(w.Src, w.SrcPort, m.SrcPorts, m.SrcPortSets) ||
		len(m.DstPorts)+len(m.DstPortSets) > 0 && !in(w.Dst, w.DstPort, m.DstPorts, m.DstPortSets) {
		return false
	}
	return !in(w.Src, w.SrcPort, m.NotSrcPorts, m.NotSrcPortSets) && !in(w.Dst, w.DstPort, m.NotDstPorts, m.NotDstPortSets)
}
