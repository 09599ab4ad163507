package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"

	"contiv.dev/vswitch/internal/kube/model"
)

// ConvertClusterPolicy converts a ClusterNetworkPolicy. Elements that are not understood are noted in Problems and fail closed, as
// the API requires for peers: a rule that accepts matches nothing, and one that denies or passes denies everything. A policy whose
// pods or tier are not understood is of tier Admin, selects more, and keeps only the rules that deny.
func ConvertClusterPolicy(p *npapi.ClusterNetworkPolicy) *model.ClusterPolicy {
	c := clusterPolicyConverter{out: &model.ClusterPolicy{Name: p.Name, Uid: string(p.UID)}}
	for i, r := range p.Spec.Ingress {
		peers := make([]npapi.ClusterNetworkPolicyEgressPeer, len(r.From))
		for i, from := range r.From {
			peers[i] = npapi.ClusterNetworkPolicyEgressPeer{Namespaces: from.Namespaces, Pods: from.Pods}
		}
		if rule := c.rule("spec.ingress", i, r.Name, r.Action, "from", peers, r.Protocols); rule != nil {
			c.out.IngressRules = append(c.out.IngressRules, rule)
		}
	}
	for i, r := range p.Spec.Egress {
		if rule := c.rule("spec.egress", i, r.Name, r.Action, "to", r.To, r.Protocols); rule != nil {
			c.out.EgressRules = append(c.out.EgressRules, rule)
		}
	}
	c.place(p.Spec.Tier, p.Spec.Priority)
	c.subject(&p.Spec.Subject)
	c.out.Problems = c.problems
	return c.out
}

// clusterPolicyConverter converts one policy.
type clusterPolicyConverter struct {
	complaints
	out *model.ClusterPolicy
}

const onlyDenies = "only the rules of the policy that deny apply, in tier Admin"

// place sets the tier and the priority of the policy.
func (c *clusterPolicyConverter) place(tier npapi.Tier, priority int32) {
	c.out.Priority = uint32(min(max(priority, 0), 1000))
	if priority != int32(c.out.Priority) {
		c.problem("spec.priority: %d is not in 0..1000; the policy has priority %d", priority, c.out.Priority)
	}
	switch tier {
	case npapi.AdminTier:
	case npapi.BaselineTier:
		c.out.Tier = model.ClusterPolicy_BASELINE
	default:
		c.problem("spec.tier: %q is not Admin or Baseline; %s", tier, onlyDenies)
		c.close()
	}
}

// close keeps only the rules that deny.
func (c *clusterPolicyConverter) close() {
	c.out.Tier = model.ClusterPolicy_ADMIN
	c.out.IngressRules, c.out.EgressRules = denying(c.out.IngressRules), denying(c.out.EgressRules)
}

func denying(list []*model.PolicyRule) (out []*model.PolicyRule) {
	for _, r := range list {
		if r.Action == model.PolicyRule_DENY {
			out = append(out, r)
		}
	}
	return out
}

func (c *clusterPolicyConverter) subject(s *npapi.ClusterNetworkPolicySubject) {
	namespaces, pods := &metav1.LabelSelector{}, &metav1.LabelSelector{}
	if (s.Namespaces == nil) == (s.Pods == nil) {
		c.problem("spec.subject: needs either namespaces or pods, or has one that this version does not support; the policy selects all pods, and %s",
			onlyDenies)
		c.close()
		c.out.Namespaces, c.out.Pods = c.selector("", namespaces), c.selector("", pods)
		return
	}
	where, understood := "spec.subject.namespaces", true
	effect := "the policy selects all pods that the rest of the selector selects, and " + onlyDenies
	if s.Pods != nil {
		where = "spec.subject.pods.namespaceSelector"
		pods, understood = c.known("spec.subject.pods.podSelector", &s.Pods.PodSelector, effect)
		namespaces = &s.Pods.NamespaceSelector
	} else {
		namespaces = s.Namespaces
	}
	namespaces, also := c.known(where, namespaces, effect)
	if !understood || !also {
		c.close()
	}
	c.out.Namespaces, c.out.Pods = c.selector(where, namespaces), c.selector("spec.subject.pods.podSelector", pods)
}

// rule converts a rule; nil if it has no effect.
func (c *clusterPolicyConverter) rule(list string, index int, name string, action npapi.ClusterNetworkPolicyRuleAction, side string,
	peers []npapi.ClusterNetworkPolicyEgressPeer, protocols []npapi.ClusterNetworkPolicyProtocol) *model.PolicyRule {
	where := fmt.Sprintf("%s[%d]", list, index)
	rule := &model.PolicyRule{Index: uint32(index), Name: name}
	accepts := action == npapi.ClusterNetworkPolicyRuleActionAccept
	switch action {
	case npapi.ClusterNetworkPolicyRuleActionAccept:
	case npapi.ClusterNetworkPolicyRuleActionPass:
		rule.Action = model.PolicyRule_PASS
	case npapi.ClusterNetworkPolicyRuleActionDeny:
		rule.Action = model.PolicyRule_DENY
	default:
		c.problem("%s.action: %q is not Accept, Deny or Pass; the rule denies", where, action)
		rule.Action = model.PolicyRule_DENY
	}
	understood := c.peers(rule, where+"."+side, peers, accepts)
	understood = c.protocols(rule, where+".protocols", protocols, accepts) && understood
	if understood {
		if problem := c.named.Add(rule); problem != "" {
			c.problem("%s: %s; %s", where, problem, effect(accepts))
			understood = false
		}
	}
	switch {
	case !understood && accepts:
		return nil
	case !understood:
		return &model.PolicyRule{Index: rule.Index, Name: name, Action: model.PolicyRule_DENY}
	case len(rule.Peers) == 0: // the rule has only domain names
		return nil
	}
	return rule
}

// effect describes the consequence for a rule that is not understood.
func effect(accepts bool) string {
	if accepts {
		return "the rule accepts nothing"
	}
	return "the rule denies everything"
}

// peers converts the peers of a rule, and reports whether all are understood.
func (c *clusterPolicyConverter) peers(rule *model.PolicyRule, where string, list []npapi.ClusterNetworkPolicyEgressPeer, accepts bool) bool {
	understood := len(list) > 0
	if !understood {
		c.problem("%s: has no peers; %s", where, effect(accepts))
	}
	for i := range list {
		understood = c.peer(rule, fmt.Sprintf("%s[%d]", where, i), &list[i], accepts) && understood
	}
	return understood
}

// peer adds a peer to a rule, and reports whether it is understood. Domain names match nothing.
func (c *clusterPolicyConverter) peer(rule *model.PolicyRule, where string, p *npapi.ClusterNetworkPolicyEgressPeer, accepts bool) bool {
	before, fields := len(c.problems), 0
	peer := &model.PolicyPeer{}
	if p.Namespaces != nil {
		fields++
		peer.Namespaces, peer.Pods = c.peerSelector(where+".namespaces", p.Namespaces, accepts), &model.LabelSelector{}
	}
	if p.Pods != nil {
		fields++
		peer.Namespaces = c.peerSelector(where+".pods.namespaceSelector", &p.Pods.NamespaceSelector, accepts)
		peer.Pods = c.peerSelector(where+".pods.podSelector", &p.Pods.PodSelector, accepts)
	}
	if p.Nodes != nil {
		fields++
		peer.Nodes = c.peerSelector(where+".nodes", p.Nodes, accepts)
	}
	if len(p.Networks) > 0 {
		fields++
		c.networks(rule, where+".networks", p.Networks, accepts)
	}
	domains := len(p.DomainNames) > 0
	if domains {
		fields++
	}
	switch {
	case fields != 1:
		c.problem("%s: needs exactly one of namespaces, pods, nodes, networks and domainNames, or has one that this version does not support; %s",
			where, effect(accepts))
	case domains && accepts:
		c.problem("%s.domainNames: names of domains are not supported; they match nothing", where)
		return true
	case domains:
		c.problem("%s.domainNames: names of domains are not supported, and only Accept may have them; %s", where, effect(accepts))
	case len(p.Networks) == 0:
		rule.Peers = append(rule.Peers, peer)
	}
	return len(c.problems) == before
}

// peerSelector converts a selector of peers. It leaves out the expressions that are not understood: then the whole rule does not
// count.
func (c *clusterPolicyConverter) peerSelector(where string, s *metav1.LabelSelector, accepts bool) *model.LabelSelector {
	known, _ := c.known(where, s, effect(accepts))
	return c.selector(where, known)
}

func (c *clusterPolicyConverter) networks(rule *model.PolicyRule, where string, list []npapi.CIDR, accepts bool) {
	for i, text := range list {
		network, ok := parsePrefix(string(text))
		if !ok {
			c.problem("%s[%d]: %q is not a network; %s", where, i, text, effect(accepts))
			continue
		}
		rule.Peers = append(rule.Peers, &model.PolicyPeer{IpBlock: &model.IPBlock{Cidr: network.String()}})
	}
}

// protocols converts the protocols of a rule, and reports whether all are understood.
func (c *clusterPolicyConverter) protocols(rule *model.PolicyRule, where string, list []npapi.ClusterNetworkPolicyProtocol, accepts bool) bool {
	understood := true
	for i := range list {
		understood = c.protocol(rule, fmt.Sprintf("%s[%d]", where, i), &list[i], accepts) && understood
	}
	return understood
}

func (c *clusterPolicyConverter) protocol(rule *model.PolicyRule, where string, p *npapi.ClusterNetworkPolicyProtocol, accepts bool) bool {
	fields, understood := 0, true
	add := func(protocol model.Protocol, field string, port *npapi.Port) {
		fields++
		out, ok := c.ports(where+field, port, accepts)
		out.Protocol = protocol
		rule.Ports, understood = append(rule.Ports, out), understood && ok
	}
	if p.TCP != nil {
		add(model.Protocol_TCP, ".tcp.destinationPort", p.TCP.DestinationPort)
	}
	if p.UDP != nil {
		add(model.Protocol_UDP, ".udp.destinationPort", p.UDP.DestinationPort)
	}
	if p.SCTP != nil {
		add(model.Protocol_SCTP, ".sctp.destinationPort", p.SCTP.DestinationPort)
	}
	if p.DestinationNamedPort != "" { // the named port determines the protocol as well
		fields++
		for _, protocol := range []model.Protocol{model.Protocol_TCP, model.Protocol_UDP, model.Protocol_SCTP} {
			rule.Ports = append(rule.Ports, &model.PolicyPort{Protocol: protocol, Name: p.DestinationNamedPort})
		}
	}
	if fields != 1 {
		c.problem("%s: needs exactly one of tcp, udp, sctp and destinationNamedPort, or has one that this version does not support; %s",
			where, effect(accepts))
		return false
	}
	return understood
}

// ports converts the port or range of a protocol; nil means all ports.
func (c *clusterPolicyConverter) ports(where string, p *npapi.Port, accepts bool) (*model.PolicyPort, bool) {
	if p == nil {
		return &model.PolicyPort{}, true
	}
	first, last := p.Number, p.Number
	if p.Range != nil {
		first, last = p.Range.Start, p.Range.End
	}
	if p.Range != nil && p.Number != 0 || first <= 0 || last < first || last > 65535 {
		c.problem("%s: needs either a number in 1..65535 or a range in it; %s", where, effect(accepts))
		return &model.PolicyPort{}, false
	}
	out := &model.PolicyPort{Port: uint32(first)}
	if p.Range != nil {
		out.EndPort = uint32(last)
	}
	return out, true
}
