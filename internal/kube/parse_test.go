package kube

import (
	"strings"
	"testing"
)

const triedPolicy = `# comment
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p}
spec: {podSelector: {}, ingress: [{ports: [{port: http}]}]}
---
`

func TestParsePolicy(t *testing.T) {
	p, c, err := ParsePolicy([]byte(triedPolicy))
	if err != nil || c != nil || p.GetNamespace() != "default" || len(p.GetIngressRules()) != 1 || p.GetIngressRules()[0].GetPorts()[0].GetName() != "http" {
		t.Errorf("%v, %v, error %v", p, c, err)
	}
	p, c, err = ParsePolicy([]byte(`{"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy", "metadata": {"name": "c"},
		"spec": {"tier": "Admin", "priority": 7, "subject": {"namespaces": {}}, "egress": [{"action": "Deny", "to": [{"nodes": {}}]}]}}`))
	if err != nil || p != nil || c.GetPriority() != 7 || len(c.GetEgressRules()) != 1 {
		t.Errorf("%v, %v, error %v", p, c, err)
	}
	for text, field := range map[string]string{
		"": "no object", "- a": "not YAML", "a: [": "not YAML", triedPolicy + triedPolicy: "several",
		strings.Replace(triedPolicy, "podSelector", "podSelektor", 1):                                                                               "podSelektor",
		strings.Replace(triedPolicy, "ingress: [{ports: [{port: http}]}]", "ingress: 5", 1):                                                         "spec",
		strings.Replace(triedPolicy, "port: http", "endPort: x", 1):                                                                                 "endPort",
		strings.Replace(triedPolicy, "name: p", "namespace: x", 1):                                                                                  "metadata.name",
		strings.Replace(triedPolicy, "NetworkPolicy", "Pod", 1):                                                                                     `kind "Pod"`,
		strings.Replace(triedPolicy, "kind", "spec: {}\nkind", 1):                                                                                   "spec",
		strings.Replace(triedPolicy, "networking.k8s.io", "x", 1):                                                                                   `"x/v1"`,
		`{"apiVersion": "policy.networking.k8s.io/v1alpha1", "kind": "ClusterNetworkPolicy"}`:                                                       "v1alpha2",
		`{"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy", "metadata": {"name": "c"}, "spec": {"teer": "Admin"}}`: "teer",
	} {
		if _, _, err := ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%q: error %v, want one with %q", text, err, field)
		}
	}
}
