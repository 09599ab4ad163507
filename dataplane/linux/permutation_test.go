package intdataplane

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/proto"
)

// world is a state of the datastore and of the node's interfaces: the message that announces each object.
type world map[string]any

// retract is the message that takes back what another has announced.
func retract(msg any) any {
	switch msg := msg.(type) {
	case *proto.IPSetUpdate:
		return &proto.IPSetRemove{Id: msg.GetId()}
	case *proto.ActivePolicyUpdate:
		return &proto.ActivePolicyRemove{Id: msg.GetId()}
	case *proto.ActiveProfileUpdate:
		return &proto.ActiveProfileRemove{Id: msg.GetId()}
	case *proto.WorkloadEndpointUpdate:
		return &proto.WorkloadEndpointRemove{Id: msg.GetId()}
	case *proto.HostEndpointUpdate:
		return &proto.HostEndpointRemove{Id: msg.GetId()}
	case *proto.IPAMPoolUpdate:
		return &proto.IPAMPoolRemove{Id: msg.GetId()}
	case *proto.HostMetadataUpdate:
		return &proto.HostMetadataRemove{Hostname: msg.GetHostname()}
	case *proto.RouteUpdate:
		return &proto.RouteRemove{Dst: msg.GetDst()}
	case *proto.VXLANTunnelEndpointUpdate:
		return &proto.VXLANTunnelEndpointRemove{Node: msg.GetNode()}
	case *ifaceState:
		return &ifaceState{Name: msg.Name, State: ifacemonitor.StateAbsent}
	case *ifaceAddrs:
		return &ifaceAddrs{Name: msg.Name}
	}
	panic(fmt.Sprintf("retract %T", msg))
}

func keyOf(msg any) string {
	switch msg := msg.(type) {
	case *proto.IPSetUpdate:
		return "set " + msg.GetId()
	case *proto.ActivePolicyUpdate:
		return "policy " + msg.GetId().GetName()
	case *proto.ActiveProfileUpdate:
		return "profile " + msg.GetId().GetName()
	case *proto.WorkloadEndpointUpdate:
		return "workload " + msg.GetId().GetWorkloadId()
	case *proto.HostEndpointUpdate:
		return "host " + msg.GetId().GetEndpointId()
	case *proto.IPAMPoolUpdate:
		return "pool " + msg.GetId()
	case *proto.HostMetadataUpdate:
		return "node " + msg.GetHostname()
	case *proto.RouteUpdate:
		return "route " + msg.GetDst()
	case *proto.VXLANTunnelEndpointUpdate:
		return "vtep " + msg.GetNode()
	case *ifaceState:
		return "link " + msg.Name
	case *ifaceAddrs:
		return "addrs " + msg.Name
	}
	panic(fmt.Sprintf("key of %T", msg))
}

func worldOf(msgs ...any) world {
	w := world{}
	for _, msg := range msgs {
		w[keyOf(msg)] = msg
	}
	return w
}

// change are the messages that lead from one world to another: a set that has changed is sent as a delta now and then.
func change(from, to world, random *rand.Rand) []any {
	var msgs []any
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if old, had := from[key]; !had || old != to[key] {
			msgs = append(msgs, asDelta(old, to[key], random))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[key]; !stays {
			msgs = append(msgs, retract(from[key]))
		}
	}
	return msgs
}

func asDelta(old, now any, random *rand.Rand) any {
	was, is1 := old.(*proto.IPSetUpdate)
	will, is2 := now.(*proto.IPSetUpdate)
	if !is1 || !is2 || was.GetType() != will.GetType() || random.IntN(2) == 0 {
		return now
	}
	delta := &proto.IPSetDeltaUpdate{Id: will.GetId()}
	for _, m := range will.GetMembers() {
		if !slices.Contains(was.GetMembers(), m) {
			delta.AddedMembers = append(delta.AddedMembers, m)
		}
	}
	for _, m := range was.GetMembers() {
		if !slices.Contains(will.GetMembers(), m) {
			delta.RemovedMembers = append(delta.RemovedMembers, m)
		}
	}
	return delta
}

// scenarios are sequences of worlds.
func scenarios() map[string][]world {
	base := worldOf(openProfile(), ipSet("peers", "198.51.100.1"), policy("p", fromSet("allow", "peers"), tcpPort("pass",
		9)), policy("q", tcpPort("deny", 80)),
		endpoint("a", "calia", 1, withTiers(ingress("p"), &proto.TierInfo{Name: "default", IngressPolicies: []string{"q"},
			EgressPolicies: []string{"q"}})),
		endpoint("b", "calib", 2), ifUp("calia", 1), ifUp("calib", 2), ifUp("eth0", 3), ifAddrs("eth0", "192.0.2.1", "2001:db8::1"),
		ipPool("pool", "10.65.0.0/16", true))
	with := func(w world, msgs ...any) world {
		next := maps.Clone(w)
		for _, msg := range msgs {
			next[keyOf(msg)] = msg
		}
		return next
	}
	without := func(w world, keys ...string) world {
		next := maps.Clone(w)
		for _, key := range keys {
			if _, has := next[key]; !has {
				panic("no " + key)
			}
			delete(next, key)
		}
		return next
	}
	host := func(ep *proto.HostEndpoint) {
		ep.Tiers, ep.UntrackedTiers = []*proto.TierInfo{ingress("q")}, []*proto.TierInfo{ingress("p")}
		ep.PreDnatTiers, ep.ForwardTiers = []*proto.TierInfo{ingress("q")}, []*proto.TierInfo{ingress("p")}
	}
	nodes := with(base, ownVTEP, peerVTEP, &proto.HostMetadataUpdate{Hostname: "node2", Ipv4Addr: "192.0.2.2"},
		remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN), remote("10.65.2.0/26", "node2", "192.0.2.2",
			proto.IPPoolType_NO_ENCAP),
		&proto.RouteUpdate{Types: proto.RouteUpdate_TYPES_LOCAL_WORKLOAD, Dst: "10.65.0.0/26"})
	return map[string][]world{
		"sets": {base, with(base, ipSet("peers", "198.51.100.2", "fd00::1")), with(base, ipSet("peers", "1.1.1.1", "1.1.1.2",
			"1.1.1.3", "1.1.1.4", "1.1.1.5")),
			with(base, ipSet("peers", "bad", "1.1.1.1")), with(base, &proto.IPSetUpdate{Id: "peers", Type: proto.IPSetUpdate_NET,
				Members: []string{"1.0.0.0/8"}})},
		"set goes first": {base, without(base, "set peers"), base, without(base, "policy p", "set peers")},
		"policies": {base, with(base, policy("p", tcpPort("allow", 7))), without(base, "policy q"), with(base,
			policy("q", fromSet("deny", "gone")))},
		"one interface": {base, with(base, endpoint("c", "calia", 3)), with(base, endpoint("0", "calia", 4)),
			with(without(base, "workload a"), endpoint("c", "calia", 3))},
		"interfaces swapped": {base, with(base, endpoint("a", "calib", 1), endpoint("b", "calia", 2)), base, with(base,
			endpoint("a", "calib", 1))},
		"links": {base, without(base, "link calia"), with(base, ifDown("calib")), with(base, ifUp("calia", 9))},
		"states": {base, with(base, endpoint("a", "calia", 1,
			func(ep *proto.WorkloadEndpoint) { ep.State = "down" })), with(base, endpoint("a", "eth0", 1)), with(base,
			endpoint("a", "calia", 5, floating("203.0.113.9", "10.65.0.5")))},
		"floating conflict": {with(base, endpoint("a", "calia", 1, floating("203.0.113.9", "10.65.0.1")), endpoint("b",
			"calib", 2, floating("203.0.113.9", "10.65.0.2"))), base, with(base, endpoint("b", "calib", 2, floating("203.0.113.9",
			"10.65.0.2", "203.0.113.8", "10.65.0.2")))},
		"hosts": {with(base, hostEndpoint("h", "eth0", host)), with(base, hostEndpoint("h", "eth0"), hostEndpoint("g", "",
			expecting("192.0.2.1"), host)),
			with(base, hostEndpoint("h", "*", host)), without(base, "addrs eth0")},
		"pools": {base, with(base, ipPool("pool", "10.65.0.0/16", false)), with(base, ipPool("pool", "fd00:65::/48", true),
			ipPool("other", "10.65.0.0/16", true)), without(base, "pool pool")},
		"nodes": {nodes, without(nodes, "vtep node2"), without(nodes, "addrs eth0", "vtep node1"), with(nodes, ifAddrs("eth1",
			"192.0.2.1"), ifAddrs("eth0", "10.0.0.1")),
			with(nodes, remote("10.65.1.0/26", "node2", "192.0.2.2", proto.IPPoolType_VXLAN, sameSubnet)), base},
	}
}

var permuted = Config{IPv6Enabled: true, MaxIPSetSize: 4, RulesConfig: rules.Config{VXLANEnabled: true, IPIPEnabled: true}}

// directly is what a driver programs that is told a world at once.
func directly(t *testing.T, w world) string {
	b := newBench(t, permuted)
	b.must(change(nil, w, rand.New(rand.NewPCG(1, 1)))...)
	return b.text()
}

// plan is a way through a scenario: worlds in order, each reached in some number of steps.
type plan struct {
	name    string
	worlds  []world
	squash  bool // all in one apply
	split   bool // one apply per message
	shuffle bool
}

func plans(worlds []world, random *rand.Rand) []plan {
	reversed := slices.Clone(worlds)
	slices.Reverse(reversed)
	var empties []world
	for _, w := range worlds {
		empties = append(empties, world{}, w)
	}
	mixed := slices.Clone(worlds)
	random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return []plan{
		{name: "forward", worlds: worlds}, {name: "reversed", worlds: reversed}, {name: "squashed", worlds: worlds, squash: true},
		{name: "reversed, squashed", worlds: reversed, squash: true}, {name: "split", worlds: worlds, split: true},
		{name: "with empty worlds", worlds: empties}, {name: "with empty worlds, squashed", worlds: empties, squash: true},
		{name: "mixed, shuffled", worlds: mixed, shuffle: true}, {name: "mixed, shuffled, split", worlds: mixed, shuffle: true,
			split: true},
		{name: "back to nothing", worlds: append(slices.Clone(worlds), world{})},
	}
}

// TestPermutations: whatever way leads to a world, the kernel ends up the same, and as if there had been nothing else.
func TestPermutations(t *testing.T) {
	for name, worlds := range scenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				random := rand.New(rand.NewPCG(seed, 7))
				for _, p := range plans(worlds, random) {
					runPlan(t, p, random)
				}
			}
		})
	}
}

func runPlan(t *testing.T, p plan, random *rand.Rand) {
	t.Helper()
	b := newBench(t, permuted)
	before := world{}
	for _, w := range p.worlds {
		msgs := change(before, w, random)
		if p.shuffle {
			random.Shuffle(len(msgs), func(i, j int) { msgs[i], msgs[j] = msgs[j], msgs[i] })
		}
		switch {
		case p.squash:
			b.tell(msgs...)
		case p.split:
			for _, msg := range msgs {
				b.must(msg)
			}
		default:
			b.must(msgs...)
		}
		b.mustRest(p)
		before = w
	}
	b.must()
	if want, got := directly(t, before), b.text(); got != want {
		t.Errorf("%s: the kernel differs from that of a new driver:\n%s", p.name, difference(want, got))
	}
}

// mustRest applies once more, which must write nothing, unless all worlds are to be squashed into one apply.
func (b *bench) mustRest(p plan) {
	b.t.Helper()
	if p.squash {
		return
	}
	before := b.fake.Writes
	b.must()
	if b.fake.Writes != before {
		b.t.Errorf("%s: an apply without news wrote %d objects: %v", p.name, b.fake.Writes-before, b.fake.Order)
	}
}

func difference(want, got string) string {
	lines := func(s string) []string { return strings.Split(s, "\n") }
	var out []string
	for _, line := range lines(want) {
		if !slices.Contains(lines(got), line) {
			out = append(out, "- "+line)
		}
	}
	for _, line := range lines(got) {
		if !slices.Contains(lines(want), line) {
			out = append(out, "+ "+line)
		}
	}
	return strings.Join(out, "\n")
}

// TestRandomWalk goes from world to world of all scenarios, with failures of the kernel on the way.
func TestRandomWalk(t *testing.T) {
	var worlds []world
	all := scenarios()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		worlds = append(worlds, all[name]...)
	}
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 3))
		b := newBench(t, permuted)
		before := world{}
		for range 25 {
			next := worlds[random.IntN(len(worlds))]
			msgs := change(before, next, random)
			random.Shuffle(len(msgs), func(i, j int) { msgs[i], msgs[j] = msgs[j], msgs[i] })
			if random.IntN(3) == 0 {
				b.fake.Fail = func() error { return fmt.Errorf("the kernel has no time") }
			}
			err := b.step(msgs...)
			if (err != nil) != (b.fake.Fail != nil) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			b.fake.Fail = nil
			before = next
		}
		b.must()
		if want, got := directly(t, before), b.text(); got != want {
			t.Fatalf("seed %d: the kernel differs from that of a new driver:\n%s", seed, difference(want, got))
		}
	}
}

func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
