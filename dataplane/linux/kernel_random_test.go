package intdataplane

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
)

// randomPolicies is a random state of policies, with their effect on packets.
type randomPolicies struct {
	*rand.Rand
	n        *node
	policies map[policyKey]*proto.Policy // announced
	members  map[string][]string
	pods     [3]*proto.WorkloadEndpoint
	host     *proto.HostEndpoint
	port     uint16 // of the last probe's sender
}

var randomTiers = []string{"first", "default", "last"}

const (
	randomPorts   = 4
	randomPerTier = 33 // policies
)

var randomSets = map[string]proto.IPSetUpdate_IPSetType{"addresses": proto.IPSetUpdate_IP, "nets": proto.IPSetUpdate_NET}

func (w *randomPolicies) peers() []string {
	var list []string
	for _, f := range []table.Family{4, 6} {
		for _, p := range w.n.Pods {
			list = append(list, netip.PrefixFrom(p.Addr(f), p.Addr(f).BitLen()).String())
		}
		a := w.n.Outside.Addr(f)
		list = append(list, netip.PrefixFrom(a, a.BitLen()).String())
	}
	return list
}

func (w *randomPolicies) some(list []string, max int) []string {
	var out []string
	for range w.IntN(max + 1) {
		if s := list[w.IntN(len(list))]; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func (w *randomPolicies) rules() (list []*proto.Rule) {
	for range w.IntN(3) {
		r := &proto.Rule{Action: []string{"allow", "allow", "allow", "deny", "pass", "pass", "log"}[w.IntN(7)]}
		if w.IntN(4) > 0 {
			r.Protocol, r.DstPorts = udp(), ports(1001+int32(w.IntN(randomPorts)))
		}
		switch w.IntN(6) {
		case 0:
			r.SrcNet = w.some(w.peers(), 2)
		case 1:
			r.SrcIpSetIds = []string{"addresses"}
		case 2:
			r.SrcIpSetIds = []string{"nets"}
		case 3:
			r.NotSrcIpSetIds = []string{"nets"}
		case 4:
			r.IpVersion = []proto.IPVersion{proto.IPVersion_IPV4, proto.IPVersion_IPV6}[w.IntN(2)]
		}
		if r.Protocol == nil && w.IntN(3) > 0 {
			r.SrcIpSetIds = []string{"nets"}
		}
		list = append(list, r)
	}
	return list
}

func (w *randomPolicies) policy() any {
	key := policyKey{Tier: randomTiers[w.IntN(len(randomTiers))], Name: fmt.Sprint("p", w.IntN(randomPerTier))}
	id := &proto.PolicyID{Tier: key.Tier, Name: key.Name}
	if w.policies[key] != nil && w.IntN(100) == 0 {
		delete(w.policies, key)
		return &proto.ActivePolicyRemove{Id: id}
	}
	p := &proto.Policy{}
	if w.IntN(3) > 0 {
		p.InboundRules = w.rules()
	}
	if w.IntN(3) > 0 {
		p.OutboundRules = w.rules()
	}
	w.policies[key] = p
	return &proto.ActivePolicyUpdate{Id: id, Policy: p}
}

func (w *randomPolicies) names(n int) (list []string) {
	for _, i := range w.Perm(randomPerTier)[:n] {
		list = append(list, fmt.Sprint("p", i))
	}
	return list
}

func (w *randomPolicies) tiers() (list []*proto.TierInfo) {
	counts := []int{0, 0, 1, 2, 3, 15, 16, 17, 32, 33}
	for _, name := range randomTiers {
		if w.IntN(3) == 0 {
			continue
		}
		t := &proto.TierInfo{Name: name, DefaultAction: []string{"", "pass", "pass", "pass"}[w.IntN(4)],
			IngressPolicies: w.names(counts[w.IntN(len(counts))]), EgressPolicies: w.names(counts[w.IntN(len(counts))])}
		list = append(list, t)
	}
	return list
}

func (w *randomPolicies) pod(i int) any {
	msg := w.n.pod(i+1, func(ep *proto.WorkloadEndpoint) {
		ep.Tiers = w.tiers()
		if w.IntN(5) == 0 {
			ep.ProfileIds = nil
		}
	})
	w.pods[i] = msg.GetEndpoint()
	return msg
}

func (w *randomPolicies) hostEndpoint() any {
	if w.IntN(3) == 0 {
		w.host = nil
		return hostGone("h")
	}
	w.host = &proto.HostEndpoint{Name: "eth0", ExpectedIpv4Addrs: []string{w.n.Host.Addr(4).String()}, ProfileIds: []string{"open"}}
	for _, list := range []*[]*proto.TierInfo{&w.host.Tiers, &w.host.ForwardTiers, &w.host.UntrackedTiers, &w.host.PreDnatTiers} {
		if w.IntN(2) == 0 {
			*list = w.tiers()
		}
	}
	return &proto.HostEndpointUpdate{Id: &proto.HostEndpointID{EndpointId: "h"}, Endpoint: w.host}
}

func (w *randomPolicies) change() any {
	switch w.IntN(12) {
	case 0:
		return w.pod(w.IntN(3))
	case 1:
		return w.hostEndpoint()
	case 2, 3, 4:
		return w.set([]string{"addresses", "nets"}[w.IntN(2)])
	}
	return w.policy()
}

func (w *randomPolicies) set(id string) any {
	members := w.some(w.peers(), 5)
	if w.IntN(2) == 0 {
		members = nil
	}
	w.members[id] = members
	return &proto.IPSetUpdate{Id: id, Type: randomSets[id], Members: members}
}

func (w *randomPolicies) in(src netip.Addr, nets []string) bool {
	return slices.ContainsFunc(nets, func(n string) bool { return netip.MustParsePrefix(n).Contains(src) })
}

func (w *randomPolicies) matches(r *proto.Rule, src netip.Addr, port uint16) bool {
	version := proto.IPVersion_IPV4
	if src.Is6() {
		version = proto.IPVersion_IPV6
	}
	return (r.GetIpVersion() == proto.IPVersion_ANY || r.GetIpVersion() == version) &&
		(r.GetProtocol() == nil || r.GetDstPorts()[0].GetFirst() == int32(port)) &&
		(len(r.GetSrcNet()) == 0 || w.in(src, r.GetSrcNet())) &&
		!slices.ContainsFunc(r.GetSrcIpSetIds(), func(id string) bool { return !w.in(src, w.members[id]) }) &&
		!slices.ContainsFunc(r.GetNotSrcIpSetIds(), func(id string) bool { return w.in(src, w.members[id]) })
}

// decide returns the decision of tiers: allow, deny, pass (a policy of the last tier, or its end, has passed), or "" if there are no
// policies or none has decided.
func (w *randomPolicies) decide(tiers []*proto.TierInfo, inbound, ends bool, src netip.Addr, port uint16) string {
	out := ""
	for _, t := range tiers {
		names := t.GetEgressPolicies()
		if inbound {
			names = t.GetIngressPolicies()
		}
		if len(names) == 0 {
			continue
		}
		switch v := w.tier(t.GetName(), names, inbound, src, port); {
		case v == "allow" || v == "deny":
			return v
		case v == "" && t.GetDefaultAction() != "pass" && ends:
			return "deny"
		}
		out = "pass"
	}
	return out
}

func (w *randomPolicies) tier(tier string, names []string, inbound bool, src netip.Addr, port uint16) string {
	for _, name := range names {
		p := w.policies[policyKey{Tier: tier, Name: name}]
		if p == nil {
			return "deny"
		}
		list := p.GetOutboundRules()
		if inbound {
			list = p.GetInboundRules()
		}
		for _, r := range list {
			if r.GetAction() != "log" && w.matches(r, src, port) {
				return r.GetAction()
			}
		}
	}
	return ""
}

func (w *randomPolicies) workload(ep *proto.WorkloadEndpoint, inbound bool, src netip.Addr, port uint16) bool {
	v := w.decide(ep.GetTiers(), inbound, true, src, port)
	return v == "allow" || v != "deny" && len(ep.GetProfileIds()) > 0
}

// arrives reports whether a packet to a pod must arrive. It comes from another pod or, with from nil, from outside. Packets that policy
// before DNAT or without tracking has accepted are not checked by the policy for forwarded packets.
func (w *randomPolicies) arrives(from, to *proto.WorkloadEndpoint, src netip.Addr, port uint16) bool {
	if !w.workload(to, true, src, port) {
		return false
	}
	if from != nil {
		return w.workload(from, false, src, port)
	}
	for _, tiers := range [][]*proto.TierInfo{w.host.GetUntrackedTiers(), w.host.GetPreDnatTiers()} {
		if v := w.decide(tiers, true, false, src, port); v == "allow" || v == "deny" {
			return v == "allow"
		}
	}
	return w.decide(w.host.GetForwardTiers(), true, true, src, port) != "deny"
}

// probe returns a packet to a pod (0 to 2), from another one or from outside (3).
func (w *randomPolicies) probe(f table.Family, from, to int) tabletest.Case {
	sender, ep := w.n.Outside, (*proto.WorkloadEndpoint)(nil)
	if from < len(w.pods) {
		sender, ep = w.n.Pods[from], w.pods[from]
	}
	port := uint16(1001 + w.IntN(randomPorts))
	w.port = (w.port + 1) % 50000 // no probe belongs to an earlier connection
	c := tabletest.Case{Want: tabletest.Drop, Probe: sender.UDP(w.n.addr(to+1, f), port).FromAddr(sender.Addr(f)).FromPort(10000 + w.port)}
	if w.arrives(ep, w.pods[to], sender.Addr(f), port) {
		c.Want = tabletest.Arrive
	}
	return c
}

// TestKernelRandomPolicies: for random policies, tiers and sets, changed in random order, packets are handled as the policies specify, on
// both backends. CONTIV_STEPS and CONTIV_SEED are for longer runs, and to repeat one.
func TestKernelRandomPolicies(t *testing.T) {
	steps, seed := uint64(5), rand.Uint64()
	for name, to := range map[string]*uint64{"CONTIV_STEPS": &steps, "CONTIV_SEED": &seed} {
		if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
			*to = n
		}
	}
	t.Logf("seed %d, %d steps", seed, steps)
	config := Config{RulesConfig: rules.Config{SharePolicies: seed&1 > 0, ReportDenied: seed&2 > 0, NodeAndSelfExempt: seed&4 > 0}}
	onBothBackends(t, config, func(t *testing.T, n *node) {
		w := newRandomPolicies(n, seed)
		n.apply(w.all()...)
		n.up("pod1", "pod2", "pod3")
		for step := range steps {
			var changes []any
			for range 1 + w.IntN(6) {
				changes = append(changes, w.change())
			}
			n.apply(changes...)
			if step%50 == 49 {
				n.stop()
				n.start()
				n.apply(w.all()...)
			}
			n.Expect(t, w.probes(40)...)
			if t.Failed() {
				t.Fatalf("step %d: %+v", step, changes)
			}
		}
	})
}

func newRandomPolicies(n *node, seed uint64) *randomPolicies {
	w := &randomPolicies{Rand: rand.New(rand.NewPCG(seed, 0)), n: n, policies: map[policyKey]*proto.Policy{},
		members: map[string][]string{"addresses": nil, "nets": nil}}
	for _, tier := range randomTiers {
		for i := range randomPerTier {
			p := &proto.Policy{}
			if w.IntN(3) > 0 {
				p.InboundRules, p.OutboundRules = w.rules(), w.rules()
			}
			w.policies[policyKey{Tier: tier, Name: fmt.Sprint("p", i)}] = p
		}
	}
	for i := range w.pods {
		w.pod(i)
	}
	return w
}

// probes returns packets from random places to random pods.
func (w *randomPolicies) probes(n int) (cases []tabletest.Case) {
	for i := range n {
		from, to := w.IntN(4), w.IntN(3)
		if from == to {
			from = 3
		}
		cases = append(cases, w.probe([]table.Family{4, 6}[i%2], from, to))
	}
	return cases
}

// all returns messages with the whole state.
func (w *randomPolicies) all() (msgs []any) {
	msgs = []any{openProfile()}
	for id, members := range w.members {
		msgs = append(msgs, &proto.IPSetUpdate{Id: id, Type: randomSets[id], Members: members})
	}
	for key, p := range w.policies {
		msgs = append(msgs, &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: key.Tier, Name: key.Name}, Policy: p})
	}
	for i, ep := range w.pods {
		msgs = append(msgs, &proto.WorkloadEndpointUpdate{Id: wlID(fmt.Sprintf("pod%d", i+1)), Endpoint: ep})
	}
	if w.host != nil {
		msgs = append(msgs, &proto.HostEndpointUpdate{Id: &proto.HostEndpointID{EndpointId: "h"}, Endpoint: w.host})
	}
	return append(msgs, &proto.InSync{})
}
