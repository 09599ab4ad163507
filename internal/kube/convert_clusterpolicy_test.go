package kube

import (
	"strings"
	"testing"

	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/internal/kube/model"
)

// TestClusterPolicyRules checks that each rule is converted as the API specifies; an element that is not understood fails closed and
// is a problem that names the field.
func TestClusterPolicyRules(t *testing.T) {
	const all = `"peers":[{"pods":{},"namespaces":{}}]`
	for _, test := range []struct{ name, rule, want, problem string }{
		{"namespaces", `{action: Deny, to: [{namespaces: {}}]}`, `{` + all + `,"action":"DENY"}`, ""},
		{"name", `{name: x, action: Deny, to: [{namespaces: {}}]}`, `{` + all + `,"action":"DENY","name":"x"}`, ""},
		{"accept", `{action: Accept, to: [{namespaces: {}}]}`, `{` + all + `}`, ""},
		{"pass", `{action: Pass, to: [{namespaces: {}}]}`, `{` + all + `,"action":"PASS"}`, ""},
		{"pods", `{action: Accept, to: [{pods: {namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {c: d}}}}]}`,
			`{"peers":[{"pods":{"matchLabels":{"c":"d"}},"namespaces":{"matchLabels":{"a":"b"}}}]}`, ""},
		{"nodes", `{action: Accept, to: [{nodes: {matchLabels: {a: b}}}]}`, `{"peers":[{"nodes":{"matchLabels":{"a":"b"}}}]}`, ""},
		{"networks", `{action: Accept, to: [{networks: [10.0.0.1/8, "fd00::/8"]}]}`,
			`{"peers":[{"ipBlock":{"cidr":"10.0.0.0/8"}},{"ipBlock":{"cidr":"fd00::/8"}}]}`, ""},
		{"ports", `{action: Accept, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {number: 80}}}, {udp: {destinationPort: {range: {start: 1, end: 9}}}},
			{sctp: {}}]}`, `{"ports":[{"port":80},{"protocol":"UDP","port":1,"endPort":9},{"protocol":"SCTP"}],` + all + `}`, ""},
		{"a named port of any protocol", `{action: Accept, to: [{namespaces: {}}], protocols: [{destinationNamedPort: http}]}`,
			`{"ports":[{"name":"http"},{"protocol":"UDP","name":"http"},{"protocol":"SCTP","name":"http"}],` + all + `}`, ""},
		{"domain names match nothing", `{action: Accept, to: [{domainNames: [example.com]}, {namespaces: {}}]}`, `{` + all + `}`, "spec.egress[0].to[0].domainNames"},
		{"only domain names", `{action: Accept, to: [{domainNames: [example.com]}]}`, "", "spec.egress[0].to[0].domainNames"},
		{"domain names that deny", `{action: Deny, to: [{domainNames: [example.com]}]}`, `{"action":"DENY"}`, "spec.egress[0].to[0].domainNames"},
		{"an unknown peer that accepts", `{action: Accept, to: [{namespaces: {}}, {}]}`, "", "spec.egress[0].to[1]"},
		{"an unknown peer that denies", `{action: Deny, to: [{namespaces: {}}, {}]}`, `{"action":"DENY"}`, "spec.egress[0].to[1]"},
		{"an unknown peer that passes", `{action: Pass, to: [{}]}`, `{"action":"DENY"}`, "spec.egress[0].to[0]"},
		{"two peers in one", `{action: Deny, to: [{namespaces: {}, nodes: {}}]}`, `{"action":"DENY"}`, "spec.egress[0].to[0]"},
		{"no peers", `{action: Accept, to: []}`, "", "spec.egress[0].to"},
		{"an unknown action", `{action: Log, to: [{namespaces: {}}]}`, `{` + all + `,"action":"DENY"}`, "spec.egress[0].action"},
		{"a bad network", `{action: Accept, to: [{networks: [10.0.0.0/8, x]}]}`, "", "spec.egress[0].to[0].networks[1]"},
		{"a bad network that denies", `{action: Deny, to: [{networks: [x]}]}`, `{"action":"DENY"}`, "spec.egress[0].to[0].networks[0]"},
		{"an unknown protocol", `{action: Accept, to: [{namespaces: {}}], protocols: [{}]}`, "", "spec.egress[0].protocols[0]"},
		{"an unknown protocol that denies", `{action: Deny, to: [{namespaces: {}}], protocols: [{}]}`, `{"action":"DENY"}`, "spec.egress[0].protocols[0]"},
		{"two protocols in one", `{action: Accept, to: [{namespaces: {}}], protocols: [{tcp: {}, destinationNamedPort: x}]}`, "", "spec.egress[0].protocols[0]"},
		{"no port", `{action: Accept, to: [{namespaces: {}}], protocols: [{tcp: {destinationPort: {}}}]}`, "", "spec.egress[0].protocols[0].tcp.destinationPort"},
		{"a range backwards", `{action: Accept, to: [{namespaces: {}}], protocols: [{udp: {destinationPort: {range: {start: 9, end: 1}}}}]}`, "",
			"spec.egress[0].protocols[0].udp.destinationPort"},
		{"a number and a range", `{action: Accept, to: [{namespaces: {}}], protocols: [{sctp: {destinationPort: {number: 1, range: {start: 1, end: 9}}}}]}`, "",
			"spec.egress[0].protocols[0].sctp.destinationPort"},
		{"an unknown operator", `{action: Deny, to: [{namespaces: {matchExpressions: [{key: a, operator: Near}]}}]}`, `{"action":"DENY"}`,
			"spec.egress[0].to[0].namespaces.matchExpressions[0]"},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			p := clusterPolicy(t, `{tier: Baseline, priority: 7, subject: {namespaces: {}}, egress: [`+test.rule+`]}`)
			problems(t, p, test.problem)
			if p.Tier != model.ClusterPolicy_BASELINE || p.Priority != 7 {
				t.Errorf("tier %s, priority %d", p.Tier, p.Priority)
			}
			switch {
			case test.want == "" && len(p.EgressRules) > 0:
				t.Errorf("got %v, want no rule", p.EgressRules)
			case test.want != "" && len(p.EgressRules) != 1:
				t.Errorf("got %v", p.EgressRules)
			case test.want != "":
				want(t, p.EgressRules[0], test.want)
			}
		})
	}
}

// TestClusterPolicyPlace checks that a policy whose tier or subject is not understood keeps only the rules that deny, and applies to
// more pods.
func TestClusterPolicyPlace(t *testing.T) {
	const rules = `ingress: [{action: Accept, from: [{namespaces: {}}]}, {action: Deny, from: [{namespaces: {}}]}, {action: Pass, from: [{namespaces: {}}]}]`
	for _, test := range []struct{ name, spec, subject, problem string }{
		{"tier", `tier: Other, subject: {namespaces: {}}`, `"namespaces":{},"pods":{}`, "spec.tier"},
		{"no subject", `tier: Baseline, subject: {}`, `"namespaces":{},"pods":{}`, "spec.subject"},
		{"two subjects", `tier: Baseline, subject: {namespaces: {}, pods: {podSelector: {}}}`, `"namespaces":{},"pods":{}`, "spec.subject"},
		{"namespaces", `tier: Baseline, subject: {namespaces: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Near}]}}`,
			`"namespaces":{"matchLabels":{"a":"b"}},"pods":{}`, "spec.subject.namespaces.matchExpressions[0]"},
		{"pods", `tier: Baseline, subject: {pods: {namespaceSelector: {matchLabels: {c: d}}, podSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Near}]}}}`,
			`"namespaces":{"matchLabels":{"c":"d"}},"pods":{"matchLabels":{"a":"b"}}`, "spec.subject.pods.podSelector.matchExpressions[0]"},
	} {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			p := clusterPolicy(t, `{priority: 1000, `+test.spec+`, `+rules+`}`)
			problems(t, p, test.problem)
			p.Problems = nil
			want(t, p, `{"name":"p","uid":"u","priority":1000,`+test.subject+`,"ingressRules":[{"peers":[{"pods":{},"namespaces":{}}],"index":1,"action":"DENY"}]}`)
		})
	}
	p := clusterPolicy(t, `{tier: Baseline, priority: 1001, subject: {namespaces: {}}}`)
	if problems(t, p, "spec.priority"); p.Priority != 1000 {
		t.Errorf("priority %d", p.Priority)
	}
}

func clusterPolicy(t *testing.T, spec string) *model.ClusterPolicy {
	t.Helper()
	obj := &npapi.ClusterNetworkPolicy{}
	obj.Name, obj.UID = "p", "u"
	if err := yaml.UnmarshalStrict([]byte(spec), &obj.Spec); err != nil {
		t.Fatal(err)
	}
	return ConvertClusterPolicy(obj)
}

// problems checks that there is one problem that begins with the field, or none.
func problems(t *testing.T, p *model.ClusterPolicy, field string) {
	t.Helper()
	switch {
	case field == "" && len(p.Problems) > 0, field != "" && len(p.Problems) != 1:
		t.Errorf("problems: %q", p.Problems)
	case field != "" && !strings.HasPrefix(p.Problems[0], field+":"):
		t.Errorf("problem %q, want one of %s", p.Problems[0], field)
	}
}
