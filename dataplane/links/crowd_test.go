package links

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/dataplane/txn"
)

// many is more than one listing in a pod's namespace may have.
const many = podLimit + 400

// crowd runs a line of ip for each of many numbers in a namespace; the line contains the number in two bytes.
func (w *world) crowd(ns *nettest.NS, line func(hi, lo int) string) {
	lines := make([]string, many)
	for i := range lines {
		lines[i] = line(i/200, i%200+1)
	}
	ns.Batch(lines...)
}

// A pod with CAP_NET_ADMIN that creates very many objects at devices of its own is dumped like any other pod, and only the objects at the agent's
// devices are read.
func TestPodWithVeryManyObjects(t *testing.T) {
	w := newWorld(t)
	ns := nettest.Named(t, "cvt-"+w.id+"-crowd")
	values := w.podValues("/var/run/netns/" + ns.Name)
	w.put(values...)
	ns.IP("link add own type veth peer name end")
	ns.IP("link set own up")
	ns.IP("link set end up")
	w.crowd(ns, func(hi, lo int) string { return fmt.Sprintf("link add d%d-%d type veth", hi, lo) })
	w.quiet(values...)
	if sp, err := newSnapshot(w.b).space("/var/run/netns/"+ns.Name, nil); err != nil || len(sp.links) > podLimit {
		t.Errorf("a dump reads %d links of one pod, the limit is %d: %v", len(sp.links), podLimit, err)
	}
	w.b.leaveAll()
	w.crowd(ns, func(hi, lo int) string { return fmt.Sprintf("addr add 10.7.%d.%d/32 dev own", hi, lo) })
	w.crowd(ns, func(hi, lo int) string { return fmt.Sprintf("route add 10.8.%d.%d/32 dev own proto 201", hi, lo) })
	w.crowd(ns, func(hi, lo int) string {
		return fmt.Sprintf("neigh add 10.9.%d.%d lladdr 02:00:00:00:00:01 dev own nud permanent", hi, lo)
	})
	w.quiet(values...)
	w.restart()
	w.quiet(values...)
	w.ip("/var/run/netns/"+ns.Name, "addr", "del", "fd00:1::2/128", "dev", "eth0")
	w.put(values...)
	if _, err := w.commit(txn.DownstreamResync, nil); err != nil {
		t.Fatal(err)
	}
	w.shows("/var/run/netns/"+ns.Name, "-o addr show eth0", "10.1.1.2/32", "fd00:1::2/128")
	w.quiet(values...)
}

// A pod that creates very many objects at the agent's device can only harm its own connection: the other pods are dumped and repaired.
func TestCrowdedInterfaceOfPod(t *testing.T) {
	w := newWorld(t)
	ns := nettest.Named(t, "cvt-"+w.id+"-crowd")
	other := w.loopback(w.netns("other"))
	other.Name = "other-" + w.id
	values := append(w.podValues("/var/run/netns/"+ns.Name), proto.Message(other))
	w.put(values...)
	w.crowd(ns, func(hi, lo int) string { return fmt.Sprintf("addr add 10.7.%d.%d/32 dev eth0", hi, lo) })
	w.crowd(ns, func(hi, lo int) string {
		return fmt.Sprintf("neigh add 10.9.%d.%d lladdr 02:00:00:00:00:01 dev eth0 nud permanent", hi, lo)
	})
	if _, err := w.commit(txn.FullResync, kvs(t, values)); err != nil {
		t.Fatal(err)
	}
	w.shows("/var/run/netns/"+ns.Name, "neigh show 10.1.1.1", "02:00:00:00:00:01 PERMANENT")
	w.crowd(ns, func(hi, lo int) string { return fmt.Sprintf("route add 10.8.%d.%d/32 dev eth0 proto 201", hi, lo) })
	w.runIn(other.GetNamespace().GetReference(), "ip", "link", "set", "lo", "down")
	_, err := w.commit(txn.FullResync, kvs(t, values))
	var failed *txn.Error
	if !errors.As(err, &failed) {
		t.Fatalf("the routes of the pod cannot be listed, but the result is %v", err)
	}
	pod := values[1].(*linux_interfaces.Interface).GetName()
	for _, f := range failed.Failed {
		if !strings.HasPrefix(f.Key, "config/linux/l3/v2/route/") || !strings.Contains(f.Key, pod) || !errors.Is(f.Err, netlink.ErrTooMany) {
			t.Errorf("failed: %v, want only routes of the pod", f)
		}
	}
	w.shows(other.GetNamespace().GetReference(), "link show lo", "LOOPBACK,UP")
}

// An agent without free descriptors cannot read the state of pods. It does not configure them again for that: this would cut them off.
func TestResyncWithoutDescriptors(t *testing.T) {
	w := newWorld(t)
	values := w.podValues(w.netns("pod"))
	w.put(values...)
	var all unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &all); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: all.Max}); err != nil {
		t.Fatal(err)
	}
	rec, err := w.commit(txn.FullResync, kvs(t, values))
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &all); err != nil {
		t.Fatal(err)
	}
	var failed *txn.Error
	if !errors.As(err, &failed) || !failed.Escalate() || !errors.Is(err, unix.EMFILE) || len(rec.Executed) > 0 {
		t.Errorf("%v, executed %v, want only the error of the agent", err, rec.Executed)
	}
	w.quiet(values...)
}
