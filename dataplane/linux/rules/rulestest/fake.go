package rulestest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// key identifies an object of one family and layer.
type key struct {
	family table.Family
	layer  table.Layer
	name   string
}

type setKey struct {
	family table.Family
	id     string
}

// state is the desired or the programmed state.
type state struct {
	chains     map[key][]table.Rule
	dispatches map[key]table.Dispatch
	hooks      map[key][]table.Rule // name: the hook's number
	sets       map[setKey]set
}

type set struct {
	table.Set
	members map[table.Member]bool
}

func newState() state {
	return state{chains: map[key][]table.Rule{}, dispatches: map[key]table.Dispatch{}, hooks: map[key][]table.Rule{},
		sets: map[setKey]set{}}
}

func (s state) clone() state {
	c := newState()
	c.chains, c.hooks = maps.Clone(s.chains), maps.Clone(s.hooks)
	for k, d := range s.dispatches {
		d.Chains = maps.Clone(d.Chains)
		c.dispatches[k] = d
	}
	for k, v := range s.sets {
		v.members = maps.Clone(v.members)
		c.sets[k] = v
	}
	return c
}

// Fake is a table.Backend in memory. Not safe for concurrent use.
type Fake struct {
	want state
	// kernel is the state that Apply has programmed. Restart passes it to another Fake.
	kernel state
	text   map[string]string // of kernel; nil: not computed
	others map[key][]table.Rule

	// Fail, if set, is called at each Apply; if it returns an error, Apply fails without writing anything.
	Fail func() error
	// Break, if set, returns an error if an object cannot be programmed. This object, and those that refer to it, remain unchanged.
	Break func(object string) error
	// Repaired makes the next successful Apply report that it has repaired changes of another program.
	Repaired bool

	Applies int // calls of Apply
	Writes  int // objects written or removed so far
	Resyncs int // calls of Resync
	Closed  bool
	// Order lists the objects written by the last Apply, sets first.
	Order []string
}

var _ table.Backend = (*Fake)(nil)

// New returns an empty Fake.
func New() *Fake { return &Fake{want: newState(), kernel: newState()} }

// Restart returns a new backend with the old one's kernel state.
func (f *Fake) Restart() *Fake { return &Fake{want: newState(), kernel: f.kernel.clone()} }

// Clobber simulates another program that removes everything.
func (f *Fake) Clobber() { f.kernel, f.text = newState(), nil }

// Others adds rules of another program after ours at a hook.
func (f *Fake) Others(fam table.Family, l table.Layer, h table.Hook, rules ...table.Rule) {
	if f.others == nil {
		f.others = map[key][]table.Rule{}
	}
	f.others[hookKey(fam, l, h)] = rules
}

func (f *Fake) Name() string { return "fake" }

func (f *Fake) SetChains(fam table.Family, l table.Layer, chains ...table.Chain) {
	for _, c := range chains {
		k := key{fam, l, c.Name}
		delete(f.want.dispatches, k)
		f.want.chains[k] = slices.Clone(c.Rules)
	}
}

func (f *Fake) SetDispatch(fam table.Family, l table.Layer, d table.Dispatch) {
	k := key{fam, l, d.Name}
	delete(f.want.chains, k)
	d.Chains = maps.Clone(d.Chains)
	d.Default = slices.Clone(d.Default)
	f.want.dispatches[k] = d
}

func (f *Fake) DeleteChains(fam table.Family, l table.Layer, names ...string) {
	for _, name := range names {
		delete(f.want.chains, key{fam, l, name})
		delete(f.want.dispatches, key{fam, l, name})
	}
}

func (f *Fake) SetHook(fam table.Family, l table.Layer, h table.Hook, rules ...table.Rule) {
	k := hookKey(fam, l, h)
	if len(rules) == 0 {
		delete(f.want.hooks, k)
		return
	}
	f.want.hooks[k] = slices.Clone(rules)
}

func hookKey(fam table.Family, l table.Layer, h table.Hook) key {
	return key{fam, l, [...]string{"prerouting", "input", "forward", "output", "postrouting"}[h]}
}

func (f *Fake) ReplaceSet(fam table.Family, s table.Set, members []table.Member) {
	if s.Max == 0 {
		s.Max = table.DefaultMaxSet
	}
	all := map[table.Member]bool{}
	for _, m := range members {
		all[m] = true
	}
	f.want.sets[setKey{fam, s.ID}] = set{s, all}
}

func (f *Fake) ChangeSet(fam table.Family, id string, add, remove []table.Member) {
	s, known := f.want.sets[setKey{fam, id}]
	if !known {
		panic("ChangeSet of a set that was never made: " + id)
	}
	for _, m := range add {
		s.members[m] = true
	}
	for _, m := range remove {
		delete(s.members, m)
	}
}

func (f *Fake) DeleteSet(fam table.Family, id string) { delete(f.want.sets, setKey{fam, id}) }

func (f *Fake) Resync(sets, chains bool) { f.Resyncs++ }

func (f *Fake) Pending() bool { return !reflect.DeepEqual(f.want.dump(), f.Dump()) }

func (f *Fake) Close() error {
	f.Closed = true
	return nil
}

// Apply programs the differences. A rejected object remains unchanged, and so do the objects that refer to it; all others are programmed.
func (f *Fake) Apply(ctx context.Context) table.Result {
	f.Applies++
	if err := ctx.Err(); err != nil {
		return table.Result{Err: err}
	}
	if f.Fail != nil {
		if err := f.Fail(); err != nil {
			return table.Result{Err: err}
		}
	}
	broken := f.broken()
	next := f.want.clone()
	for name := range broken {
		next.keep(f.kernel, name)
	}
	before, after := f.Dump(), next.dump()
	f.Order = f.Order[:0]
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			f.Order = append(f.Order, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			f.Order = append(f.Order, "-"+name)
		}
	}
	f.Writes += len(f.Order)
	f.kernel, f.text = next, after
	if len(broken) == 0 {
		broken = nil
	}
	repaired := f.Repaired
	f.Repaired = false
	return table.Result{Broken: broken, Writes: len(f.Order), Repaired: repaired}
}

// keep replaces an object by that of the old state.
func (s state) keep(old state, name string) {
	for k := range s.chains {
		if chainName(k) == name {
			s.chains[k] = []table.Rule{{Actions: []table.Action{{Verb: table.Drop}}, Comment: "broken"}}
			if rules, was := old.chains[k]; was {
				s.chains[k] = rules
			}
		}
	}
	for k, v := range s.sets {
		if setName(k) == name {
			delete(s.sets, k)
			if was, had := old.sets[k]; had && was.Type == v.Type {
				s.sets[k] = was
			}
		}
	}
}

func layerName(l table.Layer) string { return [...]string{"raw", "mangle", "nat", "filter"}[l] }

func chainName(k key) string {
	return fmt.Sprintf("chain v%d %s %s", k.family, layerName(k.layer), k.name)
}

func setName(k setKey) string { return fmt.Sprintf("set v%d %s", k.family, k.id) }

// dump returns the objects as text, by name.
func (s state) dump() map[string]string {
	out := map[string]string{}
	for k, rules := range s.chains {
		out[chainName(k)] = rulesText(rules)
	}
	for k, d := range s.dispatches {
		var b strings.Builder
		fmt.Fprintf(&b, "dispatch out=%v\n", d.ByOut)
		for _, iface := range slices.Sorted(maps.Keys(d.Chains)) {
			fmt.Fprintf(&b, "  %s → %s\n", iface, d.Chains[iface])
		}
		out[chainName(k)] = b.String() + rulesText(d.Default)
	}
	for k, rules := range s.hooks {
		out["hook"+strings.TrimPrefix(chainName(k), "chain")] = rulesText(rules)
	}
	for k, v := range s.sets {
		var members []string
		for m := range v.members {
			members = append(members, fmt.Sprintf("%v/%d:%d", m.Net, m.Proto, m.Port))
		}
		slices.Sort(members)
		out[setName(k)] = fmt.Sprintf("type %d max %d: %s\n", v.Type, v.Max, strings.Join(members, " "))
	}
	return out
}

func rulesText(rules []table.Rule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString("  " + ruleText(r) + "\n")
	}
	return b.String()
}

// ruleText returns a rule as text: the fields of its match that are set, then its actions.
func ruleText(r table.Rule) string {
	var parts []string
	v := reflect.ValueOf(r.Match)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			if field.Kind() == reflect.Pointer {
				field = field.Elem()
			}
			parts = append(parts, fmt.Sprintf("%s=%v", v.Type().Field(i).Name, field.Interface()))
		}
	}
	for _, a := range r.Actions {
		parts = append(parts, actionText(a))
	}
	return strings.Join(parts, " ")
}

func actionText(a table.Action) string {
	names := []string{"?", "mark", "notrack", "report", "log", "jump", "goto", "return",
		"accept", "drop", "reject", "dnat", "snat", "masquerade"}
	s := names[a.Verb]
	switch a.Verb {
	case table.SetMark:
		return fmt.Sprintf("mark=%#x/%#x", a.Mark, a.Mask)
	case table.Jump, table.Goto:
		return s + " " + a.Chain
	case table.Log, table.Report:
		return s + " " + a.Prefix
	case table.DNAT, table.SNAT:
		return fmt.Sprintf("%s %v:%v", s, a.To, a.Ports)
	}
	return s
}

// Dump returns the programmed state as text, by name. The caller must not change it.
func (f *Fake) Dump() map[string]string {
	if f.text == nil {
		f.text = f.kernel.dump()
	}
	return f.text
}

// Text returns Dump as one string.
func (f *Fake) Text() string {
	var b strings.Builder
	all := f.Dump()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s:\n%s", name, all[name])
	}
	return b.String()
}
