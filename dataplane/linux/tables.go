package intdataplane

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// Tables holds the chains and IP sets of an address family that managers from outside this package write (RegisterManager). A write is
// only recorded: the loop programs it in its next apply, together with the objects of the driver's own managers.
//
// Managers choose the names. In the kernel, chain names begin with the driver's prefix and "ext-", and sets are separate from those of
// the messages. So external managers cannot overwrite objects of the driver, and Uninstall removes all of their objects. All external
// managers share the names and the hooks.
//
// The methods must be called only from OnUpdate and CompleteDeferredWork. A call that returns an error has no effect; the error
// describes what is wrong with the call.
type Tables struct {
	family table.Family
	to     *recorder
	named  func(string) string // maps the manager's name of a chain to its name in the kernel
	chains map[chainName]bool  // by the manager's names
	sets   map[string]bool
	err    error // why the tables are not usable
}

// Tables returns the tables of a family. An external manager calls it before Start. If the driver does not work, or does not program the
// family, each method of Tables returns the reason.
func (d *InternalDataplane) Tables(f table.Family) *Tables {
	if t := d.tables[f]; t != nil {
		return t
	}
	err := d.front.Failed()
	if err == nil {
		err = fmt.Errorf("the driver does not program family IPv%d: set IPv6Enabled for IPv6", f)
	}
	return &Tables{err: err}
}

func newTables(c Config, to *recorder) map[table.Family]*Tables {
	out := map[table.Family]*Tables{}
	for _, f := range c.families() {
		out[f] = &Tables{family: f, to: to, chains: map[chainName]bool{}, sets: map[string]bool{},
			named: func(name string) string { return c.RulesConfig.Own("ext-" + name) }}
	}
	return out
}

const maxOutsideName = 28 - len("1234567") - len("ext-") // for any value of RulesConfig.ChainPrefix

var outsideName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func checkOutsideName(kind, name string) error {
	if len(name) > maxOutsideName || !outsideName.MatchString(name) {
		return fmt.Errorf("%s %q: a name has at most %d letters, digits, dots, dashes and underscores", kind, name, maxOutsideName)
	}
	return nil
}

// SetChains adds chains or replaces them completely. Rules may jump to chains and match sets that were set before, or to chains of the same
// call.
func (t *Tables) SetChains(layer table.Layer, chains ...table.Chain) error {
	if t.err != nil {
		return t.err
	}
	added := map[string]bool{}
	for _, c := range chains {
		added[c.Name] = true
	}
	out := make([]table.Chain, 0, len(chains))
	var errs []error
	for _, c := range chains {
		rules, err := t.translate(layer, added, c.Rules)
		if err = errors.Join(checkOutsideName("chain", c.Name), err); err != nil {
			errs = append(errs, fmt.Errorf("chain %q: %w", c.Name, err))
			continue
		}
		out = append(out, table.Chain{Name: t.named(c.Name), Rules: rules})
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for name := range added {
		t.chains[chainName{t.family, layer, name}] = true
	}
	t.to.SetChains(t.family, layer, out...)
	return nil
}

// DeleteChains removes chains; unknown names are ignored.
func (t *Tables) DeleteChains(layer table.Layer, names ...string) error {
	if t.err != nil {
		return t.err
	}
	for _, name := range names {
		if key := (chainName{t.family, layer, name}); t.chains[key] {
			delete(t.chains, key)
			t.to.DeleteChains(t.family, layer, t.named(name))
		}
	}
	return nil
}

// SetHook replaces the rules of external managers at a hook. They run before those of the driver and are usually jumps into chains. A
// packet that such a rule accepts skips the driver's rules, including network policy.
func (t *Tables) SetHook(layer table.Layer, hook table.Hook, rules ...table.Rule) error {
	if t.err != nil {
		return t.err
	}
	out, err := t.translate(layer, nil, rules)
	if err != nil {
		return fmt.Errorf("hook: %w", err)
	}
	t.to.setOutside(hookName{t.family, layer, hook}, out)
	return nil
}

// ReplaceSet adds a set or replaces all of its members. Members of the other family are left out.
func (t *Tables) ReplaceSet(s table.Set, members []table.Member) error {
	if t.err != nil {
		return t.err
	}
	if err := checkOutsideName("set", s.ID); err != nil {
		return err
	}
	t.sets[s.ID] = true
	s.ID = outsideSet(s.ID)
	t.to.ReplaceSet(t.family, s, t.own(members))
	return nil
}

// ChangeSet adds and removes members of a set.
func (t *Tables) ChangeSet(id string, add, remove []table.Member) error {
	switch {
	case t.err != nil:
		return t.err
	case !t.sets[id]:
		return fmt.Errorf("set %q does not exist: call ReplaceSet first", id)
	}
	t.to.ChangeSet(t.family, outsideSet(id), t.own(add), t.own(remove))
	return nil
}

// DeleteSet removes a set. Rules that match it must be removed first.
func (t *Tables) DeleteSet(id string) error {
	if t.err != nil {
		return t.err
	}
	if t.sets[id] {
		delete(t.sets, id)
		t.to.DeleteSet(t.family, outsideSet(id))
	}
	return nil
}

// own returns the members of the family.
func (t *Tables) own(members []table.Member) []table.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m table.Member) bool {
		return m.Net.Addr().Is4() != (t.family == table.IPv4)
	})
}

// outsideSet returns the internal ID of an external set. It has a space, so it never equals the ID of a set of the messages.
func outsideSet(id string) string { return "ext " + id }

// translate replaces the names in rules by those of the kernel.
func (t *Tables) translate(layer table.Layer, added map[string]bool, rules []table.Rule) ([]table.Rule, error) {
	out := make([]table.Rule, 0, len(rules))
	for i, r := range rules {
		m := &r.Match
		for _, list := range []*[]string{&m.SrcSets, &m.DstSets, &m.NotSrcSets, &m.NotDstSets, &m.SrcPortSets, &m.DstPortSets,
			&m.NotSrcPortSets, &m.NotDstPortSets} {
			ids := make([]string, 0, len(*list))
			for _, id := range *list {
				if !t.sets[id] {
					return nil, fmt.Errorf("rule %d: set %q does not exist: call ReplaceSet first", i, id)
				}
				ids = append(ids, outsideSet(id))
			}
			*list = ids
		}
		r.Actions = slices.Clone(r.Actions)
		for j := range r.Actions {
			a := &r.Actions[j]
			if a.Verb != table.Jump && a.Verb != table.Goto {
				continue
			}
			if !added[a.Chain] && !t.chains[chainName{t.family, layer, a.Chain}] {
				return nil, fmt.Errorf("rule %d: chain %q does not exist: call SetChains first", i, a.Chain)
			}
			a.Chain = t.named(a.Chain)
		}
		out = append(out, r)
	}
	return out, nil
}
