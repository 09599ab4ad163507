package policy

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// The kernel finds a set by its name in a list of all sets of the table, so the cost of a set grows with their number: 14,000 sets of one
// prefix took 16 s. So sets with only a few prefixes are written into the rules. The sets of network policies never change; if another one
// does, the chains that name it are written again.
const (
	maxInlineNets  = 32
	maxInlineSpans = 4
)

// inline determines whether the set's prefixes are written into the rules. changed is true if the chains that name the set must be compiled
// again.
func (s *set) inline() (changed bool) {
	was := s.inlined
	s.inlined = nil
	if s.wanted && s.spec.Type == table.SetNet && s.count() <= maxInlineNets && s.fault() == nil {
		var nets []netip.Prefix
		s.eachElement(func(m table.Member) { nets = append(nets, m.Net) })
		if spans := wire.Nets(s.f.ID, nets); len(spans.List) <= maxInlineSpans {
			s.inlined = &spans
		}
	}
	if was == nil || s.inlined == nil {
		return was != s.inlined
	}
	return !slices.Equal(was.List, s.inlined.List)
}
