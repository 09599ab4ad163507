//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestCommonFaults: one fault is made at a time, and the commands describe it, in a line and within the timeout.
func TestCommonFaults(t *testing.T) {
	t.Parallel()
	for _, dataplane := range []string{"linux", "vpp"} {
		t.Run(dataplane, func(t *testing.T) {
			matrix.Only(t, "linux")
			t.Parallel()
			w := newWorld(t, dataplane, "vxlan")
			w.agentDown()
			if w.vppRuns() {
				w.vppDown()
				w.routeOfOthers()
			} else {
				w.forwardingOff()
			}
			w.etcdDown()
			w.nodeAway()
			w.podDown()
		})
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) agentDown() {
	second := w.Nodes[1].Name
	w.must(w.Nodes[1].Agent.Kill())
	w.want(true, []string{"nodes"}, "no reply: connection refused")
	w.want(false, []string{"check"}, "connection refused; the node replies to a ping of "+w.Nodes[0].Name+" at 10.199.0.102: "+
		"check its agent", "1 finding")
	w.want(false, []string{"ping", "a", "c"}, `"c" was not found on the 1 of 2 nodes that respond`, second)
	w.want(true, []string{"ping", "a", w.c.IPs[0].String(), "-c", "1"}, "1 answered")
	file := filepath.Join(w.dir, "down.tar.gz")
	w.want(false, []string{"report", "-f", file}, "connection refused")
	if text := unpack(w.t, file)["nodes/"+second+"/error.txt"]; !strings.Contains(text, "connection refused") {
		w.t.Errorf("the bundle does not say why %s is missing: %q", second, text)
	}
	w.must(w.Nodes[1].StartAgent(w.ctx))
	w.until(true, []string{"check"}, "0 findings")
}

func (w *world) vppDown() {
	w.Nodes[1].VPP.Kill()
	w.until(true, []string{"nodes"}, "no: VPP at ")
	w.until(false, []string{"check"}, "is not ready: VPP at ", "connection refused", "1 finding")
	out := w.want(false, []string{"trace", "a", "c"}, "nothing was recorded on the other node")
	if strings.Count(out, "connection refused") != 1 {
		w.t.Errorf("trace repeats itself:\n%s", out)
	}
	w.must(w.Nodes[1].VPP.Restart(w.ctx))
	w.until(true, []string{"check"}, "0 findings")
	w.until(true, []string{"ping", "a", "c", "-c", "1"}, "1 answered")
}

// routeOfOthers tests a route that another program has added at VPP's CLI: it takes precedence over the agent's routes.
func (w *world) routeOfOthers() {
	route := w.c.IPs[0].String() + "/32 table 1 via drop"
	w.vpp(0, "ip route add "+route)
	w.want(false, []string{"check"}, "this route was added", "1 finding")
	w.want(false, []string{"trace", "a", "c"}, "programmed by CLI", "it was added", "dropped on "+w.Nodes[0].Name)
	w.vpp(0, "ip route del "+route)
	w.want(true, []string{"trace", "a", "c"}, "programmed by API", "delivered, reply received")
}

// forwardingOff: trace names the parameter; the agent restores it when it compares, for example for check, and reports it.
func (w *world) forwardingOff() {
	w.node(0, "sysctl -qw net.ipv4.ip_forward=0")
	out, ok := w.netctl("trace", "a", "c")
	if ok { // the agent's own comparison, every 90 s, came first
		w.node(0, "sysctl -qw net.ipv4.ip_forward=0")
		out, ok = w.netctl("trace", "a", "c")
	}
	if ok || !strings.Contains(out, "net/ipv4/ip_forward is 0") {
		w.t.Errorf("trace without forwarding: success %t:\n%s", ok, out)
	}
	w.until(true, []string{"check"}, "0 findings")
	w.want(true, []string{"trace", "a", "c"}, "delivered, reply received")
}

// etcdDown: without etcd, all agents continue with their stored data.
func (w *world) etcdDown() {
	w.StopEtcd()
	w.until(true, []string{"nodes"}, "etcd does not respond", w.Nodes[1].Name, "10.199.0.102")
	w.want(true, []string{"ping", "a", "c", "-c", "1"}, "1 answered")
	w.want(false, []string{"check"}, "etcd does not respond")
	w.must(w.StartEtcd(w.ctx))
	w.until(true, []string{"check"}, "0 findings")
}

func (w *world) nodeAway() {
	set := func(state string) {
		for _, port := range []string{"uplink2", "mgmt2"} {
			_, err := w.Underlay.Run(w.ctx, "ip", "link", "set", port, state)
			w.must(err)
		}
	}
	set("down")
	start := time.Now()
	w.want(false, []string{"check"}, "the node does not reply to pings of "+w.Nodes[0].Name+" at 10.199.0.102 and 192.168.16.",
		"it is off, or has no connection to it", "1 finding")
	if took := time.Since(start); took > 15*time.Second {
		w.t.Errorf("check took %s because of one node that is away", took)
	}
	set("up")
	w.until(true, []string{"ping", "a", "c", "-c", "1"}, "1 answered")
	w.until(true, []string{"check"}, "0 findings")
}

// podDown: an interface that is down in the pod is one finding, and not one for each route.
func (w *world) podDown() {
	second := w.Nodes[1].Name
	_, err := w.c.Run(w.ctx, "ip", "link", "set", "eth0", "down")
	w.must(err)
	out := w.want(false, []string{"check"}, "pod default/c", "its interface is down", "contiv-netctl resync "+second, "1 finding")
	if !strings.Contains(out, "route") {
		w.t.Errorf("check does not say what else is gone:\n%s", out)
	}
	w.want(false, []string{"trace", "a", "c"}, "should reach pod default/c", "receiving pod")
	w.want(false, []string{"trace", "c", "a"}, "route of the pod to "+w.a.IPs[0].String()+": no route")
	w.want(true, []string{"resync", second}, "compared and repaired")
	w.until(true, []string{"check"}, "0 findings")
	w.want(true, []string{"ping", "a", "c", "-c", "1"}, "1 answered")
}
