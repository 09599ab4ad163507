package drivertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

// World is a state of the datastore and of the driver's other inputs: the message that announces each object, by key.
type World map[string]any

// Model handles the messages of worlds. Its functions are for messages that only one driver has, and return "" and nil for others.
type Model struct {
	Key     func(msg any) string
	Retract func(msg any) any
}

// retract returns the message that withdraws the object that msg has announced.
func (m Model) retract(msg any) any {
	if m.Retract != nil {
		if own := m.Retract(msg); own != nil {
			return own
		}
	}
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
	}
	panic(fmt.Sprintf("retract %T", msg))
}

func (m Model) key(msg any) string {
	if m.Key != nil {
		if own := m.Key(msg); own != "" {
			return own
		}
	}
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
	}
	panic(fmt.Sprintf("key of %T", msg))
}

// World returns the world that the messages announce.
func (m Model) World(msgs ...any) World {
	w := World{}
	for _, msg := range msgs {
		w[m.key(msg)] = msg
	}
	return w
}

// Change returns the messages that lead from one world to another; a changed set is sometimes sent as a delta.
func (m Model) Change(from, to World, random *rand.Rand) []any {
	var msgs []any
	for _, key := range slices.Sorted(maps.Keys(to)) {
		if old, had := from[key]; !had || old != to[key] {
			msgs = append(msgs, asDelta(old, to[key], random))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if _, stays := to[key]; !stays {
			msgs = append(msgs, m.retract(from[key]))
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

// plan is an order of the worlds of a scenario, with the number of steps in which each is reached.
type plan struct {
	name    string
	worlds  []World
	squash  bool // all in one apply
	split   bool // one apply per message
	shuffle bool
}

func plans(worlds []World, random *rand.Rand) []plan {
	reversed := slices.Clone(worlds)
	slices.Reverse(reversed)
	var empties []World
	for _, w := range worlds {
		empties = append(empties, World{}, w)
	}
	mixed := slices.Clone(worlds)
	random.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return []plan{
		{name: "forward", worlds: worlds}, {name: "reversed", worlds: reversed}, {name: "squashed", worlds: worlds, squash: true},
		{name: "reversed, squashed", worlds: reversed, squash: true}, {name: "split", worlds: worlds, split: true},
		{name: "with empty worlds", worlds: empties}, {name: "with empty worlds, squashed", worlds: empties, squash: true},
		{name: "mixed, shuffled", worlds: mixed, shuffle: true}, {name: "mixed, shuffled, split", worlds: mixed, shuffle: true,
			split: true},
		{name: "back to nothing", worlds: append(slices.Clone(worlds), World{})},
	}
}

// Permutations tests that the dataplane is the same whatever sequence of changes leads to a world, and as if no other world had existed.
func (s Suite) Permutations(t *testing.T, m Model, scenarios map[string][]World) {
	for name, worlds := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				random := newRandom(seed)
				for _, p := range plans(worlds, random) {
					s.run(t, m, p, random)
				}
			}
		})
	}
}

func (s Suite) run(t *testing.T, m Model, p plan, random *rand.Rand) {
	t.Helper()
	rig := s.New(t)
	before := World{}
	for _, w := range p.worlds {
		msgs := m.Change(before, w, random)
		if p.shuffle {
			random.Shuffle(len(msgs), func(i, j int) { msgs[i], msgs[j] = msgs[j], msgs[i] })
		}
		switch {
		case p.squash:
			rig.Report(msgs...)
		case p.split:
			for _, msg := range msgs {
				rig.Step(msg)
			}
		default:
			rig.Step(msgs...)
		}
		if !p.squash { // else all worlds are in one apply
			writes := rig.Writes()
			if rig.Step(); rig.Writes() != writes {
				t.Errorf("%s: an apply without news wrote %d times", p.name, rig.Writes()-writes)
			}
		}
		before = w
	}
	rig.Step()
	fresh := s.New(t)
	fresh.Step(m.Change(nil, before, newRandom(1))...)
	if want, got := fresh.Text(), rig.Text(); got != want {
		t.Errorf("%s: the dataplane differs from that of a new driver:\n%s", p.name, Difference(want, got))
	}
}

// Difference returns the lines that only one of two texts has.
func Difference(want, got string) string {
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

// With returns a world in which msgs add or replace objects.
func (m Model) With(w World, msgs ...any) World {
	next := maps.Clone(w)
	for _, msg := range msgs {
		next[m.key(msg)] = msg
	}
	return next
}

// Without returns a world without some objects.
func (m Model) Without(w World, keys ...string) World {
	next := maps.Clone(w)
	for _, key := range keys {
		if _, has := next[key]; !has {
			panic("no " + key)
		}
		delete(next, key)
	}
	return next
}

// scenarios returns sequences of worlds that every driver supports.
func scenarios() map[string][]World {
	var m Model
	db := func(change ...func(*proto.WorkloadEndpoint)) *proto.WorkloadEndpointUpdate {
		msg := Web(change...)
		msg.Id, msg.Endpoint.Name = workload("db"), "calidb"
		msg.Endpoint.Ipv4Nets, msg.Endpoint.Ipv6Nets = []string{"10.1.0.2/32"}, []string{"fd00::2/128"}
		return msg
	}
	tiers := Tiers(Ingress("t", "p"), &proto.TierInfo{Name: "default", IngressPolicies: []string{"q"}, EgressPolicies: []string{"q"}})
	base := m.World(Open(), set("peers", "198.51.100.1"), Policy("t", "p", fromSet("allow", "peers"), tcp("pass", 9)),
		Policy("default", "q", tcp("deny", 80), tcp("allow", 9)), Web(tiers), db())
	return map[string][]World{
		"sets": {base, m.With(base, set("peers", "198.51.100.2", "fd00:9::1")), m.With(base, set("peers")),
			m.With(base, set("peers", "bad", "1.1.1.1")),
			m.With(base, &proto.IPSetUpdate{Id: "peers", Type: proto.IPSetUpdate_NET, Members: []string{"1.0.0.0/8"}})},
		"set goes first": {base, m.Without(base, "set peers"), base, m.Without(base, "policy p", "set peers")},
		"policies": {base, m.With(base, Policy("t", "p", tcp("allow", 7))), m.Without(base, "policy q"),
			m.With(base, Policy("default", "q", fromSet("deny", "gone")))},
		"profiles": {base, m.With(base, db(profiles("other"))), m.With(base, profile("other", tcp("allow", 5)), db(profiles("other", "open"))),
			m.Without(base, "profile open")},
		"states": {base, m.With(base, Web(func(ep *proto.WorkloadEndpoint) { ep.State = "down" })), m.With(base, Web()),
			m.With(base, Web(tiers, func(ep *proto.WorkloadEndpoint) { ep.Ipv6Nets = nil })), m.Without(base, "workload web")},
	}
}
