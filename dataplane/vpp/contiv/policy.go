package contiv

import (
	"strconv"

	"go.fd.io/govpp/api"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Limits of the plugin.
const (
	contivRulePorts = 8
)

// contivPolicyDescriptor returns the descriptor of policies. A policy is set after the members of the sets that it refers to, and before the
// endpoints that refer to it. There are no dependencies by key: a rule whose set is missing allows nothing, and endpoints keep a deleted policy until
// they get another one. While VPP has a policy with a reference to a set, the set stays.
func (k *descriptors) contivPolicyDescriptor() scheduler.Descriptor[*vpp_contiv.Policy] {
	set := func(op *scheduler.Op, what string, v *vpp_contiv.Policy) {
		k.Do(op, kit.Named(what+" policy", v.Name), policyRequest(v))
	}
	return scheduler.Descriptor[*vpp_contiv.Policy]{
		Name: "vpp-contiv-policy", Prefix: nb.ContivPolicyPrefix, Rank: rankContivPolicy,
		DeleteLast: true, // endpoints use a policy until they get another one
		Validate:   func(_ string, v *vpp_contiv.Policy) error { return validatePolicy(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.Policy) bool {
			return contivName(desired.Name) == contivName(applied.Name) && sameRules(desired.Ingress, applied.Ingress) &&
				sameRules(desired.Egress, applied.Egress)
		},
		Refs:   policyRefs,
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.Policy) { set(op, "add", v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.Policy) { set(op, "change", v) },
		Delete: func(op *scheduler.Op, _ string, v *vpp_contiv.Policy) {
			k.Do(op, kit.Named("delete policy", v.Name), &contiv.ContivPolicyDel{ID: v.Id}, api.NO_SUCH_ENTRY)
		},
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Policy)) {
			dumpContiv(k, op, "policies", &contiv.ContivPolicyDump{}, func(d *contiv.ContivPolicyDetails) {
				emit(nb.ContivPolicyKey(d.ID), policyOf(d))
			})
		},
	}
}

// policyRefs adds the keys of the sets of all rules.
func policyRefs(_ string, v *vpp_contiv.Policy, add func(ref string)) {
	for _, rules := range [][]*vpp_contiv.Policy_Rule{v.Ingress, v.Egress} {
		for _, r := range rules {
			for _, id := range []uint64{r.GetSource(), r.GetDestination(), r.GetDestinationPorts()} {
				if id != 0 {
					add(nb.ContivIPSetKey(id))
				}
			}
		}
	}
}

func validatePolicy(v *vpp_contiv.Policy) error {
	var f kit.Faults
	if v.Id == 0 {
		f.Add("id", "is 0, which stands for none")
	}
	if n := len(v.Ingress) + len(v.Egress); n > nb.ContivPolicyRules {
		f.Add("ingress, egress", "have %d rules, and there is room for %d", n, nb.ContivPolicyRules)
	}
	for i, r := range v.Ingress {
		ruleFaults(&f, "ingress["+strconv.Itoa(i)+"]", r)
	}
	for i, r := range v.Egress {
		ruleFaults(&f, "egress["+strconv.Itoa(i)+"]", r)
	}
	return f.Err()
}

func ruleFaults(f *kit.Faults, field string, r *vpp_contiv.Policy_Rule) {
	switch r.GetAction() {
	case vpp_contiv.Policy_ALLOW, vpp_contiv.Policy_DENY, vpp_contiv.Policy_PASS:
	default:
		f.Add(field+".action", "%d is not known", r.GetAction())
	}
	if family := r.GetFamily(); family != 0 && family != 4 && family != 6 {
		f.Add(field+".family", "%d is not known", family)
	}
	if r.GetProtocol() > 255 {
		f.Add(field+".protocol", "%d is not a protocol", r.GetProtocol())
	}
	switch p := r.GetProtocol(); {
	case len(r.GetPorts()) > contivRulePorts:
		f.Add(field+".ports", "has %d ranges, and there is room for %d", len(r.GetPorts()), contivRulePorts)
	case len(r.GetPorts()) > 0 && p != 6 && p != 17 && p != 132:
		f.Add(field+".ports", "protocol %d has none", p)
	}
	for _, p := range r.GetPorts() {
		if p.GetFirst() > p.GetLast() || p.GetLast() > 65535 {
			f.Add(field+".ports", "%d to %d is not a range", p.GetFirst(), p.GetLast())
		}
	}
}

func sameRules(a, b []*vpp_contiv.Policy_Rule) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !proto.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func policyRequest(v *vpp_contiv.Policy) *contiv.ContivPolicySet {
	req := &contiv.ContivPolicySet{ID: v.Id, Name: contivName(v.Name), NIngress: uint32(len(v.Ingress))}
	req.Rules = make([]contiv.ContivRule, 0, len(v.Ingress)+len(v.Egress))
	for _, r := range v.Ingress {
		req.Rules = append(req.Rules, ruleRequest(r))
	}
	for _, r := range v.Egress {
		req.Rules = append(req.Rules, ruleRequest(r))
	}
	return req
}

func ruleRequest(r *vpp_contiv.Policy_Rule) contiv.ContivRule {
	out := contiv.ContivRule{
		Action: contiv.ContivRuleAction(r.Action), Family: uint8(r.Family), Protocol: uint8(r.Protocol),
		Source: r.Source, Destination: r.Destination, PortSet: r.DestinationPorts, NPorts: uint8(len(r.Ports)),
	}
	for i, p := range r.Ports {
		out.Ports[i] = contiv.ContivPortRange{First: uint16(p.First), Last: uint16(p.Last)}
	}
	return out
}

func policyOf(d *contiv.ContivPolicyDetails) *vpp_contiv.Policy {
	v := &vpp_contiv.Policy{Id: d.ID, Name: d.Name}
	for i := range d.Rules {
		if r := ruleOf(&d.Rules[i].Rule); i < int(d.NIngress) {
			v.Ingress = append(v.Ingress, r)
		} else {
			v.Egress = append(v.Egress, r)
		}
	}
	return v
}

func ruleOf(r *contiv.ContivRule) *vpp_contiv.Policy_Rule {
	out := &vpp_contiv.Policy_Rule{
		Action: vpp_contiv.Policy_Action(r.Action), Family: uint32(r.Family), Protocol: uint32(r.Protocol),
		Source: r.Source, Destination: r.Destination, DestinationPorts: r.PortSet,
	}
	for _, p := range r.Ports[:min(int(r.NPorts), len(r.Ports))] {
		out.Ports = append(out.Ports, &vpp_contiv.Policy_PortRange{First: uint32(p.First), Last: uint32(p.Last)})
	}
	return out
}
