package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// family is one of the two tables: its desired state and the recorded state of the kernel.
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
	rebuild bool // the kernel's table is not in our format: it is created again, all at once
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

// node is a chain: one of the caller's chains, a dispatch chain, or the base chain of a hook.
type node struct {
	f     *family
	layer table.Layer
	name  string // the caller's name
	chain string // the kernel's name
	base  *baseHook
	fork  *fork // of dispatch chains

	wanted bool
	rules  []table.Rule // of dispatch chains: the rules for other interfaces

	compiled *compiled          // the compiled rules; only during an Apply
	mentions map[*node]struct{} // chains that the rules name
	uses     map[*set]struct{}  // sets that the rules name
	users    map[*node]int      // chains that name this one, with the number of their references: rules count once, each interface counts

	// The graph of effective references: a broken chain has no outgoing ones.
	out     map[*node]int      // chains that this one refers to, with the number of references
	byRule  map[*node]bool     // those of them that a rule refers to
	in      map[*node]struct{} // chains that refer to this one
	refs    int                // number of live chains in in
	live    bool               // packets can reach the chain, so it is programmed
	allowed hooks              // hooks from which packets may come, given what the rules do

	idle              bool // it has no rules, regardless of the kernel's state
	broken, kernelErr error
	hopeless          bool // the kernel rejects even a chain that drops

	present bool               // in the kernel
	hashes  []wire.Hash        // of the kernel's rules
	lists   map[*list]struct{} // lists that the content uses, while the chain is live
	force   bool               // the rules must be written again, since an object that they name is created again
	elems   *kernelElems       // the kernel's map of a dispatch chain, nil if it does not exist
}

// kernelElems is a verdict map: interface → the kernel's name of a chain, "" for a drop.
type kernelElems map[string]string

// fork is the part of a dispatch chain other than its rules.
type fork struct {
	byOut   bool
	want    map[string]string   // interface → chain, as desired
	named   map[string]*node    // interface → that chain
	to      map[string]*node    // interface → chain that it effectively refers to; no entry if that is missing
	changed map[string]struct{} // interfaces to check
	missing map[string]struct{} // interfaces whose chain does not exist
}

// baseHook describes where the kernel calls a base chain.
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

// Key returns the node's name in results, such as "chain v4 filter cali-x" and "hook v4 filter forward".
func (n *node) Key() string {
	kind := "chain"
	if n.base != nil {
		kind = "hook"
	}
	return fmt.Sprintf("%s v%d %s %s", kind, n.f.ID, layerName(n.layer), n.name)
}

func (n *node) Fail(err error) { n.kernelErr = err }

func (n *node) Failed() bool { return n.kernelErr != nil }

// mapName returns the kernel's name of a dispatch chain's map.
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

// node returns the chain of a name, and creates it if it is unknown.
func (f *family) node(l table.Layer, name string) *node {
	chain := layerName(l) + "-" + name
	n := f.nodes[chain]
	if n == nil {
		n = newNode(f, l, name, chain)
	}
	n.layer, n.name = l, name // a chain found by an audit has only the kernel's name
	return n
}

// hook returns the base chain of a hook, and creates it if it is unknown.
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

// baseHookOf returns how a layer is called at a hook, with the priorities of iptables. num is noHook if iptables has no such hook.
func baseHookOf(l table.Layer, h table.Hook) *baseHook {
	b := &baseHook{hook: h, num: uint32(h), typ: "filter"} // table.Hook is numbered as enum nf_inet_hooks
	switch l {
	case table.Raw:
		b.priority = -300
	case table.Mangle:
		b.priority = -150
		if h == table.Output {
			b.typ = "route" // the kernel routes the packet again if the mark has changed
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

// layerHooks returns the hooks that call a layer.
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

// set returns the set of an ID, and creates it if it is unknown.
func (f *family) set(id string) *set {
	s := f.sets[id]
	if s == nil {
		s = &set{f: f, id: id, name: setPrefix + swapColon(id), users: map[*node]struct{}{}}
		f.sets[id] = s
	}
	return s
}

func (n *node) Touch() { n.f.dirtyNodes[n] = struct{}{} }

// swapColon exchanges : and /, and is its own inverse. The nft tool accepts no names with a colon, which the IDs of many sets have.
func swapColon(s string) string { return colonSwapper.Replace(s) }

var colonSwapper = strings.NewReplacer(":", "/", "/", ":")

// setRules makes n a chain with these rules, without dispatch.
func (n *node) setRules(rules []table.Rule) {
	if n.fork != nil {
		n.dropFork()
	}
	n.setWanted()
	n.rules = rules
	n.Touch()
}

// usable reports whether others may refer to this chain.
func (n *node) usable() bool {
	return n.wanted && !n.hopeless && (n.base == nil || n.base.num != noHook)
}

// setWanted marks the chain as desired; chains that name it are processed again.
func (n *node) setWanted() {
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

// recheck marks the interfaces that refer to a chain to be checked again.
func (k *fork) recheck(chain string) {
	for iface, c := range k.want {
		if c == chain {
			k.changed[iface] = struct{}{}
		}
	}
}

// unwant marks the chain as no longer desired.
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

// dropFork makes n a chain without dispatch.
func (n *node) dropFork() {
	for iface, target := range n.fork.named {
		n.nameFor(iface, nil)
		n.lead(iface, nil)
		target.Touch()
	}
	n.fork = nil
}

// nameFor records the chain that an interface names, whether it exists or not; nil for none.
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

// unused records that the node by has one reference less to this node.
func (n *node) unused(by *node) {
	if n.users[by]--; n.users[by] <= 0 {
		delete(n.users, by)
		n.Touch() // it may have no owner
	}
}

// setDispatch makes n a dispatch chain; each unchanged interface costs only a comparison.
func (n *node) setDispatch(d table.Dispatch) {
	n.setWanted()
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

// why returns the reason why n, or a part of it, is not programmed.
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
