package policy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
)

// receive counts the UDP packets that reach a port of a pod from the start of the pod.
func receive(t *testing.T, ns *netns.Namespace, port int) (count func() int) {
	t.Helper()
	conn, err := listenUDP(ns, port)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	var work sync.WaitGroup
	work.Go(func() {
		for buf := make([]byte, 100); ; {
			if _, _, err := conn.ReadFrom(buf); err != nil {
				return
			}
			mu.Lock()
			n++
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		work.Wait()
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// next returns the addresses that pods of a node may get next, given the last one.
func next(last netip.Addr, n int) (list []netip.Addr) {
	for a := last.Next(); len(list) < n; a = a.Next() {
		list = append(list, a)
	}
	return list
}

// addsVariable is the environment variable for the number of ADDs that TestFirstPacket probes; the default is 8.
const addsVariable = "CONTIV_POLICY_ADDS"

func adds(t *testing.T) int {
	text := os.Getenv(addsVariable)
	if text == "" {
		return 8
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number of ADDs", addsVariable, text)
	}
	return n
}

// hunt sends UDP packets from cli1 and cli2 to the addresses that the next pods of node 1 may get, repeatedly, until stop is called. after takes
// the addresses of the newest pod, and reports whether they were among those.
func (w *world) hunt(last []netip.Addr) (after func([]netip.Addr) bool, stop func()) {
	w.t.Helper()
	const ahead = 12
	var now atomic.Pointer[[]netip.Addr]
	now.Store(new([]netip.Addr))
	after = func(last []netip.Addr) bool {
		var list []netip.Addr
		for _, a := range last {
			list = append(list, next(a, ahead)...)
		}
		before := now.Swap(&list)
		return slices.Contains(*before, last[0])
	}
	after(last)
	ctx, cancel := context.WithCancel(w.ctx)
	var work sync.WaitGroup
	for _, from := range []string{"cli1", "cli2"} {
		conn, err := listenUDP(w.spaces[from], 0)
		w.must(err)
		work.Go(func() {
			defer conn.Close()
			for ctx.Err() == nil {
				for _, a := range *now.Load() {
					_, _ = conn.WriteTo([]byte("x"), net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 7))) // there may be no route yet
				}
				time.Sleep(200 * time.Microsecond)
			}
		})
	}
	return after, func() {
		cancel()
		work.Wait()
	}
}

// TestFirstPacket checks that, from its start on, a pod that a policy selects receives and sends no packet that the policy forbids, even if it and
// others try continuously. A pod whose object is not known is reachable only from its own node, until the object arrives.
func TestFirstPacket(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		count := adds(t)
		w := newWorldWith(t, backend, func(*testbed.ClusterOptions) {}, time.Duration(count)*2*time.Second)
		w.policy("closed", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress, Egress]}`)
		w.expect("- cli1 web1 tcp 8080\n- web1 cli1 tcp 8080")
		leaked := receive(t, w.spaces["cli2"], 9)
		after, stop := w.hunt(w.addrs["oth1"])
		defer stop()
		n, hunted, took := w.Nodes[0], 0, make([]time.Duration, count)
		begin := time.Now()
		for i := range count {
			var packets bool
			if packets, took[i] = w.firstPackets(n, fmt.Sprint("web", 10+i), after); packets {
				hunted++
			}
			if t.Failed() {
				return
			}
		}
		if leaked() > 0 {
			t.Errorf("pods have sent %d packets that their policy forbids", leaked())
		}
		if missed := count - hunted; missed > count/20 {
			t.Errorf("%d of %d pods had addresses to which no packets were sent", missed, count)
		}
		slices.Sort(took)
		t.Logf("%d ADDs in %v, %d of them with packets from the first instant: no packet came through; an ADD took %v in the median, %v at most",
			count, time.Since(begin).Round(time.Second), hunted, took[count/2].Round(time.Millisecond), took[count-1].Round(time.Millisecond))
		w.unknownPod(n)
	}, onVPP)
}

// firstPackets adds a pod that sends to cli2 and listens before it has an interface, and deletes it. It reports whether packets were sent to the
// pod all the time, and how long the ADD took.
func (w *world) firstPackets(n *testbed.Node, name string, after func([]netip.Addr) bool) (hunted bool, took time.Duration) {
	w.t.Helper()
	w.must(w.api.Put(w.object(n.Name, name)))
	p, err := n.NewPod(w.ctx, name)
	w.must(err)
	defer func() { w.must(p.Delete(w.ctx)) }()
	got := receive(w.t, p.Namespace, 7)
	var quiet []func()
	for _, a := range w.addrs["cli2"] {
		quiet = append(quiet, w.flood(p.Namespace, netip.AddrPortFrom(a, 9)))
	}
	defer func() {
		for _, stop := range quiet {
			stop()
		}
	}()
	begin := time.Now()
	_, err = n.CNI.Add(w.ctx, p)
	w.must(err)
	took = time.Since(begin)
	hunted = after(p.IPs)
	w.within("the node reaches "+name, time.Minute, func() error { return n.Namespace.PingOnce(w.ctx, p.IPs[0].String(), 0) }) // the route exists
	if got() > 0 {
		w.t.Errorf("%s got %d packets that its policy forbids (ADD took %v)", name, got(), took)
	}
	w.must(n.CNI.Del(w.ctx, p)) // VPP has packet buffers for about 45 TAPs, and a node has 253 addresses
	w.must(w.api.Delete(w.object(n.Name, name)))
	return hunted, took
}

func (w *world) unknownPod(n *testbed.Node) {
	w.t.Helper()
	p, err := n.NewPod(w.ctx, "late1")
	w.must(err)
	w.pods["late1"] = p
	got := receive(w.t, p.Namespace, 7)
	begin := time.Now()
	_, err = n.CNI.Add(w.ctx, p)
	w.must(err)
	took := time.Since(begin)
	if took < 900*time.Millisecond || took > 20*time.Second {
		w.t.Errorf("the ADD of a pod without an object took %v, want about a second", took)
	}
	w.spaces["late1"], w.addrs["late1"] = p.Namespace, p.IPs
	w.serve("late1")
	w.expect("+ h1 late1 tcp 8080\n- cli1 late1 tcp 8080\n- late1 cli2 tcp 8080\n- out late1 icmp\n+ late1 h1 tcp 8080")
	if got() > 0 {
		w.t.Errorf("a pod without an object got %d packets", got())
	}
	w.must(w.api.Put(w.object(n.Name, "late1")))
	w.expect("+ cli1 late1 tcp 8080\n+ late1 cli2 tcp 8080")
}

// TestRestart checks that an agent that is killed and restarted writes nothing and opens nothing, with the API server and, from its local copy,
// without. Then a pod without data stays closed.
func TestRestart(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}], ports: [{port: http}]}]}`)
		w.policy("stream", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: oth}}}], ports: [{port: 10080}]}]}`)
		const rules = "- cli1 web1 tcp 8080\n- cli2 web1 udp 8080\n+ oth1 web1 tcp 8080\n- oth1 web1 tcp 8081\n+ h1 web1 tcp 8081"
		w.expect(rules)
		got := receive(t, w.spaces["web1"], 7)
		defer w.flood(w.spaces["cli1"], netip.AddrPortFrom(w.addrs["web1"][0], 7))()
		defer w.flood(w.spaces["cli2"], netip.AddrPortFrom(w.addrs["web1"][1], 7))()
		allowed := w.stream("oth1", "web1", w.addrs["web1"][0], 10080)
		n := w.Nodes[0]
		restart := func(what string) {
			w.must(n.Agent.Kill())
			w.must(n.StartAgent(w.ctx))
			writes, err := n.Metric(w.ctx, map[bool]string{true: "contiv_vpp_writes_total", false: "contiv_linux_writes_total"}[w.onVPP])
			w.must(err)
			if writes != 0 {
				t.Errorf("%s: %v writes to the dataplane", what, writes)
			}
			w.expect(rules)
			w.goOn([]*stream{allowed})
			if got() > 0 {
				t.Errorf("%s: web1 got %d packets that its policy forbids", what, got())
			}
		}
		restart("restart")
		time.Sleep(1500 * time.Millisecond) // time for the local copy to be written
		w.api.Cut()
		restart("restart without API server")
		w.closedWithoutServer(n)
		w.api.Restore()
		w.within("the pod opens when its object is known", time.Minute, func() error {
			return w.query("cli1", "tcp", w.addrs["late2"][0], httpPort)
		})
	}, onVPP)
}

func (w *world) closedWithoutServer(n *testbed.Node) {
	w.t.Helper()
	p, err := n.AddPod(w.ctx, "late2")
	w.must(err)
	w.pods["late2"], w.spaces["late2"], w.addrs["late2"] = p, p.Namespace, p.IPs
	w.serve("late2")
	w.must(w.api.Put(w.object(n.Name, "late2")))
	w.expect("+ h1 late2 tcp 8080\n- cli1 late2 tcp 8080\n- late2 cli1 tcp 8080")
}
