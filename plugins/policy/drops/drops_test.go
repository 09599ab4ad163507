package drops

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/plugins/policy/model"
)

var begin = time.Unix(1700000000, 0)

func packet(at int, from, to string, port uint16) denied.Flow {
	return denied.Flow{Time: begin.Add(time.Duration(at) * time.Second), Ingress: true, Protocol: 6,
		Source: netip.AddrPortFrom(netip.MustParseAddr(from), uint16(40000+at%1000)), Dest: netip.AddrPortFrom(netip.MustParseAddr(to), port)}
}

func of(pod string) Verdict {
	return Verdict{Pod: model.EndpointID{Namespace: "ns", Name: pod}}
}

// TestFlows checks that packets of a flow are counted together, for any source port, and that the newest flow comes first.
func TestFlows(t *testing.T) {
	s := New()
	if !s.Note(packet(1, "10.0.0.9", "10.0.0.1", 80), of("web"), "ns/p") || s.Note(packet(2, "10.0.0.9", "10.0.0.1", 80), of("web"), "ns/p") ||
		!s.Note(packet(3, "10.0.0.9", "10.0.0.1", 81), of("web"), "ns/p") {
		t.Error("new flows are not told from known ones")
	}
	got := s.Flows(time.Time{})
	if len(got) != 2 || got[0].Dest.Port() != 81 || got[1].Count != 2 || !got[1].First.Equal(begin.Add(time.Second)) || got[1].Source.Port() != 40002 {
		t.Errorf("%+v", got)
	}
	if got := s.Flows(begin.Add(2 * time.Second)); len(got) != 1 {
		t.Errorf("after 2 s: %+v", got)
	}
	if got := s.Counts(); len(got) != 1 || got[Label{"ns/p", true}] != 3 {
		t.Errorf("%v", got)
	}
}

// TestFlood checks that a pod that sends to all ports, and one that receives from many addresses, do not remove the flows of others, and
// that memory is bounded.
func TestFlood(t *testing.T) {
	s := New()
	s.Note(packet(0, "10.0.0.9", "10.0.0.1", 80), of("web"), "p")
	s.Note(packet(0, "10.0.0.9", "10.0.0.2", 80), of("other"), "p")
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20000 {
		s.Note(packet(i/200, "10.0.0.66", "10.0.0.1", uint16(r.Uint32())), of("web"), fmt.Sprint("policy", i))
	}
	for i, f := range s.Flows(time.Time{}) {
		if i > perPeer+2 {
			t.Fatalf("%d flows", len(s.Flows(time.Time{})))
		}
		if i > perPeer && f.Source.Addr() != netip.MustParseAddr("10.0.0.9") {
			t.Errorf("%+v", f)
		}
	}
	for i := range 20000 {
		from := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}).String()
		s.Note(packet(200+i/200, from, "10.0.0.1", 1), of("web"), "p")
	}
	if got := s.Flows(time.Time{}); len(got) != perPod+1 || got[perPod].Pod.Name != "other" {
		t.Errorf("%d flows, the oldest %+v", len(got), got[len(got)-1])
	}
	for i := range allFlows + 100 {
		s.Note(packet(400, "10.0.0.9", "10.0.0.1", 80), of(fmt.Sprint("pod", i)), "p")
	}
	if got := s.Flows(time.Time{}); len(got) > allFlows {
		t.Errorf("%d flows", len(got))
	}
	if got := len(s.Counts()); got > maxLabels+1 {
		t.Errorf("%d counters", got)
	}
}

func BenchmarkNoteFlood(b *testing.B) {
	s := New()
	for i := 0; b.Loop(); i++ {
		s.Note(packet(i, "10.0.0.66", "10.0.0.1", uint16(i)), of("web"), "p")
	}
}
