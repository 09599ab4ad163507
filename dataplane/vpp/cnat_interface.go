package vpp

import (
	"slices"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/feature"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// cnatFeature is one of cnat's features.
type cnatFeature struct {
	arc, name  string
	v6, output bool
}

// cnatFeatures are all: where answers leave, which translates back, and where packets come in, which translates. The one for
// output goes first: VPP 25.10 says that an interface which never had a feature of an arc and has a high index has every
// feature of that arc, and on arcs of unicast input every interface has had one.
func cnatFeatures() []cnatFeature {
	return []cnatFeature{
		{"ip4-output", "cnat-output-ip4", false, true}, {"ip4-unicast", "cnat-input-ip4", false, false},
		{"ip6-output", "cnat-output-ip6", true, true}, {"ip6-unicast", "cnat-input-ip6", true, false},
	}
}

// cnatUnknownRole is the role of an interface in a state that is not to be left so.
const cnatUnknownRole vpp_cnat.Interface_Role = -1

// cnatInterfaceKind: the role of an interface is a bit in two maps of VPP, by index. VPP neither tells them nor clears them
// when an interface goes, so they are always written. An interface with the features has its role: that is written before they
// are switched on, and cleared after they were switched off. What did not end well is remembered, and done again.
func (k *kinds) cnatInterfaceKind() scheduler.Kind[*vpp_cnat.Interface] {
	return scheduler.Kind[*vpp_cnat.Interface]{
		Name: "vpp-cnat-interface", Prefix: nb.CnatInterfacePrefix, Rank: scheduler.RankFeature,
		Validate: func(_ string, v *vpp_cnat.Interface) error {
			var f faults
			f.name("name", v.Name)
			if !v.Ipv4 && !v.Ipv6 {
				f.add("ipv6", "is not set, nor is ipv4: nothing would be translated")
			}
			if _, known := vpp_cnat.Interface_Role_name[int32(v.Role)]; !known {
				f.add("role", "%d is not known", v.Role)
			}
			return f.err()
		},
		Equal: func(_ string, desired, applied *vpp_cnat.Interface) bool {
			return desired.Ipv4 == applied.Ipv4 && desired.Ipv6 == applied.Ipv6 && desired.Role == applied.Role
		},
		Deps: func(_ string, v *vpp_cnat.Interface, add func(string)) { add(nb.VppInterfaceKey(v.Name)) },
		Create: func(op *scheduler.Op, _ string, v *vpp_cnat.Interface) {
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				k.missing(op, cnatIfObject("enable", v), v.Name)
				return
			}
			// Switched on twice, a feature would be there twice.
			k.setCnat(op, cnatIfObject("enable", v), v.Name,
				cnatRole(index, v.Role), slices.Concat(cnatSwitch(index, v, false), cnatSwitch(index, v, true)))
		},
		Update: func(op *scheduler.Op, _ string, _, v *vpp_cnat.Interface) {
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				k.missing(op, cnatIfObject("set the role for", v), v.Name)
				return
			}
			k.setCnat(op, cnatIfObject("set the role for", v), v.Name, cnatRole(index, v.Role), nil)
		},
		CanUpdate: func(_ string, applied, desired *vpp_cnat.Interface) bool {
			return applied.Ipv4 == desired.Ipv4 && applied.Ipv6 == desired.Ipv6 && applied.Role != cnatUnknownRole
		},
		Delete: func(op *scheduler.Op, _ string, v *vpp_cnat.Interface) {
			index, ok := k.idx.IfIndex(v.Name)
			if !ok {
				delete(k.cnat.unsure, v.Name)
				gone(op)
				return
			}
			all := v
			if v.Role == cnatUnknownRole {
				all = &vpp_cnat.Interface{Name: v.Name, Ipv4: true, Ipv6: true}
			}
			k.setCnat(op, cnatIfObject("disable", v), v.Name,
				cnatSwitch(index, all, false), cnatRole(index, vpp_cnat.Interface_OUTSIDE), ifGone...)
		},
		Dump: k.dumpCnatInterfaces,
	}
}

func cnatIfObject(what string, v *vpp_cnat.Interface) object {
	return object{what + " cnat on", "interface " + v.Name}
}

// setCnat makes the second requests only when VPP has done the first ones.
func (k *kinds) setCnat(op *scheduler.Op, o object, name string, first, second []api.Message, fine ...api.VPPApiError) {
	k.cnat.unsure[name] = true
	end := func(err error) {
		if err == nil {
			delete(k.cnat.unsure, name)
		}
		op.Done(scheduler.OutcomeUnknown(err))
	}
	k.sendSteps(o, [][]api.Message{first, second}, end, fine...)
}

// sendSteps makes the requests of each step together, once VPP has done all before.
func (k *kinds) sendSteps(o object, steps [][]api.Message, done func(error), fine ...api.VPPApiError) {
	for len(steps) > 0 && len(steps[0]) == 0 {
		steps = steps[1:]
	}
	if len(steps) == 0 {
		done(nil)
		return
	}
	each := join(len(steps[0]), func(err error) {
		if err != nil {
			done(err)
			return
		}
		k.sendSteps(o, steps[1:], done, fine...)
	})
	for _, req := range steps[0] {
		k.send(o, req, each, fine...)
	}
}

// sendAll starts requests that end op together. When one of them fails the others may have been done.
func (k *kinds) sendAll(op *scheduler.Op, o object, reqs []api.Message, fine ...api.VPPApiError) {
	done := join(len(reqs), func(err error) {
		if len(reqs) > 1 {
			err = scheduler.OutcomeUnknown(err)
		}
		op.Done(err)
	})
	for _, req := range reqs {
		k.send(o, req, done, fine...)
	}
}

// cnatRole writes the maps. The host's link is in the one of pods: what the host sends is its own as a pod's is. The map of hosts
// stays empty: VPP would translate no source on the way to the host, and a host that reaches itself would answer past VPP.
func cnatRole(index uint32, role vpp_cnat.Interface_Role) []api.Message {
	set := func(table cnat.CnatSnatPolicyTable, on bool) api.Message {
		m := &cnat.CnatSnatPolicyAddDelIf{SwIfIndex: interface_types.InterfaceIndex(index), Table: table}
		if on {
			m.IsAdd = 1
		}
		return m
	}
	return []api.Message{
		set(cnat.CNAT_POLICY_POD, role != vpp_cnat.Interface_OUTSIDE),
		set(cnat.CNAT_POLICY_HOST, false),
	}
}

func cnatSwitch(index uint32, v *vpp_cnat.Interface, on bool) []api.Message {
	var out []api.Message
	for _, f := range cnatFeatures() {
		if f.v6 && v.Ipv6 || !f.v6 && v.Ipv4 {
			out = append(out, &feature.FeatureEnableDisable{
				SwIfIndex: interface_types.InterfaceIndex(index), Enable: on, ArcName: f.arc, FeatureName: f.name,
			})
		}
	}
	return out
}

// dumpCnatInterfaces asks for the features of each interface of ours.
func (k *kinds) dumpCnatInterfaces(op *scheduler.DumpOp, emit func(string, *vpp_cnat.Interface)) {
	roles := map[string]vpp_cnat.Interface_Role{}
	op.EachDesired(func(_ string, v any) {
		i := v.(*vpp_cnat.Interface)
		roles[i.Name] = i.Role
	})
	k.snapshot(op, func(s *ifSnapshot, err error) {
		if err != nil {
			op.Done(object{"dump", "cnat interfaces"}.wrap(err))
			return
		}
		var names []string
		for _, st := range s.ours {
			if _, wanted := roles[st.name]; wanted || !op.Partial() {
				names = append(names, st.name)
			}
		}
		done := join(len(names)+1, func(err error) { op.Done(object{"dump", "cnat interfaces"}.wrap(err)) })
		done(nil)
		for _, name := range names {
			k.askCnat(name, roles[name], emit, done)
		}
	})
}

// askCnat emits what an interface has. If it has one of two features then it has to be done again, and if it may have the wrong
// role, or one without features.
func (k *kinds) askCnat(name string, role vpp_cnat.Interface_Role, emit func(string, *vpp_cnat.Interface), done func(error)) {
	index, ok := k.idx.IfIndex(name)
	if !ok {
		done(nil)
		return
	}
	found := map[cnatFeature]bool{}
	each := join(len(cnatFeatures()), func(err error) {
		v := &vpp_cnat.Interface{Name: name, Role: role}
		for f := range found {
			switch {
			case f.output:
			case f.v6:
				v.Ipv6 = true
			default:
				v.Ipv4 = true
			}
		}
		for _, f := range cnatFeatures() {
			if f.output && !found[f] && (f.v6 && v.Ipv6 || !f.v6 && v.Ipv4) {
				v.Role = cnatUnknownRole
			}
		}
		if k.cnat.unsure[name] {
			v.Role = cnatUnknownRole
		}
		if err == nil && (v.Ipv4 || v.Ipv6 || k.cnat.unsure[name]) {
			emit(nb.CnatInterfaceKey(name), v)
		}
		done(err)
	})
	for _, f := range cnatFeatures() {
		conn.Call(k.lane, &feature.FeatureIsEnabled{
			SwIfIndex: interface_types.InterfaceIndex(index), ArcName: f.arc, FeatureName: f.name,
		}, func(r *feature.FeatureIsEnabledReply, err error) {
			if err == nil && r.IsEnabled {
				found[f] = true
			}
			each(err)
		})
	}
}
