package kube

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"contiv.dev/vswitch/internal/kube/model"
)

// ConvertPolicy converts a NetworkPolicy. An element that is not understood is left out of what a rule allows, and noted in Problems.
// This never makes the policy allow more: a rule that had peers or ports and has none left is dropped, and a policy whose pods or
// directions are not understood isolates more and allows nothing.
func ConvertPolicy(p *networkingv1.NetworkPolicy) *model.Policy {
	c := policyConverter{out: &model.Policy{Name: p.Name, Namespace: intern(p.Namespace), Uid: string(p.UID)}}
	c.directions(p)
	for i, r := range p.Spec.Ingress {
		if rule := c.rule(fmt.Sprintf("spec.ingress[%d]", i), i, r.Ports, "from", r.From); rule != nil && c.out.Ingress {
			c.out.IngressRules = append(c.out.IngressRules, rule)
		}
	}
	for i, r := range p.Spec.Egress {
		if rule := c.rule(fmt.Sprintf("spec.egress[%d]", i), i, r.Ports, "to", r.To); rule != nil && c.out.Egress {
			c.out.EgressRules = append(c.out.EgressRules, rule)
		}
	}
	c.subject(&p.Spec.PodSelector)
	c.out.Problems = c.problems
	return c.out
}

// policyConverter converts one policy.
type policyConverter struct {
	complaints
	out *model.Policy
}

// complaints are the problems found in a policy.
type complaints struct {
	problems []string
	named    model.NamedRules
}

func (c *complaints) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// directions sets the directions that the policy isolates. The default for an empty list is that of the API server.
func (c *policyConverter) directions(p *networkingv1.NetworkPolicy) {
	for _, t := range p.Spec.PolicyTypes {
		switch t {
		case networkingv1.PolicyTypeIngress:
			c.out.Ingress = true
		case networkingv1.PolicyTypeEgress:
			c.out.Egress = true
		default:
			c.problem("spec.policyTypes: %q is not Ingress or Egress; the pods are isolated in both directions", t)
		}
	}
	if len(p.Spec.PolicyTypes) == 0 {
		c.out.Ingress, c.out.Egress = true, len(p.Spec.Egress) > 0
	}
	if len(c.problems) > 0 {
		c.out.Ingress, c.out.Egress = true, true
	}
}

// subject converts the selector of the pods to which the policy applies. An expression that is not understood is left out, so that the
// policy isolates more pods; then the policy must not allow anything to those.
func (c *policyConverter) subject(s *metav1.LabelSelector) {
	known, understood := c.known("spec.podSelector", s, "the policy isolates all pods that the rest of the selector selects, and allows nothing")
	if !understood {
		c.out.IngressRules, c.out.EgressRules = nil, nil
	}
	c.out.Pods = c.selector("spec.podSelector", known)
}

// known returns the selector without the expressions that are not understood; effect describes the consequence, for Problems.
func (c *complaints) known(where string, s *metav1.LabelSelector, effect string) (known *metav1.LabelSelector, understood bool) {
	known, understood = s.DeepCopy(), true
	known.MatchExpressions = nil
	for i, e := range s.MatchExpressions {
		if _, ok := operator(e.Operator); ok {
			known.MatchExpressions = append(known.MatchExpressions, e)
			continue
		}
		c.problem("%s.matchExpressions[%d]: operator %q is not In, NotIn, Exists or DoesNotExist; %s", where, i, e.Operator, effect)
		understood = false
	}
	return known, understood
}

func (c *policyConverter) rule(where string, index int, ports []networkingv1.NetworkPolicyPort, side string,
	peers []networkingv1.NetworkPolicyPeer) *model.PolicyRule {
	rule := &model.PolicyRule{Index: uint32(index)}
	for i := range ports {
		if port := c.port(fmt.Sprintf("%s.ports[%d]", where, i), &ports[i]); port != nil {
			rule.Ports = append(rule.Ports, port)
		}
	}
	for i := range peers {
		if peer := c.peer(fmt.Sprintf("%s.%s[%d]", where, side, i), &peers[i]); peer != nil {
			rule.Peers = append(rule.Peers, peer)
		}
	}
	if (len(ports) > 0 && len(rule.Ports) == 0) || (len(peers) > 0 && len(rule.Peers) == 0) {
		return nil
	}
	if problem := c.named.Add(rule); problem != "" {
		c.problem("%s: %s; the rule allows nothing", where, problem)
		return nil
	}
	return rule
}

func (c *policyConverter) port(where string, p *networkingv1.NetworkPolicyPort) *model.PolicyPort {
	out := &model.PolicyPort{}
	if p.Protocol != nil {
		var known bool
		if out.Protocol, known = protocol(*p.Protocol); !known {
			c.problem("%s.protocol: %q is not TCP, UDP or SCTP; the port allows nothing", where, *p.Protocol)
			return nil
		}
	}
	switch {
	case p.Port == nil && p.EndPort == nil:
		return out
	case p.Port == nil || p.Port.Type == intstr.String && p.EndPort != nil:
		c.problem("%s.endPort: needs a numeric port; the port allows nothing", where)
		return nil
	case p.Port.Type == intstr.String && p.Port.StrVal == "":
		c.problem("%s.port: is an empty name; the port allows nothing", where)
		return nil
	case p.Port.Type == intstr.String:
		out.Name = p.Port.StrVal
		return out
	}
	first, last := p.Port.IntVal, p.Port.IntVal
	if p.EndPort != nil {
		last = *p.EndPort
		out.EndPort = uint32(last)
	}
	if first <= 0 || last < first || last > 65535 {
		c.problem("%s: %d to %d is not a range of ports in 1..65535; it allows nothing", where, first, last)
		return nil
	}
	out.Port = uint32(first)
	return out
}

// peer converts a peer. An exception that is not understood makes the block unusable: ignoring the exception would allow more.
func (c *policyConverter) peer(where string, p *networkingv1.NetworkPolicyPeer) *model.PolicyPeer {
	if p.IPBlock == nil {
		if p.PodSelector == nil && p.NamespaceSelector == nil {
			c.problem("%s: has neither podSelector nor namespaceSelector nor ipBlock, or one that this version does not support; it allows nothing", where)
			return nil
		}
		return &model.PolicyPeer{Pods: c.selector(where+".podSelector", p.PodSelector),
			Namespaces: c.selector(where+".namespaceSelector", p.NamespaceSelector)}
	}
	if p.PodSelector != nil || p.NamespaceSelector != nil {
		c.problem("%s: has an ipBlock and a selector; it allows nothing", where)
		return nil
	}
	block, ok := parsePrefix(p.IPBlock.CIDR)
	if !ok {
		c.problem("%s.ipBlock.cidr: %q is not a network; it allows nothing", where, p.IPBlock.CIDR)
		return nil
	}
	out := &model.IPBlock{Cidr: block.Masked().String()}
	for i, text := range p.IPBlock.Except {
		except, ok := parsePrefix(text)
		if !ok {
			c.problem("%s.ipBlock.except[%d]: %q is not a network; the block allows nothing", where, i, text)
			return nil
		}
		if block.Overlaps(except) {
			out.Except = append(out.Except, except.Masked().String())
		}
	}
	return &model.PolicyPeer{IpBlock: out}
}

func (c *complaints) selector(where string, s *metav1.LabelSelector) *model.LabelSelector {
	if s == nil {
		return nil
	}
	out := &model.LabelSelector{MatchLabels: labels(s.MatchLabels, "")}
	for i, e := range s.MatchExpressions {
		op, known := operator(e.Operator)
		expr := &model.LabelExpression{Key: e.Key, Operator: op, Values: e.Values}
		if !known {
			c.problem("%s.matchExpressions[%d]: operator %q is not In, NotIn, Exists or DoesNotExist; the selector selects nothing",
				where, i, e.Operator)
			expr.Values = nil // an empty list contains no label
		}
		out.MatchExpressions = append(out.MatchExpressions, expr)
	}
	return out
}

// operator converts an operator. An unknown operator becomes IN.
func operator(op metav1.LabelSelectorOperator) (out model.LabelExpression_Operator, known bool) {
	switch op {
	case metav1.LabelSelectorOpIn:
		return model.LabelExpression_IN, true
	case metav1.LabelSelectorOpNotIn:
		return model.LabelExpression_NOT_IN, true
	case metav1.LabelSelectorOpExists:
		return model.LabelExpression_EXISTS, true
	case metav1.LabelSelectorOpDoesNotExist:
		return model.LabelExpression_DOES_NOT_EXIST, true
	}
	return model.LabelExpression_IN, false
}
