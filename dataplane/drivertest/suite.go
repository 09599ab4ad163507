package drivertest

import (
	"math/rand/v2"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

// Rig is a driver whose phases the tests run, on a packet filter in memory.
type Rig interface {
	// Step sends messages to the driver and lets it apply. An error of the driver as a whole fails the test.
	Step(msgs ...any)
	// Report sends messages to the driver, which does not apply.
	Report(msgs ...any)
	// Allowed reports whether a workload may receive (inbound) or send a packet.
	Allowed(workload string, inbound bool, p Packet) bool
	// Status returns the last reported status of the workload; "" if none was reported.
	Status(workload string) string
	// Writes returns the number of writes so far.
	Writes() int
	// Text returns the whole programmed and reported state, in a form that is comparable among rigs.
	Text() string
}

// Suite holds the tests of one driver.
type Suite struct {
	New func(t *testing.T) Rig
	// Cannot reports whether the dataplane cannot express a case of the matrix: the driver must then make the rule block, and the endpoint's
	// status is "error".
	Cannot func(name string) bool
}

// Run runs the tests.
func (s Suite) Run(t *testing.T) {
	if s.Cannot == nil {
		s.Cannot = func(string) bool { return false }
	}
	t.Run("matrix", s.matrix)
	t.Run("fail closed", s.failClosed)
	t.Run("tiers", s.tiers)
	t.Run("profiles", s.profiles)
	t.Run("egress", s.egress)
	t.Run("sets", s.sets)
	t.Run("policies", s.policies)
	t.Run("permutations", func(t *testing.T) { s.Permutations(t, Model{}, scenarios()) })
}

// web returns a rig with the usual sets and workload web under a policy; the profile behind the policy allows everything.
func (s Suite) web(t *testing.T, list ...*proto.Rule) Rig {
	t.Helper()
	rig := s.New(t)
	rig.Step(Open())
	for _, set := range UsualSets() {
		rig.Report(set)
	}
	rig.Step(Policy("t", "p", list...), Web(Tiers(Ingress("t", "p"))))
	return rig
}

func expect(t *testing.T, rig Rig, what string, p Packet, want bool) {
	t.Helper()
	if got := rig.Allowed("web", true, p); got != want {
		t.Errorf("%s: allowed %v, want %v\n%+v\n%s", what, got, want, p, rig.Text())
	}
}

func expectStatus(t *testing.T, rig Rig, what, want string) {
	t.Helper()
	if got := rig.Status("web"); got != want {
		t.Errorf("%s: status %q, want %q", what, got, want)
	}
}

// matrix tests each rule with each action, on packets that match and packets that do not.
func (s Suite) matrix(t *testing.T) {
	for _, c := range MatchCases() {
		cannot := s.Cannot(c.Name)
		for _, action := range []string{"allow", "", "pass", "next-tier"} {
			c.Rule.Action = action
			rig := s.web(t, c.Rule)
			for _, p := range c.Yes {
				expect(t, rig, action+" "+c.Name, p, !cannot)
			}
			for _, p := range c.No {
				expect(t, rig, action+", not "+c.Name, p, false)
			}
			expectStatus(t, rig, c.Name, map[bool]string{false: "up", true: "error"}[cannot])
		}
		c.Rule.Action = "deny"
		rig := s.web(t, c.Rule, &proto.Rule{Action: "allow"})
		for _, p := range c.Yes {
			expect(t, rig, "deny "+c.Name, p, false)
		}
		for _, p := range c.No {
			if !cannot {
				expect(t, rig, "deny, not "+c.Name, p, true)
			}
		}
	}
}

// failClosed tests that an invalid rule never allows more packets than a valid one would.
func (s Suite) failClosed(t *testing.T) {
	for name, r := range BadRules() {
		for _, action := range []string{"allow", "pass"} {
			r.Action = action
			expect(t, s.web(t, r), action+" "+name, toWeb(4), false)
		}
		switch name {
		case "ICMP type of TCP", "ICMP type out of range", "ports of ICMP":
			continue // their other matches need not hold for this packet
		}
		r.Action = "deny"
		expect(t, s.web(t, r, &proto.Rule{Action: "allow"}), "deny "+name, toWeb(4), false)
	}
	expect(t, s.web(t, &proto.Rule{Action: "deny", SrcNet: []string{"10.0.0.0/8"}, DstIpSetIds: []string{"gone"}},
		&proto.Rule{Action: "allow"}), "what is left of a rule to deny bounds it", toWeb(4), true)
	expect(t, s.web(t, fromSet("pass", "gone"), &proto.Rule{Action: "allow"}), "a broken pass does not allow", toWeb(4), false)
	rig := s.web(t, tcp("quarantine", 80), &proto.Rule{Action: "allow"})
	expect(t, rig, "unknown action", toWeb(4), false)
	expect(t, rig, "what an unknown action does not match", toPort(81), true)
	expect(t, s.web(t, tcp("log", 80), tcp("allow", 80)), "a rule that logs goes on", toWeb(4), true)
}

func (s Suite) tiers(t *testing.T) {
	rig := s.New(t)
	first := &proto.TierInfo{Name: "first", IngressPolicies: []string{"p", "q"}}
	second := &proto.TierInfo{Name: "second", IngressPolicies: []string{"p"}, DefaultAction: "Pass"}
	rig.Step(Open(), Policy("first", "p", tcp("allow", 1), tcp("deny", 2), tcp("pass", 3), tcp("pass", 4), tcp("pass", 5)),
		Policy("first", "q", tcp("allow", 2), tcp("deny", 3), tcp("allow", 6)),
		Policy("second", "p", tcp("deny", 3), tcp("allow", 4), tcp("deny", 7), tcp("pass", 8)),
		Web(Tiers(first, &proto.TierInfo{Name: "empty"}, second)))
	for port, want := range map[uint16]bool{
		1: true,  // allowed by the first policy
		2: false, // denied by the first policy, whatever the next one contains
		3: false, // skips the rest of its tier, and is denied by the next tier
		4: true,  // passed and allowed
		5: true,  // passed, undecided in a tier that passes at its end, and allowed by the profile
		6: true,  // the second policy of the first tier
		9: false, // undecided at the end of the first tier
	} {
		expect(t, rig, "tiers", toPort(port), want)
	}
	rig.Step(Web(Tiers(second)))
	expect(t, rig, "a tier has gone: its policies do not count", toPort(2), true)
	expect(t, rig, "the tier that is left", toPort(7), false)
	rig.Step(Web(Tiers(second), profiles()))
	expect(t, rig, "passed to the end, without a profile", toPort(8), false)
	expect(t, rig, "undecided to the end, without a profile", toPort(9), false)
}

func (s Suite) profiles(t *testing.T) {
	rig := s.New(t)
	rig.Step(profile("a", tcp("deny", 1), tcp("allow", 2)), profile("b", tcp("allow", 1), tcp("allow", 3)), Web(profiles("a", "b")))
	for port, want := range map[uint16]bool{1: false, 2: true, 3: true, 4: false} {
		expect(t, rig, "profiles in order", toPort(port), want)
	}
	rig.Step(Web(profiles()))
	expect(t, rig, "neither tier nor profile", toPort(2), false)
	rig.Step(Policy("t", "p", tcp("allow", 5)), Web(profiles("a"), Tiers(Ingress("t", "p"))))
	expect(t, rig, "policies come in place of profiles", toPort(2), false)
	if !rig.Allowed("web", false, fromWeb(2)) {
		t.Error("a direction that no policy governs has its profiles")
	}
	rig.Step(Web(profiles("a", "unknown")))
	expectStatus(t, rig, "unknown profile", "error")
	expect(t, rig, "an unknown profile blocks", toPort(3), false)
	rig.Step(profile("unknown", tcp("allow", 3)))
	expectStatus(t, rig, "known profile", "up")
	expect(t, rig, "the profile came", toPort(3), true)
}

func (s Suite) egress(t *testing.T) {
	rig := s.New(t)
	rig.Step(Open(), set("far", far4.String()), Policy("t", "p", &proto.Rule{Action: "allow", Protocol: protocol("tcp"),
		DstIpSetIds: []string{"far"}, DstPorts: ports(80)}),
		Web(Tiers(&proto.TierInfo{Name: "t", EgressPolicies: []string{"p"}})))
	if !rig.Allowed("web", false, fromWeb(80)) || rig.Allowed("web", false, fromWeb(81)) {
		t.Errorf("egress\n%s", rig.Text())
	}
	expect(t, rig, "ingress has the profile", toWeb(4), true)
	rig.Step(set("far", "192.0.2.77"))
	if rig.Allowed("web", false, fromWeb(80)) {
		t.Error("egress to an address that the set has lost")
	}
}

func (s Suite) sets(t *testing.T) {
	rig := s.web(t, fromSet("allow", "peers"))
	from := func(what, src string, want bool) {
		t.Helper()
		expect(t, rig, what, from(src), want)
	}
	from("unknown set", "198.51.100.1", false)
	rig.Step(set("peers"))
	from("empty set", "198.51.100.1", false)
	rig.Step(set("peers", "198.51.100.1", "fd00:9::1"))
	from("member", "198.51.100.1", true)
	from("member of the other family", "fd00:9::1", true)
	rig.Step(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"198.51.100.2"}, RemovedMembers: []string{"198.51.100.1"}})
	from("removed", "198.51.100.1", false)
	from("added", "198.51.100.2", true)
	rig.Step(&proto.IPSetDeltaUpdate{Id: "peers", RemovedMembers: []string{"198.51.100.2", "fd00:9::1"}})
	from("the last one removed: nothing is left, which is not everything", "198.51.100.2", false)
	from("nor is anything else", "198.51.100.3", false)
	rig.Step(&proto.IPSetUpdate{Id: "peers", Type: proto.IPSetUpdate_NET, Members: []string{"198.51.0.0/16"}})
	from("of another type", "198.51.77.1", true)
	rig.Step(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"nonsense"}})
	from("a member that makes no sense closes the set", "198.51.77.1", false)
	rig.Step(&proto.IPSetDeltaUpdate{Id: "peers", RemovedMembers: []string{"nonsense"}})
	from("and opens it when it goes", "198.51.77.1", true)
	before := rig.Writes()
	rig.Step(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{"198.51.0.0/16"}})
	if got := rig.Writes() - before; got > 0 {
		t.Errorf("a member that is there already wrote %d times", got)
	}
	rig.Step(&proto.IPSetRemove{Id: "peers"})
	from("removed set", "198.51.77.1", false)
	rig.Step(&proto.IPSetDeltaUpdate{Id: "never heard of", AddedMembers: []string{"10.0.0.1"}}, &proto.IPSetRemove{Id: "never heard of"})
}

func (s Suite) policies(t *testing.T) {
	rig := s.New(t)
	rig.Step(Open(), Web(Tiers(Ingress("t", "p"))))
	expect(t, rig, "unknown policy", toPort(80), false)
	expectStatus(t, rig, "unknown policy", "error")
	rig.Step(Policy("t", "p", tcp("allow", 80)))
	expect(t, rig, "policy", toPort(80), true)
	expectStatus(t, rig, "policy", "up")
	rig.Step(Policy("t", "p", tcp("allow", 81)))
	expect(t, rig, "changed", toPort(80), false)
	expect(t, rig, "changed", toPort(81), true)
	before := rig.Writes()
	rig.Step(Policy("t", "p", tcp("allow", 81)), Web(Tiers(Ingress("t", "p"))))
	if got := rig.Writes() - before; got > 0 {
		t.Errorf("what changes nothing wrote %d times", got)
	}
	rig.Step(Policy("t", "p"))
	expect(t, rig, "without rules", toPort(81), false)
	rig.Step(noPolicy("t", "p"))
	expect(t, rig, "removed while in use", toPort(81), false)
	rig.Step(noPolicy("t", "never heard of"), &proto.ActiveProfileRemove{Id: &proto.ProfileID{Name: "never heard of"}})
	id := &proto.PolicyID{Name: "p", Namespace: "ns", Kind: "NetworkPolicy"}
	rig.Step(&proto.ActivePolicyUpdate{Id: id, Policy: &proto.Policy{Tier: "t", InboundRules: []*proto.Rule{tcp("allow", 82)}}})
	expect(t, rig, "newer senders name the tier in the policy", toPort(82), true)
	rig.Step(&proto.ActivePolicyRemove{Id: id})
	expect(t, rig, "and leave it out of a removal", toPort(82), false)
	rig.Step(Web(func(ep *proto.WorkloadEndpoint) { ep.State = "down" }))
	expect(t, rig, "admin state is down", toPort(82), false)
	expectStatus(t, rig, "admin state is down", "down")
	rig.Step(&proto.WorkloadEndpointRemove{Id: workload("web")})
	expectStatus(t, rig, "removed", "")
}

// newRandom returns a generator that yields the same numbers in each run.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }
