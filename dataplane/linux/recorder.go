package intdataplane

import (
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// recorder is a backend that records the names of all objects that it received, so that clear can remove them.
type recorder struct {
	table.Backend
	chains map[chainName]bool
	hooks  map[hookName]hookRules
	sets   map[setName]bool
}

// hookRules are the rules of a hook. Rules of external managers come first.
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

func newRecorder(b table.Backend) *recorder {
	return &recorder{Backend: b, chains: map[chainName]bool{}, hooks: map[hookName]hookRules{}, sets: map[setName]bool{}}
}

func (r *recorder) SetChains(f table.Family, layer table.Layer, chains ...table.Chain) {
	for _, c := range chains {
		r.chains[chainName{f, layer, c.Name}] = true
	}
	r.Backend.SetChains(f, layer, chains...)
}

func (r *recorder) SetDispatch(f table.Family, layer table.Layer, d table.Dispatch) {
	r.chains[chainName{f, layer, d.Name}] = true
	r.Backend.SetDispatch(f, layer, d)
}

func (r *recorder) DeleteChains(f table.Family, layer table.Layer, names ...string) {
	for _, name := range names {
		delete(r.chains, chainName{f, layer, name})
	}
	r.Backend.DeleteChains(f, layer, names...)
}

func (r *recorder) SetHook(f table.Family, layer table.Layer, h table.Hook, rules ...table.Rule) {
	name := hookName{f, layer, h}
	r.setHook(name, hookRules{outside: r.hooks[name].outside, own: rules})
}

// setOutside replaces the rules that external managers have at a hook.
func (r *recorder) setOutside(name hookName, rules []table.Rule) {
	r.setHook(name, hookRules{outside: rules, own: r.hooks[name].own})
}

func (r *recorder) setHook(name hookName, rules hookRules) {
	r.hooks[name] = rules
	r.Backend.SetHook(name.family, name.layer, name.hook, slices.Concat(rules.outside, rules.own)...)
}

func (r *recorder) ReplaceSet(f table.Family, s table.Set, members []table.Member) {
	r.sets[setName{f, s.ID}] = true
	r.Backend.ReplaceSet(f, s, members)
}

func (r *recorder) DeleteSet(f table.Family, id string) {
	delete(r.sets, setName{f, id})
	r.Backend.DeleteSet(f, id)
}

// clear removes all recorded objects from the desired state.
func (r *recorder) clear() {
	for h := range r.hooks {
		r.Backend.SetHook(h.family, h.layer, h.hook)
	}
	for c := range r.chains {
		r.Backend.DeleteChains(c.family, c.layer, c.name)
	}
	for s := range r.sets {
		r.Backend.DeleteSet(s.family, s.id)
	}
	clear(r.hooks)
	clear(r.chains)
	clear(r.sets)
}
