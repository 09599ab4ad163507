package compiler

import (
	"fmt"
	"strings"
	"testing"

	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// TestManyNamedPorts checks that a rule with more pairs of peers and named ports than a policy has room for is not compiled: it allows nothing,
// or denies everything, and is reported with the numbers. Other rules of the policy are in effect, and a rule that just fits.
func TestManyNamedPorts(t *testing.T) {
	const allow, deny, pass = kubemodel.PolicyRule_ALLOW, kubemodel.PolicyRule_DENY, kubemodel.PolicyRule_PASS
	all := &kubemodel.LabelSelector{}
	many := func(action kubemodel.PolicyRule_Action, peers, ports int) *kubemodel.PolicyRule {
		r := &kubemodel.PolicyRule{Action: action, Index: 1}
		for i := range peers {
			r.Peers = append(r.Peers, &kubemodel.PolicyPeer{Namespaces: all, Pods: &kubemodel.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}})
		}
		r.Peers[0].Pods = all
		for i := range ports {
			r.Ports = append(r.Ports, &kubemodel.PolicyPort{Name: fmt.Sprint("p", i)})
		}
		r.Ports[0].Name = "http"
		return r
	}
	number := &kubemodel.PolicyRule{Ports: []*kubemodel.PolicyPort{{Port: 7}}}
	list := func(rules ...*kubemodel.PolicyRule) []*kubemodel.PolicyRule { return rules }
	for _, tt := range []struct {
		name            string
		cluster         bool
		ingress, egress []*kubemodel.PolicyRule
		probes          string
		problems        []string
	}{
		{"fits", false, list(many(allow, 128, 128)), nil, "+ c/far a/web tcp 80\n- c/far a/web tcp 7", nil},
		{"a peer too many", false, list(many(allow, 129, 128), number), nil, "- c/far a/web tcp 80\n+ c/far a/web tcp 7",
			[]string{"spec.ingress[1]: its peers and named ports make 16512 rules, and the policy has room for 16384 of at most 16384; use numbers of ports, or several policies; the rule allows nothing"}},
		{"millions in egress", false, nil, list(many(allow, 2000, 2000)), "- a/web a/api tcp 8080", []string{"spec.egress[1]: its peers and named ports make 4000000 rules"}},
		{"both directions together", false, list(many(allow, 100, 100)), list(many(allow, 100, 100)), "+ c/far a/web tcp 80\n- a/web a/api tcp 8080",
			[]string{"spec.egress[1]: its peers and named ports make 10000 rules, and the policy has room for 6384"}},
		{"a smaller rule after it", false, list(many(allow, 2000, 2000), many(allow, 2, 2)), nil, "+ c/far a/web tcp 80", []string{"spec.ingress[1]: "}},
		{"cluster accepts", true, list(many(allow, 200, 200), many(deny, 2, 2)), nil, "- c/far a/web tcp 80\n+ c/far a/web tcp 7", []string{"the rule allows nothing"}},
		{"cluster denies", true, list(many(deny, 200, 200)), nil, "- c/far a/web tcp 7\n- world a/web icmp\n+ node a/web tcp 1\n+ b/web world tcp 1", []string{"the rule denies everything"}},
		{"cluster passes", true, nil, list(many(pass, 80, 80)), "- a/web a/api tcp 1\n+ world a/web tcp 1", []string{"make 19200 rules"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := matrixCluster()
			np := &kubemodel.Policy{Namespace: "a", Name: "p", Pods: all, Ingress: len(tt.ingress) > 0, Egress: len(tt.egress) > 0, IngressRules: tt.ingress, EgressRules: tt.egress}
			cnp := &kubemodel.ClusterPolicy{Name: "p", Namespaces: all, Pods: all, IngressRules: tt.ingress, EgressRules: tt.egress}
			problems := NotUnderstood(np)
			if tt.cluster {
				c.clusterwide["p"], problems = cnp, NotUnderstoodCluster(cnp)
			} else {
				c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}] = np
			}
			s := c.probes(t, tt.probes)
			if len(s.Sets) > 2*kubemodel.MaxNamedRules {
				t.Errorf("%d sets", len(s.Sets))
			}
			if len(problems) != len(tt.problems) || len(problems) > 0 && !strings.Contains(problems[0], tt.problems[0]) {
				t.Errorf("problems %q, want %q", problems, tt.problems)
			}
		})
	}
}
