package policy

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/testbed"
)

// receive counts the UDP packets that reach a port of a pod from its first instant on.
func receive(t *testing.T, ns *testbed.Namespace, port int) (count func() int) {
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

// next are the addresses that pods of a node may get next, the last one being known.
func next(last netip.Addr, n int) (list []netip.Addr) {
	for a := last.Next(); len(list) < n; a = a.Next() {
		list = append(list, a)
	}
	return list
}

// TestFirstPacket: a pod that a policy selects gets nothing that the policy forbids from its first instant on, however hard others try.
// A pod whose object is not known is reached by its own node only, and opens when the object comes.
func TestFirstPacket(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("closed", `{podSelector: {matchLabels: {app: web}}}`)
		w.expect("- cli1 web1 tcp 8080")
		for _, a := range next(w.addrs["oth1"][0], 12) {
			for _, from := range []string{"cli1", "cli2"} {
				defer w.flood(w.spaces[from], netip.AddrPortFrom(a, 7))()
			}
		}
		n := w.Nodes[0]
		for i := range 8 {
			name := fmt.Sprint("web", 10+i)
			w.must(w.api.Put(w.object(n.Name, name)))
			p, err := n.NewPod(w.ctx, name)
			w.must(err)
			w.pods[name] = p
			got := receive(t, p.Namespace, 7)
			begin := time.Now()
			_, err = n.CNI.Add(w.ctx, p)
			w.must(err)
			took := time.Since(begin)
			w.spaces[name], w.addrs[name] = p.Namespace, p.IPs
			if p.IPs[0].Compare(w.addrs["oth1"][0]) <= 0 || i == 0 && p.IPs[0] != w.addrs["oth1"][0].Next() {
				t.Fatalf("pod %s has address %s: the flood goes elsewhere", name, p.IPs[0])
			}
			w.must(w.api.Put(w.object(n.Name, name)))
			time.Sleep(100 * time.Millisecond)
			w.within("the node reaches "+name, time.Minute, func() error { return n.Namespace.PingOnce(w.ctx, p.IPs[0].String(), 0) })
			if got() > 0 {
				t.Errorf("%s got %d packets that its policy forbids (ADD took %v)", name, got(), took)
			}
		}
		w.unknownPod(n)
	})
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

// TestRestart: an agent that is killed and started again writes nothing and opens nothing, with the API server and, from its local copy,
// without. Then a pod that it has no data of stays closed.
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
		time.Sleep(1500 * time.Millisecond) // the local copy is written
		w.api.Cut()
		restart("restart without API server")
		w.closedWithoutServer(n)
		w.api.Restore()
		w.within("the pod opens when its object is known", time.Minute, func() error {
			return w.ask("cli1", "tcp", w.addrs["late2"][0], httpPort)
		})
	})
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
