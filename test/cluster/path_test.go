package cluster

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// path returns a node's report of its data path.
func (w *world) path(n *testbed.Node) (r pathwatch.Report, err error) {
	err = n.GetJSON(w.ctx, pathwatch.Path, &r)
	return r, err
}

// reports waits until a node reports the given causes, and checks that readiness and metrics agree. It returns how long that took.
func (w *world) reports(n *testbed.Node, within time.Duration, ready bool, kinds ...pathwatch.Kind) time.Duration {
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

// TestPeerIsCut disconnects one of three nodes from the network. The others report it and stay ready, because the fault is in the cable.
func TestPeerIsCut(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{modes[0], modes[2]} {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t)
			w := newWorld(t, m, 3)
			pods := w.podPerNode()
			w.mesh(pods)
			w.watched(w.Nodes...)
			w.must(w.Cut(w.ctx, 2))
			took := w.reports(w.Nodes[0], time.Minute, true, pathwatch.PeerUnreachable)
			w.reports(w.Nodes[1], time.Minute, true, pathwatch.PeerUnreachable)
			w.reports(w.Nodes[2], time.Minute, false, pathwatch.UplinkDown)
			t.Logf("a peer is missed after %s", took.Round(10*time.Millisecond))
			w.must(w.Mend(w.ctx, 2))
			for _, n := range w.Nodes {
				w.reports(n, time.Minute, true)
			}
			w.mesh(pods)
		})
	}
}

// watched waits until nodes have received answers from all others, in each family.
func (w *world) watched(nodes ...*testbed.Node) {
	w.t.Helper()
	for _, n := range nodes {
		w.within(time.Minute, n.Name+" hears its peers", func() error {
			r, err := w.path(n)
			// A node receives the addresses of the others one after the other: without the check of the number it may have, and get answers
			// from, only some of them.
			if err == nil && (r.Peers.Unknown > 0 || r.Peers.Answering < w.families()*(len(w.Nodes)-1) || len(r.Causes) > 0) {
				err = fmt.Errorf("it says %+v", r.State)
			}
			return err
		})
	}
}

// ring is a ring that an af_packet interface shares with the kernel.
type ring struct {
	at            int64 // position in VPP's memory
	frame, frames int64
}

var queuePattern = regexp.MustCompile(`(?s)(RX|TX) Queue 0:.*?block size:(\d+) nr:(\d+) +frame size:(\d+) nr:(\d+)`)

// rings returns the rings that VPP and the kernel share for a device, in VPP's memory.
func (w *world) rings(n *testbed.Node, device string) (rx, tx ring) {
	w.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.VPP.PID()))
	w.must(err)
	inode, err := n.Run(w.ctx, "sh", "-c", "awk -v i=$(ip -o link show dev "+device+" | cut -d: -f1) '$5 == i {print $9}' /proc/net/packet")
	w.must(err)
	var start, end int64
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "socket:["+strings.TrimSpace(inode)+"]") {
			_, err := fmt.Sscanf(line, "%x-%x", &start, &end)
			w.must(err)
		}
	}
	out := w.vppctl(n, "show hardware-interfaces host-"+device)
	at := start
	for _, m := range queuePattern.FindAllStringSubmatch(out, -1) {
		var v [4]int64
		for i := range v {
			v[i], err = strconv.ParseInt(m[i+2], 10, 64)
			w.must(err)
		}
		r := ring{at: at, frame: v[2], frames: v[3]}
		at += v[0] * v[1]
		if m[1] == "RX" {
			rx = r
		} else {
			tx = r
		}
	}
	if start == 0 || at != end || rx.frames == 0 || tx.frames == 0 {
		w.t.Fatalf("rings not found in %x-%x: %+v %+v\n%s", start, end, rx, tx, out)
	}
	return rx, tx
}

// wedge puts a ring into a state that neither VPP nor the kernel leaves: each waits for the other. A packet that VPP copied beyond the end of
// its frame used to cause this.
func (w *world) wedge(n *testbed.Node, r ring) {
	w.t.Helper()
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", n.VPP.PID()), os.O_RDWR, 0)
	w.must(err)
	defer mem.Close()
	// In a TX ring of TPACKET_V2 this status means "the kernel is sending it", in an RX ring "neither empty nor for VPP".
	const status = 2
	for i := range r.frames {
		_, err := mem.WriteAt(binary.NativeEndian.AppendUint32(nil, status), r.at+i*r.frame)
		w.must(err)
	}
}

func (w *world) wedgeTx(n *testbed.Node) { _, tx := w.rings(n, testbed.UplinkNIC); w.wedge(n, tx) }
func (w *world) wedgeRx(n *testbed.Node) { rx, _ := w.rings(n, testbed.UplinkNIC); w.wedge(n, rx) }

// repairs returns how many repairs a node has made. The number also shows a repair that happens between two polls.
func (w *world) repairs(n *testbed.Node) int {
	w.t.Helper()
	r, err := w.path(n)
	w.must(err)
	return len(r.Repairs)
}

// TestBrokenUplink checks an uplink that forwards nothing any more, in one direction or both. The node detects and reports this, makes the
// interface again while its pods exist, and traffic continues.
func TestBrokenUplink(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		mode  mode
		fault func(w *world, n *testbed.Node)
		why   []pathwatch.Kind
		rare  bool
	}{
		{"transmit", modes[0], (*world).wedgeTx, []pathwatch.Kind{pathwatch.UplinkStuck}, false},
		{"transmit, no overlay", modes[1], (*world).wedgeTx, []pathwatch.Kind{pathwatch.UplinkStuck}, true},
		{"receive", modes[0], (*world).wedgeRx, []pathwatch.Kind{pathwatch.UplinkDeaf}, true},
		// The socket stays with the removed device, although a device of the same name appears.
		{"the NIC went away and came back", modes[0], func(w *world, n *testbed.Node) {
			peer := strings.TrimPrefix(w.Underlay.Path(), "/var/run/netns/")
			w.in(n, "ip link set eth1 netns "+filepath.Base(peer))
			_, err := w.Underlay.Run(w.ctx, "ip", "link", "set", "eth1", "netns", n.Name)
			w.must(err)
			w.in(n, "ip link set eth1 up")
		}, []pathwatch.Kind{pathwatch.UplinkStuck, pathwatch.UplinkDeaf}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.rare {
				matrix.Only(t)
			}
			w := newWorld(t, tc.mode, 2)
			pods := w.podPerNode()
			w.mesh(pods)
			n := w.Nodes[0]
			w.watched(n)
			tc.fault(w, n)
			start := time.Now()
			if through := pods[0].PingOnce(w.ctx, pods[1].IPs[0].String(), 0) == nil; through && w.repairs(n) == 0 {
				t.Fatal("packets still get through")
			}
			w.within(time.Minute, "it is repaired", func() error {
				r, err := w.path(n)
				if err == nil && len(r.Repairs) == 0 {
					err = fmt.Errorf("it says %+v", r.State)
				}
				return err
			})
			repaired := time.Since(start)
			w.mesh(pods)
			t.Logf("repaired after %s; pods reach each other after %s", repaired.Round(10*time.Millisecond),
				time.Since(start).Round(10*time.Millisecond))
			w.reports(n, time.Minute, true)
			r, err := w.path(n)
			w.must(err)
			kind, _, _ := strings.Cut(r.Repairs[0].Why, ":")
			if len(r.Repairs) != 1 || r.Repairs[0].Error != "" || !slices.Contains(tc.why, pathwatch.Kind(kind)) {
				t.Errorf("repairs: %+v", r.Repairs)
			}
			t.Logf("repairs: %+v", r.Repairs)
			w.must(w.inPlace(n))
		})
	}
}

// TestBrokenHostLink checks a link between VPP and the host that forwards nothing any more, in one direction. It is made again; pods are not
// affected.
func TestBrokenHostLink(t *testing.T) {
	t.Parallel()
	m := modes[0]
	m.veth = true
	for _, direction := range []string{"transmit", "receive"} {
		t.Run(direction, func(t *testing.T) {
			matrix.Only(t)
			w := newWorld(t, m, 2)
			pods := w.podPerNode()
			w.mesh(pods)
			n := w.Nodes[0]
			w.watched(n)
			stream := w.stream(pods[0], pods[1], 100)
			rx, tx := w.rings(n, "vpp2")
			w.wedge(n, map[string]ring{"transmit": tx, "receive": rx}[direction])
			start := time.Now()
			if through := n.PingOnce(w.ctx, pods[0].IPs[0].String(), 0) == nil; through && w.repairs(n) == 0 {
				t.Fatal("packets still get through")
			}
			w.reports(n, time.Minute, false, pathwatch.GatewayUnreachable)
			w.must(w.reach(n.Namespace, pods[0].IPs[0].String()))
			t.Logf("the host reaches its pods after %s", time.Since(start).Round(10*time.Millisecond))
			w.reports(n, time.Minute, true)
			r, err := w.path(n)
			w.must(err)
			if len(r.Repairs) != 1 || r.Repairs[0].Error != "" || !strings.HasSuffix(r.Repairs[0].What, "/afpacket-vpp2") {
				t.Errorf("repairs: %+v", r.Repairs)
			}
			t.Logf("repairs: %+v", r.Repairs)
			w.lost(stream, 0)
			w.must(w.inPlace(n))
			w.mesh(pods)
		})
	}
}

// TestReportWithoutRepair checks that an agent that may not repair reports a fault as long as it exists; the next agent, which may, repairs it.
func TestReportWithoutRepair(t *testing.T) {
	matrix.Only(t)
	w := newWorld(t, modes[0], 2)
	pods := w.podPerNode()
	w.mesh(pods)
	n := w.Nodes[0]
	w.must(n.Agent.Stop(30 * time.Second))
	w.must(n.StartAgent(w.ctx, "--datapath-repair=false"))
	w.watched(n)
	w.wedgeTx(n)
	took := w.reports(n, time.Minute, false, pathwatch.UplinkStuck)
	t.Logf("noticed after %s", took.Round(10*time.Millisecond))
	pings, err := pods[0].Ping(w.ctx, pods[1].IPs[0].String(), 50, 100*time.Millisecond)
	w.must(err)
	if pings.Received > 0 {
		t.Errorf("the uplink transmits again by itself: %s", pings)
	}
	w.reports(n, time.Minute, false, pathwatch.UplinkStuck)
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
	w.reports(n, time.Minute, true)
}

// TestKilledWhileRepairing checks that, when an agent is killed at any time during a repair, the next agent completes the repair.
func TestKilledWhileRepairing(t *testing.T) {
	matrix.Only(t)
	w := newWorld(t, modes[0], 2)
	pods := w.podPerNode()
	w.mesh(pods)
	n := w.Nodes[0]
	kills := 2
	if matrix.All() {
		kills = 6
	}
	for i := range kills {
		w.watched(n)
		w.wedgeTx(n)
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		before := w.logged(n, "data path: repair")
		w.must(poll.Until(ctx, time.Millisecond, func() error {
			if w.logged(n, "data path: repair") == before {
				return errors.New("nothing is repaired")
			}
			return nil
		}))
		cancel()
		// A repair takes about 100 ms.
		if i > 0 {
			_, err := n.Run(w.ctx, "sleep", fmt.Sprintf("0.%03d", 90*i/kills))
			w.must(err)
		}
		w.must(n.Agent.Kill())
		w.must(n.StartAgent(w.ctx))
		w.mesh(pods)
		w.reports(n, time.Minute, true)
		w.must(w.inPlace(n))
	}
}

// logged counts the lines of an agent's log that contain the text.
func (w *world) logged(n *testbed.Node, text string) int {
	w.t.Helper()
	data, err := os.ReadFile(n.Agent.LogFile)
	w.must(err)
	return strings.Count(string(data), text)
}

// inPlace compares a node's dataplane with the wanted state.
func (w *world) inPlace(n *testbed.Node) error {
	body, err := n.PostJSON(w.ctx, diag.CheckPath, "{}")
	if err != nil {
		return err
	}
	var reply diag.CheckReply
	if err := json.Unmarshal([]byte(body), &reply); err != nil {
		return err
	}
	if len(reply.Repairs) > 0 {
		return fmt.Errorf("%s: not as desired: %+v", n.Name, reply.Repairs)
	}
	return nil
}

// TestChangesByHandAreRepaired checks that manual changes in VPP, or in the host, that stop traffic are repaired without a request; traffic of
// pods continues.
func TestChangesByHandAreRepaired(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		fault func(w *world, n *testbed.Node)
		why   pathwatch.Kind
		rare  bool
	}{
		{"VPP's end of the host's link is down", func(w *world, n *testbed.Node) { w.vppctl(n, "set interface state tap0 down") },
			pathwatch.GatewayUnreachable, true},
		{"the host's end is down", func(w *world, n *testbed.Node) { w.in(n, "ip link set vpp1 down") }, pathwatch.GatewayUnreachable, true},
		{"the uplink is down in VPP", func(w *world, n *testbed.Node) { w.vppctl(n, "set interface state host-eth1 down") },
			pathwatch.UplinkDown, true},
		{"the uplink has gone from VPP", func(w *world, n *testbed.Node) { w.vppctl(n, "delete host-interface name eth1") },
			pathwatch.UplinkDown, true},
		{"the host's routes have gone", func(w *world, n *testbed.Node) {
			w.in(n, "ip route del 10.1.0.0/16; ip -6 route del fd10:1::/48")
		}, pathwatch.NoPeerAnswers, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.rare {
				matrix.Only(t)
			}
			w := newWorld(t, modes[0], 3)
			pods := w.podPerNode()
			w.mesh(pods)
			n := w.Nodes[0]
			w.watched(n)
			tc.fault(w, n)
			start := time.Now()
			w.within(time.Minute, "it is repaired", func() error {
				r, err := w.path(n)
				if err == nil && (len(r.Repairs) == 0 || len(r.Causes) > 0) {
					err = fmt.Errorf("it says %+v, repairs %+v", r.State, r.Repairs)
				}
				return err
			})
			r, err := w.path(n)
			w.must(err)
			t.Logf("well again after %s: %+v", time.Since(start).Round(100*time.Millisecond), r.Repairs)
			if !strings.HasPrefix(r.Repairs[0].Why, string(tc.why)) {
				t.Errorf("repaired was %s", r.Repairs[0].Why)
			}
			w.mesh(pods)
			w.must(w.reach(n.Namespace, pods[1].IPs[0].String()))
			w.must(w.inPlace(n))
		})
	}
}

// in runs a shell command in a node.
func (w *world) in(n *testbed.Node, command string) {
	w.t.Helper()
	_, err := n.Run(w.ctx, "sh", "-c", command)
	w.must(err)
}

// TestNATIsFull checks the case that one pod uses all sessions. The node reports it, and is ready again when there is room.
func TestNATIsFull(t *testing.T) {
	matrix.Only(t) // VPP's own NAT serves if the contiv plugin is missing
	m := modes[0]
	w := newWorld(t, m, 2)
	n := w.Nodes[0]
	w.must(n.Agent.Stop(30 * time.Second))
	w.must(n.VPP.Restart(w.ctx))
	w.must(n.StartAgent(w.ctx, "--nat-sessions=1024", "--nat-udp-timeout=10s"))
	pods := w.podPerNode()
	w.mesh(pods)
	w.watched(n)
	stop := w.flood(pods[0].Namespace, "192.168.16.2")
	took := w.reports(n, time.Minute, false, pathwatch.NATTableFull)
	w.must(stop())
	t.Logf("noticed after %s", took.Round(10*time.Millisecond))
	w.reports(n, time.Minute, true)
	w.mesh(pods)
}

// flood sends one datagram after another from a namespace, each to another port, until stop is called.
func (w *world) flood(ns *netns.Namespace, to string) (stop func() error) {
	w.t.Helper()
	var conn *net.UDPConn
	w.must(ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp4", nil)
		return err
	}))
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for port := 1; ; port = port%60000 + 1 {
			select {
			case <-end:
				ended <- conn.Close()
				return
			case <-tick.C:
			}
			_, _ = conn.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.ParseIP(to), Port: port}) // some may be rejected
		}
	}()
	return func() error { close(end); return <-ended }
}
