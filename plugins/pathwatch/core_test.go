package pathwatch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// sim is a data path with faults: it produces the rounds that a driver would see.
type sim struct {
	t      *testing.T
	core   *core
	now    time.Time
	uplink Link
	host   Link
	limit  uint64

	frozen, noVPP, gatewayOff       bool
	stuck, deaf, hostDeaf, hostMute bool
	ambient                         uint64          // frames per round from other senders
	off                             map[string]bool // nodes that do not respond
	noIPv6                          bool
	used, refused                   uint64
	nat44                           bool // the table reports refused sessions
	keeps                           bool // the table keeps its sessions
	refusing                        []Refusing
	actions                         []string
}

func newSim(t *testing.T, nodes int) *sim {
	s := &sim{
		t: t, core: newCore(defaultTimes()), now: time.Unix(1_800_000_000, 0), off: map[string]bool{}, limit: 1000,
		uplink: Link{Device: "eth1", Key: "uplink", Present: true, Carrier: true, Counts: true},
		host:   Link{Device: "vpp1", Key: "host", Present: true, Carrier: true, Counts: true},
	}
	s.join(nodes)
	return s
}

// join makes this node, number 1, a member of a cluster with this many nodes.
func (s *sim) join(nodes int) {
	var list []Peer
	for id := 2; id <= nodes; id++ {
		list = append(list, Peer{Name: fmt.Sprintf("n%d", id), ID: uint32(id), Addrs: []netip.Addr{
			netip.AddrFrom4([4]byte{10, 1, byte(id >> 8), byte(id)}), netip.MustParseAddr(fmt.Sprintf("fd10::%x", id)),
		}})
	}
	s.core.SetPeers(1, list)
}

// run simulates seconds.
func (s *sim) run(seconds int) {
	for range seconds {
		s.now = s.now.Add(time.Second)
		if a := s.core.Step(s.round()); !a.None() {
			s.actions = append(s.actions, fmt.Sprintf("%s%v", a.Recreate, map[bool]string{true: "resync"}[a.Resync]))
		}
	}
}

func (s *sim) round() Round {
	r := Round{At: s.now, Alive: !s.frozen, Gateway: answered, Sessions: Sessions{Used: s.used, Limit: s.limit,
		CountsRefused: s.nat44, Refused: s.refused, Keeps: s.keeps, ListCommand: map[bool]string{true: "vppctl show contiv endpoints"}[s.keeps]},
		Refusing: s.refusing}
	r.Peers = s.core.Query()
	hostWorks := !s.hostDeaf && !s.hostMute && !s.gatewayOff && !s.frozen
	n := uint64(len(r.Peers))
	s.host.Brought += n + 1
	if !s.hostDeaf && !s.frozen {
		s.host.Taken += n + 1
		s.host.Offered++
		if !s.hostMute {
			s.host.Sent++
		}
	}
	if !hostWorks {
		r.Gateway = silent
	} else {
		s.query(r.Peers)
	}
	s.uplink.Brought += s.ambient
	if !s.deaf {
		s.uplink.Taken += s.ambient
	}
	if s.noVPP {
		r.Gateway = notQueried
	} else {
		host := s.host
		r.Host = &host
	}
	up := s.uplink
	r.Uplink = &up
	return r
}

func (s *sim) query(queried []queriedPeer) {
	for i := range queried {
		s.uplink.Offered++
		if s.stuck {
			s.uplink.Refused++
			continue
		}
		if !s.uplink.Carrier || !s.uplink.Present {
			continue
		}
		s.uplink.Sent++
		if s.off[queried[i].Node] || s.noIPv6 && queried[i].Addr.Is6() {
			continue
		}
		s.uplink.Brought++
		if !s.deaf {
			s.uplink.Taken++
			queried[i].OK = true
		}
	}
}

// says checks the causes, and whether the node is ready.
func (s *sim) says(ready bool, kinds ...Kind) {
	s.t.Helper()
	var got []Kind
	state := s.core.State()
	for _, c := range state.Causes {
		got = append(got, c.Kind)
	}
	if !slices.Equal(got, kinds) {
		s.t.Errorf("causes %v, want %v", state.Causes, kinds)
	}
	if err := state.Ready(); (err == nil) != ready {
		s.t.Errorf("ready: %v", err)
	}
}

func (s *sim) did(actions ...string) {
	s.t.Helper()
	if !slices.Equal(s.actions, actions) {
		s.t.Errorf("actions %v, want %v", s.actions, actions)
	}
	s.actions = nil
}

// TestFaults checks that each fault is detected within 5 s, has its own name, and ends within 3 s after its end.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name    string
		nodes   int
		fault   func(s *sim)
		mend    func(s *sim)
		kinds   []Kind
		ready   bool
		actions []string
	}{
		{"the uplink's ring is wedged", 5, func(s *sim) { s.stuck = true }, func(s *sim) { s.stuck = false },
			[]Kind{UplinkStuck}, false, []string{"uplink"}},
		{"also in a cluster of two", 2, func(s *sim) { s.stuck = true }, func(s *sim) { s.stuck = false },
			[]Kind{UplinkStuck}, false, []string{"uplink"}},
		{"VPP takes nothing from the uplink", 5, func(s *sim) { s.deaf = true }, func(s *sim) { s.deaf = false },
			[]Kind{UplinkDeaf}, false, []string{"uplink"}},
		{"also in a cluster of two", 2, func(s *sim) { s.deaf = true }, func(s *sim) { s.deaf = false },
			[]Kind{UplinkDeaf}, false, []string{"uplink"}},
		{"the cable is out", 5, func(s *sim) { s.uplink.Carrier = false }, func(s *sim) { s.uplink.Carrier = true },
			[]Kind{UplinkDown}, false, nil},
		{"the device has gone", 5, func(s *sim) { s.uplink.Present = false }, func(s *sim) { s.uplink.Present = true },
			[]Kind{UplinkDown}, false, []string{"resync"}},
		{"the cable of a node alone is out", 1, func(s *sim) { s.uplink.Carrier = false }, func(s *sim) { s.uplink.Carrier = true },
			[]Kind{UplinkDown}, true, nil},
		{"a peer is off", 5, func(s *sim) { s.off["n3"] = true }, func(s *sim) { s.off["n3"] = false },
			[]Kind{PeerUnreachable}, true, nil},
		{"the only peer is off", 2, func(s *sim) { s.off["n2"] = true }, func(s *sim) { s.off["n2"] = false },
			[]Kind{PeerUnreachable}, true, []string{"resync"}},
		{"all peers are off, others can be heard", 3, func(s *sim) { s.off["n2"], s.off["n3"], s.ambient = true, true, 1 },
			func(s *sim) { clear(s.off) }, []Kind{NoPeerAnswers}, true, []string{"resync"}},
		{"nothing is heard at all", 3, func(s *sim) { s.off["n2"], s.off["n3"] = true, true },
			func(s *sim) { clear(s.off) }, []Kind{UplinkSilent}, false, []string{"resync"}},
		{"the host's link: VPP takes nothing", 3, func(s *sim) { s.hostDeaf = true }, func(s *sim) { s.hostDeaf = false },
			[]Kind{GatewayUnreachable}, false, []string{"host"}},
		{"the host's link: nothing comes out", 3, func(s *sim) { s.hostMute = true }, func(s *sim) { s.hostMute = false },
			[]Kind{GatewayUnreachable}, false, []string{"host"}},
		{"the gateway is silent on a link that works", 3, func(s *sim) { s.gatewayOff = true }, func(s *sim) { s.gatewayOff = false },
			[]Kind{GatewayUnreachable}, false, []string{"resync"}},
		{"NAT is full", 3, func(s *sim) { s.used = 1000 }, func(s *sim) { s.used = 500 }, []Kind{NATTableFull}, false, nil},
		{"NAT fills", 3, func(s *sim) { s.used = 900 }, func(s *sim) { s.used = 500 }, []Kind{NATTableFilling}, true, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSim(t, tc.nodes)
			s.run(10)
			s.says(true)
			s.did()
			tc.fault(s)
			s.run(5)
			s.says(tc.ready, tc.kinds...)
			s.did(tc.actions...)
			tc.mend(s)
			s.run(4)
			s.says(true)
			s.did()
		})
	}
}

// TestNoFaults checks events that are not faults: one or two lost answers, a VPP that stops for a moment, a joining peer, a family that two
// nodes do not have in common, traffic in one direction only.
func TestNoFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		play func(s *sim)
	}{
		{"two lost answers", func(s *sim) { s.off["n2"], s.off["n3"] = true, true; s.run(2); clear(s.off) }},
		{"VPP stands still for 8 s", func(s *sim) { s.frozen = true; s.run(8); s.says(true); s.frozen = false }},
		{"a peer joins, and its VPP comes after 20 s", func(s *sim) {
			s.off["n4"] = true
			s.join(4)
			s.run(20)
			s.says(true)
			clear(s.off)
		}},
		{"a peer that is off leaves", func(s *sim) { s.off["n3"] = true; s.run(5); s.says(true, PeerUnreachable); s.join(2); s.run(2) }},
		{"the interface was made again: counters begin at 0", func(s *sim) {
			s.uplink.Offered, s.uplink.Taken, s.uplink.Refused = 0, 0, 0
		}},
		{"the link flaps for a second", func(s *sim) { s.uplink.Carrier = false; s.run(1); s.uplink.Carrier = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSim(t, 3)
			s.run(10)
			tc.play(s)
			s.run(5)
			s.says(true)
			s.did()
		})
	}
}

// TestFamilies checks that IPv6 between nodes that have never had it is not a fault, and that IPv6 that was lost is one.
func TestFamilies(t *testing.T) {
	s := newSim(t, 3)
	s.noIPv6 = true
	s.run(100)
	s.says(true)
	s.noIPv6 = false
	s.run(5)
	s.noIPv6 = true
	s.run(5)
	s.says(true, PeerUnreachable)
}

// TestPeerThatNeverAnswers checks that a peer that never answers is finally reported.
func TestPeerThatNeverAnswers(t *testing.T) {
	s := newSim(t, 3)
	s.off["n3"] = true
	s.run(29)
	s.says(true)
	s.run(4)
	s.says(true, PeerUnreachable)
}

// TestPeerIsLostWhileOthersJoin checks that a node that loses the only peer that has answered compares its dataplane, also when others have
// just joined.
func TestPeerIsLostWhileOthersJoin(t *testing.T) {
	s := newSim(t, 2)
	s.run(10)
	s.off["n2"], s.off["n3"] = true, true
	s.join(3)
	s.run(5)
	s.says(true, PeerUnreachable)
	s.did("resync")
	clear(s.off)
	s.run(4)
	s.says(true)
}

// TestHealingBacksOff checks that a repair that does not help is repeated with growing pauses, and after a long time without faults with
// short ones.
func TestHealingBacksOff(t *testing.T) {
	s := newSim(t, 3)
	s.run(10)
	s.stuck = true
	var at []int
	for i := range 3600 {
		s.run(1)
		if len(s.actions) > 0 {
			at = append(at, i+1)
			s.core.Recreated()
			s.actions = nil
		}
	}
	want := []int{4, 19, 49, 109, 229, 469, 949, 1549, 2149, 2749, 3349}
	if !slices.Equal(at, want) {
		t.Errorf("attempts after %v s, want %v", at, want)
	}
	s.stuck = false
	s.run(1000)
	s.says(true)
	s.stuck = true
	s.run(4)
	s.did("uplink")
	s.run(15)
	s.did("uplink")
}

// TestHealingThatHelpsForAMoment checks that pauses become short only after a while: a link that gets stuck repeatedly is not created again
// all the time.
func TestHealingThatHelpsForAMoment(t *testing.T) {
	s := newSim(t, 3)
	n := 0
	for range 3600 {
		s.run(1)
		if len(s.actions) > 0 {
			s.stuck, s.actions = false, nil
			s.core.Recreated()
			n++
		} else {
			s.stuck = true
		}
	}
	if n > 12 {
		t.Errorf("%d times in an hour", n)
	}
}

// TestPause checks that a dataplane that is being programmed is not checked.
func TestPause(t *testing.T) {
	s := newSim(t, 3)
	s.run(10)
	s.stuck = true
	for range 10 {
		s.run(2)
		s.core.Pause()
	}
	s.says(true)
	s.did()
}

// TestSeveralCauses checks that the worst cause is reported and repaired first.
func TestSeveralCauses(t *testing.T) {
	s := newSim(t, 3)
	s.run(10)
	s.used, s.stuck = 1000, true
	s.run(5)
	s.says(false, UplinkStuck, NATTableFull)
	err := s.core.State().Ready()
	if err == nil || !strings.HasPrefix(err.Error(), "data path: UplinkStuck: eth1 transmits none of the frames that VPP has for it: ") ||
		!strings.Contains(err.Error(), "; NATTableFull: 1000 of 1000 sessions are taken") {
		t.Errorf("%v", err)
	}
}

// TestTableThatKeeps checks that a table that refuses connections and keeps existing ones reports both: that it is filling, and that it is
// full.
func TestTableThatKeeps(t *testing.T) {
	s := newSim(t, 3)
	s.nat44, s.keeps, s.refused = true, true, 1000
	s.run(5)
	s.used = 840
	s.run(5)
	s.says(true)
	s.used = 860
	s.run(5)
	s.says(true, NATTableFilling)
	for range 5 {
		s.refused += 4
		s.run(1)
	}
	s.says(false, NATTableFull)
	if err := s.core.State().Ready(); err == nil || !strings.Contains(err.Error(), "vppctl show contiv endpoints lists them") {
		t.Errorf("%v", err)
	}
	s.used = 100
	s.run(15)
	s.says(true)
	s.did()
}

// TestConnectionLimit checks that a sender at its limit is reported by name, while the node stays ready, and that other senders are not
// reported.
func TestConnectionLimit(t *testing.T) {
	s := newSim(t, 3)
	s.refusing = []Refusing{{Name: "ns/greedy", Open: 100, Refused: 5000}, {Name: "ns/good", Open: 3}}
	s.run(15)
	s.says(true) // refused a long time ago
	s.refusing[0].Refused += 9
	s.refusing[1].Refused += 9
	s.run(5)
	s.says(true)
	s.refusing[0].Refused += 20
	s.run(5)
	s.says(true, ConnectionLimit)
	causes := s.core.State().Causes
	if c := causes[0]; len(causes) != 1 || c.Object != "ns/greedy" || !strings.Contains(c.Text, "it has 100 connections") {
		t.Errorf("%+v", causes)
	}
	s.run(15)
	s.says(true)
	s.refusing[0].Refused += 20
	s.run(3)
	s.says(true, ConnectionLimit)
	s.refusing = s.refusing[1:] // the pod is deleted
	s.run(5)
	s.says(true)
	s.did()
}

// TestTableThatCountsRefusals checks that a table of NAT44 is full when it refuses sessions, and not when it holds many: these may have
// ended.
func TestTableThatCountsRefusals(t *testing.T) {
	s := newSim(t, 3)
	s.nat44, s.refused = true, 1000 // from a long time ago
	s.run(5)
	s.used = s.limit
	s.run(100)
	s.says(true)
	s.refused += 9 // a few, once
	s.run(15)
	s.says(true)
	s.refused++
	s.run(5)
	s.says(true)
	for range 5 {
		s.refused += 4
		s.run(1)
	}
	s.says(false, NATTableFull)
	s.run(8)
	s.says(false, NATTableFull)
	s.run(5)
	s.says(true)
	s.did()
	s.refused = 0 // another VPP
	s.run(5)
	s.says(true)
}

// TestLinux: without VPP no gateway is probed, and only the device of the uplink is checked.
func TestLinux(t *testing.T) {
	s := newSim(t, 3)
	s.noVPP = true
	s.run(10)
	s.uplink.Carrier = false
	s.run(3)
	s.says(false, UplinkDown)
	s.uplink.Carrier = true
	s.run(3)
	s.says(true)
}

// TestProbedNodes checks that a node probes as many others in a cluster of a thousand as in one of seven. Each node is probed by its two
// witnesses in every round, and by all nodes over time; silent nodes are soon probed again.
func TestProbedNodes(t *testing.T) {
	const nodes = 1000
	s := newSim(t, nodes)
	seen := map[string]int{}
	for range nodes / turnPeers {
		queried := s.core.Query()
		if n := len(queried) / 2; n != nearPeers+turnPeers {
			t.Fatalf("%d peers are asked", n)
		}
		for _, a := range queried {
			seen[a.Node]++
		}
	}
	if len(seen) != nodes-1 || seen["n1000"] < nodes/turnPeers || seen["n999"] < nodes/turnPeers {
		t.Errorf("%d nodes were asked; n1000 %d times, n999 %d times", len(seen), seen["n1000"], seen["n999"])
	}
	// Two nodes are near to each node.
	near := map[string]int{}
	for self := uint32(1); self <= 7; self++ {
		var list []Peer
		for id := uint32(1); id <= 7; id++ {
			if id != self {
				list = append(list, Peer{Name: fmt.Sprint(id), ID: id})
			}
		}
		for _, p := range new(picker).set(self, list) {
			if p.Near {
				near[p.Name]++
			}
		}
	}
	for id := range 7 {
		if near[fmt.Sprint(id+1)] != 2 {
			t.Errorf("near: %v", near)
		}
	}
}

// TestWitnesses checks that in a large cluster only the witnesses of a silent peer report it to Kubernetes.
func TestWitnesses(t *testing.T) {
	for node, quiet := range map[string]bool{"n1000": false, "n500": true} {
		s := newSim(t, 1000)
		s.run(600) // all nodes have answered
		s.off[node] = true
		for range 600 {
			s.run(1)
			if len(s.core.State().Causes) > 0 {
				break
			}
		}
		s.says(true, PeerUnreachable)
		if c := s.core.State().Causes; len(c) == 1 && (c[0].Quiet != quiet || c[0].Object != node) {
			t.Errorf("%s: %+v", node, c[0])
		}
	}
}

// TestManySilentPeers checks that with many silent peers only a few are named, and the number of probes stays the same.
func TestManySilentPeers(t *testing.T) {
	s := newSim(t, 100)
	s.run(100)
	for id := 2; id < 52; id++ {
		s.off[fmt.Sprintf("n%d", id)] = true
	}
	s.run(300)
	s.says(true, PeerUnreachable)
	if n := len(s.core.Query()) / 2; n != nearPeers+turnPeers+suspectPeers {
		t.Errorf("%d peers are asked", n)
	}
	if state := s.core.State(); state.Peers.Silent != 100 || len(state.Causes[0].Text) > 300 ||
		!strings.HasSuffix(state.Causes[0].Text, " and 95 more") {
		t.Errorf("%+v", state)
	}
	clear(s.off)
	s.run(200)
	s.says(true)
}

func BenchmarkRound(b *testing.B) {
	for _, nodes := range []int{10, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			s := newSim(&testing.T{}, nodes)
			s.run(nodes)
			for b.Loop() {
				s.run(1)
				_ = s.core.State()
			}
		})
	}
}
