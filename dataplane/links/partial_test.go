package links

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
)

// A check of one pod finds changes that another program has made to it, enters no other namespace, and does not change the index.
func TestCheckOfOnePod(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	pod, host := values[1].(*linux_interfaces.Interface), values[2].(*linux_interfaces.Interface)
	other := proto.Clone(values[0]).(*linux_interfaces.Interface)
	other.Name, other.Namespace = "other-"+w.id, pathNS(w.netns("other"))
	values = append(values, other)
	w.put(values...)
	due := func(of ...proto.Message) map[string]bool {
		t.Helper()
		var keys []string
		for _, kv := range kvs(t, of) {
			keys = append(keys, kv.Key)
		}
		before := maps.Clone(w.b.links)
		ops, err := w.s.Check(t.Context(), keys)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(before, w.b.links) {
			t.Errorf("what is known of links has changed: %v, was %v", w.b.links, before)
		}
		all := map[string]bool{}
		for _, op := range ops {
			all[op.Key] = true
		}
		return all
	}
	expect := func(when string, got map[string]bool, keys ...string) {
		t.Helper()
		slices.Sort(keys)
		if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, keys) {
			t.Errorf("%s: due is %q, want %q", when, all, keys)
		}
	}
	expect("all is well", due(values...))
	w.ip(ns, "addr", "del", "10.1.1.2/32", "dev", "eth0") // the kernel may remove the IPv4 routes with it, or not
	w.ip(ns, "neigh", "del", "fd00:1::1", "dev", "eth0")
	got := due(values...)
	for _, key := range []string{
		nb.LinuxInterfaceAddressKey(pod.GetName(), nb.AddressStatic, "10.1.1.2/32"), nb.LinuxARPKey(pod.GetName(), "fd00:1::1"),
	} {
		if !got[key] {
			t.Errorf("%s is not missed: %v", key, got)
		}
	}
	expect("the other pod", due(other))
	w.repair(values...)

	w.run("ip", "link", "set", host.GetHostIfName(), "down")
	if got := due(pod, host); !got[nb.LinuxInterfaceStateKey(host.GetName(), true)] {
		t.Errorf("a host end that is down is not missed: %v", got)
	}
	w.repair(values...)
	w.run("ip", "link", "del", host.GetHostIfName())
	if got := due(pod, host); !got[nb.LinuxInterfaceKey(pod.GetName())] || !got[nb.LinuxInterfaceKey(host.GetName())] {
		t.Errorf("a pair that is gone is not missed: %v", got)
	}
	expect("the other pod in the end", due(other))
}

// repair repairs, and expects that no further operation is needed.
func (w *world) repair(values ...proto.Message) {
	w.t.Helper()
	w.put(values...)
	for range 2 {
		if _, err := w.commit(txn.DownstreamResync, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	w.quiet(values...)
}
