package windataplane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// oracle decides about packets directly from the messages: rule by rule, without boxes and lists of HNS.
type oracle struct {
	policies map[string][]*proto.Rule
	sets     map[string][]netip.Prefix
}

func (o *oracle) allowed(ep *proto.WorkloadEndpoint, p hnsmem.Packet) bool {
	for _, tier := range ep.GetTiers() {
		if len(tier.GetIngressPolicies()) == 0 {
			continue
		}
		verdict := ""
		for _, name := range tier.GetIngressPolicies() {
			if verdict = o.walk(o.policies[name], p); verdict != "" {
				break
			}
		}
		switch {
		case verdict == "allow":
			return true
		case verdict == "deny", verdict == "" && tier.GetDefaultAction() != "Pass":
			return false
		}
	}
	for _, name := range ep.GetProfileIds() {
		if v := o.walk(o.policies[name], p); v == "allow" || v == "deny" {
			return v == "allow"
		}
	}
	return false
}

func (o *oracle) walk(list []*proto.Rule, p hnsmem.Packet) string {
	for _, r := range list {
		if o.matches(r, p) {
			return r.GetAction()
		}
	}
	return ""
}

func (o *oracle) matches(r *proto.Rule, p hnsmem.Packet) bool {
	if r.GetProtocol() != nil && uint8(r.GetProtocol().GetNumber()) != p.Protocol {
		return false
	}
	in := func(a netip.Addr, nets []netip.Prefix) bool {
		return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
	}
	parsed := func(texts []string) []netip.Prefix {
		var nets []netip.Prefix
		for _, text := range texts {
			nets = append(nets, netip.MustParsePrefix(text))
		}
		return nets
	}
	if len(r.GetSrcNet()) > 0 && !in(p.Remote, parsed(r.GetSrcNet())) || in(p.Remote, parsed(r.GetNotSrcNet())) {
		return false
	}
	for _, id := range r.GetSrcIpSetIds() {
		if !in(p.Remote, o.sets[id]) {
			return false
		}
	}
	for _, id := range r.GetNotSrcIpSetIds() {
		if in(p.Remote, o.sets[id]) {
			return false
		}
	}
	among := func(list []*proto.PortRange) bool {
		return slices.ContainsFunc(list, func(x *proto.PortRange) bool {
			return x.GetFirst() <= int32(p.LocalPort) && int32(p.LocalPort) <= x.GetLast()
		})
	}
	return (len(r.GetDstPorts()) == 0 || among(r.GetDstPorts())) && !among(r.GetNotDstPorts())
}

// randomRule returns a rule that HNS can express, with few addresses and ports, so that rules overlap.
func randomRule(random *rand.Rand) *proto.Rule {
	r := &proto.Rule{Action: []string{"allow", "deny", "pass"}[random.IntN(3)]}
	nets := func(n int) []string {
		var out []string
		for range random.IntN(n) {
			bits := 26 + random.IntN(7)
			p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(random.IntN(64))}), bits)
			out = append(out, p.Masked().String())
		}
		return out
	}
	ranges := func(n int) []*proto.PortRange {
		var out []*proto.PortRange
		for range random.IntN(n) {
			first := int32(random.IntN(10))
			out = append(out, &proto.PortRange{First: first, Last: first + int32(random.IntN(4))})
		}
		return out
	}
	r.SrcNet, r.NotSrcNet = nets(3), nets(2)
	if random.IntN(3) == 0 {
		r.SrcIpSetIds = []string{fmt.Sprintf("s%d", random.IntN(3))}
	}
	if random.IntN(4) == 0 {
		r.NotSrcIpSetIds = []string{fmt.Sprintf("s%d", random.IntN(3))}
	}
	if random.IntN(2) == 0 {
		r.Protocol = &proto.Protocol{NumberOrName: &proto.Protocol_Number{Number: []int32{6, 17}[random.IntN(2)]}}
		r.DstPorts, r.NotDstPorts = ranges(3), ranges(2)
	}
	return r
}

// TestRandomPolicies: the decisions of HNS under its rules equal those of the policies, for packets of all kinds.
func TestRandomPolicies(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 3))
		b := newBench(t, Config{})
		o := &oracle{policies: map[string][]*proto.Rule{}, sets: map[string][]netip.Prefix{}}
		var msgs []any
		for i := range 3 {
			s := &proto.IPSetUpdate{Id: fmt.Sprintf("s%d", i), Type: proto.IPSetUpdate_NET}
			for range random.IntN(4) {
				p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(random.IntN(64))}), 28+random.IntN(5)).Masked()
				s.Members = append(s.Members, p.String())
				o.sets[s.Id] = append(o.sets[s.Id], p)
			}
			msgs = append(msgs, s)
		}
		list := func(name string) []*proto.Rule {
			for range 1 + random.IntN(4) {
				o.policies[name] = append(o.policies[name], randomRule(random))
			}
			return o.policies[name]
		}
		ep := endpoint("a", 1)
		ep.Endpoint.ProfileIds = nil
		for i := range 3 {
			tier := &proto.TierInfo{Name: fmt.Sprintf("t%d", i), DefaultAction: []string{"Deny", "Pass"}[random.IntN(2)]}
			for j := range random.IntN(3) {
				name := fmt.Sprintf("p%d%d", i, j)
				tier.IngressPolicies = append(tier.IngressPolicies, name)
				msgs = append(msgs, &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: tier.Name, Name: name},
					Policy: &proto.Policy{InboundRules: list(name)}})
			}
			ep.Endpoint.Tiers = append(ep.Endpoint.Tiers, tier)
		}
		for i := range random.IntN(3) {
			name := fmt.Sprintf("f%d", i)
			ep.Endpoint.ProfileIds = append(ep.Endpoint.ProfileIds, name)
			msgs = append(msgs, &proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: name}, Profile: &proto.Profile{InboundRules: list(name)}})
		}
		b.must(append(msgs, ep)...)
		if c, _ := b.d.Status(wlID("a")); c.Status != "up" && !strings.Contains(c.Reason, "more than the") {
			t.Fatalf("seed %d: %+v", seed, c)
		} else if c.Status != "up" {
			continue
		}
		for range 400 {
			p := hnsmem.Packet{Protocol: []uint8{6, 17, 1}[random.IntN(3)], Local: addr("10.65.0.1"),
				Remote:    netip.AddrFrom4([4]byte{198, 51, 100, byte(random.IntN(70))}),
				LocalPort: uint16(random.IntN(14)), RemotePort: 40000}
			if p.Protocol == 1 {
				p.LocalPort, p.RemotePort = 0, 0
			}
			if got, want := b.allowed("a", hns.In, p), o.allowed(ep.Endpoint, p); got != want {
				t.Fatalf("seed %d: %+v: HNS %v, the policies %v\n%s\n%v", seed, p, got, want, b.rules("a"), msgs)
			}
		}
		// HNS lists the same rules in any order: there is nothing to write.
		b.host.Disorder(random)
		b.writes()
		for range 3 {
			b.d.resync()
			b.must()
		}
		if w := b.writes(); len(w) > 0 {
			t.Fatalf("seed %d: looks at a disorderly HNS with nothing changed write %v", seed, w)
		}
	}
}
