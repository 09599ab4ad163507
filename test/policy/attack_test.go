package policy

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
)

const deniedPort = 7

// rawSocket opens a socket in a namespace.
func (w *world) rawSocket(ns *netns.Namespace, family, kind, protocol int) (fd int) {
	w.t.Helper()
	w.must(ns.Do(func() (err error) {
		fd, err = unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
		return err
	}))
	w.t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// TestFlapping changes a pod's label 50 times a second between two that different policies select. Packets that both deny never pass, and
// packets that both allow are never lost for long.
func TestFlapping(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		const allow = `{podSelector: {matchLabels: {app: %s}}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: oth}}}]}, {ports: [{port: %d}]}]}`
		w.policy("a", fmt.Sprintf(allow, "cli", 1))
		w.policy("b", fmt.Sprintf(allow, "cla", 2))
		w.expect("- cli1 web1 udp 8080\n- cli1 web2 udp 8080\n+ cli1 oth1 udp 8080")
		var counts []func() int
		for _, to := range []string{"web1", "web2", "oth1"} {
			counts = append(counts, receive(t, w.spaces[to], deniedPort))
			defer w.flood(w.spaces["cli1"], netip.AddrPortFrom(w.addrs[to][0], deniedPort))()
		}
		stop := make(chan struct{})
		var work sync.WaitGroup
		var flips atomic.Int64
		work.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for ; ; flips.Add(1) {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				o := w.object(w.Nodes[0].Name, "cli1")
				o.Labels["app"] = []string{"cla", "cli"}[flips.Load()%2]
				if err := w.api.Put(o); err != nil {
					t.Error(err)
				}
			}
		})
		for enough := int64(25); enough <= 150; enough += 25 {
			before := counts[2]()
			w.within("changes", time.Minute, func() error {
				if n := flips.Load(); n < enough {
					return fmt.Errorf("%d", n)
				}
				return nil
			})
			if counts[2]() == before {
				t.Error("nothing that is allowed passed during 25 changes")
			}
		}
		close(stop)
		work.Wait()
		if a, b := counts[0](), counts[1](); a+b > 0 {
			t.Errorf("%d and %d packets passed that both policies deny, in %d changes", a, b, flips.Load())
		}
		t.Logf("%d changes, %d packets passed that are allowed", flips.Load(), counts[2]())
	})
}

// TestAddressOfAnother checks the case that the address of an allowed pod becomes that of a denied one. The existing connections are cut, and
// no packet passes any more. Then a pod's namespace is removed without a DEL, and policy stays in force.
func TestAddressOfAnother(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		w := newWorld(t, backend)
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: cli}}}]}]}`)
		w.expect("- oth1 web1 tcp 8080\n+ cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080")
		cut := []*stream{w.stream("cli2", "web1", w.addrs["web1"][0], 9000), w.stream("cli2", "web1", w.addrs["web1"][1], 9001)}
		kept := []*stream{w.stream("cli1", "web1", w.addrs["web1"][0], 9002)}
		n := w.Nodes[1].Name
		others := []netip.Addr{netip.MustParseAddr("10.1.2.200"), netip.MustParseAddr("fd10:1:0:2::c8")}
		heir, moved := w.object(n, "cli2"), kubeapi.Pod(n, "cli2", others)
		heir.Name, heir.Labels["app"] = "heir2", "heir"
		moved.Labels = map[string]string{"app": "cli"}
		w.must(w.api.Put(heir))
		w.must(w.api.Put(moved))
		w.within("what is not allowed is cut", time.Minute, func() error {
			before := arrived(cut)
			w.goOn(kept)
			for i, after := range arrived(cut) {
				if after != before[i] {
					return fmt.Errorf("stream %d moved from %d to %d bytes", i, before[i], after)
				}
			}
			return nil
		})
		got := receive(t, w.spaces["web1"], deniedPort)
		stop := w.flood(w.spaces["cli2"], netip.AddrPortFrom(w.addrs["web1"][0], deniedPort))
		w.expect("- cli2 web1 tcp 8080\n- cli2 web1 udp 8080\n+ cli1 web1 tcp 8080")
		stop()
		if n := got(); n > 0 {
			t.Errorf("%d packets passed", n)
		}
		w.must(w.pods["oth1"].Namespace.Delete(w.ctx))
		delete(w.spaces, "oth1")
		w.policy("web", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: heir}}}]}]}`)
		w.expect("- cli1 web1 tcp 8080\n+ cli2 web1 tcp 8080\n- h2 web1 tcp 8080")
	})
}
