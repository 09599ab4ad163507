package compiler

import (
	"testing"

	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// TestDisputedAddress checks that an address that two pods claim is denied if one of them is, and by rules that allow or pass one of them it is neither
// allowed, nor passed to the next tier, nor left to later rules of the tier that allow, until one of them releases it. The pods' named ports are treated like their addresses.
func TestDisputedAddress(t *testing.T) {
	team := func(name string) []*kubemodel.PolicyPeer {
		return []*kubemodel.PolicyPeer{{Namespaces: &kubemodel.LabelSelector{MatchLabels: map[string]string{"team": name}}}}
	}
	all := &kubemodel.LabelSelector{}
	http := []*kubemodel.PolicyPort{{Name: "http"}}
	number := []*kubemodel.PolicyPort{{Port: 1}}
	rule := func(action kubemodel.PolicyRule_Action, peers []*kubemodel.PolicyPeer, ports []*kubemodel.PolicyPort) *kubemodel.PolicyRule {
		return &kubemodel.PolicyRule{Action: action, Peers: peers, Ports: ports}
	}
	const allow, deny, pass = kubemodel.PolicyRule_ALLOW, kubemodel.PolicyRule_DENY, kubemodel.PolicyRule_PASS
	everything := rule(allow, nil, nil)
	for _, tt := range []struct {
		name            string
		ingress, egress []*kubemodel.PolicyRule
		disputed, alone string // the results while both claim the address, and while only the selected pod does
		probe           string
	}{
		{"a source that is denied", []*kubemodel.PolicyRule{rule(deny, team("blue"), nil), everything}, nil, "-", "-", "b/web a/api tcp 1"},
		{"a source that is allowed", []*kubemodel.PolicyRule{rule(allow, team("blue"), nil), rule(deny, nil, nil)}, nil, "-", "+", "b/web a/api tcp 1"},
		{"a source that is passed", []*kubemodel.PolicyRule{rule(pass, team("blue"), nil), rule(deny, nil, nil)}, nil, "-", "+", "b/web a/api tcp 1"},
		{"a source that is passed, and other sources are allowed", []*kubemodel.PolicyRule{rule(pass, team("blue"), nil), everything}, nil, "-", "+", "b/web a/api tcp 1"},
		{"another port of a source that is passed", []*kubemodel.PolicyRule{rule(pass, team("blue"), number), everything}, nil, "+", "+", "b/web a/api tcp 2"},
		{"a destination that is passed", nil, []*kubemodel.PolicyRule{rule(pass, team("blue"), number), everything}, "-", "+", "a/api b/web tcp 1"},
		{"a named port that is passed", nil, []*kubemodel.PolicyRule{rule(pass, team("blue"), http), everything}, "-", "+", "a/api b/web tcp 9"},
		{"a named port of all that is passed", nil, []*kubemodel.PolicyRule{rule(pass, nil, http), everything}, "-", "+", "a/api b/web tcp 9"},
		{"another port than the named one", nil, []*kubemodel.PolicyRule{rule(pass, team("blue"), http), everything}, "+", "+", "a/api b/web tcp 8"},
		{"a destination that is denied", nil, []*kubemodel.PolicyRule{rule(deny, team("blue"), nil), everything}, "-", "-", "a/api b/web tcp 1"},
		{"a named port that is denied", nil, []*kubemodel.PolicyRule{rule(deny, team("blue"), http), everything}, "-", "-", "a/api b/web tcp 9"},
		{"another port", nil, []*kubemodel.PolicyRule{rule(deny, team("blue"), http), everything}, "+", "+", "a/api b/web tcp 8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, k, state := matrixCluster(), New(), verdict.NewState()
			c.pods[endpointID("b/web")].Ports = []*kubemodel.ContainerPort{{Name: "http", ContainerPort: 9}}
			delete(c.locals, endpointID("b/web"))
			for name, n := range c.namespaces {
				k.SetNamespace(name, n)
			}
			for _, l := range c.locals {
				k.SetEndpoint(l)
			}
			c.clusterwide["p"] = &kubemodel.ClusterPolicy{Name: "p", Namespaces: all, Pods: all, IngressRules: tt.ingress, EgressRules: tt.egress}
			k.SetClusterPolicy("p", c.clusterwide["p"])
			set := func(name, ip string) {
				t.Helper()
				pod := c.pods[endpointID(name)]
				changed := &kubemodel.Pod{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, Ports: pod.Ports, Ips: []string{ip}}
				c.pods[endpointID(name)] = changed
				k.SetPod(endpointID(name), changed)
			}
			for id, p := range c.pods {
				k.SetPod(id, p)
			}
			check := func(want string) {
				t.Helper()
				if err := state.Apply(k.Flush()); err != nil {
					t.Fatal(err)
				}
				c.probe(t, state, want+" "+tt.probe)
			}
			const at, elsewhere = "10.0.0.4", "10.0.0.9" // at: the address of the probe
			check(tt.alone)
			set("a/end", at)
			check(tt.disputed)
			set("b/web", elsewhere)
			set("b/web", at)
			check(tt.disputed)
			set("a/end", elsewhere)
			check(tt.alone)
			set("a/end", at)
			check(tt.disputed)
		})
	}
}
