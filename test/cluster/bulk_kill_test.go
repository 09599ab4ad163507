package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/traffic"
)

// TestKillsUnderBulk kills agents and VPPs while pods exchange data at full speed, in large packets. No byte is wrong at any time. Without its agent
// a node continues to forward data, and the new agent finds everything in place: it writes nothing. After a restart of VPP data is forwarded again.
func TestKillsUnderBulk(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{
		{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "vpp", transport: "vxlan", veth: true, plugin: true},
	} {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t, "vpp-vxlan-plugin")
			w := newWorld(t, m, 2)
			pods := append(w.podPerNode(), w.pod(w.Nodes[0], "b"))
			w.mesh(pods)
			l := &bulkStreams{world: w, traffic: traffic.New(), from: pods[0], least: 4 << 20}
			t.Cleanup(l.traffic.Close)
			for i, to := range pods[1:] {
				_, err := l.traffic.Serve(to.Namespace, bulkPort+1)
				w.must(err)
				l.to = append(l.to, netip.AddrPortFrom(to.IPs[i], bulkPort+1)) // one of each family
			}
			l.start()
			for _, n := range w.Nodes {
				l.move(n.Name + " has its agent")
				l.quiet(n)
				w.must(n.Agent.Kill())
				l.move(n.Name + " has no agent")
				w.must(n.StartAgent(w.ctx))
				l.move(n.Name + " has a new agent")
				if writes, err := n.Metric(w.ctx, "contiv_vpp_writes_total"); err != nil || writes != 0 {
					t.Errorf("%s: the new agent has written %.0f times to VPP, %v\n%s", n.Name, writes, err, l.requested(n))
				}
			}
			l.unbroken()
			for _, n := range w.Nodes {
				n.VPP.Kill()
				w.must(n.VPP.Run(w.ctx))
				w.mesh(pods)
				l.renew()
				l.move(n.Name + " has a new VPP")
			}
			l.unbroken()
		})
	}
}

// TestStopUnderBulk checks that SIGTERM ends an agent in time, with any number of streams on its node. The streams continue, and the next agent
// writes nothing.
func TestStopUnderBulk(t *testing.T) {
	t.Parallel()
	for _, m := range []mode{{dataplane: "vpp", transport: "vxlan", plugin: true}, {dataplane: "linux", transport: "vxlan"}} {
		t.Run(m.String(), func(t *testing.T) {
			matrix.Only(t) // 56 streams; TestKillsUnderBulk has fewer
			w := newWorld(t, m, 2)
			pods := append(w.podPerNode(), w.pod(w.Nodes[0], "b"))
			w.mesh(pods)
			l := &bulkStreams{world: w, traffic: traffic.New(), from: pods[0], least: 64 << 10}
			t.Cleanup(l.traffic.Close)
			for _, to := range pods[1:] {
				_, err := l.traffic.Serve(to.Namespace, bulkPort+1)
				w.must(err)
				for i := range 28 {
					l.to = append(l.to, netip.AddrPortFrom(to.IPs[i%2], bulkPort+1))
				}
			}
			l.start()
			for _, n := range w.Nodes {
				l.move(n.Name + " has its agent")
				begun := time.Now()
				if err := n.Agent.Stop(daemon.StopLimit); err != nil {
					t.Errorf("%s: %v\n%s", n.Name, err, n.LogTail(30))
				}
				t.Logf("%s: the agent ended after %s", n.Name, time.Since(begun).Round(time.Millisecond))
				l.move(n.Name + " has no agent")
				w.must(n.StartAgent(w.ctx))
				l.move(n.Name + " has a new agent")
				if n.VPP == nil {
					continue
				}
				if writes, err := n.Metric(w.ctx, "contiv_vpp_writes_total"); err != nil || writes != 0 {
					t.Errorf("%s: the new agent has written %.0f times to VPP, %v\n%s", n.Name, writes, err, l.requested(n))
				}
			}
			l.unbroken()
		})
	}
}

// bulkStreams are endless streams from a pod, in both directions.
type bulkStreams struct {
	*world
	traffic *traffic.Traffic
	from    *testbed.Pod
	to      []netip.AddrPort
	streams []*traffic.Stream
	least   int64 // bytes that a stream has to transfer to count as moving
}

func (l *bulkStreams) start() {
	l.t.Helper()
	for _, to := range l.to {
		l.streams = append(l.streams, l.stream(to))
	}
}

func (l *bulkStreams) stream(to netip.AddrPort) *traffic.Stream {
	l.t.Helper()
	s, err := l.traffic.Stream(l.from.Namespace, to, traffic.StreamOptions{Name: fmt.Sprint("to ", to), Up: true, Down: true})
	l.must(err)
	return s
}

// move waits until each stream has transferred some more bytes since the wait began. All streams have the same time: separate waits, one after the
// other, would make a test with 56 streams take minutes.
func (l *bulkStreams) move(when string) {
	l.t.Helper()
	before := make([]int64, len(l.streams))
	for i, s := range l.streams {
		before[i] = s.Arrived()
	}
	begun := time.Now()
	l.within(2*time.Minute, "all streams go on when "+when, func() error {
		for i, s := range l.streams {
			if err := s.Err(); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			if moved := s.Arrived() - before[i]; moved < l.least {
				return fmt.Errorf("%s: %d bytes", s.Name, moved)
			}
		}
		return nil
	})
	l.t.Logf("all streams went on after %s when %s", time.Since(begun).Round(time.Millisecond), when)
}

// renew replaces the streams: after a restart of VPP a pod has another interface, and its kernel may give up connections. Wrong bytes are still an
// error.
func (l *bulkStreams) renew() {
	l.t.Helper()
	for i, s := range l.streams {
		if err := s.Stop(); errors.Is(err, traffic.ErrCorrupted) {
			l.t.Error(err)
		}
		l.streams[i] = l.stream(l.to[i])
	}
}

// quiet waits until an agent has nothing left to write: the warm pool, which fills up after pods are added, is full. An interface of the pool takes
// two writes, and a new agent would make it in place of this one. With TAPs there is no pool.
func (l *bulkStreams) quiet(n *testbed.Node) {
	l.t.Helper()
	l.within(time.Minute, "the warm pool of "+n.Name+" is full", func() error {
		if !l.mode.veth {
			return nil
		}
		ready, err := n.Metric(l.ctx, `contiv_vpp_warm_pool{state="ready"}`)
		if err != nil {
			return err
		}
		wanted, err := n.Metric(l.ctx, `contiv_vpp_warm_pool{state="wanted"}`)
		if err == nil && ready != wanted {
			err = fmt.Errorf("%.0f interfaces of %.0f", ready, wanted)
		}
		return err
	})
}

// requested returns the agent's requests to VPP since it started.
func (l *bulkStreams) requested(n *testbed.Node) string {
	l.t.Helper()
	body, err := n.Get(l.ctx, "/metrics")
	l.must(err)
	var out strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "contiv_vpp_requests_total{") || strings.HasPrefix(line, "contiv_vpp_warm_pool{") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func (l *bulkStreams) unbroken() {
	l.t.Helper()
	for _, s := range l.streams {
		if err := s.Err(); err != nil {
			l.t.Error(err)
		}
	}
}
