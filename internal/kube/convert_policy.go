package kube

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"contiv.dev/vswitch/internal/kube/model"
)

// convertPolicy converts a NetworkPolicy. What cannot be understood is left out of what a rule allows, and never makes the
// rule allow more: a rule that had peers or ports and has none left is dropped.
func convertPolicy(p *networkingv1.NetworkPolicy) *model.Policy {
	out := &model.Policy{
		Name: p.Name, Namespace: intern(p.Namespace), Uid: string(p.UID), Pods: selector(&p.Spec.PodSelector),
	}
	for _, t := range p.Spec.PolicyTypes {
		out.Ingress = out.Ingress || t == networkingv1.PolicyTypeIngress
		out.Egress = out.Egress || t == networkingv1.PolicyTypeEgress
	}
	if len(p.Spec.PolicyTypes) == 0 { // the API server fills it in; this is its default
		out.Ingress, out.Egress = true, len(p.Spec.Egress) > 0
	}
	for _, r := range p.Spec.Ingress {
		if rule := policyRule(r.Ports, r.From); rule != nil && out.Ingress {
			out.IngressRules = append(out.IngressRules, rule)
		}
	}
	for _, r := range p.Spec.Egress {
		if rule := policyRule(r.Ports, r.To); rule != nil && out.Egress {
			out.EgressRules = append(out.EgressRules, rule)
		}
	}
	return out
}

func policyRule(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer) *model.PolicyRule {
	rule := &model.PolicyRule{}
	for i := range ports {
		if port := policyPort(&ports[i]); port != nil {
			rule.Ports = append(rule.Ports, port)
		}
	}
	for i := range peers {
		if peer := policyPeer(&peers[i]); peer != nil {
			rule.Peers = append(rule.Peers, peer)
		}
	}
	if (len(ports) > 0 && len(rule.Ports) == 0) || (len(peers) > 0 && len(rule.Peers) == 0) {
		return nil
	}
	return rule
}

func policyPort(p *networkingv1.NetworkPolicyPort) *model.PolicyPort {
	out := &model.PolicyPort{}
	if p.Protocol != nil {
		var known bool
		if out.Protocol, known = protocol(*p.Protocol); !known {
			return nil
		}
	}
	switch {
	case p.Port == nil:
		return out
	case p.Port.Type == intstr.String:
		out.Name = p.Port.StrVal
		return out
	}
	out.Port = uint32(p.Port.IntVal)
	if p.EndPort != nil {
		out.EndPort = uint32(*p.EndPort)
	}
	if p.Port.IntVal <= 0 || p.Port.IntVal > 65535 || (p.EndPort != nil && *p.EndPort < p.Port.IntVal) {
		return nil
	}
	return out
}

// policyPeer converts a peer. An except that cannot be understood makes the block unusable: to ignore it would allow more.
func policyPeer(p *networkingv1.NetworkPolicyPeer) *model.PolicyPeer {
	if p.IPBlock == nil {
		if p.PodSelector == nil && p.NamespaceSelector == nil {
			return nil
		}
		return &model.PolicyPeer{Pods: selector(p.PodSelector), Namespaces: selector(p.NamespaceSelector)}
	}
	cidr, ok := parsePrefix(p.IPBlock.CIDR)
	except := prefixTexts(p.IPBlock.Except)
	if !ok || len(except) != len(p.IPBlock.Except) {
		return nil
	}
	return &model.PolicyPeer{IpBlock: &model.IPBlock{Cidr: cidr.String(), Except: except}}
}

func selector(s *metav1.LabelSelector) *model.LabelSelector {
	if s == nil {
		return nil
	}
	out := &model.LabelSelector{MatchLabels: labels(s.MatchLabels, "")}
	for _, e := range s.MatchExpressions {
		expr := &model.LabelExpression{Key: e.Key, Values: e.Values}
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			expr.Operator = model.LabelExpression_IN
		case metav1.LabelSelectorOpNotIn:
			expr.Operator = model.LabelExpression_NOT_IN
		case metav1.LabelSelectorOpExists:
			expr.Operator = model.LabelExpression_EXISTS
		case metav1.LabelSelectorOpDoesNotExist:
			expr.Operator = model.LabelExpression_DOES_NOT_EXIST
		default: // the API knows no other
			expr.Operator, expr.Values = model.LabelExpression_IN, nil // selects nothing
		}
		out.MatchExpressions = append(out.MatchExpressions, expr)
	}
	return out
}
