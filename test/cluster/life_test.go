package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestNodeLeaves checks that everything of a released node is removed on the others, and that their traffic is not affected.
func TestNodeLeaves(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 3)
		pods := w.podPerNode()
		w.mesh(pods)
		gone := w.Nodes[2]
		stream := w.stream(pods[0], pods[1], 300)
		w.must(gone.Agent.Kill())
		_, err := w.Nodes[0].PostJSON(w.ctx, "/contiv/v1/nodes/release", fmt.Sprintf(`{"name": %q}`, gone.Name))
		w.must(err)
		for _, n := range w.Nodes[:2] {
			w.within(time.Minute, n.Name+" forgets the node", func() error { return w.mentions(n, 3) })
		}
		w.lost(stream, 0)
	}, defaultVPP)
}

// mentions returns an error if a node has objects that refer to the node with the ID.
func (w *world) mentions(n *testbed.Node, id int) error {
	dump, err := n.Get(w.ctx, "/scheduler/dump?view=applied")
	if err != nil {
		return err
	}
	for _, trace := range []string{fmt.Sprintf("10.1.%d.0/24", id), fmt.Sprintf("192.168.30.%d\"", id), fmt.Sprintf("vxlan-default-%d", id)} {
		if strings.Contains(dump, trace) {
			return fmt.Errorf("%s still has %s", n.Name, trace)
		}
	}
	if w.mode.dataplane == "vpp" {
		return nil
	}
	for _, cmd := range []string{"ip route", "ip neigh", "bridge fdb"} {
		out, err := n.Run(w.ctx, "sh", "-c", cmd)
		if err != nil {
			return err
		}
		for _, trace := range []string{fmt.Sprintf("10.1.%d.", id), fmt.Sprintf("192.168.30.%d ", id), fmt.Sprintf("12:2b:00:00:00:0%d ", id)} {
			if i := strings.Index(out, trace); i >= 0 {
				return fmt.Errorf("%s: %s still has %s: %s", n.Name, cmd, trace, out)
			}
		}
	}
	return nil
}

// TestMTU checks that packets of the size of pods' MTU are delivered without fragmentation, in both families; larger ones are
// rejected by the sender, or arrive in fragments; none is lost.
func TestMTU(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		pods := w.podPerNode()
		w.mesh(pods)
		want := testbed.UplinkMTU
		if m.transport == "vxlan" {
			want -= 50
		}
		out, err := pods[0].Run(w.ctx, "ip", "-o", "link", "show", "eth0")
		w.must(err)
		if !strings.Contains(out, fmt.Sprintf(" mtu %d ", want)) {
			t.Errorf("pods have another MTU than %d: %s", want, out)
		}
		for _, ip := range pods[1].IPs {
			w.within(time.Minute, "a packet of the MTU arrives", func() error { return pods[0].PingOnce(w.ctx, ip.String(), want) })
			if err := pods[0].PingOnce(w.ctx, ip.String(), want+1); err == nil || !strings.Contains(err.Error(), "message too long") {
				t.Errorf("a packet of %d bytes to %s is not refused: %v", want+1, ip, err)
			}
			_, err := pods[0].Run(w.ctx, "ping", "-n", "-c", "3", "-i", "0.05", "-W", "1", "-M", "dont", "-s", strconv.Itoa(3*want), ip.String())
			w.must(err)
		}
	})
}

// TestEtcdWiped stops etcd and starts it without data. No packet, ID or address is lost.
func TestEtcdWiped(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		pods := w.podPerNode()
		w.mesh(pods)
		stream := w.stream(pods[0], pods[1], 600)
		w.StopEtcd()
		pods = append(pods, w.pod(w.Nodes[0], "while-away"))
		w.must(w.reach(pods[2].Namespace, pods[1].IPs[0].String()))
		w.must(os.RemoveAll(w.EtcdDir()))
		w.must(os.MkdirAll(w.EtcdDir(), 0o700))
		w.must(w.StartEtcd(w.ctx))
		for i, n := range w.Nodes {
			w.within(time.Minute, "the record is back", func() error {
				var nodes struct {
					Nodes []struct {
						ID   int
						Name string
					}
				}
				if err := n.GetJSON(w.ctx, "/contiv/v1/nodes", &nodes); err != nil {
					return err
				}
				for _, got := range nodes.Nodes {
					if got.Name == n.Name && got.ID == i+1 {
						return nil
					}
				}
				return fmt.Errorf("%s with ID %d is not among %+v", n.Name, i+1, nodes.Nodes)
			})
		}
		w.lost(stream, 0)
		w.mesh(pods)
	})
}

// TestRandomKills kills agents under traffic without the loss of a packet, and VPPs with the loss of only the packets during
// their outage. CONTIV_CLUSTER_KILLS makes it last longer.
func TestRandomKills(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 3)
		pods := w.podPerNode()
		w.mesh(pods)
		rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
		sent, lost := map[string]int{}, map[string]int{}
		defer func() { t.Logf("sent by what was killed: %v, lost: %v", sent, lost) }()
		for i := range kills() {
			n := w.Nodes[rnd.IntN(len(w.Nodes))]
			stream := w.stream(pods[i%3], pods[(i+1)%3], 150)
			if m.dataplane == "vpp" && i%3 == 2 {
				n.VPP.Kill()
				w.must(n.VPP.Run(w.ctx))
				r := <-stream
				w.must(r.err)
				w.mesh(pods)
				sent["VPP"], lost["VPP"] = sent["VPP"]+r.Sent, lost["VPP"]+r.Lost()
				continue
			}
			w.must(n.Agent.Kill())
			w.must(n.StartAgent(w.ctx))
			r := <-stream
			w.must(r.err)
			sent["agent"], lost["agent"] = sent["agent"]+r.Sent, lost["agent"]+r.Lost()
			if r.Lost() > 0 {
				t.Errorf("agent of %s killed: %s", n.Name, r.PingResult)
			}
		}
	}, defaultVPP)
}

func kills() int {
	if n, err := strconv.Atoi(os.Getenv("CONTIV_CLUSTER_KILLS")); err == nil && n > 0 {
		return n
	}
	return 6
}

// TestUplinkCut checks that traffic recovers by itself after a cut of the uplink.
func TestUplinkCut(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		pods := w.podPerNode()
		w.mesh(pods)
		w.must(w.Cut(w.ctx, 1))
		if err := pods[0].PingOnce(w.ctx, pods[1].IPs[0].String(), 0); err == nil {
			t.Error("a packet came through a cut cable")
		}
		w.must(w.Mend(w.ctx, 1))
		w.mesh(pods)
	})
}

// outcome is the result of a stream of pings.
type outcome struct {
	netns.PingResult
	err error
}

// stream pings count times, a hundred a second, from one pod to another.
func (w *world) stream(from, to *testbed.Pod, count int) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := from.Ping(w.ctx, to.IPs[0].String(), count, 10*time.Millisecond)
		done <- outcome{r, err}
	}()
	return done
}

// lost waits for the end of a stream, which may have lost at most the given number of packets.
func (w *world) lost(stream <-chan outcome, most int) {
	w.t.Helper()
	r := <-stream
	w.must(r.err)
	if r.Lost() > most {
		w.t.Errorf("%s", r.PingResult)
	}
}

func (w *world) podPerNode() []*testbed.Pod {
	w.t.Helper()
	var pods []*testbed.Pod
	for i, n := range w.Nodes {
		pods = append(pods, w.pod(n, fmt.Sprintf("p%d", i)))
	}
	return pods
}

// within polls until ok succeeds.
func (w *world) within(d time.Duration, what string, ok func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	if err := poll.Until(ctx, 50*time.Millisecond, ok); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// TestSlowUplink checks nodes with a long delay between them: everything works, and only takes longer.
func TestSlowUplink(t *testing.T) {
	const delay = 40 * time.Millisecond
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m, 2)
		pods := w.podPerNode()
		w.mesh(pods)
		w.must(w.Delay(w.ctx, 1, delay))
		w.mesh(pods)
		late := w.pod(w.Nodes[1], "late")
		w.mesh([]*testbed.Pod{pods[0], late})
		far, err := pods[0].Ping(w.ctx, late.IPs[0].String(), 20, 10*time.Millisecond)
		w.must(err)
		if far.Lost() > 0 || far.Min < 2*delay {
			t.Errorf("over a slow line: %s", far)
		}
		w.must(w.Delay(w.ctx, 1, 0))
		w.mesh(pods)
		near, err := pods[0].Ping(w.ctx, late.IPs[0].String(), 20, 10*time.Millisecond)
		w.must(err)
		if near.Lost() > 0 || near.Min > delay {
			t.Errorf("over a fast line: %s", near)
		}
	})
}
