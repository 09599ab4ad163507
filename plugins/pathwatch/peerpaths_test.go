package pathwatch

import (
	"encoding/json"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

// report returns the response of GET Path.
func report(t *testing.T, web mux) (rep Report) {
	t.Helper()
	rec := httptest.NewRecorder()
	web[Path](rec, httptest.NewRequest("GET", Path, nil))
	if err := json.Unmarshal(rec.Body.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestPathsAreReported checks that the path to each probed node is in the response, with the RTT, and is removed with its node.
func TestPathsAreReported(t *testing.T) {
	watched(t, func(t *testing.T, n *node, p *Plugin, web mux) {
		resync(t, p)
		time.Sleep(3*time.Second + 500*time.Millisecond)
		paths := report(t, web).Paths
		if len(paths) != 2 || paths[0].Node != "n2" || paths[1].Node != "n3" {
			t.Fatalf("paths to n2 and n3: %+v", paths)
		}
		for _, p := range paths {
			if p.State != PeerAnswers || p.RTTMs != 2 || time.Since(p.Queried) > 2*time.Second {
				t.Errorf("a path that works: %+v", p)
			}
		}
		n.with(func() { n.wedged = true })
		time.Sleep(time.Second)
		if p := report(t, web).Paths[0]; p.State != PeerMissed || p.RTTMs != 0 {
			t.Errorf("a path without one answer: %+v", p)
		}
		n.with(func() { delete(n.nodes, "n3") })
		resync(t, p)
		time.Sleep(2 * time.Second)
		if paths := report(t, web).Paths; len(paths) != 1 || paths[0].Node != "n2" {
			t.Errorf("after n3 has left: %+v", paths)
		}
	})
}

// TestSilentPeer checks that a peer that counts as down is silent, even if it has answered one probe.
func TestSilentPeer(t *testing.T) {
	b := book{}
	at := netip.MustParseAddr("10.1.2.1")
	b.note(time.Unix(1, 0), []queriedPeer{{Node: "n2", Addr: at, OK: true, Took: time.Millisecond}}, func(netip.Addr) bool { return true })
	if got := b.list(); len(got) != 1 || got[0].State != PeerSilent {
		t.Errorf("%+v", got)
	}
}
