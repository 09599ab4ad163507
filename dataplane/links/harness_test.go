package links

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/poll"
)

// world is an agent's Linux dataplane in the real kernel. Namespaces and devices are unique to the test.
type world struct {
	t    testing.TB
	id   string // short and unique
	b    *Backend
	s    *scheduler.Scheduler
	jobs *lifecycle.Group
	deps Deps
	taps map[string]string // created by "VPP"

	inPlace bool           // "VPP" creates TAPs in their final namespace
	vppDead bool           // VPP is dead, or was dead at some time since the last check
	attach  func(v string) // called when "VPP" creates an interface
}

func newWorld(t testing.TB) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: real network namespaces")
	}
	h := fnv.New32a()
	fmt.Fprint(h, t.Name(), os.Getpid())
	w := &world{t: t, id: fmt.Sprintf("%06x", h.Sum32()&0xffffff), taps: map[string]string{}}
	w.deps.TapDevice = func(vppIfName string) (string, bool, bool) {
		dev, ok := w.taps[vppIfName]
		return dev, w.inPlace, ok
	}
	w.start()
	t.Cleanup(w.stop)
	return w
}

// start runs a new agent without state.
func (w *world) start() {
	w.t.Helper()
	w.b = NewBackend(Config{})
	w.jobs = lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	w.s = scheduler.New(scheduler.Config{
		Backends: []scheduler.Backend{w.b}, Jobs: w.jobs, Retry: scheduler.RetryPolicy{Attempts: 1},
	}, slog.New(slog.DiscardHandler))
	w.deps.Backend = w.b
	if err := Register(w.s, w.deps); err != nil {
		w.t.Fatal(err)
	}
	if err := scheduler.Register(w.s, w.fakeVPP()); err != nil {
		w.t.Fatal(err)
	}
	if err := w.s.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	w.s.Close()
	if err := w.jobs.Stop(20 * time.Second); err != nil {
		w.t.Error(err)
	}
	w.b.Close()
}

// restart replaces the agent by a new one without the state in memory.
func (w *world) restart() {
	w.stop()
	w.start()
}

// fakeVPP replaces VPP's interfaces, on which TAPs depend. They survive restarts of the agent, so they always exist unless vppDead is set.
func (w *world) fakeVPP() scheduler.Descriptor[*vpp_interfaces.Interface] {
	return scheduler.Descriptor[*vpp_interfaces.Interface]{
		Name: "fake-vpp", Prefix: nb.VppInterfacePrefix, Rank: scheduler.RankInterface,
		Equal: func(string, *vpp_interfaces.Interface, *vpp_interfaces.Interface) bool { return true },
		Create: func(op *scheduler.Op, _ string, v *vpp_interfaces.Interface) {
			if w.attach != nil {
				w.attach(v.GetName())
			}
			op.Done(nil)
		},
		Delete: func(op *scheduler.Op, _ string, _ *vpp_interfaces.Interface) { op.Done(nil) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_interfaces.Interface)) {
			if !w.vppDead {
				op.EachDesired(func(key string, v any) { emit(key, v.(*vpp_interfaces.Interface)) })
			}
			w.vppDead = false
			op.Done(nil)
		},
	}
}

// netns creates a network namespace for the test.
func (w *world) netns(name string) string {
	w.t.Helper()
	full := "cvt-" + w.id + "-" + name
	if err := nettest.Add(full); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = nettest.Remove(full) }) // the test may have removed it
	return "/var/run/netns/" + full
}

// dev returns a device name of at most 15 characters that is unique to the test, and removes the device after the test.
func (w *world) dev(name string) string {
	d := name + w.id
	if len(d) > maxName {
		w.t.Fatalf("device name %s is too long", d)
	}
	w.t.Cleanup(func() {
		if link, err := netlink.LinkByName(d); err == nil { // the test may have removed it
			_ = netlink.LinkDel(link)
		}
	})
	return d
}

func (w *world) run(args ...string) string {
	w.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ip runs ip in a namespace given by path.
func (w *world) ip(ns string, args ...string) string {
	w.t.Helper()
	return w.runIn(ns, append([]string{"ip"}, args...)...)
}

// runIn runs a command in a namespace given by path.
func (w *world) runIn(path string, args ...string) (out string) {
	w.t.Helper()
	ns, err := nsdo.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(func() error {
		text, err := exec.Command(args[0], args[1:]...).CombinedOutput()
		out = string(text)
		return err
	}); err != nil {
		w.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// shows fails unless the output of ip in the namespace contains all the words.
func (w *world) shows(ns, args string, words ...string) {
	w.t.Helper()
	out := w.ip(ns, strings.Fields(args)...)
	for _, word := range words {
		if !strings.Contains(out, word) {
			w.t.Errorf("ip %s in %s lacks %q:\n%s", args, ns, word, out)
		}
	}
}

// eventually waits for a change that the kernel makes asynchronously.
func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	poll.Await(w.t, what, 20*time.Second, ok)
}

func (w *world) commit(kind txn.Kind, kvs []txn.KV) (*txn.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return w.s.Commit(ctx, &txn.Txn{Kind: kind, Values: kvs, Description: w.t.Name(), NoRetry: true})
}

func kvs(t testing.TB, values []proto.Message) []txn.KV {
	t.Helper()
	var out []txn.KV
	for _, v := range values {
		key, err := nb.Key(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, txn.KV{Key: key, Value: v})
	}
	return out
}

// put applies values and expects success.
func (w *world) put(values ...proto.Message) {
	w.t.Helper()
	if rec, err := w.commit(txn.Update, kvs(w.t, values)); err != nil {
		w.t.Fatalf("put: %v\n%v", err, rec)
	} else if len(rec.Pending) > 0 {
		w.t.Fatalf("put: pending %v", rec.Pending)
	}
}

func (w *world) putFails(values ...proto.Message) *txn.Error {
	w.t.Helper()
	_, err := w.commit(txn.Update, kvs(w.t, values))
	var failed *txn.Error
	if !errors.As(err, &failed) {
		w.t.Fatalf("put succeeded or failed as a whole: %v", err)
	}
	return failed
}

func (w *world) remove(values ...proto.Message) {
	w.t.Helper()
	list := kvs(w.t, values)
	for i := range list {
		list[i].Value = nil
	}
	if rec, err := w.commit(txn.Update, list); err != nil {
		w.t.Fatalf("remove: %v\n%v", err, rec)
	}
}

// quiet resyncs and expects that no operation is needed.
func (w *world) quiet(values ...proto.Message) {
	w.t.Helper()
	rec, err := w.commit(txn.FullResync, kvs(w.t, values))
	if err != nil {
		w.t.Fatalf("resync: %v", err)
	}
	if len(rec.Executed) > 0 {
		w.t.Fatalf("a resync with nothing changed did something:\n%v", rec.Executed)
	}
}

// roundTrip checks that values survive a second resync and a restart without an operation, and that nothing is left after they are removed.
func (w *world) roundTrip(values ...proto.Message) {
	w.t.Helper()
	w.put(values...)
	w.quiet(values...)
	w.restart()
	w.quiet(values...)
	w.remove(values...)
	w.quiet()
}

func pathNS(path string) *linux_namespace.NetNamespace {
	return &linux_namespace.NetNamespace{Type: linux_namespace.NetNamespace_FD, Reference: path}
}

func (w *world) veth(name, peer, ns, dev string, addrs ...string) *linux_interfaces.Interface {
	v := &linux_interfaces.Interface{
		Name: name + w.id, Type: linux_interfaces.Interface_VETH, HostIfName: dev, Enabled: true, IpAddresses: addrs, Mtu: 1450,
		Link: &linux_interfaces.Interface_Veth{Veth: &linux_interfaces.VethLink{
			PeerIfName: peer + w.id, TxChecksumOffloading: linux_interfaces.VethLink_CHKSM_OFFLOAD_DISABLED,
		}},
	}
	if ns != "" {
		v.Namespace = pathNS(ns)
	}
	return v
}

// pair returns a pod's VETH pair.
func (w *world) pair(ns string, addrs ...string) (pod, host *linux_interfaces.Interface) {
	pod = w.veth("pod-", "host-", ns, "eth0", addrs...)
	pod.PhysAddress = "02:fe:00:00:00:07"
	return pod, w.veth("host-", "pod-", "", w.dev("h"))
}

func (w *world) loopback(ns string) *linux_interfaces.Interface {
	return &linux_interfaces.Interface{
		Name: "lo-" + w.id, Type: linux_interfaces.Interface_LOOPBACK, Namespace: pathNS(ns), Enabled: true,
		IpAddresses: []string{"127.0.0.1/8", "::1/128"},
	}
}

func route(iface *linux_interfaces.Interface, dst, gw string, metric uint32) *linux_l3.Route {
	r := &linux_l3.Route{OutgoingInterface: iface.GetName(), DstNetwork: dst, GwAddr: gw, Metric: metric}
	r.Scope = linux_l3.Route_LINK
	if gw != "" {
		r.Scope = linux_l3.Route_GLOBAL
	}
	return r
}

func neighbour(iface *linux_interfaces.Interface, ip, mac string) *linux_l3.ARPEntry {
	return &linux_l3.ARPEntry{Interface: iface.GetName(), IpAddress: ip, HwAddress: mac}
}

// podValues returns the values of a dual-stack pod with a VETH.
func (w *world) podValues(ns string) []proto.Message {
	pod, host := w.pair(ns, "10.1.1.2/32", "fd00:1::2/128")
	return []proto.Message{
		w.loopback(ns), pod, host,
		neighbour(pod, "10.1.1.1", "02:00:00:00:00:01"), neighbour(pod, "fd00:1::1", "02:00:00:00:00:01"),
		route(pod, "10.1.1.1/32", "", 0), route(pod, "0.0.0.0/0", "10.1.1.1", 0),
		route(pod, "fd00:1::1/128", "", 0), route(pod, "::/0", "fd00:1::1", 0),
	}
}

// tap returns a pod's TAP, which already exists.
func (w *world) tap(ns string) (vpp *vpp_interfaces.Interface, tap *linux_interfaces.Interface) {
	dev := w.dev("t")
	w.run("ip", "tuntap", "add", dev, "mode", "tap")
	w.taps["vpp-tap"] = dev
	vpp = &vpp_interfaces.Interface{Name: "vpp-tap", Type: vpp_interfaces.Interface_TAP}
	return vpp, &linux_interfaces.Interface{
		Name: "linux-tap-" + w.id, Type: linux_interfaces.Interface_TAP_TO_VPP, HostIfName: "eth0", Enabled: true, Mtu: 1400,
		Namespace: pathNS(ns), IpAddresses: []string{"10.1.1.2/32"}, PhysAddress: "02:fe:00:00:00:09",
		Link: &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
}
