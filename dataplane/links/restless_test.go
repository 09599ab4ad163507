package links

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/vishvananda/netlink"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/nsdo"
)

// resyncs runs a full resync and returns its failures, all of which must be of one pod only.
func (w *world) resyncs(values ...proto.Message) []txn.KeyError {
	w.t.Helper()
	_, err := w.commit(txn.FullResync, kvs(w.t, values))
	if err == nil {
		return nil
	}
	var failed *txn.Error
	if !errors.As(err, &failed) || failed.Escalate() {
		w.t.Errorf("a pod makes the node unready: %v", err)
		return nil
	}
	return failed.Failed
}

// TestPodRenamesItsInterface: a pod that renames its interface all the time harms its own connection only.
func TestPodRenamesItsInterface(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	other := w.loopback(w.netns("other"))
	other.Name = "other-" + w.id
	values = append(values, other)
	w.put(values...)

	stop, running := make(chan struct{}), sync.WaitGroup{}
	renames := 0
	running.Go(func() {
		in, err := nsdo.Open(ns)
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		var h *netlink.Handle
		if err := in.Do(func() (err error) { h, err = netlink.NewHandle(); return err }); err != nil {
			t.Error(err)
			return
		}
		defer h.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			links, err := h.LinkList()
			if err != nil {
				continue
			}
			for _, l := range links {
				if l.Attrs().Name != "lo" && h.LinkSetName(l, fmt.Sprintf("r%d", i)) == nil {
					renames++
				}
			}
		}
	})
	for range 200 {
		w.resyncs(values...)
	}
	close(stop)
	running.Wait()
	if renames == 0 {
		t.Fatal("the interface was never renamed")
	}
	t.Logf("%d renames", renames)
	for range 2 {
		w.resyncs(values...)
	}
	w.quiet(values...)
	w.shows(ns, "-o addr show eth0", "10.1.1.2/32", "fd00:1::2/128")
}

// TestPodTakesTheName: a pod that gives another interface the name of its own one stays without a connection until it stops that.
func TestPodTakesTheName(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	w.ip(ns, "link", "set", "eth0", "down")
	w.ip(ns, "link", "set", "eth0", "name", "mine")
	w.ip(ns, "link", "add", "eth0", "type", "veth", "peer", "name", "end")
	failed := w.resyncs(values...)
	pod := values[1].(*linux_interfaces.Interface)
	key := kvs(t, []proto.Message{pod})[0].Key
	found := false
	for _, f := range failed {
		found = found || f.Key == key && f.PodOnly
	}
	if !found {
		t.Errorf("failed: %v, want %s", failed, key)
	}
	w.ip(ns, "link", "del", "eth0")
	for range 2 {
		w.resyncs(values...)
	}
	w.quiet(values...)
}

// TestPodMovesItsInterface: a pod that moves its interface to a namespace of its own gets a new one.
func TestPodMovesItsInterface(t *testing.T) {
	w := newWorld(t)
	ns, away := w.netns("pod"), w.netns("away")
	values := w.podValues(ns)
	w.put(values...)
	w.ip(ns, "link", "set", "eth0", "netns", filepath.Base(away))
	for range 2 {
		w.resyncs(values...)
	}
	w.quiet(values...)
	w.shows(ns, "-o addr show eth0", "10.1.1.2/32", "fd00:1::2/128")
}

// TestPodTagsItsLinks: a pod can give any alias to links of its own. Links that the agent cannot have created are ignored, and the keys of other kinds
// are not affected.
func TestPodTagsItsLinks(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	later := neighbour(values[1].(*linux_interfaces.Interface), "10.1.1.7", "02:00:00:00:00:07")
	pod := later.GetInterface()
	w.put(values...)
	tag := func(dev, name string) { w.ip(ns, "link", "set", dev, "alias", tagOf(name)) }
	for i, name := range []string{
		"../../../l3/v2/arp/" + pod + "/10.1.1.1", "../../../l3/v2/arp/" + pod + "/10.1.1.7", "../interface/" + pod, "./" + pod, pod + "/", "..", "",
	} {
		dev := fmt.Sprintf("d%d", i)
		w.ip(ns, "link", "add", dev, "type", "veth", "peer", "name", "peer-"+dev)
		tag(dev, name)
	}
	for i, name := range []string{"unused-" + w.id, pod, values[0].(*linux_interfaces.Interface).GetName()} {
		dev := fmt.Sprintf("b%d", i)
		w.ip(ns, "link", "add", dev, "type", "bridge")
		tag(dev, name)
	}
	for range 2 {
		if failed := w.resyncs(values...); len(failed) > 0 {
			t.Errorf("failed: %v", failed)
		}
	}
	w.quiet(values...)
	w.put(later)
	w.quiet(append(values, later)...)
	w.shows(ns, "-o link", "d0", "d6", "b0", "b2", "eth0")
}

// TestPodTagsItsTap: a pod's TAP with the alias of our own ones is removed. It does not get into the agent's namespace.
func TestPodTagsItsTap(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	w.ip(ns, "tuntap", "add", "mine", "mode", "tap")
	w.ip(ns, "link", "set", "mine", "alias", tagOf("other-"+w.id))
	for range 2 {
		w.resyncs(values...)
	}
	if l, err := net.InterfaceByName(spareName("other-" + w.id)); err == nil {
		t.Errorf("%s is in the agent's namespace", l.Name)
		w.run("ip", "link", "del", l.Name)
	}
	if out := w.run("ip", "-n", filepath.Base(ns), "-o", "link"); strings.Contains(out, "mine") {
		t.Errorf("the pod's TAP is left:\n%s", out)
	}
	w.quiet(values...)
}

// TestPodReplacesItsInterface: a link of another type that a pod creates in place of its interface, with the same index, name and alias, is not the
// interface.
func TestPodReplacesItsInterface(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	pod := values[1].(*linux_interfaces.Interface)
	index := w.b.device(pod.GetName()).index
	w.ip(ns, "link", "del", "eth0")
	w.ip(ns, "link", "add", "name", "eth0", "index", fmt.Sprint(index), "type", "bridge")
	w.ip(ns, "link", "set", "eth0", "alias", tagOf(pod.GetName()))
	ops, err := w.s.Check(t.Context(), []string{nb.LinuxInterfaceKey(pod.GetName())})
	if err != nil || len(ops) == 0 || ops[0] != (txn.Op{Action: txn.Create, Key: nb.LinuxInterfaceKey(pod.GetName())}) {
		t.Errorf("%v %v, want that the interface is created", ops, err)
	}
	for range 2 {
		w.resyncs(values...)
	}
	w.quiet(values...)
	w.shows(ns, "-o addr show eth0", "10.1.1.2/32", "fd00:1::2/128")
}

// An operation that is not possible in a pod's namespace is an error of this pod only, whatever the reason.
func TestUnknownTypeIsOfThePodOnly(t *testing.T) {
	b := NewBackend(Config{})
	defer b.Close()
	for path, podOnly := range map[string]bool{"/var/run/netns/pod": true, "": false} {
		v := &linux_interfaces.Interface{Name: "x", Namespace: pathNS(path)}
		if path == "" {
			v.Namespace = nil
		}
		for _, c := range []class{creates, deletes} {
			err := errors.New("not done")
			b.queueLink(c, scheduler.NewOp(func(e error) { err = e }), v)
			if err == nil || scheduler.IsPodOnly(err) != podOnly {
				t.Errorf("%q: %v, of the pod only: %t", path, err, !podOnly)
			}
		}
	}
}

// TestNoRetryForAPodThatIsGone: an error in a pod's namespace is retried in any case, except if the namespace no longer exists.
func TestNoRetryForAPodThatIsGone(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	lo := w.loopback(ns)
	w.put(lo)
	w.ip(ns, "link", "add", "other", "type", "bridge")
	w.ip(ns, "link", "set", "other", "up")
	w.ip(ns, "route", "add", "10.9.0.0/16", "dev", "other")
	fails := func(v proto.Message) txn.KeyError {
		t.Helper()
		_, err := w.s.Commit(t.Context(), &txn.Txn{Values: kvs(t, []proto.Message{v})})
		var failed *txn.Error
		if !errors.As(err, &failed) || failed.Escalate() || !failed.Failed[0].PodOnly {
			t.Fatalf("%v, want an error of this pod only", err)
		}
		return failed.Failed[0]
	}
	if f := fails(route(lo, "10.9.0.0/16", "", 0)); retriable(f.Err) || !f.Retriable {
		t.Errorf("another route of the pod: %v, retried: %t", f, f.Retriable)
	}
	w.run("ip", "netns", "del", filepath.Base(ns))
	again := proto.Clone(lo).(*linux_interfaces.Interface)
	again.Name = "lo2-" + w.id
	if f := fails(again); !errors.Is(f.Err, nsdo.ErrGone) || f.Retriable {
		t.Errorf("the pod is gone: %v, retried: %t", f, f.Retriable)
	}
}

// TestPodRemovesItsInterface: an operation on an interface that the pod has removed fails, and its retry creates the interface again, with everything
// that belongs to it.
func TestPodRemovesItsInterface(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	w.ip(ns, "link", "del", "eth0")
	added := kvs(t, []proto.Message{route(values[1].(*linux_interfaces.Interface), "10.9.0.0/16", "10.1.1.1", 0)})
	_, err := w.s.Commit(t.Context(), &txn.Txn{Values: added})
	var failed *txn.Error
	if !errors.As(err, &failed) || failed.Escalate() || !failed.Failed[0].Retriable {
		t.Fatalf("%v, want an error of this pod only that is retried", err)
	}
	w.eventually("the route is there", func() bool {
		status := w.s.Status(scheduler.Filter{Key: added[0].Key})
		return len(status) == 1 && status[0].State == scheduler.Configured
	})
	w.quiet(append(values, added[0].Value)...)
	w.shows(ns, "-o addr show eth0", "10.1.1.2/32", "fd00:1::2/128")
	w.shows(ns, "route", "10.9.0.0/16", "default")
}
