package compiler

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	kubemodel "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// TestLaterVersion checks that a part of a stored policy that only a later version has fails closed, in each kind of rule, and is reported
// with the field. Empty selectors are understood.
func TestLaterVersion(t *testing.T) {
	all := &kubemodel.LabelSelector{}
	blue := &kubemodel.PolicyPeer{Namespaces: &kubemodel.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}}
	later := &kubemodel.PolicyPeer{}
	if err := proto.Unmarshal(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "sources"), later); err != nil {
		t.Fatal(err)
	}
	const allow, deny, pass = kubemodel.PolicyRule_ALLOW, kubemodel.PolicyRule_DENY, kubemodel.PolicyRule_PASS
	port := &kubemodel.PolicyPort{Port: 80}
	peers := func(list ...*kubemodel.PolicyPeer) []*kubemodel.PolicyPeer { return list }
	ports := func(list ...*kubemodel.PolicyPort) []*kubemodel.PolicyPort { return list }
	laterPort := &kubemodel.PolicyPort{Protocol: 9}
	operator := &kubemodel.PolicyPeer{Pods: &kubemodel.LabelSelector{MatchExpressions: []*kubemodel.LabelExpression{{Key: "app", Operator: 9}}}}
	network := &kubemodel.PolicyPeer{IpBlock: &kubemodel.IPBlock{}}
	for _, tt := range []struct {
		name     string
		cluster  bool
		action   kubemodel.PolicyRule_Action
		peers    []*kubemodel.PolicyPeer
		ports    []*kubemodel.PolicyPort
		probes   string // of NetworkPolicies; a ClusterNetworkPolicy is followed by one that denies tcp 80, or by none if it denies
		problems string
	}{
		{"empty selectors", false, allow, peers(&kubemodel.PolicyPeer{Pods: all}), nil, "+ a/web a/api tcp 80\n- b/web a/api tcp 80", ""},
		{"all namespaces", false, allow, peers(&kubemodel.PolicyPeer{Namespaces: all}), nil, "+ a/web a/api tcp 80\n+ b/web a/api tcp 80\n- world a/api tcp 80", ""},
		{"only peer", false, allow, peers(later), nil, "- a/web a/api tcp 80\n- world a/api tcp 80", "1 of its 1 peers"},
		{"one of the peers", false, allow, peers(later, blue), nil, "- a/web a/api tcp 80\n+ b/web a/api tcp 80", "1 of its 2 peers"},
		{"operator", false, allow, peers(operator), nil, "- a/web a/api tcp 80", "1 of its 1 peers"},
		{"network", false, allow, peers(network), nil, "- a/web a/api tcp 80", "1 of its 1 peers"},
		{"only protocol", false, allow, nil, ports(laterPort), "- a/web a/api tcp 80\n- a/web a/api icmp", "1 of its 1 ports"},
		{"one of the protocols", false, allow, nil, ports(laterPort, port), "+ a/web a/api tcp 80\n- a/web a/api tcp 81", "1 of its 2 ports"},
		{"peer and protocol", false, allow, peers(later, blue), ports(laterPort), "- b/web a/api tcp 80", "1 of its 2 peers"},
		{"cluster allows", true, allow, peers(later, blue), ports(port), "- b/web a/api tcp 80\n+ b/web a/api tcp 81", "the rule accepts nothing"},
		{"cluster denies", true, deny, peers(later), ports(port), "- b/web a/api tcp 80\n- world a/api tcp 81\n+ node a/api tcp 80\n+ a/api world tcp 80", "the rule denies everything"},
		{"cluster denies an operator", true, deny, peers(operator), nil, "- world a/api tcp 81", "the rule denies everything"},
		{"cluster denies a network", true, deny, peers(network), nil, "- world a/api tcp 81", "the rule denies everything"},
		{"cluster denies a protocol", true, deny, peers(blue), ports(laterPort), "- b/web a/api tcp 80\n- b/web a/api icmp", "the rule denies everything"},
		{"cluster passes", true, pass, peers(later), ports(port), "- b/web a/api tcp 80\n- world a/api tcp 81", "the rule denies everything"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := matrixCluster()
			rules := []*kubemodel.PolicyRule{{Action: tt.action, Peers: tt.peers, Ports: tt.ports, Index: 3}}
			np := &kubemodel.Policy{Namespace: "a", Name: "p", Pods: all, Ingress: true, IngressRules: rules}
			cnp := &kubemodel.ClusterPolicy{Name: "p", Namespaces: all, Pods: all, IngressRules: rules}
			problems := NotUnderstood(np)
			if tt.cluster {
				c.clusterwide["p"], problems = cnp, NotUnderstoodCluster(cnp)
				if tt.action == allow {
					cnp.IngressRules = append(rules, &kubemodel.PolicyRule{Action: deny, Ports: ports(port)})
				}
			} else {
				c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}] = np
			}
			c.probes(t, tt.probes)
			text := strings.Join(problems, "\n")
			if (text == "") != (tt.problems == "") || !strings.Contains(text, tt.problems) || text != "" && !strings.HasPrefix(text, "spec.ingress[3]: ") {
				t.Errorf("problems: %q", text)
			}
		})
	}
}

// TestSubjectOfLaterVersion checks that a policy whose selectors or tier only a later version has selects more pods and allows nothing; a
// ClusterNetworkPolicy keeps its rules that deny.
func TestSubjectOfLaterVersion(t *testing.T) {
	later := &kubemodel.LabelSelector{MatchLabels: map[string]string{"app": "web"}, MatchExpressions: []*kubemodel.LabelExpression{{Key: "app", Operator: 9}}}
	blue := &kubemodel.LabelSelector{MatchLabels: map[string]string{"team": "blue"}, MatchExpressions: later.MatchExpressions}
	all := &kubemodel.LabelSelector{}
	port := func(n uint32, action kubemodel.PolicyRule_Action) *kubemodel.PolicyRule {
		return &kubemodel.PolicyRule{Action: action, Ports: []*kubemodel.PolicyPort{{Port: n}}}
	}
	rules := []*kubemodel.PolicyRule{port(80, kubemodel.PolicyRule_ALLOW), port(81, kubemodel.PolicyRule_DENY), port(82, 9),
		{Action: kubemodel.PolicyRule_ALLOW}}
	for _, tt := range []struct {
		name    string
		np      *kubemodel.Policy
		cnp     *kubemodel.ClusterPolicy
		probes  string
		problem string
	}{
		{"pods", &kubemodel.Policy{Pods: later, Ingress: true, IngressRules: rules[:1]}, nil, "- a/api a/web tcp 80\n+ a/web a/api tcp 1\n+ a/web world tcp 1", "it allows nothing"},
		{"cluster pods", nil, &kubemodel.ClusterPolicy{Namespaces: all, Pods: later, IngressRules: rules},
			"+ a/api a/web tcp 80\n- a/api a/web tcp 81\n- a/api b/web tcp 82\n+ a/web a/api tcp 81", "only its rules that deny apply"},
		{"cluster namespaces", nil, &kubemodel.ClusterPolicy{Namespaces: blue, Pods: all, Tier: kubemodel.ClusterPolicy_BASELINE, IngressRules: rules},
			"- a/api b/web tcp 81\n+ a/api a/web tcp 81", "only its rules that deny apply"},
		{"tier", nil, &kubemodel.ClusterPolicy{Namespaces: all, Pods: all, Tier: 9, IngressRules: rules}, "+ a/web a/api tcp 80\n- a/web a/api tcp 81\n+ a/web a/api tcp 83", "spec.tier: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, problems := matrixCluster(), []string{}
			if tt.np != nil {
				tt.np.Namespace, tt.np.Name = "a", "p"
				c.policies[model.PolicyID{Kind: model.KindNetworkPolicy, Namespace: "a", Name: "p"}], problems = tt.np, NotUnderstood(tt.np)
			} else {
				tt.cnp.Name = "p"
				c.clusterwide["p"], problems = tt.cnp, NotUnderstoodCluster(tt.cnp)
			}
			c.probes(t, tt.probes)
			if len(problems) != 1 || !strings.Contains(problems[0], tt.problem) {
				t.Errorf("problems: %q", problems)
			}
		})
	}
}
