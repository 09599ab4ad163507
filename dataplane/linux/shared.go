package intdataplane

import (
	"maps"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// sharedChains maintains one family's chains of policies that workloads share, and the dispatch to them: see rules.Config.SharePolicies.
type sharedChains struct {
	family   table.Family
	render   rules.RuleRenderer
	out      chainSink
	to, from map[string]string // chains' names, by interface
	chains   map[string]*sharedChain
	touched  map[string]struct{} // chains whose number of users has changed
	changed  bool                // the dispatch has changed
}

type sharedChain struct {
	table.Chain
	users int
	there bool // the backend has it
}

func newSharedChains(f table.Family, render rules.RuleRenderer, out chainSink) *sharedChains {
	return &sharedChains{family: f, render: render, out: out, to: map[string]string{}, from: map[string]string{},
		chains: map[string]*sharedChain{}, touched: map[string]struct{}{}, changed: true}
}

// set updates the chains that apply to an interface; ep is nil if the interface was removed.
func (s *sharedChains) set(iface string, ep *rules.Workload) {
	var to, from table.Chain
	if ep != nil {
		to, from = s.render.SharedChains(*ep, func(name string) bool { return s.chains[name] != nil })
	}
	s.assign(s.to, iface, to)
	s.assign(s.from, iface, from)
}

func (s *sharedChains) assign(names map[string]string, iface string, chain table.Chain) {
	before := names[iface]
	if before == chain.Name {
		return
	}
	s.changed = true
	if before != "" {
		s.chains[before].users--
		s.touched[before] = struct{}{}
		delete(names, iface)
	}
	if chain.Name == "" {
		return
	}
	if s.chains[chain.Name] == nil {
		s.chains[chain.Name] = &sharedChain{Chain: chain}
	}
	s.chains[chain.Name].users++
	s.touched[chain.Name] = struct{}{}
	names[iface] = chain.Name
}

// complete passes the changes to the backend.
func (s *sharedChains) complete() {
	for name := range s.touched {
		switch c := s.chains[name]; {
		case c.users == 0:
			if c.there {
				s.out.DeleteChains(s.family, table.Filter, name)
			}
			delete(s.chains, name)
		case !c.there:
			s.out.SetChains(s.family, table.Filter, c.Chain)
			c.there = true
		}
	}
	clear(s.touched)
	if s.changed {
		for _, d := range s.render.SharedDispatch(maps.Clone(s.to), maps.Clone(s.from)) {
			s.out.SetDispatch(s.family, table.Filter, d)
		}
		s.changed = false
	}
}
