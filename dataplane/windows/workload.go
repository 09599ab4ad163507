package windataplane

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/driver/policyname"
	"contiv.dev/vswitch/dataplane/proto"
)

// workload is a workload endpoint from the messages.
type workload struct {
	id     epstate.WorkloadID
	active bool
	addrs  []netip.Addr // identify the endpoint in HNS
	// in and out are the stages for packets to it and from it.
	in, out []stage
	// fault is why it cannot be programmed; it is closed then.
	fault error
}

func newWorkload(msg *proto.WorkloadEndpointUpdate, exempt nodeExempt) *workload {
	ep := msg.GetEndpoint()
	w := &workload{id: epstate.WorkloadIDOf(msg.GetId()), active: ep.GetState() == "active",
		in: stagesOf(ep, true), out: exempt.in(stagesOf(ep, false))}
	var errs []error
	for i, texts := range [][]string{ep.GetIpv4Nets(), ep.GetIpv6Nets()} {
		for _, text := range texts {
			p, err := proto.ParseNet(text)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("net %q: %w", text, err))
			case !p.IsSingleIP() || (familyOf(p) == 4) != (i == 0):
				errs = append(errs, fmt.Errorf("net %q is not one address of its family", text))
			default:
				w.addrs = append(w.addrs, p.Addr())
			}
		}
	}
	if len(w.addrs) == 0 {
		errs = append(errs, errors.New("the endpoint has no address, by which HNS's endpoint is found"))
	}
	if len(ep.GetIpv4Nat())+len(ep.GetIpv6Nat()) > 0 {
		errs = append(errs, errors.New("floating IPs are not available on Windows"))
	}
	w.fault = errors.Join(errs...)
	return w
}

// stagesOf returns the stages of a direction in order: tiers, then profiles.
func stagesOf(ep *proto.WorkloadEndpoint, inbound bool) []stage {
	var stages []stage
	for _, tier := range ep.GetTiers() {
		names := tier.GetEgressPolicies()
		if inbound {
			names = tier.GetIngressPolicies()
		}
		for i, name := range names {
			stages = append(stages, stage{key: listKey{Tier: cmp.Or(tier.GetName(), policyname.DefaultTier), Name: name, Inbound: inbound},
				last: i == len(names)-1, passAtEnd: strings.EqualFold(tier.GetDefaultAction(), "pass")})
		}
	}
	for _, name := range ep.GetProfileIds() {
		stages = append(stages, stage{key: listKey{Profile: true, Name: name, Inbound: inbound}, last: true, passAtEnd: true})
	}
	return stages
}

// nodeExempt holds Config.NodeExempt and Config.TiersForNode.
type nodeExempt struct {
	on    bool
	tiers []string
}

// in inserts the exemption before the first policy that may not decide about packets to the node. Profiles alone are not policies.
func (n nodeExempt) in(stages []stage) []stage {
	governed := len(stages) == 0 || !stages[0].key.Profile
	if !n.on || !governed {
		return stages
	}
	i := slices.IndexFunc(stages, func(s stage) bool { return s.key.Profile || !slices.Contains(n.tiers, s.key.Tier) })
	if i < 0 {
		i = len(stages)
	}
	return slices.Insert(stages, i, stage{toNode: true})
}

// uses reports whether a changed list applies to the workload's packets.
func (w *workload) uses(changed map[listKey]bool) bool {
	for _, stages := range [][]stage{w.in, w.out} {
		for _, s := range stages {
			if changed[s.key] {
				return true
			}
		}
	}
	return false
}
