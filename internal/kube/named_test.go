package kube

import (
	"fmt"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"contiv.dev/vswitch/internal/kube/model"
)

// TestManyNamedPorts checks that a rule with too many pairs of peers and named ports is not understood.
func TestManyNamedPorts(t *testing.T) {
	convert := func(peers, ports int) *model.Policy {
		r := networkingv1.NetworkPolicyIngressRule{}
		for i := range peers {
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(i)}}
			r.From = append(r.From, networkingv1.NetworkPolicyPeer{PodSelector: selector})
		}
		for i := range ports {
			name := intstr.FromString(fmt.Sprint("p", i))
			r.Ports = append(r.Ports, networkingv1.NetworkPolicyPort{Port: &name})
		}
		return ConvertPolicy(&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}, r}}})
	}
	if p := convert(128, 128); len(p.Problems) > 0 || len(p.IngressRules) != 2 {
		t.Errorf("as many as fit: %d rules, problems %q", len(p.IngressRules), p.Problems)
	}
	p := convert(2000, 2000)
	if len(p.IngressRules) != 1 || len(p.Problems) != 1 || !strings.HasPrefix(p.Problems[0], "spec.ingress[1]: its peers and named ports make 4000000 rules") ||
		!strings.HasSuffix(p.Problems[0], "; the rule allows nothing") {
		t.Errorf("too many: %d rules, problems %q", len(p.IngressRules), p.Problems)
	}
}

// TestManyNamedPortsCluster is TestManyNamedPorts for the rules of ClusterNetworkPolicies. Each of their named ports has three protocols.
func TestManyNamedPortsCluster(t *testing.T) {
	for action, want := range map[npapi.ClusterNetworkPolicyRuleAction]string{
		npapi.ClusterNetworkPolicyRuleActionAccept: "", npapi.ClusterNetworkPolicyRuleActionDeny: `action:DENY`, npapi.ClusterNetworkPolicyRuleActionPass: `action:DENY`,
	} {
		p := &npapi.ClusterNetworkPolicy{}
		p.Spec.Tier, p.Spec.Subject.Namespaces = npapi.AdminTier, &metav1.LabelSelector{}
		r := npapi.ClusterNetworkPolicyIngressRule{Action: action}
		for i := range 75 {
			r.From = append(r.From, npapi.ClusterNetworkPolicyIngressPeer{Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"n": fmt.Sprint(i)}}})
			r.Protocols = append(r.Protocols, npapi.ClusterNetworkPolicyProtocol{DestinationNamedPort: fmt.Sprint("p", i)})
		}
		p.Spec.Ingress = append(p.Spec.Ingress, r)
		out := ConvertClusterPolicy(p)
		got := ""
		for _, rule := range out.IngressRules {
			got += strings.ReplaceAll(rule.String(), " ", "")
		}
		if got != want || len(out.Problems) != 1 || !strings.HasPrefix(out.Problems[0], "spec.ingress[0]: its peers and named ports make ") {
			t.Errorf("%s: %.100s, problems %q", action, got, out.Problems)
		}
	}
}
