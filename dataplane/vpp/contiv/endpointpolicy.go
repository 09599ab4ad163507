package contiv

import (
	"errors"
	"slices"
	"strconv"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/iface"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivEndpointPolicyDescriptor returns the descriptor of the policies that apply to a pod. They change in place, and the plugin deletes them with
// the endpoint. The pod's link waits for them by Interface.up_after. They are set after the policies that they refer to; the plugin rejects a
// reference to a missing policy, and the previous setting stays, with its policies.
func (k *descriptors) contivEndpointPolicyDescriptor() scheduler.Descriptor[*vpp_contiv.EndpointPolicy] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.EndpointPolicy) {
		o := kit.Named(what+" policy of", "interface "+v.Interface)
		if v.WithoutPlugin {
			var err error
			if !allowsAll(v) {
				err = errNoPolicy
			}
			op.Done(o.Wrap(err))
			return
		}
		index, ok := k.idx.IfIndex(v.Interface)
		if !ok {
			k.Missing(op, o, v.Interface)
			return
		}
		k.Do(op, o, endpointPolicyRequest(index, v))
	}
	return scheduler.Descriptor[*vpp_contiv.EndpointPolicy]{
		Name: "vpp-contiv-endpoint-policy", Prefix: nb.ContivEndpointPolicyPrefix, Rank: rankContivPolicy + 1,
		Validate: func(_ string, v *vpp_contiv.EndpointPolicy) error { return validateEndpointPolicy(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.EndpointPolicy) bool {
			return desired.WithoutPlugin == applied.WithoutPlugin && contivName(desired.Name) == contivName(applied.Name) && sameSide(desired.Ingress, applied.Ingress) &&
				sameSide(desired.Egress, applied.Egress)
		},
		Deps: func(_ string, v *vpp_contiv.EndpointPolicy, add func(string)) {
			if v.WithoutPlugin {
				add(nb.VppInterfaceKey(v.Interface))
			} else {
				add(nb.ContivEndpointKey(v.Interface))
			}
		},
		Refs: func(_ string, v *vpp_contiv.EndpointPolicy, add func(ref string)) {
			for _, side := range []*vpp_contiv.EndpointPolicy_Side{v.Ingress, v.Egress} {
				for _, t := range side.GetTiers() {
					for _, id := range t.GetPolicies() {
						add(nb.ContivPolicyKey(id))
					}
				}
			}
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.EndpointPolicy) { set(op, "set", v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.EndpointPolicy) { set(op, "change", v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.EndpointPolicy) {
			index, ok := k.idx.IfIndex(v.Interface)
			if !ok || v.WithoutPlugin {
				kit.Gone(op)
				return
			}
			k.Do(op, kit.Named("delete policy of", "interface "+v.Interface),
				&contiv.ContivEndpointPolicyDel{SwIfIndex: interface_types.InterfaceIndex(index)}, append(kit.IfGone, api.NO_SUCH_ENTRY)...)
		},
		Dump: k.dumpEndpointPolicies,
		// Also retry after a policy that failed.
		Retriable: func(err error) bool { return conn.IsRetval(err, api.NO_SUCH_ENTRY) || scheduler.IsRetriable(err) },
	}
}

// errNoPolicy reports a pod that would be unprotected although a policy selects it.
var errNoPolicy = errors.New("network policy restricts the pod and VPP has no contiv plugin, so that the pod cannot start; " +
	"install contiv_plugin.so with VPP's plugins")

// allowsAll reports whether there is nothing to enforce.
func allowsAll(v *vpp_contiv.EndpointPolicy) bool {
	open := func(s *vpp_contiv.EndpointPolicy_Side) bool {
		return len(s.GetTiers()) == 0 && s.GetOtherwise() == vpp_contiv.Policy_ALLOW
	}
	return open(v.Ingress) && open(v.Egress)
}

func validateEndpointPolicy(v *vpp_contiv.EndpointPolicy) error {
	var f kit.Faults
	f.Name("interface", v.Interface)
	sideFaults(&f, "ingress", v.Ingress)
	sideFaults(&f, "egress", v.Egress)
	return f.Err()
}

func sideFaults(f *kit.Faults, field string, s *vpp_contiv.EndpointPolicy_Side) {
	if o := s.GetOtherwise(); o != vpp_contiv.Policy_ALLOW && o != vpp_contiv.Policy_DENY {
		f.Add(field+".otherwise", "%d is neither ALLOW nor DENY", o)
	}
	n := 0
	for i, t := range s.GetTiers() {
		tier := field + ".tiers[" + strconv.Itoa(i) + "]"
		if o := t.GetOtherwise(); o < vpp_contiv.Policy_ALLOW || o > vpp_contiv.Policy_PASS {
			f.Add(tier+".otherwise", "%d is not known", o)
		}
		if slices.Contains(t.GetPolicies(), 0) {
			f.Add(tier+".policies", "has 0, which stands for none")
		}
		if t.GetHoldsForNode() && (field != "egress" || len(t.GetPolicies()) == 0) {
			f.Add(tier+".holdsForNode", "is for tiers of egress that have policies")
		}
		n += len(t.GetPolicies()) + 1
	}
	if n > nb.ContivPolicyItems {
		f.Add(field+".tiers", "have %d policies and ends, and there is room for %d", n, nb.ContivPolicyItems)
	}
}

func sameSide(a, b *vpp_contiv.EndpointPolicy_Side) bool {
	return a.GetOtherwise() == b.GetOtherwise() && slices.EqualFunc(a.GetTiers(), b.GetTiers(), func(a, b *vpp_contiv.EndpointPolicy_Tier) bool {
		return a.GetOtherwise() == b.GetOtherwise() && a.GetHoldsForNode() == b.GetHoldsForNode() && slices.Equal(a.GetPolicies(), b.GetPolicies())
	})
}

func endpointPolicyRequest(index uint32, v *vpp_contiv.EndpointPolicy) *contiv.ContivEndpointPolicySet {
	ingress := tierItems(v.Ingress)
	return &contiv.ContivEndpointPolicySet{
		SwIfIndex: interface_types.InterfaceIndex(index), Name: contivName(v.Name),
		Ingress: contiv.ContivRuleAction(v.Ingress.GetOtherwise()), Egress: contiv.ContivRuleAction(v.Egress.GetOtherwise()),
		NIngress: uint32(len(ingress)), Items: append(ingress, tierItems(v.Egress)...),
	}
}

// tierItems returns the policies of each tier, followed by the end of the tier.
func tierItems(s *vpp_contiv.EndpointPolicy_Side) (items []contiv.ContivTierItem) {
	for _, t := range s.GetTiers() {
		var holds contiv.ContivRuleAction
		if t.GetHoldsForNode() {
			holds = contiv.CONTIV_RULE_API_PASS
		}
		for _, id := range t.GetPolicies() {
			items = append(items, contiv.ContivTierItem{PolicyID: id, Action: holds})
		}
		items = append(items, contiv.ContivTierItem{Action: contiv.ContivRuleAction(t.GetOtherwise())})
	}
	return items
}

// sideOf converts items back to the tiers of a side; it is the reverse of tierItems.
func sideOf(otherwise contiv.ContivRuleAction, items []contiv.ContivTierItem) *vpp_contiv.EndpointPolicy_Side {
	s := &vpp_contiv.EndpointPolicy_Side{Otherwise: vpp_contiv.Policy_Action(otherwise)}
	t := &vpp_contiv.EndpointPolicy_Tier{}
	for _, item := range items {
		if item.PolicyID != 0 {
			t.Policies = append(t.Policies, item.PolicyID)
			t.HoldsForNode = item.Action == contiv.CONTIV_RULE_API_PASS // that of the last policy: ours are all the same
			continue
		}
		t.Otherwise = vpp_contiv.Policy_Action(item.Action)
		s.Tiers, t = append(s.Tiers, t), &vpp_contiv.EndpointPolicy_Tier{}
	}
	return s
}

// dumpEndpointPolicies emits the policies of our interfaces.
func (k *descriptors) dumpEndpointPolicies(op *scheduler.DumpOp, emit func(string, *vpp_contiv.EndpointPolicy)) {
	k.ifs.Snapshot(op, func(s *iface.Snapshot, err error) {
		if err != nil {
			endContivDump(op, "policies of endpoints", err)
			return
		}
		k.withoutPlugin(op, s, emit)
		conn.Dump(k.Lane, &contiv.ContivEndpointPolicyDump{}, func(d *contiv.ContivEndpointPolicyDetails) {
			st := s.ByIndex[uint32(d.SwIfIndex)]
			if st == nil {
				return
			}
			n := min(int(d.NIngress), len(d.Items))
			emit(nb.ContivEndpointPolicyKey(st.Name), &vpp_contiv.EndpointPolicy{
				Interface: st.Name, Name: d.Name, Ingress: sideOf(d.Ingress, d.Items[:n]), Egress: sideOf(d.Egress, d.Items[n:]),
			})
		}, func(err error) { endContivDump(op, "policies of endpoints", err) })
	})
}

// withoutPlugin emits the policies of a VPP without the plugin: running pods are unrestricted. A running pod that a policy restricts keeps
// running, so that a restart of the agent does not disconnect any pod.
func (k *descriptors) withoutPlugin(op *scheduler.DumpOp, s *iface.Snapshot, emit func(string, *vpp_contiv.EndpointPolicy)) {
	up := map[string]bool{}
	for _, st := range s.ByIndex {
		up[st.Name] = st.Up()
	}
	op.EachDesired(func(key string, desired any) {
		v := desired.(*vpp_contiv.EndpointPolicy)
		if v.WithoutPlugin && (allowsAll(v) || up[v.Interface]) {
			open := &vpp_contiv.EndpointPolicy_Side{Otherwise: vpp_contiv.Policy_ALLOW}
			emit(key, &vpp_contiv.EndpointPolicy{Interface: v.Interface, Name: v.Name, Ingress: open, Egress: open, WithoutPlugin: true})
		}
	})
}
