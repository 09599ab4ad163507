//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/trace"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/bulk"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// busyPort is the port of the server that the streams of TestTraceUnderLoad use.
const busyPort = 5201

// TestTraceUnderLoad: trace finds its packet while TCP streams fill the path, also streams between the same two pods to the same port, and the
// streams continue.
func TestTraceUnderLoad(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", "vpp", bare} {
		t.Run(dataplane, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, dataplane, "vxlan")
			server, err := bulk.Serve(w.c.Namespace, busyPort)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			ctx, stop := context.WithCancel(w.ctx)
			var streams sync.WaitGroup
			defer func() { stop(); streams.Wait() }()
			moved := make(chan struct{}, 1000)
			for _, from := range []*testbed.Pod{w.a, w.b} {
				streams.Go(func() { w.fill(ctx, from.Namespace, moved) })
			}
			w.await(moved, 4)
			streams.Go(func() { w.flood(ctx, w.b.Namespace) })
			streams.Go(func() { w.flood(ctx, w.a.Namespace) })
			for range 3 {
				w.traceBusy("tcp", 5201)
				w.traceBusy("udp", 5201)
				w.traceBusy("icmp", 0)
			}
			w.killedInTrace()
			w.await(moved, 2+len(moved))
		})
	}
}

// fill sends streams of 4 MB in both directions, one after the other, and reports each pair that has arrived.
func (w *world) fill(ctx context.Context, from *netns.Namespace, moved chan<- struct{}) {
	to := netip.AddrPortFrom(w.c.IPs[0], busyPort)
	for ctx.Err() == nil {
		_, err := bulk.Load{Up: 1, Down: 1, Length: 4 << 20}.Run(ctx, from, to)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			w.t.Errorf("streams from %s: %v", from.Name, err)
			return
		default:
			moved <- struct{}{}
		}
	}
}

// await waits until a number of pairs of streams have arrived.
func (w *world) await(moved <-chan struct{}, pairs int) {
	w.t.Helper()
	for range pairs {
		select {
		case <-moved:
		case <-time.After(time.Minute):
			w.t.Fatal("the streams stand still")
		}
	}
}

// traceBusy traces a packet, and checks that the packet is the probe and not one of the others between the two pods.
func (w *world) traceBusy(proto string, port int) {
	w.t.Helper()
	args := []string{"trace", "a", "c", "--proto", proto, "-o", "json"}
	if port != 0 {
		args = append(args, "--port", strconv.Itoa(port))
	}
	var rep traceReport
	for try := range 5 {
		start := time.Now()
		text, ok := w.netctl(args...)
		rep = traceReport{}
		if err := json.Unmarshal([]byte(text), &rep); err != nil {
			w.t.Errorf("trace -o json: %v\n%s", err, text)
			return
		}
		if took := time.Since(start); took > 10*time.Second {
			w.t.Errorf("%s: the trace took %s", proto, took)
		}
		if ok && (try == 4 || port == 0 || recordedByAll(rep)) {
			break
		}
		if try == 4 || !ok && !ringWasFull(rep) {
			w.t.Errorf("contiv-netctl %s: %s", strings.Join(args, " "), text)
			return
		}
	}
	for _, side := range rep.Sides {
		there, back := side.There.Came.Source.Port(), side.Back.Came.Dest.Port()
		if port != 0 && (there < firstSourcePort || back != there) {
			w.t.Errorf("%s: the packet that was traced on %s came from port %d, its answer goes to port %d", proto, side.Node, there, back)
		}
	}
}

// recordedByAll reports whether each node has recorded the packet. Under this load VPP occasionally records only the answer.
func recordedByAll(rep traceReport) bool {
	return !slices.ContainsFunc(rep.Sides, func(s trace.Side) bool { return s.There.Came.Source.Port() == 0 })
}

// ringWasFull reports whether packets were lost during a trace because the load filled the ring of an interface of VPP.
func ringWasFull(rep traceReport) bool {
	for _, side := range rep.Sides {
		for _, d := range side.Drops {
			if d.Reason == "no free tx slots" || strings.HasPrefix(d.Reason, "full rx queue") {
				return true
			}
		}
	}
	return false
}

// killedInTrace kills the agent of the sender during a trace. Afterwards neither node has a filter or rules of the trace, and no program of it
// runs.
func (w *world) killedInTrace() {
	w.t.Helper()
	var traced sync.WaitGroup
	traced.Go(func() { w.netctl("trace", "a", "c", "--proto", "tcp", "--port", "5201") })
	agent := w.Nodes[0].Agent.PID()
	var programs []string
	err := poll.Until(w.ctx, time.Millisecond, func() error {
		if programs = monitors(agent); !w.recording(0) || (len(programs) == 0 && !w.vppRuns()) {
			return errors.New("the first node does not record")
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Nodes[0].Agent.Kill()
	traced.Wait()
	if !w.recording(0) {
		w.t.Error("this test proves nothing: the trace ended before the agent was killed")
	}
	if err := w.Nodes[0].StartAgent(w.ctx); err != nil {
		w.t.Fatal(err)
	}
	for i := range w.Nodes {
		err := poll.Until(w.ctx, 20*time.Millisecond, func() error {
			if w.recording(i) {
				return fmt.Errorf("the trace goes on on %s", w.Nodes[i].Name)
			}
			for _, pid := range programs {
				if isMonitor(pid) {
					return fmt.Errorf("process %s of the killed agent still runs", pid)
				}
			}
			return nil
		})
		if err != nil {
			w.t.Error(err)
		}
	}
}

// monitors returns the numbers of the children of a process that print traced packets.
func monitors(pid int) (pids []string) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is valid
	for _, f := range files {
		text, _ := os.ReadFile(f) // the thread may have ended
		for child := range strings.FieldsSeq(string(text)) {
			if isMonitor(child) {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

func isMonitor(pid string) bool {
	text, _ := os.ReadFile("/proc/" + pid + "/cmdline") // the process may have ended
	return strings.Contains(string(text), "monitor")
}

// recording reports whether a node's dataplane records packets.
func (w *world) recording(node int) bool {
	if w.vppRuns() {
		return !strings.Contains(w.vpp(node, "show classify tables"), "No classifier tables")
	}
	tables, err := w.Nodes[node].Run(w.ctx, "nft", "list", "tables")
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Contains(tables, "contiv-trace")
}

// flood sends 2,000 datagrams per second to a port without a process, so that the receiver answers with ICMP errors.
func (w *world) flood(ctx context.Context, from *netns.Namespace) {
	var conn net.Conn
	err := from.Do(func() (err error) {
		conn, err = net.Dial("udp", netip.AddrPortFrom(w.c.IPs[0], busyPort+1).String())
		return err
	})
	if err != nil {
		w.t.Errorf("flood from %s: %v", from.Name, err)
		return
	}
	defer conn.Close()
	for pace := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-pace.C {
		for range 2 {
			_, _ = conn.Write([]byte("flood")) // an error is the answer to an earlier datagram
		}
	}
}
