package compiler

import (
	"cmp"
	"fmt"
	"slices"

	kube "contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/policy/model"
)

// builder compiles the rules of one policy.
type builder struct {
	*Compiler
	namespace string // of the policy; empty: none
	subject   *definition
	sets      []*set // to which the rules refer, each with one reference
}

func (b *builder) hold(s *set) model.SetID {
	b.sets = append(b.sets, s)
	return s.ID
}

// policy compiles the rules of a policy.
func (b *builder) policy(id model.PolicyID) model.Policy {
	out := model.Policy{ID: id}
	for _, r := range b.subject.ingressRules {
		out.Ingress = b.rules(out.Ingress, r, true, origin("ingress", r))
	}
	for _, r := range b.subject.egressRules {
		out.Egress = b.rules(out.Egress, r, false, origin("egress", r))
	}
	return out
}

func origin(side string, r *kube.PolicyRule) string {
	text := fmt.Sprintf("%s[%d]", side, r.GetIndex())
	if r.GetName() != "" {
		text += " " + quote(r.GetName())
	}
	return text
}

// peer is one of the peers of a rule. The zero value stands for all peers.
type peer struct {
	address model.SetID
	// The pods whose named ports are used. Blocks and nodes have none: their named ports are searched among all pods.
	namespaces, pods *selector
}

func (b *builder) rules(out []model.Rule, r *kube.PolicyRule, ingress bool, origin string) []model.Rule {
	m := match{ingress: ingress, rule: model.Rule{Action: actionOf(r.GetAction()), Origin: origin}}
	switch m.rule.Action {
	case model.Deny:
		m.peerClass, m.portClass = anyAddress, anyAddress
	case model.Pass: // a rule does not pass an address that several pods claim, and later rules of the tier must not allow it
		out = b.match(out, r, m)
		m.rule.Action, m.rule.Origin = model.Deny, origin+", address of several pods"
		m.peerClass, m.portClass = shared, anyAddress
		out = b.match(out, r, m)
		m.peerClass, m.portClass = unshared, shared
	}
	return b.match(out, r, m)
}

// match describes the rules of the output for one rule of a policy.
type match struct {
	ingress              bool
	rule                 model.Rule   // its action and its origin
	peerClass, portClass addressClass // which addresses of peers, and of pods with a named port, match
}

// match adds the rules of the output for one rule. Those that can only match shared addresses, but have none, are left out.
func (b *builder) match(out []model.Rule, r *kube.PolicyRule, m match) []model.Rule {
	ports := portsOf(r.GetPorts())
	for _, p := range b.peers(r.GetPeers(), m.peerClass) {
		if m.peerClass == shared && p.pods == nil {
			continue
		}
		rule := m.rule
		if m.ingress {
			rule.Source = p.address
		} else {
			rule.Dest = p.address
		}
		if m.portClass != shared {
			if len(r.GetPorts()) == 0 {
				out = append(out, rule)
			}
			for _, n := range ports.numbers {
				rule.Protocol, rule.Ports = n.protocol, n.ranges
				out = append(out, rule)
			}
			rule.Ports = nil
		}
		for _, n := range ports.names {
			rule.Protocol, rule.DestPort = n.protocol, b.namedPortSet(p, m.ingress, n, m.portClass)
			out = append(out, rule)
		}
	}
	return out
}

// actionOf returns the action of a rule; unknown actions deny.
func actionOf(a kube.PolicyRule_Action) model.Action {
	switch a {
	case kube.PolicyRule_ALLOW:
		return model.Allow
	case kube.PolicyRule_PASS:
		return model.Pass
	}
	return model.Deny
}

// namedPortSet returns the set of a named port. It depends on the receiving pods: for ingress those of this node that the policy selects.
func (b *builder) namedPortSet(p peer, ingress bool, n namedPort, class addressClass) model.SetID {
	everything := newSelector(nil)
	switch {
	case ingress:
		return b.hold(b.ports(b.locals, b.namespace, b.subject.namespaces, b.subject.pods, n.name, n.protocol, class))
	case p.pods != nil:
		return b.hold(b.ports(b.Compiler.peers, b.namespace, p.namespaces, p.pods, n.name, n.protocol, class))
	}
	return b.hold(b.ports(b.Compiler.peers, "", everything, everything, n.name, n.protocol, class))
}

// peers returns the peers of a rule with their sets. All blocks are in one set. An empty list stands for all peers.
func (b *builder) peers(list []*kube.PolicyPeer, class addressClass) []peer {
	if len(list) == 0 {
		return []peer{{}}
	}
	var out []peer
	var blocks []*kube.IPBlock
	seen := map[model.SetID]bool{}
	for _, p := range list {
		if p.GetIpBlock() != nil {
			blocks = append(blocks, p.GetIpBlock())
			continue
		}
		if p.GetNodes() != nil {
			out = append(out, peer{address: b.hold(b.nodesWith(newSelector(p.GetNodes())))})
			continue
		}
		q := peer{pods: newSelector(p.GetPods())}
		if p.GetNamespaces() != nil {
			q.namespaces = newSelector(p.GetNamespaces())
		}
		q.address = b.hold(b.addresses(b.Compiler.peers, b.namespace, q.namespaces, q.pods, class))
		if !seen[q.address] {
			seen[q.address] = true
			out = append(out, q)
		}
	}
	if s := b.blocks(blocks); s != nil {
		out = append(out, peer{address: b.hold(s)})
	}
	return out
}

// rulePorts holds the ports of a rule.
type rulePorts struct {
	numbers []numberedPorts
	names   []namedPort
}

type numberedPorts struct {
	protocol model.Protocol
	ranges   []model.PortRange // none: all ports
}

type namedPort struct {
	name     string
	protocol model.Protocol
}

func portsOf(list []*kube.PolicyPort) (out rulePorts) {
	seen := map[namedPort]bool{}
	for _, protocol := range []model.Protocol{model.TCP, model.UDP, model.SCTP} {
		var ranges []model.PortRange
		all := false
		for _, p := range list {
			switch own, known := protocolOf(p.GetProtocol()); {
			case !known || own != protocol:
			case p.GetName() != "":
				if n := (namedPort{p.GetName(), protocol}); !seen[n] {
					seen[n] = true
					out.names = append(out.names, n)
				}
			case p.GetPort() == 0:
				all = true
			default:
				ranges = append(ranges, model.PortRange{First: uint16(p.GetPort()), Last: uint16(max(p.GetPort(), p.GetEndPort()))})
			}
		}
		switch {
		case all:
			out.numbers = append(out.numbers, numberedPorts{protocol: protocol})
		case len(ranges) > 0:
			out.numbers = append(out.numbers, numberedPorts{protocol, merge(ranges)})
		}
	}
	return out
}

// merge sorts ranges and joins adjacent and overlapping ones.
func merge(list []model.PortRange) []model.PortRange {
	slices.SortFunc(list, func(a, b model.PortRange) int { return cmp.Compare(a.First, b.First) })
	out := list[:1]
	for _, r := range list[1:] {
		if last := &out[len(out)-1]; uint32(r.First) <= uint32(last.Last)+1 {
			last.Last = max(last.Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}
