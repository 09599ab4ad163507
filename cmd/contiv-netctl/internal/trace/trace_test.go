package trace

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/diag"
)

func recorded(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var flow = Flow{Source: netip.MustParseAddr("10.1.1.2"), Dest: netip.MustParseAddr("10.1.2.2"), Proto: "icmp"}

func interfaces() []diag.Interface {
	return []diag.Interface{
		{Index: 1, Name: "host-eth1", Logical: "host-eth1"}, {Index: 4, Name: "loop14431", Logical: "vxlanBVI"},
		{Index: 6, Name: "tap1", Logical: "vpp-tap-x", Pod: "default/pod"},
	}
}

func TestVPPPacketIsFoundAndFollowedOnBothNodes(t *testing.T) {
	from := Read("n1", &diag.Capture{Dataplane: "vpp", Text: recorded(t, "vpp-sender.txt"), Interfaces: interfaces()}, flow)
	to := Read("n2", &diag.Capture{Dataplane: "vpp", Text: recorded(t, "vpp-receiver.txt"), Interfaces: interfaces()}, flow)
	if p := from.There; p.Outcome != Sent || p.Out != "host-eth1" || p.Hops[0].What != "received from pod default/pod (tap1)" {
		t.Errorf("at the sender's node: %+v", p)
	}
	if p := to.There; p.Outcome != Sent || p.Out != "pod default/pod (tap1)" || p.Hops[0].What == p.Hops[1].What {
		t.Errorf("at the receiver's node: %+v", p)
	}
	if from.Back.Outcome != Sent || to.Back.Outcome != Sent || to.Back.Out != "host-eth1" {
		t.Errorf("the answer: %+v, then %+v", to.Back, from.Back)
	}
	other := flow
	other.Dest = netip.MustParseAddr("10.1.2.22")
	if p := Read("n1", from.Capture, other).There; p.Outcome != NotSeen {
		t.Errorf("a packet to %s was never sent: %+v", other.Dest, p)
	}
	withPort := flow
	withPort.Proto, withPort.Port = "tcp", 80
	if p := Read("n1", from.Capture, withPort).There; p.Outcome != NotSeen {
		t.Errorf("an echo request is taken for TCP: %+v", p)
	}
}

func TestVPPDropHasItsReason(t *testing.T) {
	s := Read("n1", &diag.Capture{Dataplane: "vpp", Text: recorded(t, "vpp-fib-miss.txt"), Interfaces: interfaces()}, flow)
	if s.There.Outcome != Dropped || !strings.Contains(s.There.Reason, "L2 forward misses") || !strings.Contains(s.There.Reason,
		"vxlanBVI") {
		t.Errorf("%+v", s.There)
	}
	v := Explain(s, Side{Node: "n2", There: Path{Outcome: NotSeen}}, &diag.ProbeResult{Sent: 1, Errors: []string{"no reply"}})
	if v.Delivered || v.Lost != "n1" || !strings.Contains(v.Text, "dropped on n1: l2-fwd: L2 forward misses") {
		t.Errorf("%+v", v)
	}
}

func TestPortIsLookedFor(t *testing.T) {
	text := "Packet 1\n\n00:00:01:000001: ip4-input\n  TCP: 10.1.1.2 -> 10.1.2.2\n    tos 0x00\n  TCP: 4711 -> %d\n" +
		"00:00:01:000002: drop\n  ip4-input: some reason\n"
	f := flow
	f.Proto, f.Port = "tcp", 80
	for port, want := range map[string]Outcome{"80": Dropped, "8080": NotSeen} {
		c := &diag.Capture{Dataplane: "vpp", Text: strings.ReplaceAll(text, "%d", port)}
		if got := Read("n", c, f).There.Outcome; got != want {
			t.Errorf("a packet to port %s: %s, want %s", port, got, want)
		}
	}
}

func TestNftPath(t *testing.T) {
	text := recorded(t, "nft-sender.txt")
	s := Read("n1", &diag.Capture{Dataplane: "linux", Text: text}, flow)
	if s.There.Outcome != Sent || s.There.Out != "contiv-vxlan" || s.Back.Outcome != Sent {
		t.Errorf("there %+v, back %+v", s.There, s.Back)
	}
	id := strings.Fields(text)[2]
	text += "trace id " + id + " ip fw f rule ip daddr 10.1.2.2 drop (verdict drop)\n"
	s = Read("n1", &diag.Capture{Dataplane: "linux", Text: text}, flow)
	if s.There.Outcome != Dropped || !strings.Contains(s.There.Reason, "ip fw f") {
		t.Errorf("dropped by a rule: %+v", s.There)
	}
	policy := "trace id 1 ip t c packet: iif \"x\" ip saddr 10.1.1.2 ip daddr 10.1.2.2 ip ttl 64\ntrace id 1 ip t c policy drop\n"
	if s = Read("n1", &diag.Capture{Dataplane: "linux", Text: policy}, flow); s.There.Reason != "the policy of ip t c" {
		t.Errorf("dropped by a policy: %+v", s.There)
	}
}

func TestExplain(t *testing.T) {
	sent, unseen := Path{Outcome: Sent, Out: "eth1"}, Path{Outcome: NotSeen}
	toPod := Path{Outcome: Sent, Out: "pod default/c (tap1)"}
	dropped := Path{Outcome: Dropped, Reason: "a reason"}
	onVPP := &diag.Capture{Dataplane: "vpp"}
	toRing := Path{Outcome: Unknown, Hops: []Hop{{Stage: "ip4-rewrite"}, {Stage: "tap1-output"}}}
	noRoute := []diag.Fact{{Where: "pod", What: "route", Text: "to 10.1.2.2: no route", Problem: true}}
	for _, tc := range []struct {
		name      string
		from, to  Side
		received  int
		delivered bool
		lost      string
		text      string
	}{
		{"answered", Side{Node: "a"}, Side{Node: "b"}, 1, true, "", "reply received in 1.50 ms"},
		{"never sent", Side{Node: "a", There: unseen, Facts: noRoute}, Side{Node: "b"}, 0, false, "a",
			"route of the pod to 10.1.2.2: no route"},
		{"dropped at home", Side{Node: "a", There: dropped}, Side{Node: "b"}, 0, false, "a", "dropped on a: a reason"},
		{"on the wire", Side{Node: "a", There: sent}, Side{Node: "b", There: unseen}, 0, false, "a – b", "lost between the nodes"},
		{"dropped there", Side{Node: "a", There: sent}, Side{Node: "b", There: dropped}, 0, false, "b", "dropped on b: a reason"},
		{"no process listens", Side{Node: "a", There: sent}, Side{Node: "b", There: toPod, Back: unseen}, 0, true, "b",
			"check that a program listens"},
		{"answer dropped", Side{Node: "a", There: sent}, Side{Node: "b", There: toPod, Back: dropped}, 0, true, "b",
			"reply was dropped on b"},
		{"answer lost", Side{Node: "a", There: sent, Back: unseen}, Side{Node: "b", There: toPod, Back: sent}, 0, true, "b – a",
			"reply was lost"},
		{"answer dropped at home", Side{Node: "a", There: sent, Back: dropped}, Side{Node: "b", There: toPod, Back: sent}, 0, true,
			"a", "dropped on a"},
		{"to the outside", Side{Node: "a", There: sent, Back: unseen}, Side{Node: "a", There: sent, Back: unseen}, 0, false, "a",
			"left a by eth1, and no reply"},
		{"link of the pod down", Side{Node: "a", There: sent}, Side{Node: "b", There: toPod, Back: unseen,
			Facts: []diag.Fact{{Where: "node", What: "link", Text: "cali1 is down", Problem: true}}}, 0, false, "b",
			"should reach pod default/c (tap1) on b, but: link of the node cali1 is down"},
		{"answer lost by the kernel", Side{Node: "a", There: sent, Back: Path{Outcome: Unknown}}, Side{Node: "b", There: toPod,
			Back: sent}, 0, true, "a", "came back to a, was lost there: no rule of nf_tables dropped it"},
		{"lost by the kernel", Side{Node: "a", There: Path{Outcome: Unknown}}, Side{Node: "b", There: unseen}, 0, false, "a",
			"lost on a: no rule of nf_tables dropped it"},
		{"a full ring", Side{Node: "a", There: sent}, Side{Node: "b", There: toRing, Capture: onVPP, Drops: []diag.ErrorCount{
			{Where: "tap2-tx", Reason: "no free tx slots", Count: 1}, {Where: "tap1-tx", Reason: "no free tx slots", Count: 7}}}, 0, false, "b",
			"lost on b: tap1-tx drops packets: no free tx slots (7 during the trace)"},
		{"lost in VPP without a reason", Side{Node: "a", There: toRing, Capture: onVPP}, Side{Node: "b", There: unseen}, 0, false, "a",
			"lost on a: VPP's record of it ends in tap1-output"},
		{"to the node itself", Side{Node: "a", There: Path{Outcome: Local}, Back: unseen}, Side{Node: "a",
			There: Path{Outcome: Local}, Back: unseen}, 0, true, "a", "delivered to the node a itself"},
		{"same node", Side{Node: "a", There: toPod, Back: unseen}, Side{Node: "a", There: toPod, Back: unseen}, 0, true, "a",
			"no reply"},
	} {
		probe := &diag.ProbeResult{Sent: 1, Received: tc.received, RTTMs: []float64{1.5}}
		v := Explain(tc.from, tc.to, probe)
		if v.Delivered != tc.delivered || v.Lost != tc.lost || !strings.Contains(v.Text, tc.text) {
			t.Errorf("%s: %+v", tc.name, v)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("Packet 1\n\n00:00:01:000001: ip4-input\n  ICMP: 10.1.1.2 -> 10.1.2.2\n")
	f.Add("trace id 1 ip t c packet: iif \"x\" ip saddr 10.1.1.2 ip daddr 10.1.2.2\n")
	f.Fuzz(func(_ *testing.T, text string) {
		for _, dataplane := range []string{"vpp", "linux"} {
			s := Read("n", &diag.Capture{Dataplane: dataplane, Text: text, Interfaces: interfaces()}, flow)
			Explain(s, s, nil)
			Explain(s, s, &diag.ProbeResult{Received: 1}) // an answer without a time: the data of an agent can have any form
			s = Read("n", &diag.Capture{Dataplane: dataplane, Text: text, Interfaces: interfaces()}, toService)
			ExplainService(&Service{}, s, &s, nil)
		}
	})
}
