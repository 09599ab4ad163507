package compiler

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
	"contiv.dev/vswitch/plugins/policy/verdict"
)

// cluster is a set of objects, and the oracle: allowed implements the definitions of NetworkPolicy and ClusterNetworkPolicy literally, with
// loops over all objects. It shares no code with the compiler.
type cluster struct {
	namespaces  map[string]*kube.Namespace
	nodes       map[string]*kube.Node
	pods        map[model.EndpointID]*kube.Pod
	policies    map[model.PolicyID]*kube.Policy
	clusterwide map[string]*kube.ClusterPolicy
	locals      map[model.EndpointID]Local
}

func newCluster() *cluster {
	return &cluster{map[string]*kube.Namespace{}, map[string]*kube.Node{}, map[model.EndpointID]*kube.Pod{},
		map[model.PolicyID]*kube.Policy{}, map[string]*kube.ClusterPolicy{}, map[model.EndpointID]Local{}}
}

// compile returns the output of a new compiler.
func (c *cluster) compile() (*verdict.State, error) {
	k := New()
	for name, n := range c.namespaces {
		k.SetNamespace(name, n)
	}
	for name, n := range c.nodes {
		k.SetNode(name, n)
	}
	for id, p := range c.pods {
		k.SetPod(id, p)
	}
	for name, p := range c.clusterwide {
		k.SetClusterPolicy(name, p)
	}
	for id, p := range c.policies {
		k.SetPolicy(id.Namespace, id.Name, p)
	}
	for _, l := range c.locals {
		k.SetEndpoint(l)
	}
	s := verdict.NewState()
	return s, s.Apply(k.Flush())
}

// allowed reports whether the oracle lets a packet through.
func (c *cluster) allowed(from, to model.EndpointID, p verdict.Packet) bool {
	if from == to && p.Source == p.Dest {
		return true
	}
	return c.direction(from, p, false) && c.direction(to, p, true)
}

func (c *cluster) direction(id model.EndpointID, p verdict.Packet, ingress bool) bool {
	local, is := c.locals[id]
	if !is {
		return true
	}
	own := c.pods[id]
	if own == nil || own.HostNetwork || local.UID != "" && own.Uid != "" && local.UID != own.Uid {
		return p.OwnNode
	}
	if ns := c.namespaces[id.Namespace]; ns == nil || len(ns.Problems) > 0 { // unknown labels
		return p.OwnNode
	}
	if ingress && p.OwnNode {
		return true
	}
	switch c.clusterTier(kube.ClusterPolicy_ADMIN, own, p, ingress) {
	case model.Allow:
		return true
	case model.Deny:
		return false
	}
	isolated := false
	for _, pol := range c.policies {
		pol = effective(pol)
		isolates, rules := pol.Egress, pol.EgressRules
		if ingress {
			isolates, rules = pol.Ingress, pol.IngressRules
		}
		if !isolates || pol.Namespace != own.Namespace || !selects(pol.Pods, own.Labels) {
			continue
		}
		if isolated = true; p.OwnNode {
			return true
		}
		tooMany := surplus(pol.IngressRules, pol.EgressRules)
		for _, r := range rules {
			if tooMany[r] {
				continue
			}
			far := p.Dest
			if ingress {
				far = p.Source
			}
			if c.anyPeer(pol.Namespace, r.Peers, far, c.podAt(far)) && c.anyPort(r.Ports, p, c.podAt(p.Dest)) {
				return true
			}
		}
	}
	return !isolated && c.clusterTier(kube.ClusterPolicy_BASELINE, own, p, ingress) != model.Deny
}

// clusterTier returns the action of the ClusterNetworkPolicies of a tier.
func (c *cluster) clusterTier(tier kube.ClusterPolicy_Tier, own *kube.Pod, p verdict.Packet, ingress bool) model.Action {
	names := slices.SortedFunc(maps.Keys(c.clusterwide), func(a, b string) int {
		return cmp.Or(int(c.clusterwide[a].Priority)-int(c.clusterwide[b].Priority), strings.Compare(a, b))
	})
	for _, name := range names {
		pol := effectiveCluster(c.clusterwide[name])
		if pol.Tier != tier || !selects(pol.Pods, own.Labels) || !c.namespaceSelected(pol.Namespaces, own.Namespace) {
			continue
		}
		rules := pol.EgressRules
		if ingress {
			rules = pol.IngressRules
		}
		tooMany := surplus(pol.IngressRules, pol.EgressRules)
		for _, r := range rules {
			if strange := foreign(r) || tooMany[r]; strange && r.Action == kube.PolicyRule_ALLOW {
				continue
			} else if strange {
				return model.Deny
			}
			if r.Action == kube.PolicyRule_PASS && !c.clusterRule(pol, r, p, ingress, false) && c.clusterRule(pol, r, p, ingress, true) {
				return model.Deny
			}
			if c.clusterRule(pol, r, p, ingress, r.Action == kube.PolicyRule_DENY) {
				return map[kube.PolicyRule_Action]model.Action{kube.PolicyRule_ALLOW: model.Allow, kube.PolicyRule_DENY: model.Deny,
					kube.PolicyRule_PASS: model.Pass}[r.Action]
			}
		}
	}
	return model.Pass
}

// clusterRule reports whether a rule matches a packet. If several pods have an address, it matches the address only with several, and then if it does for
// one of them.
func (c *cluster) clusterRule(pol *kube.ClusterPolicy, r *kube.PolicyRule, p verdict.Packet, ingress, several bool) bool {
	pods := func(a netip.Addr) []*kube.Pod {
		if several {
			return append(c.podsAt(a), nil) // nil: for blocks and nodes
		}
		return []*kube.Pod{c.podAt(a)}
	}
	if !ingress {
		return slices.ContainsFunc(pods(p.Dest), func(to *kube.Pod) bool { return c.anyPeer("", r.Peers, p.Dest, to) && c.anyPort(r.Ports, p, to) })
	}
	return slices.ContainsFunc(pods(p.Source), func(from *kube.Pod) bool { return c.anyPeer("", r.Peers, p.Source, from) }) &&
		slices.ContainsFunc(pods(p.Dest), func(to *kube.Pod) bool {
			subject := to == nil || c.isLocal(to) && selects(pol.Pods, to.Labels) && c.namespaceSelected(pol.Namespaces, to.Namespace)
			return subject && c.anyPort(r.Ports, p, to)
		})
}

// isLocal reports whether this node has connected a pod.
func (c *cluster) isLocal(pod *kube.Pod) bool {
	l, is := c.locals[model.EndpointID{Namespace: pod.Namespace, Name: pod.Name}]
	return is && (l.UID == "" || pod.Uid == "" || l.UID == pod.Uid)
}

func (c *cluster) namespaceSelected(s *kube.LabelSelector, namespace string) bool {
	everything := len(s.GetMatchLabels())+len(s.GetMatchExpressions()) == 0
	ns := c.namespaces[namespace]
	return everything || ns != nil && len(ns.Problems) == 0 && selects(s, ns.Labels)
}

// podAt returns the pod that has an address; nil if no pod has it, or more than one.
func (c *cluster) podAt(a netip.Addr) *kube.Pod {
	if found := c.podsAt(a); len(found) == 1 {
		return found[0]
	}
	return nil
}

func (c *cluster) podsAt(a netip.Addr) (found []*kube.Pod) {
	for id, pod := range c.pods {
		if pod.HostNetwork {
			continue
		}
		ips := pod.Ips
		if l, is := c.locals[id]; is && len(l.Addresses) > 0 && (l.UID == "" || pod.Uid == "" || l.UID == pod.Uid) {
			ips = nil
			for _, x := range l.Addresses {
				ips = append(ips, x.String())
			}
		}
		if slices.Contains(ips, a.String()) {
			found = append(found, pod)
		}
	}
	return found
}

// anyPeer reports whether an address is one of the peers, as the address of pod, which may be nil.
func (c *cluster) anyPeer(namespace string, peers []*kube.PolicyPeer, far netip.Addr, pod *kube.Pod) bool {
	for _, peer := range peers {
		if foreignPeer(peer) {
			continue
		}
		if b := peer.IpBlock; b != nil {
			inside := netip.MustParsePrefix(b.Cidr).Contains(far)
			for _, e := range b.Except {
				inside = inside && !netip.MustParsePrefix(e).Contains(far)
			}
			if inside {
				return true
			}
			continue
		}
		if peer.Nodes != nil {
			for _, n := range c.nodes {
				if selects(peer.Nodes, n.Labels) && slices.Contains(n.Addresses, far.String()) {
					return true
				}
			}
			continue
		}
		if pod == nil || peer.Pods != nil && !selects(peer.Pods, pod.Labels) {
			continue
		}
		if peer.Namespaces == nil {
			if pod.Namespace == namespace {
				return true
			}
			continue
		}
		if c.namespaceSelected(peer.Namespaces, pod.Namespace) {
			return true
		}
	}
	return len(peers) == 0
}

func (c *cluster) anyPort(ports []*kube.PolicyPort, p verdict.Packet, to *kube.Pod) bool {
	for _, port := range ports {
		if number(port.Protocol) != p.Protocol {
			continue
		}
		switch {
		case port.Name != "":
			for _, cp := range to.GetPorts() {
				if cp.Name == port.Name && cp.Protocol == port.Protocol && cp.ContainerPort == uint32(p.Port) {
					return true
				}
			}
		case port.Port == 0, port.Port == uint32(p.Port), port.Port < uint32(p.Port) && uint32(p.Port) <= port.EndPort:
			return true
		}
	}
	return len(ports) == 0
}

// effective returns a policy without the expressions of its selector that are of a later version; then it has no rules.
func effective(p *kube.Policy) *kube.Policy {
	pods, all := present(p.Pods)
	if all {
		return p
	}
	return &kube.Policy{Namespace: p.Namespace, Name: p.Name, Pods: pods, Ingress: p.Ingress, Egress: p.Egress}
}

// effectiveCluster is like effective; if the selectors or the tier are of a later version, the policy is in tier Admin and only denies.
func effectiveCluster(p *kube.ClusterPolicy) *kube.ClusterPolicy {
	pods, all := present(p.Pods)
	namespaces, also := present(p.Namespaces)
	if all && also && p.Tier <= kube.ClusterPolicy_BASELINE {
		return p
	}
	out := &kube.ClusterPolicy{Name: p.Name, Priority: p.Priority, Pods: pods, Namespaces: namespaces}
	tooMany := surplus(p.IngressRules, p.EgressRules)
	denies := func(list []*kube.PolicyRule) (out []*kube.PolicyRule) {
		for _, r := range list {
			switch {
			case r.Action != kube.PolicyRule_ALLOW && r.Action != kube.PolicyRule_PASS: // an action of a later version denies, too
				out = append(out, r)
			case r.Action == kube.PolicyRule_PASS && (foreign(r) || tooMany[r]):
				out = append(out, &kube.PolicyRule{Action: kube.PolicyRule_DENY})
			}
		}
		return out
	}
	out.IngressRules, out.EgressRules = denies(p.IngressRules), denies(p.EgressRules)
	return out
}

// present returns the part of a selector that this version has, and whether that is all.
func present(s *kube.LabelSelector) (known *kube.LabelSelector, all bool) {
	known = &kube.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for _, e := range s.GetMatchExpressions() {
		if e.Operator <= kube.LabelExpression_DOES_NOT_EXIST {
			known.MatchExpressions = append(known.MatchExpressions, e)
		}
	}
	return known, len(known.MatchExpressions) == len(s.GetMatchExpressions())
}

// surplus returns the rules whose peers and named ports make more pairs than the policy has room for: 16384 in all rules together.
func surplus(lists ...[]*kube.PolicyRule) map[*kube.PolicyRule]bool {
	var found map[*kube.PolicyRule]bool
	used := 0
	for _, r := range slices.Concat(lists...) {
		pairs := 0
		for _, port := range r.Ports {
			if port.Name != "" && len(r.Peers) == 0 {
				pairs++
			} else if port.Name != "" {
				pairs += len(r.Peers)
			}
		}
		if r.Action == kube.PolicyRule_PASS {
			pairs = 3 * pairs
		}
		if used+pairs <= 16384 {
			used += pairs
			continue
		}
		if found == nil {
			found = map[*kube.PolicyRule]bool{}
		}
		found[r] = true
	}
	return found
}

// foreign reports whether a rule has a part of a later version.
func foreign(r *kube.PolicyRule) bool {
	return slices.ContainsFunc(r.Peers, foreignPeer) || slices.ContainsFunc(r.Ports, func(p *kube.PolicyPort) bool { return number(p.Protocol) == 0 })
}

func foreignPeer(p *kube.PolicyPeer) bool {
	for _, s := range []*kube.LabelSelector{p.Pods, p.Namespaces, p.Nodes} {
		for _, e := range s.GetMatchExpressions() {
			if e.Operator > kube.LabelExpression_DOES_NOT_EXIST {
				return true
			}
		}
	}
	return p.IpBlock.GetCidr() == "" && p.Nodes == nil && p.Pods == nil && p.Namespaces == nil
}

func number(p kube.Protocol) model.Protocol {
	return map[kube.Protocol]model.Protocol{kube.Protocol_TCP: 6, kube.Protocol_UDP: 17, kube.Protocol_SCTP: 132}[p]
}

func selects(s *kube.LabelSelector, labels map[string]string) bool {
	for k, v := range s.GetMatchLabels() {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	for _, e := range s.GetMatchExpressions() {
		have, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, have)
		holds := map[kube.LabelExpression_Operator]bool{
			kube.LabelExpression_IN: in, kube.LabelExpression_NOT_IN: !in, kube.LabelExpression_EXISTS: ok,
			kube.LabelExpression_DOES_NOT_EXIST: !ok,
		}
		if !holds[e.Operator] {
			return false
		}
	}
	return true
}
