package intdataplane

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/walk"
)

// ruleRecord records the rules that packets of workloads pass, and everything that the rules refer to. Only the loop uses it.
type ruleRecord struct {
	own      func(felix string) string // rules.Config.Own
	accept   uint32                    // mark of packets that policy has accepted
	families map[table.Family]*familyManagers
	chains   map[chainID][]table.Rule
	shared   map[chainID]map[string]string // of rules.SharedDispatch
	ifaces   map[netip.Addr]string         // of workloads, by address
	local    map[string][]netip.Addr       // the node's own, by interface
}

type chainID struct {
	family table.Family
	name   string
}

func newRuleRecord(c rules.Config) *ruleRecord {
	return &ruleRecord{own: c.Own, accept: c.IptablesMarkAccept, families: map[table.Family]*familyManagers{}, chains: map[chainID][]table.Rule{},
		shared: map[chainID]map[string]string{}, ifaces: map[netip.Addr]string{}, local: map[string][]netip.Addr{}}
}

// allowed reports whether policy would allow the connection to be opened. The node's own connections are not subject to policy.
func (r *ruleRecord) allowed(f conntrack.Flow) bool {
	s := familyRules{r, familyOf(f.From.Addr())}
	p := walk.Packet{Proto: f.Proto, Src: f.From.Addr(), Dst: f.Answers.Addr(), SrcPort: f.From.Port(), DstPort: f.Answers.Port()}
	from, sends := r.ifaces[p.Src]
	to, receives := r.ifaces[p.Dst]
	p.In, p.Out = from, to
	if sends && !walk.Allowed(s, s.chainsOf(rules.WorkloadFromEndpointPfx, rules.ChainFromWorkloadPolicies, from), r.accept, p) {
		return false
	}
	return !receives || !sends && s.Local(p.Src) ||
		walk.Allowed(s, s.chainsOf(rules.WorkloadToEndpointPfx, rules.ChainToWorkloadPolicies, to), r.accept, p)
}

// chainsOf returns the chains that a packet of an interface passes: the interface's own chain, and the one it shares with others.
func (s familyRules) chainsOf(prefix, dispatch, iface string) []string {
	list := []string{rules.IfaceChain(s.own(prefix), iface)}
	if shared := s.shared[chainID{s.family, s.own(dispatch)}]; shared != nil {
		list = append(list, shared[iface])
	}
	return list
}

// familyRules provides the chains of a family and the state that they refer to.
type familyRules struct {
	*ruleRecord
	family table.Family
}

// Chain implements walk.State.
func (s familyRules) Chain(name string) ([]table.Rule, bool) {
	list, known := s.chains[chainID{s.family, name}]
	return list, known
}

// Local implements walk.State.
func (s familyRules) Local(a netip.Addr) bool {
	for _, list := range s.local {
		if slices.ContainsFunc(list, func(own netip.Addr) bool { return own.WithZone("").Unmap() == a }) {
			return true
		}
	}
	return false
}

// InSet implements walk.State.
func (s familyRules) InSet(id string, m table.Member) bool {
	set := s.families[s.family].ipsets.sets[id]
	if set == nil {
		return false
	}
	if set.kind != table.SetNet {
		_, has := set.members[m]
		return has
	}
	for bits := m.Net.Bits(); bits >= 0; bits-- {
		if _, has := set.members[table.Member{Net: netip.PrefixFrom(m.Net.Addr(), bits).Masked()}]; has {
			return true
		}
	}
	return false
}

// chainRecorder is a chainSink that also records the chains of layer Filter.
type chainRecorder struct {
	chainSink
	to *ruleRecord
}

func (c chainRecorder) SetChains(f table.Family, l table.Layer, chains ...table.Chain) {
	if l == table.Filter {
		for _, chain := range chains {
			c.to.chains[chainID{f, chain.Name}] = chain.Rules
		}
	}
	c.chainSink.SetChains(f, l, chains...)
}

func (c chainRecorder) SetDispatch(f table.Family, l table.Layer, d table.Dispatch) {
	if d.Name == c.to.own(rules.ChainFromWorkloadPolicies) || d.Name == c.to.own(rules.ChainToWorkloadPolicies) {
		c.to.shared[chainID{f, d.Name}] = d.Chains
	}
	c.chainSink.SetDispatch(f, l, d)
}

func (c chainRecorder) DeleteChains(f table.Family, l table.Layer, names ...string) {
	if l == table.Filter {
		for _, name := range names {
			delete(c.to.chains, chainID{f, name})
		}
	}
	c.chainSink.DeleteChains(f, l, names...)
}
