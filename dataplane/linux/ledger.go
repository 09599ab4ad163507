package intdataplane

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// ledger is a backend that remembers the names of what it received, so that all of it can be removed.
type ledger struct {
	table.Backend
	chains map[chainName]bool
	hooks  map[hookName]hookRules
	sets   map[setName]bool
}

// hookRules are the rules of a hook. Those of managers from outside come first.
type hookRules struct{ outside, own []table.Rule }

type chainName struct {
	family table.Family
	layer  table.Layer
	name   string
}

type hookName struct {
	family table.Family
	layer  table.Layer
	hook   table.Hook
}

type setName struct {
	family table.Family
	id     string
}

func newLedger(b table.Backend) *ledger {
	return &ledger{Backend: b, chains: map[chainName]bool{}, hooks: map[hookName]hookRules{}, sets: map[setName]bool{}}
}

func (l *ledger) SetChains(f table.Family, layer table.Layer, chains ...table.Chain) {
	for _, c := range chains {
		l.chains[chainName{f, layer, c.Name}] = true
	}
	l.Backend.SetChains(f, layer, chains...)
}

func (l *ledger) SetDispatch(f table.Family, layer table.Layer, d table.Dispatch) {
	l.chains[chainName{f, layer, d.Name}] = true
	l.Backend.SetDispatch(f, layer, d)
}

func (l *ledger) DeleteChains(f table.Family, layer table.Layer, names ...string) {
	for _, name := range names {
		delete(l.chains, chainName{f, layer, name})
	}
	l.Backend.DeleteChains(f, layer, names...)
}

func (l *ledger) SetHook(f table.Family, layer table.Layer, h table.Hook, rules ...table.Rule) {
	name := hookName{f, layer, h}
	l.setHook(name, hookRules{outside: l.hooks[name].outside, own: rules})
}

// setOutside replaces the rules that managers from outside have at a hook.
func (l *ledger) setOutside(name hookName, rules []table.Rule) {
	l.setHook(name, hookRules{outside: rules, own: l.hooks[name].own})
}

func (l *ledger) setHook(name hookName, rules hookRules) {
	l.hooks[name] = rules
	l.Backend.SetHook(name.family, name.layer, name.hook, slices.Concat(rules.outside, rules.own)...)
}

func (l *ledger) ReplaceSet(f table.Family, s table.Set, members []table.Member) {
	l.sets[setName{f, s.ID}] = true
	l.Backend.ReplaceSet(f, s, members)
}

func (l *ledger) DeleteSet(f table.Family, id string) {
	delete(l.sets, setName{f, id})
	l.Backend.DeleteSet(f, id)
}

// takeBack desires nothing any more.
func (l *ledger) takeBack() {
	for h := range l.hooks {
		l.Backend.SetHook(h.family, h.layer, h.hook)
	}
	for c := range l.chains {
		l.Backend.DeleteChains(c.family, c.layer, c.name)
	}
	for s := range l.sets {
		l.Backend.DeleteSet(s.family, s.id)
	}
	clear(l.hooks)
	clear(l.chains)
	clear(l.sets)
}
