package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// family is one of the two tables: what is desired in it and what the kernel has.
type family struct {
	wire.Family
	behind int32 // added to the priorities of base chains

	nodes map[string]*node // by the kernel's name of the chain
	sets  map[string]*set  // by ID
	lists map[string]*list // by the kernel's name

	dirtyNodes  map[*node]struct{}
	dirtySets   map[*set]struct{}
	dirtyLists  map[*list]struct{}
	brokenNodes map[*node]struct{}
	picky       map[*node]struct{} // chains that cannot be called from all hooks of their layer
	brokenSets  map[*set]struct{}

	scratch scratch

	present bool // the kernel has the table
	rebuild bool // what it has there is not ours to understand: it is made again, all at once
	leaving leaving
}

func newFamily(id table.Family) *family {
	return &family{
		Family: wire.FamilyOf(id),
		nodes:  map[string]*node{}, sets: map[string]*set{},
		dirtyNodes: map[*node]struct{}{}, dirtySets: map[*set]struct{}{},
		lists: map[string]*list{}, dirtyLists: map[*list]struct{}{},
		picky: map[*node]struct{}{}, brokenNodes: map[*node]struct{}{}, brokenSets: map[*set]struct{}{},
		leaving: leaving{nodes: map[*node]uint64{}, sets: map[*set]uint64{}, lists: map[*list]uint64{}},
	}
}

// node is a chain: one of the caller's, one that dispatches, or the base chain of a hook.
type node struct {
	f     *family
	layer table.Layer
	name  string // the caller's
	chain string // the kernel's
	base  *baseHook
	fork  *fork // of dispatch chains

	wanted bool
	rules  []table.Rule // of dispatch chains: those for other interfaces

	compiled *compiled          // of rules; only during an Apply
	mentions map[*node]struct{} // that the rules name
	uses     map[*set]struct{}  // that the rules name
	users    map[*node]int      // that name this one, by rules (which count once) and by interfaces

	// The graph of what really leads where: nothing leads out of what is broken.
	out     map[*node]int      // chains that this one leads to, and by how many ways
	byRule  map[*node]bool     // those of them that a rule leads to
	in      map[*node]struct{} // chains that lead to this one
	refs    int                // how many of those are live
	live    bool               // packets can get here, so it is programmed
	allowed hooks              // from which packets may come, by what the rules do

	idle              bool // it has no rules, whatever the kernel has
	broken, kernelErr error
	hopeless          bool // the kernel refuses even a chain that drops

	present bool               // in the kernel
	hashes  []wire.Hash        // of the kernel's rules
	lists   map[*list]struct{} // that the content has, while the chain is live
	force   bool               // the rules must be written again: what they name is made again
	elems   *kernelElems       // the kernel's map of a dispatch chain, nil if there is none
}

// kernelElems is a verdict map: interface → the kernel's name of a chain, "" for a drop.
type kernelElems map[string]string

// fork is what a dispatch chain has besides rules.
type fork struct {
	byOut   bool
	want    map[string]string   // interface → chain, as desired
	named   map[string]*node    // interface → that chain
	to      map[string]*node    // interface → chain that it really leads to; not there if it is missing
	changed map[string]struct{} // interfaces to look at
	missing map[string]struct{} // interfaces whose chain is not there
}

// baseHook is where the kernel calls a base chain.
type baseHook struct {
	hook     table.Hook
	num      uint32
	priority int32
	typ      string
}

var layerNames = [...]string{table.Raw: "raw", table.Mangle: "mangle", table.NAT: "nat", table.Filter: "filter"}

var hookNames = [...]string{
	table.Prerouting: "prerouting", table.Input: "input", table.Forward: "forward", table.Output: "output",
	table.Postrouting: "postrouting",
}

// Key names nodes as in "chain v4 filter cali-x" and "hook v4 filter forward".
func (n *node) Key() string {
	kind := "chain"
	if n.base != nil {
		kind = "hook"
	}
	return fmt.Sprintf("%s v%d %s %s", kind, n.f.ID, layerName(n.layer), n.name)
}

func (n *node) Fail(err error) { n.kernelErr = err }

func (n *node) Failed() bool { return n.kernelErr != nil }

// mapName is the kernel's name of a dispatch chain's map.
func (n *node) mapName() string { return mapPrefix + n.chain }

const (
	mapPrefix  = "map-"
	setPrefix  = "set-"
	hookPrefix = "hook-"
)

func layerName(l table.Layer) string {
	if int(l) < len(layerNames) {
		return layerNames[l]
	}
	return fmt.Sprintf("layer%d", l)
}

func hookName(h table.Hook) string {
	if int(h) < len(hookNames) {
		return hookNames[h]
	}
	return fmt.Sprintf("hook%d", h)
}

// node is the chain of a name, made if it is not known.
func (f *family) node(l table.Layer, name string) *node {
	chain := layerName(l) + "-" + name
	n := f.nodes[chain]
	if n == nil {
		n = newNode(f, l, name, chain)
	}
	n.layer, n.name = l, name // an audit has only the kernel's name for it
	return n
}

// hook is the base chain of a hook, made if it is not known.
func (f *family) hook(l table.Layer, h table.Hook) *node {
	chain := hookPrefix + layerName(l) + "-" + hookName(h)
	n := f.nodes[chain]
	if n == nil {
		n = newNode(f, l, hookName(h), chain)
	}
	n.layer, n.name = l, hookName(h)
	if n.base == nil {
		n.base = baseHookOf(l, h)
		n.base.priority += f.behind
	}
	n.base.hook = h
	return n
}

func newNode(f *family, l table.Layer, name, chain string) *node {
	n := &node{
		f: f, layer: l, name: name, chain: chain, mentions: map[*node]struct{}{}, uses: map[*set]struct{}{},
		users: map[*node]int{}, out: map[*node]int{}, in: map[*node]struct{}{},
	}
	f.nodes[chain] = n
	return n
}

// baseHookOf is how a layer is called at a hook: with the priorities of iptables. num is noHook where iptables has no such
// hook.
func baseHookOf(l table.Layer, h table.Hook) *baseHook {
	b := &baseHook{hook: h, num: uint32(h), typ: "filter"} // table.Hook is numbered as enum nf_inet_hooks
	switch l {
	case table.Raw:
		b.priority = -300
	case table.Mangle:
		b.priority = -150
		if h == table.Output {
			b.typ = "route" // looks for a route again when the mark has changed
		}
	case table.NAT:
		b.typ, b.priority = "nat", -100
		if h == table.Input || h == table.Postrouting {
			b.priority = 100
		}
	}
	if h > table.Postrouting || layerHooks(l)&(1<<h) == 0 {
		b.num = noHook
	}
	return b
}

// layerHooks are the hooks that call a layer.
func layerHooks(l table.Layer) hooks {
	switch l {
	case table.Raw:
		return hooksOf(table.Prerouting, table.Output)
	case table.Mangle:
		return hooksOf(table.Prerouting, table.Input, table.Forward, table.Output, table.Postrouting)
	case table.NAT:
		return hooksOf(table.Prerouting, table.Input, table.Output, table.Postrouting)
	case table.Filter:
		return hooksOf(table.Input, table.Forward, table.Output)
	}
	return 0
}

const noHook = ^uint32(0)

// set is the set of an ID, made if it is not known.
func (f *family) set(id string) *set {
	s := f.sets[id]
	if s == nil {
		s = &set{f: f, id: id, name: setPrefix + swapColon(id), users: map[*node]struct{}{}}
		f.sets[id] = s
	}
	return s
}

func (n *node) Touch() { n.f.dirtyNodes[n] = struct{}{} }

// swapColon exchanges : and /, and is its own inverse. The nft tool takes no names with a colon, which many sets' IDs have.
func swapColon(s string) string { return colonSwapper.Replace(s) }

var colonSwapper = strings.NewReplacer(":", "/", "/", ":")

// setRules makes n a chain with these rules.
func (n *node) setRules(rules []table.Rule) {
	if n.fork != nil {
		n.dropFork()
	}
	n.want()
	n.rules = rules
	n.Touch()
}

// usable is true if others may lead here.
func (n *node) usable() bool {
	return n.wanted && !n.hopeless && (n.base == nil || n.base.num != noHook)
}

// want notes that the chain is there; those that name it look at it again.
func (n *node) want() {
	if !n.wanted {
		n.wanted = true
		n.wakeUsers()
	}
}

func (n *node) wakeUsers() {
	for u := range n.users {
		u.Touch()
		if u.fork != nil {
			u.fork.recheck(n.name)
		}
	}
}

// recheck looks again at the interfaces that lead to a chain.
func (k *fork) recheck(chain string) {
	for iface, c := range k.want {
		if c == chain {
			k.changed[iface] = struct{}{}
		}
	}
}

// unwant notes that the chain is not there any more.
func (n *node) unwant() {
	if !n.wanted {
		return
	}
	if n.fork != nil {
		n.dropFork()
	}
	n.wanted, n.rules = false, nil
	n.Touch()
	n.wakeUsers()
}

// dropFork makes n a chain that does not dispatch any more.
func (n *node) dropFork() {
	for iface, target := range n.fork.named {
		n.nameFor(iface, nil)
		n.lead(iface, nil)
		target.Touch()
	}
	n.fork = nil
}

// nameFor notes which chain an interface names, whether that is there or not; nil for none.
func (n *node) nameFor(iface string, target *node) {
	was := n.fork.named[iface]
	if was == target {
		return
	}
	if was != nil {
		was.unused(n)
		delete(n.fork.named, iface)
	}
	if target != nil {
		n.fork.named[iface] = target
		target.users[n]++
	}
}

// unused notes that n names this node by one way less.
func (n *node) unused(by *node) {
	if n.users[by]--; n.users[by] <= 0 {
		delete(n.users, by)
		n.Touch() // it may have no owner
	}
}

// setDispatch makes n a dispatch chain; what did not change costs a comparison.
func (n *node) setDispatch(d table.Dispatch) {
	n.want()
	n.Touch()
	n.rules = d.Default
	if n.fork == nil {
		n.fork = &fork{want: map[string]string{}, named: map[string]*node{}, to: map[string]*node{},
			changed: map[string]struct{}{}, missing: map[string]struct{}{}}
		if n.elems != nil {
			for iface := range *n.elems {
				n.fork.changed[iface] = struct{}{}
			}
		}
	}
	k := n.fork
	k.byOut = d.ByOut
	for iface, chain := range d.Chains {
		if was, ok := k.want[iface]; !ok || was != chain {
			k.want[iface] = chain
			k.changed[iface] = struct{}{}
		}
	}
	if len(k.want) == len(d.Chains) {
		return
	}
	for iface := range k.want {
		if _, ok := d.Chains[iface]; !ok {
			delete(k.want, iface)
			k.changed[iface] = struct{}{}
		}
	}
}

// why is the reason why n, or a part of it, is not programmed.
func (n *node) why() error {
	if n.broken != nil || n.fork == nil || len(n.fork.missing) == 0 {
		return n.broken
	}
	var errs []error
	for iface := range n.fork.missing {
		errs = append(errs, fmt.Errorf("interface %q: there is no chain %q, or no such interface can be", iface, n.fork.want[iface]))
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs[:min(len(errs), 5)]...)
}
