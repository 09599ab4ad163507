package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/internal/testbed"
	"contiv.dev/vswitch/plugins/pathwatch"
)

// path is what a node says of its data path.
func (w *world) path(n *testbed.Node) (r pathwatch.Report, err error) {
	err = n.GetJSON(w.ctx, pathwatch.Path, &r)
	return r, err
}

// tells waits until a node's causes are those given, and expects readiness and metrics to agree. It returns how long it took.
func (w *world) tells(n *testbed.Node, within time.Duration, ready bool, kinds ...pathwatch.Kind) time.Duration {
	w.t.Helper()
	start := time.Now()
	w.within(within, fmt.Sprintf("%s says %v", n.Name, kinds), func() error {
		r, err := w.path(n)
		if err != nil {
			return err
		}
		var got []pathwatch.Kind
		for _, c := range r.Causes {
			got = append(got, c.Kind)
		}
		if !slices.Equal(got, kinds) {
			return fmt.Errorf("it says %v", r.Causes)
		}
		return nil
	})
	took := time.Since(start)
	body, err := n.Get(w.ctx, "/readiness")
	if (err == nil) != ready {
		w.t.Errorf("%s: readiness with %v: %s %v", n.Name, kinds, body, err)
	}
	problems, err := n.Metric(w.ctx, "contiv_datapath_problem")
	w.must(err)
	if int(problems) != len(kinds) {
		w.t.Errorf("%s: %v problems in metrics, want %v", n.Name, problems, kinds)
	}
	var info diag.AgentInfo
	w.must(n.GetJSON(w.ctx, diag.AgentPath, &info))
	if text := fmt.Sprint(info.Problems, info.Warnings); len(kinds) > 0 && !strings.Contains(text, string(kinds[0])) {
		w.t.Errorf("%s: what check sees: %s, want %v", n.Name, text, kinds)
	}
	return took
}

// vppctl runs VPP's command line.
func (w *world) vppctl(n *testbed.Node, command string) string {
	w.t.Helper()
	out, err := n.Run(w.ctx, "vppctl", append([]string{"-s", n.VPP.CLISocket()}, strings.Fields(command)...)...)
	w.must(err)
	return out
}

// TestPeerIsCut: of three nodes one is off the network. The others report it and stay ready; it knows that it is its own cable.
func TestPeerIsCut(t *testing.T) {
	for _, m := range []mode{modes[0], modes[2]} {
		t.Run(m.String(), func(t *testing.T) {
			w := newWorld(t, m, 3)
			pods := w.podPerNode()
			w.mesh(pods)
			w.watched(w.Nodes...)
			w.must(w.Cut(w.ctx, 2))
			took := w.tells(w.Nodes[0], 20*time.Second, true, pathwatch.PeerUnreachable)
			w.tells(w.Nodes[1], 10*time.Second, true, pathwatch.PeerUnreachable)
			w.tells(w.Nodes[2], 10*time.Second, false, pathwatch.UplinkDown)
			t.Logf("a peer is missed after %s", took.Round(10*time.Millisecond))
			w.must(w.Mend(w.ctx, 2))
			for _, n := range w.Nodes {
				w.tells(n, 20*time.Second, true)
			}
			w.mesh(pods)
		})
	}
}

// watched waits until nodes have heard of each other.
func (w *world) watched(nodes ...*testbed.Node) {
	w.t.Helper()
	for _, n := range nodes {
		w.within(30*time.Second, n.Name+" hears its peers", func() error {
			r, err := w.path(n)
			if err == nil && (r.Peers.Unknown > 0 || r.Peers.Answering == 0 || len(r.Causes) > 0) {
				err = fmt.Errorf("it says %+v", r.State)
			}
			return err
		})
	}
}

// wedge makes the uplink's transmit ring stand still for good, as a packet too large for a frame of it does: VPP copies it over the
// frames that follow, and waits for one of them that the kernel will never send.
func (w *world) wedge(n *testbed.Node) {
	w.t.Helper()
	const size = 9000
	file := filepath.Join(n.Dir, "wedge.pg")
	w.must(os.WriteFile(file, fmt.Appendf(nil, "packet-generator new { name wedge limit 1 size %d-%d node host-%s-output "+
		"interface host-%s data { hex 0x%s } }\npacket-generator enable-stream wedge\n", size, size, testbed.UplinkNIC, testbed.UplinkNIC,
		strings.Repeat("02", size)), 0o600))
	w.t.Log(w.vppctl(n, "exec "+file))
}

// TestWedgedUplink: the uplink transmits nothing any more. The node notices, says so, makes the interface again under its pods, and
// traffic goes on.
func TestWedgedUplink(t *testing.T) {
	for _, m := range modes[:2] {
		t.Run(m.String(), func(t *testing.T) {
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			w.mesh(pods)
			n := w.Nodes[0]
			w.watched(n)
			w.wedge(n)
			start := time.Now()
			if pods[0].PingOnce(w.ctx, pods[1].IPs[0].String(), 0) == nil {
				t.Fatal("the uplink still transmits")
			}
			w.within(20*time.Second, "it is repaired", func() error {
				r, err := w.path(n)
				if err == nil && len(r.Repairs) == 0 {
					err = fmt.Errorf("it says %+v", r.State)
				}
				return err
			})
			t.Logf("repaired after %s", time.Since(start).Round(10*time.Millisecond))
			w.mesh(pods)
			t.Logf("pods reach each other after %s", time.Since(start).Round(10*time.Millisecond))
			w.tells(n, 10*time.Second, true)
			r, err := w.path(n)
			w.must(err)
			if rec := r.Repairs[0]; len(r.Repairs) != 1 || rec.Error != "" || !strings.HasPrefix(rec.Why, string(pathwatch.UplinkStuck)) {
				t.Errorf("repairs: %+v", r.Repairs)
			}
			t.Logf("repairs: %+v", r.Repairs)
		})
	}
}

// TestToldOnly: an agent that may not repair says what is wrong for as long as it is; the next one, which may, repairs it.
func TestToldOnly(t *testing.T) {
	w := newWorld(t, modes[0], 2)
	pods := w.podPerNode()
	w.mesh(pods)
	n := w.Nodes[0]
	w.must(n.Agent.Stop(30 * time.Second))
	w.must(n.StartAgent(w.ctx, "--datapath-repair=false"))
	w.watched(n)
	w.wedge(n)
	took := w.tells(n, 20*time.Second, false, pathwatch.UplinkStuck)
	t.Logf("noticed after %s", took.Round(10*time.Millisecond))
	pings, err := pods[0].Ping(w.ctx, pods[1].IPs[0].String(), 50, 100*time.Millisecond)
	w.must(err)
	if pings.Received > 0 {
		t.Errorf("the uplink transmits again by itself: %s", pings)
	}
	w.tells(n, time.Second, false, pathwatch.UplinkStuck)
	r, err := w.path(n)
	w.must(err)
	if len(r.Repairs) != 0 {
		t.Errorf("repairs: %+v", r.Repairs)
	}
	t.Logf("counters: %+v", *r.Uplink)
	if out := w.vppctl(n, "show hardware-interfaces host-eth1"); !strings.Contains(out, "available:") {
		t.Error(out)
	}
	w.must(n.Agent.Kill())
	w.must(n.LaunchAgent(w.ctx))
	w.mesh(pods)
	w.tells(n, 20*time.Second, true)
}
