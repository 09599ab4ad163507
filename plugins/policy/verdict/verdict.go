package verdict

import (
	"net/netip"
	"slices"

	"contiv.dev/vswitch/internal/ipaddr"
	"contiv.dev/vswitch/plugins/policy/model"
)

// Packet is the first packet of a connection.
type Packet struct {
	Source, Dest netip.Addr
	Protocol     model.Protocol
	Port         uint16 // the destination port; 0 if the protocol has none
	// OwnNode is true if the other end is the pod's own node.
	OwnNode bool
}

// Compiled gives access to the compiled policies that a packet is evaluated with.
type Compiled interface {
	// Policy returns a policy; the second result is false if it does not exist.
	Policy(id model.PolicyID) (model.Policy, bool)
	// Contains reports whether a set has a member that covers m: its network contains that of m, and its protocol and port are equal.
	Contains(id model.SetID, m model.Member) bool
}

// Verdict is a decision with its origin.
type Verdict struct {
	Action model.Action
	// Tier is the tier that decided; empty if the direction's default decided, or if the packet is allowed without a rule.
	Tier string
	// Policy and Rule (its origin) have decided; both are zero if a default has decided.
	Policy model.PolicyID
	Rule   string
}

// Evaluate decides on a packet in one direction of an endpoint.
func Evaluate(c Compiled, d model.Direction, ingress bool, p Packet) Verdict {
	if p.OwnNode && ingress {
		return Verdict{Action: model.Allow}
	}
	for _, t := range d.Tiers {
		if p.OwnNode && t.AllowsNode {
			return Verdict{Action: model.Allow, Tier: t.Name}
		}
		v := evaluateTier(c, t, ingress, p)
		if v.Action != model.Pass {
			return v
		}
	}
	if p.OwnNode {
		return Verdict{Action: model.Allow}
	}
	return Verdict{Action: d.Default}
}

func evaluateTier(c Compiled, t model.Tier, ingress bool, p Packet) Verdict {
	for _, id := range t.Policies {
		policy, known := c.Policy(id)
		if !known {
			return Verdict{Action: model.Deny, Tier: t.Name, Policy: id}
		}
		rules := policy.Egress
		if ingress {
			rules = policy.Ingress
		}
		for i := range rules {
			if matches(c, &rules[i], p) {
				return Verdict{Action: rules[i].Action, Tier: t.Name, Policy: id, Rule: rules[i].Origin}
			}
		}
	}
	return Verdict{Action: t.Default, Tier: t.Name}
}

// matches reports whether a rule matches a packet.
func matches(c Compiled, r *model.Rule, p Packet) bool {
	switch {
	case r.Protocol != model.AnyProtocol && r.Protocol != p.Protocol:
	case len(r.Ports) > 0 && !slices.ContainsFunc(r.Ports, func(x model.PortRange) bool { return x.First <= p.Port && p.Port <= x.Last }):
	case r.Source != "" && !c.Contains(r.Source, model.Member{Net: ipaddr.HostPrefix(p.Source)}):
	case r.Dest != "" && !c.Contains(r.Dest, model.Member{Net: ipaddr.HostPrefix(p.Dest)}):
	case r.DestPort != "" && !c.Contains(r.DestPort, model.Member{Net: ipaddr.HostPrefix(p.Dest), Protocol: p.Protocol, Port: p.Port}):
	default:
		return true
	}
	return false
}
