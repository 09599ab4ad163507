package vpp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/pnat"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_pnat "contiv.dev/vswitch/dataplane/nb/vpp/pnat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// rankAlias is behind NAT's: there is no alias before the mapping that serves it.
const rankAlias = scheduler.RankFeature + 1

// pnatRule is one of the two rules of an alias: what comes in for the place goes to the alias, what leaves from the alias
// leaves as if from the place. VPP calls it a binding, and each of ours belongs to one interface.
type pnatRule struct {
	place  netip.AddrPort
	proto  uint8
	alias  netip.Addr
	output bool
}

// pnatState is what the kind remembers of VPP. A dump finds it.
type pnatState struct {
	ifs map[string]*pnatRules
	// lost are the numbers of rules that are on no interface.
	lost []uint32
}

// pnatRules are the rules of an interface, with VPP's numbers of them.
type pnatRules struct {
	ids map[pnatRule]uint32
	odd bool // not as they would be made: they are made again
}

// pnatInterfaceKind: VPP's pnat has one table of rules for all interfaces and both directions. It compares the same fields of
// all packets of an interface and direction: ours are address, port and protocol.
func (k *kinds) pnatInterfaceKind() scheduler.Kind[*vpp_pnat.Interface] {
	return scheduler.Kind[*vpp_pnat.Interface]{
		Name: "vpp-pnat-interface", Prefix: nb.PnatInterfacePrefix, Rank: rankAlias,
		Validate: func(_ string, v *vpp_pnat.Interface) error { return validateAliases(v) },
		Equal: func(_ string, desired, applied *vpp_pnat.Interface) bool {
			return desired == applied || slices.Equal(pnatRulesOf(desired), pnatRulesOf(applied))
		},
		Deps: func(_ string, v *vpp_pnat.Interface, add func(string)) {
			add(nb.VppInterfaceKey(v.Name))
			add(nb.Nat44InterfaceKey(v.Name)) // which knows what to do with an alias
		},
		Create:   k.putAliases,
		Update:   func(op *scheduler.Op, key string, _, v *vpp_pnat.Interface) { k.putAliases(op, key, v) },
		Leftover: func(key string, _ *vpp_pnat.Interface) bool { return key == pnatLostKey },
		Delete: func(op *scheduler.Op, key string, v *vpp_pnat.Interface) {
			if key == pnatLostKey {
				k.reapPnat(op)
				return
			}
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				delete(k.pnat.ifs, v.Name)
				gone(op)
				return
			}
			k.setPnatRules(op, "remove", v.Name, index, nil)
		},
		Dump: k.dumpPnat,
	}
}

func validateAliases(v *vpp_pnat.Interface) error {
	var f faults
	f.name("name", v.Name)
	if len(v.Aliases) == 0 {
		f.add("aliases", "is empty: leave the interface out")
	}
	seen := map[pnatRule]bool{}
	for _, a := range v.Aliases {
		place, alias := addr(a.GetIp()), addr(a.GetAlias())
		if !place.Is4() || place.IsUnspecified() {
			f.add("aliases", "%q is not an IPv4 address", a.GetIp())
		}
		if !alias.Is4() || alias.IsUnspecified() {
			f.add("aliases", "%q is not an IPv4 address", a.GetAlias())
		}
		if a.GetPort() == 0 || a.GetPort() > 65535 {
			f.add("aliases", "%d is not a port", a.GetPort())
		}
		if pnatProto(a.GetProtocol()) == 0 {
			f.add("aliases", "protocol %d is not known", a.GetProtocol())
		}
		for _, output := range []bool{false, true} {
			r := pnatRuleOf(a, output).matched()
			if seen[r] {
				f.add("aliases", "%s or %s port %d is there twice", a.GetIp(), a.GetAlias(), a.GetPort())
			}
			seen[r] = true
		}
	}
	return f.err()
}

func pnatProto(p vpp_pnat.Interface_Protocol) uint8 {
	switch p {
	case vpp_pnat.Interface_TCP:
		return protoTCP
	case vpp_pnat.Interface_UDP:
		return protoUDP
	}
	return 0
}

func pnatRuleOf(a *vpp_pnat.Interface_Alias, output bool) pnatRule {
	return pnatRule{
		place: netip.AddrPortFrom(addr(a.GetIp()), uint16(a.GetPort())), proto: pnatProto(a.GetProtocol()),
		alias: addr(a.GetAlias()), output: output,
	}
}

// pnatRulesOf are the rules of an interface in order.
func pnatRulesOf(v *vpp_pnat.Interface) []pnatRule {
	out := make([]pnatRule, 0, 2*len(v.Aliases))
	for _, a := range v.Aliases {
		out = append(out, pnatRuleOf(a, false), pnatRuleOf(a, true))
	}
	slices.SortFunc(out, pnatRule.compare)
	return out
}

func (r pnatRule) compare(s pnatRule) int {
	side := func(r pnatRule) int {
		if r.output {
			return 1
		}
		return 0
	}
	return cmp.Or(r.place.Compare(s.place), cmp.Compare(r.proto, s.proto), r.alias.Compare(s.alias), cmp.Compare(side(r), side(s)))
}

// matched is the rule by what it matches alone: VPP has one for it.
func (r pnatRule) matched() pnatRule {
	if r.output {
		return pnatRule{place: netip.AddrPortFrom(r.alias, r.place.Port()), proto: r.proto, output: true}
	}
	return pnatRule{place: r.place, proto: r.proto}
}

// hook is where on an interface the rule is.
func (r pnatRule) hook() pnat.PnatAttachmentPoint {
	if r.output {
		return pnat.PNAT_IP4_OUTPUT
	}
	return pnat.PNAT_IP4_INPUT
}

func pnatIfObject(what, name string) object { return object{what + " aliases on", "interface " + name} }

func (k *kinds) putAliases(op *scheduler.Op, _ string, v *vpp_pnat.Interface) {
	index, ok := k.idx.IfIndex(v.Name)
	if !ok {
		k.missing(op, pnatIfObject("set", v.Name), v.Name)
		return
	}
	k.setPnatRules(op, "set", v.Name, index, pnatRulesOf(v))
}

// setPnatRules makes an interface have these rules.
func (k *kinds) setPnatRules(op *scheduler.Op, what, name string, index uint32, want []pnatRule) {
	have := k.pnat.ifs[name]
	if have == nil {
		have = &pnatRules{ids: map[pnatRule]uint32{}}
		k.pnat.ifs[name] = have
	}
	var drop, add []pnatRule
	for r := range have.ids {
		if _, wanted := slices.BinarySearchFunc(want, r, pnatRule.compare); !wanted || have.odd {
			drop = append(drop, r)
		}
	}
	slices.SortFunc(drop, pnatRule.compare)
	for _, r := range want {
		if _, there := have.ids[r]; !there || have.odd {
			add = append(add, r)
		}
	}
	have.odd = false
	o := pnatIfObject(what, name)
	done := join(1+len(add), func(err error) {
		if err == nil && len(want) == 0 {
			delete(k.pnat.ifs, name)
		}
		op.Done(scheduler.OutcomeUnknown(err))
	})
	k.dropPnatRules(o, index, have, drop, done)
	for _, r := range add {
		k.addPnatRule(o, index, have, r, done)
	}
}

// addPnatRule makes a rule, and puts it on its interface. If the agent ends in between the rule is on no interface, and the
// next agent finds it (reapPnat).
func (k *kinds) addPnatRule(o object, index uint32, have *pnatRules, r pnatRule, done func(error)) {
	conn.Call(k.lane, r.binding(), func(made *pnat.PnatBindingAddV2Reply, err error) {
		if err != nil {
			if errors.Is(err, conn.ErrUnknownMessage) {
				o.what = "(enable pnat_plugin.so in VPP's startup.conf) " + o.what
			}
			done(o.wrap(err))
			return
		}
		id := made.BindingIndex
		k.attachPnatRule(o, index, r, id, func(err error) {
			if err == nil {
				have.ids[r] = id
			}
			done(err)
		})
	})
}

// attachPnatRule puts a new rule on its interface, or forgets it if VPP refuses. If VPP does not answer it may be there.
func (k *kinds) attachPnatRule(o object, index uint32, r pnatRule, id uint32, done func(error)) {
	k.snap.forget()
	conn.Call(k.lane, pnatAttach(index, r, id), func(_ *pnat.PnatBindingAttachReply, err error) {
		if !conn.IsRetval(err) {
			done(o.wrap(err))
			return
		}
		both := join(2, done)
		both(fmt.Errorf("vpp: %s %s: VPP's pnat has another rule for %s, or rules of another kind (%w); remove those that "+
			"vppctl show pnat translations has and that are not the agent's", o.what, o.name, r.place, err))
		k.send(o, &pnat.PnatBindingDel{BindingIndex: id}, both)
	})
}

// dropPnatRules takes rules from an interface, and forgets them: those that VPP has taken away, as one that were still there
// would drop packets. VPP 25.10 switches the feature of the interface off with whichever rule goes first, and on with the next one
// that comes; so one of those that stay is taken away and comes again. Where VPP has no workers it sees no packets in between.
func (k *kinds) dropPnatRules(o object, index uint32, have *pnatRules, drop []pnatRule, done func(error)) {
	ids, sides, stay := maps.Clone(have.ids), map[bool]bool{}, map[bool]pnatRule{} // one per side
	for _, r := range drop {
		sides[r.output] = true
		delete(have.ids, r)
	}
	for r := range have.ids {
		if sides[r.output] {
			stay[r.output] = r
		}
	}
	all := join(1+len(drop)+2*len(stay), done)
	all(nil)
	k.lane.Together((len(drop)+2*len(stay))*pnatRequestSize, func() {
		for _, r := range drop {
			k.dropPnatRule(o, index, r, ids[r], all)
		}
		for _, r := range stay {
			id := ids[r]
			k.send(o, pnatDetach(index, r, id), all, ifGone...)
			k.send(o, pnatAttach(index, r, id), all, ifGone...)
		}
	})
}

func (k *kinds) dropPnatRule(o object, index uint32, r pnatRule, id uint32, done func(error)) {
	k.send(o, pnatDetach(index, r, id), func(err error) {
		if err != nil {
			done(err)
			return
		}
		k.send(o, &pnat.PnatBindingDel{BindingIndex: id}, done)
	}, ifGone...)
}

// pnatRequestSize is at least how many bytes a request has that takes a rule away.
const pnatRequestSize = 48

func (r pnatRule) binding() *pnat.PnatBindingAddV2 {
	q := &pnat.PnatBindingAddV2{Match: r.match()}
	if r.output {
		q.Rewrite = pnat.PnatRewriteTuple{Src: r.place.Addr().As4(), Mask: pnat.PNAT_SA}
	} else {
		q.Rewrite = pnat.PnatRewriteTuple{Dst: r.alias.As4(), Mask: pnat.PNAT_DA}
	}
	return q
}

const (
	pnatMaskIn  = pnat.PNAT_DA | pnat.PNAT_DPORT | pnat.PNAT_PROTO
	pnatMaskOut = pnat.PNAT_SA | pnat.PNAT_SPORT | pnat.PNAT_PROTO
)

// match is what VPP finds the rule by.
func (r pnatRule) match() pnat.PnatMatchTuple { return r.matched().asMatch() }

// asMatch is it for a rule that is known by what it matches alone.
func (m pnatRule) asMatch() pnat.PnatMatchTuple {
	ip, proto := m.place.Addr().As4(), ip_types.IPProto(m.proto)
	if m.output {
		return pnat.PnatMatchTuple{Src: ip, Sport: m.place.Port(), Proto: proto, Mask: pnatMaskOut}
	}
	return pnat.PnatMatchTuple{Dst: ip, Dport: m.place.Port(), Proto: proto, Mask: pnatMaskIn}
}

func pnatAttach(index uint32, r pnatRule, id uint32) *pnat.PnatBindingAttach {
	return &pnat.PnatBindingAttach{SwIfIndex: interface_types.InterfaceIndex(index), Attachment: r.hook(), BindingIndex: id}
}

func pnatDetach(index uint32, r pnatRule, id uint32) *pnat.PnatBindingDetach {
	return &pnat.PnatBindingDetach{SwIfIndex: interface_types.InterfaceIndex(index), Attachment: r.hook(), BindingIndex: id}
}
