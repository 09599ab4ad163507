package compiler

import (
	"fmt"
	"net/netip"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// contiv-ksr of another version may store a policy with fields or values that this agent does not have, or with more rules than this agent
// allows. A peer with only such a field looks empty. Such parts fail closed, with the same results as if this agent had converted the
// policy itself (internal/kube).

// reader replaces the rules that this version does not understand. It reads those of ingress first.
type reader struct {
	cluster  bool // of a ClusterNetworkPolicy
	problems []string
	named    kube.NamedRules
}

// NotUnderstood returns the parts of a NetworkPolicy that this version does not understand, each as a sentence. They are not among the
// Problems of the object.
func NotUnderstood(p *kube.Policy) []string {
	var r reader
	r.policy(p)
	return r.problems
}

// NotUnderstoodCluster returns the parts of a ClusterNetworkPolicy that this version does not understand, like NotUnderstood.
func NotUnderstoodCluster(p *kube.ClusterPolicy) []string {
	r := reader{cluster: true}
	r.clusterPolicy(p)
	return r.problems
}

// policy returns what takes effect of a NetworkPolicy. If its selector is not understood, it isolates more pods and allows nothing.
func (r *reader) policy(p *kube.Policy) *definition {
	d := &definition{ingress: p.GetIngress(), egress: p.GetEgress(),
		ingressRules: r.rules("ingress", p.GetIngressRules()), egressRules: r.rules("egress", p.GetEgressRules())}
	pods, understood := r.subject(p.GetPods())
	if d.pods = newSelector(pods); !understood {
		d.ingressRules, d.egressRules = nil, nil
	}
	return d
}

// clusterPolicy returns what takes effect of a ClusterNetworkPolicy, and its tier. If its selectors or its tier are not understood, it selects
// more pods, and only its rules that deny apply, in tier Admin.
func (r *reader) clusterPolicy(p *kube.ClusterPolicy) (kube.ClusterPolicy_Tier, *definition) {
	d := &definition{priority: p.GetPriority(), ingressRules: r.rules("ingress", p.GetIngressRules()), egressRules: r.rules("egress", p.GetEgressRules())}
	pods, understood := r.subject(p.GetPods())
	namespaces, also := r.subject(p.GetNamespaces())
	tier, known := p.GetTier(), p.GetTier() == kube.ClusterPolicy_ADMIN || p.GetTier() == kube.ClusterPolicy_BASELINE
	if !known {
		r.problems = append(r.problems, fmt.Sprintf("spec.tier: an agent does not support it; %s", r.closed()))
	}
	if !understood || !also || !known {
		tier, d.ingressRules, d.egressRules = kube.ClusterPolicy_ADMIN, denying(d.ingressRules), denying(d.egressRules)
	}
	d.pods, d.namespaces = newSelector(pods), newSelector(namespaces)
	d.ingress, d.egress = len(d.ingressRules) > 0, len(d.egressRules) > 0
	return tier, d
}

// subject returns a selector of the pods or namespaces to which a policy applies, without the expressions that are not understood.
func (r *reader) subject(s *kube.LabelSelector) (known *kube.LabelSelector, understood bool) {
	if !unknownSelector(s) {
		return s, true
	}
	r.problems = append(r.problems, "spec: the selector of the policy's pods has an operator that an agent does not support; the policy selects all pods "+
		"that the rest of the selector selects, and "+r.closed())
	return &kube.LabelSelector{MatchLabels: s.GetMatchLabels(), MatchExpressions: slices.DeleteFunc(slices.Clone(s.GetMatchExpressions()), unknownOperator)}, false
}

// closed describes the effect on a policy whose pods or tier are not understood.
func (r *reader) closed() string {
	if r.cluster {
		return "only its rules that deny apply, in tier Admin. " + update
	}
	return "it allows nothing. " + update
}

// update is the fix for a part of a later version.
const update = "Update the agent to the version of contiv-ksr"

func denying(list []*kube.PolicyRule) []*kube.PolicyRule {
	return slices.DeleteFunc(slices.Clone(list), func(r *kube.PolicyRule) bool { return actionOf(r.GetAction()) != model.Deny })
}

// rules returns the rules that take effect for the rules of one direction.
func (r *reader) rules(side string, list []*kube.PolicyRule) (out []*kube.PolicyRule) {
	for _, rule := range list {
		if !understood(rule) {
			rule = r.replace(side, rule)
		}
		if rule = r.fit(side, rule); rule != nil {
			out = append(out, rule)
		}
	}
	return out
}

// fit returns a rule, which may be nil, or the rule that takes effect instead if it makes too many rules.
func (r *reader) fit(side string, rule *kube.PolicyRule) *kube.PolicyRule {
	problem := r.named.Add(rule)
	if problem == "" {
		return rule
	}
	denies := rule.GetAction() != kube.PolicyRule_ALLOW
	r.problems = append(r.problems, fmt.Sprintf("spec.%s[%d]: %s; the rule %s", side, rule.GetIndex(), problem,
		map[bool]string{false: "allows nothing", true: "denies everything"}[denies]))
	if !denies {
		return nil
	}
	return deny(rule)
}

func deny(rule *kube.PolicyRule) *kube.PolicyRule {
	return &kube.PolicyRule{Index: rule.GetIndex(), Name: rule.GetName(), Action: kube.PolicyRule_DENY}
}

func understood(rule *kube.PolicyRule) bool {
	return !slices.ContainsFunc(rule.GetPeers(), unknownPeer) && !slices.ContainsFunc(rule.GetPorts(), unknownPort)
}

// replace returns the rule that takes effect instead of one that is not understood; nil if none does.
func (r *reader) replace(side string, rule *kube.PolicyRule) *kube.PolicyRule {
	peers, ports := slices.DeleteFunc(slices.Clone(rule.GetPeers()), unknownPeer), slices.DeleteFunc(slices.Clone(rule.GetPorts()), unknownPort)
	allows, effect := rule.GetAction() == kube.PolicyRule_ALLOW, "they allow nothing"
	switch {
	case !allows:
		effect = "the rule denies everything"
	case r.cluster:
		effect = "the rule accepts nothing"
	}
	note := func(what string, unknown, all int) {
		if unknown > 0 {
			r.problems = append(r.problems, fmt.Sprintf("spec.%s[%d]: %d of its %d %s are of a kind that an agent does not support; %s. %s",
				side, rule.GetIndex(), unknown, all, what, effect, update))
		}
	}
	note("peers", len(rule.GetPeers())-len(peers), len(rule.GetPeers()))
	note("ports", len(rule.GetPorts())-len(ports), len(rule.GetPorts()))
	switch {
	case !allows:
		return deny(rule)
	case r.cluster, len(peers) == 0 && len(rule.GetPeers()) > 0, len(ports) == 0 && len(rule.GetPorts()) > 0:
		return nil // an empty list would match everything
	}
	return &kube.PolicyRule{Index: rule.GetIndex(), Name: rule.GetName(), Action: rule.GetAction(), Peers: peers, Ports: ports}
}

func unknownPort(p *kube.PolicyPort) bool {
	_, known := protocolOf(p.GetProtocol())
	return !known
}

// unknownPeer reports whether this version does not understand a peer. An empty selector selects everything; a peer without selectors selects nothing.
func unknownPeer(p *kube.PolicyPeer) bool {
	switch {
	case p.GetIpBlock() != nil:
		return unknownNetwork(p.GetIpBlock().GetCidr()) || slices.ContainsFunc(p.GetIpBlock().GetExcept(), unknownNetwork)
	case p.GetNodes() == nil && p.GetPods() == nil && p.GetNamespaces() == nil:
		return true
	}
	return unknownSelector(p.GetNodes()) || unknownSelector(p.GetPods()) || unknownSelector(p.GetNamespaces())
}

func unknownNetwork(text string) bool {
	_, err := netip.ParsePrefix(text)
	return err != nil
}

func unknownSelector(s *kube.LabelSelector) bool {
	return slices.ContainsFunc(s.GetMatchExpressions(), unknownOperator)
}

func unknownOperator(e *kube.LabelExpression) bool {
	switch e.GetOperator() {
	case kube.LabelExpression_IN, kube.LabelExpression_NOT_IN, kube.LabelExpression_EXISTS, kube.LabelExpression_DOES_NOT_EXIST:
		return false
	}
	return true
}
