package vpp

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	vpp_interfaces "contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

func member(set uint64, prefix string, port ...uint32) *vpp_contiv.IPSetMember {
	m := &vpp_contiv.IPSetMember{Set: set, Prefix: prefix}
	if len(port) > 0 {
		m.Protocol, m.Port = 6, port[0]
	}
	return m
}

// allowRule returns a rule that allows a set of sources to reach some TCP ports; no set: any source.
func allowRule(source uint64, ports ...uint32) *vpp_contiv.Policy_Rule {
	r := &vpp_contiv.Policy_Rule{Action: vpp_contiv.Policy_ALLOW, Source: source}
	for _, p := range ports {
		if p != 0 {
			r.Protocol = 6
			r.Ports = append(r.Ports, &vpp_contiv.Policy_PortRange{First: p, Last: p + 1})
		}
	}
	return r
}

func contivPolicy(id uint64, name string, ingress ...*vpp_contiv.Policy_Rule) *vpp_contiv.Policy {
	return &vpp_contiv.Policy{Id: id, Name: name, Ingress: ingress}
}

func tier(otherwise vpp_contiv.Policy_Action, policies ...uint64) *vpp_contiv.EndpointPolicy_Tier {
	return &vpp_contiv.EndpointPolicy_Tier{Policies: policies, Otherwise: otherwise}
}

// endpointPolicy returns a policy with tiers for ingress that allows packets which the tiers pass.
func endpointPolicy(ifName string, tiers ...*vpp_contiv.EndpointPolicy_Tier) *vpp_contiv.EndpointPolicy {
	return &vpp_contiv.EndpointPolicy{
		Interface: ifName, Name: "name of " + ifName,
		Ingress: &vpp_contiv.EndpointPolicy_Side{Tiers: tiers, Otherwise: vpp_contiv.Policy_ALLOW},
		Egress:  &vpp_contiv.EndpointPolicy_Side{Otherwise: vpp_contiv.Policy_ALLOW},
	}
}

// policyFirst and policySecond return values that differ in every field of network policy. pod-2 is a pod in both versions of
// contivVersions.
func policyFirst() values {
	full := &vpp_contiv.Policy_Rule{Action: vpp_contiv.Policy_PASS, Family: 6, Protocol: 17, Source: 1, Destination: 2, DestinationPorts: 3,
		Ports: []*vpp_contiv.Policy_PortRange{{First: 1, Last: 65535}, {First: 7, Last: 7}}}
	closed := endpointPolicy("pod-1")
	closed.Ingress.Otherwise, closed.Egress.Otherwise = vpp_contiv.Policy_DENY, vpp_contiv.Policy_DENY
	policy := contivPolicy(1, "default/web", allowRule(1, 80), full)
	policy.Egress = []*vpp_contiv.Policy_Rule{allowRule(9, 443)}
	return values{
		&vpp_contiv.IPSet{Id: 1, Name: "pods", Kind: vpp_contiv.IPSet_NETWORKS}, member(1, "10.1.0.2/32"), member(1, "fd00::/64"), member(1, "0.0.0.0/0"),
		&vpp_contiv.IPSet{Id: 3, Name: "ports", Kind: vpp_contiv.IPSet_PORTS}, member(3, "10.1.0.2/32", 80), member(3, "fd00::2/128", 80),
		policy, contivPolicy(2, "default/none"), closed,
		endpointPolicy("pod-2", tier(vpp_contiv.Policy_PASS, 1, 2), tier(vpp_contiv.Policy_DENY, 2)),
	}
}

func policySecond() values {
	changed := endpointPolicy("pod-2", tier(vpp_contiv.Policy_DENY, 2))
	changed.Name = strings.Repeat("namespace-", 8) + "/name"
	changed.Ingress.Otherwise = vpp_contiv.Policy_DENY
	changed.Egress.Tiers = []*vpp_contiv.EndpointPolicy_Tier{tier(vpp_contiv.Policy_ALLOW, 4, 2), tier(vpp_contiv.Policy_PASS),
		{Policies: []uint64{2}, Otherwise: vpp_contiv.Policy_DENY, HoldsForNode: true}}
	return values{
		&vpp_contiv.IPSet{Id: 1, Name: "other pods", Kind: vpp_contiv.IPSet_NETWORKS}, member(1, "10.1.0.3/32"), member(1, "fd00::/64"),
		&vpp_contiv.IPSet{Id: 2, Kind: vpp_contiv.IPSet_NETWORKS},
		contivPolicy(2, "default/some", allowRule(0), allowRule(2)), contivPolicy(4, strings.Repeat("x", 70)), changed,
	}
}

// Adding a member is one message, and so is removing one, changing a policy's rule, and changing the policy of an endpoint.
func TestContivPolicyChange(t *testing.T) {
	onVPP(t, vpptest.Options{Plugin: true}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		desired := values{
			loop("pod", "02:00:00:00:01:02"), endpoint("pod", vpp_contiv.Endpoint_POD, "10.1.0.2"),
			&vpp_contiv.IPSet{Id: 1, Name: "pods", Kind: vpp_contiv.IPSet_NETWORKS},
			contivPolicy(1, "default/web", allowRule(1, 80)), contivPolicy(2, "default/all", allowRule(0)),
			endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 1)),
		}
		for i := range 2000 {
			desired = append(desired, member(1, fmt.Sprintf("10.2.%d.%d/32", i/200, 1+i%200)))
		}
		a.resync(desired...)
		for what, v := range map[string]values{
			"a member more":  {member(1, "10.3.0.1/32")},
			"a rule":         {contivPolicy(1, "default/web", allowRule(1, 80), allowRule(1, 90))},
			"another policy": {endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 1, 2))},
		} {
			before := a.conn.Writes()
			a.commit(txn.Update, kvs(t, v)...)
			if n := a.conn.Writes() - before; n != 1 {
				t.Errorf("%s: %d messages", what, n)
			}
		}
	})
}

// The link of a pod waits for its policy, also if setting the policy fails, and goes down before the policy is deleted. If a change of a
// policy fails, the previous state remains.
func TestLinkWaitsForPolicy(t *testing.T) {
	f := vppfake.New(vppfake.Config{Seed: 1, Plugin: true})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	after := func(v *vpp_interfaces.Interface) {
		v.UpAfter = []string{nb.ContivEndpointKey("pod"), nb.ContivEndpointPolicyKey("pod")}
	}
	pod := values{loop("pod", "02:00:00:00:01:02", after), endpoint("pod", vpp_contiv.Endpoint_POD, "10.1.0.2"), contivPolicy(1, "web")}
	closed := endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 1))
	isUp := func() bool { return strings.Contains(vppState(t, a), `tag "cv:pod" flags IF_STATUS_API_FLAG_ADMIN_UP`) }
	commit := func(kind txn.Kind, v ...values) error {
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: kind, Values: kvs(t, all(v...)), NoRetry: true})
		return err
	}
	if err := commit(txn.FullResync, pod); err != nil || isUp() {
		t.Errorf("without a policy: error %v, up %t", err, isUp())
	}
	f.Faults.Add(vppfake.Fault{Message: "contiv_endpoint_policy_set", Retval: -1, Times: 1})
	if err := commit(txn.Update, values{closed}); err == nil || isUp() {
		t.Errorf("the policy is refused: error %v, up %t", err, isUp())
	}
	a.resync(append(pod, closed)...)
	if !isUp() {
		t.Error("the link is not up in the end")
	}
	if err := commit(txn.Update, values{endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 7))}); err == nil {
		t.Error("a policy that is not there is accepted")
	}
	if state := vppState(t, a); !strings.Contains(state, "PolicyID:1") || !isUp() {
		t.Errorf("what was there has gone:\n%s", state)
	}
	if err := commit(txn.FullResync, pod); err != nil || isUp() || strings.Contains(vppState(t, a), "contiv_endpoint_policy_details") {
		t.Errorf("without a policy any more: error %v, up %t", err, isUp())
	}
}

// On a VPP without the plugin, pods that no policy restricts start and others do not; running pods keep running, also when the agent
// restarts.
func TestPolicyWithoutPlugin(t *testing.T) {
	f := vppfake.New(vppfake.Config{Seed: 1})
	t.Cleanup(func() { f.Close() })
	socket := filepath.Join(t.TempDir(), "api.sock")
	if err := f.Listen(socket); err != nil {
		t.Fatal(err)
	}
	pod := func(name, mac string) *vpp_interfaces.Interface {
		return loop(name, mac, func(v *vpp_interfaces.Interface) { v.UpAfter = []string{nb.ContivEndpointPolicyKey(name)} })
	}
	policy := func(name string, tiers ...*vpp_contiv.EndpointPolicy_Tier) *vpp_contiv.EndpointPolicy {
		v := endpointPolicy(name, tiers...)
		v.WithoutPlugin = true
		return v
	}
	one, two, selects := pod("one", "02:00:00:00:01:02"), pod("two", "02:00:00:00:01:03"), tier(vpp_contiv.Policy_DENY, 1)
	a := newAgent(t, &target{socket: socket, fake: f}, Deps{})
	isUp := func(name string) bool {
		return strings.Contains(vppState(t, a), `tag "cv:`+name+`" flags IF_STATUS_API_FLAG_ADMIN_UP`)
	}
	a.resync(one, policy("one"))
	if !isUp("one") {
		t.Error("a pod without policy is not up")
	}
	commit := func(kind txn.Kind, v ...values) error {
		_, err := a.s.Commit(t.Context(), &txn.Txn{Kind: kind, Values: kvs(t, all(v...)), NoRetry: true})
		return err
	}
	if err := commit(txn.Update, values{two, policy("two", selects), policy("one", selects)}); err == nil || !strings.Contains(err.Error(), "no contiv plugin") {
		t.Errorf("error %v", err)
	}
	check := func(when string) {
		t.Helper()
		if !isUp("one") || isUp("two") {
			t.Errorf("%s: the pod that was open is up: %t, the new one is up: %t", when, isUp("one"), isUp("two"))
		}
	}
	check("a policy selects both")
	a = newAgent(t, &target{socket: socket, fake: f}, Deps{})
	if err := commit(txn.FullResync, values{one, two, policy("two", selects), policy("one", selects)}); err == nil {
		t.Error("no error after a restart")
	}
	check("after a restart")
	a.resync(one, two, policy("one"), policy("two"))
	if !isUp("one") || !isUp("two") {
		t.Error("not up without policy")
	}
}

// A policy that endpoints stop using in the same transaction is deleted, too.
func TestPolicyGoesWithItsLastUse(t *testing.T) {
	onVPP(t, vpptest.Options{Plugin: true}, func(t *testing.T, g *target) {
		a := newAgent(t, g, Deps{})
		pod := values{loop("pod", "02:00:00:00:01:02"), endpoint("pod", vpp_contiv.Endpoint_POD, "10.1.0.2")}
		a.resync(all(pod, values{contivPolicy(1, "web"), endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 1))})...)
		a.resync(all(pod, values{contivPolicy(2, "other"), endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 2))})...)
		if state := vppState(t, a); strings.Contains(state, "ID:1 ") || !strings.Contains(state, "PolicyID:2") {
			t.Errorf("%s", state)
		}
	})
}

func TestContivPolicyRefusals(t *testing.T) {
	invalid := validator(t)
	port := func(change func(*vpp_contiv.Policy_Rule)) error {
		r := allowRule(0, 80)
		change(r)
		return invalid(contivPolicy(1, "x", r))
	}
	side := func(change func(*vpp_contiv.EndpointPolicy)) error {
		v := endpointPolicy("pod", tier(vpp_contiv.Policy_DENY, 1))
		change(v)
		return invalid(v)
	}
	for what, v := range map[string]struct {
		err   error
		field string
	}{
		"no set":           {invalid(member(0, "10.0.0.0/8")), "set"},
		"bits":             {invalid(member(1, "10.0.0.1/8")), "prefix"},
		"no port":          {invalid(&vpp_contiv.IPSetMember{Set: 1, Prefix: "10.0.0.1/32", Protocol: 6}), "port"},
		"large port":       {invalid(member(1, "10.0.0.1/32", 65536)), "port"},
		"port of many":     {invalid(member(1, "10.0.0.0/24", 80)), "prefix"},
		"policy 0":         {invalid(contivPolicy(0, "x")), "id"},
		"no action":        {port(func(r *vpp_contiv.Policy_Rule) { r.Action = 0 }), "ingress[0].action"},
		"family":           {port(func(r *vpp_contiv.Policy_Rule) { r.Family = 5 }), "family"},
		"protocol":         {port(func(r *vpp_contiv.Policy_Rule) { r.Protocol = 256 }), "protocol"},
		"ports of GRE":     {port(func(r *vpp_contiv.Policy_Rule) { r.Protocol = 47 }), "ports"},
		"ports backwards":  {port(func(r *vpp_contiv.Policy_Rule) { r.Ports[0].First = 90 }), "ports"},
		"nine ports":       {port(func(r *vpp_contiv.Policy_Rule) { r.Ports = make([]*vpp_contiv.Policy_PortRange, 9) }), "ports"},
		"too many rules":   {invalid(contivPolicy(1, "x", make([]*vpp_contiv.Policy_Rule, 16385)...)), "room"},
		"no default":       {side(func(v *vpp_contiv.EndpointPolicy) { v.Egress = nil }), "egress.otherwise"},
		"default of pass":  {side(func(v *vpp_contiv.EndpointPolicy) { v.Ingress.Otherwise = vpp_contiv.Policy_PASS }), "ingress.otherwise"},
		"tier without end": {side(func(v *vpp_contiv.EndpointPolicy) { v.Ingress.Tiers[0].Otherwise = 0 }), "tiers[0].otherwise"},
		"policy 0 of tier": {side(func(v *vpp_contiv.EndpointPolicy) { v.Ingress.Tiers[0].Policies[0] = 0 }), "tiers[0].policies"},
		"node of ingress":  {side(func(v *vpp_contiv.EndpointPolicy) { v.Ingress.Tiers[0].HoldsForNode = true }), "ingress.tiers[0].holdsForNode"},
		"node, no policy": {side(func(v *vpp_contiv.EndpointPolicy) {
			v.Egress.Tiers = []*vpp_contiv.EndpointPolicy_Tier{{Otherwise: vpp_contiv.Policy_DENY, HoldsForNode: true}}
		}), "egress.tiers[0].holdsForNode"},
		"no interface": {side(func(v *vpp_contiv.EndpointPolicy) { v.Interface = "" }), "name"},
	} {
		if v.err == nil || !strings.Contains(v.err.Error(), v.field) {
			t.Errorf("%s: %v", what, v.err)
		}
	}
}
