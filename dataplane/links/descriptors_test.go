package links

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/linux/namespace"
	"contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/internal/nsdo"
)

func TestVethPodRoundTrip(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	w.roundTrip(w.podValues(ns)...)
	if out := w.ip(ns, "-o", "link"); strings.Contains(out, "eth0") {
		t.Errorf("eth0 is left in the pod:\n%s", out)
	}
	if _, err := os.Stat("/sys/class/net/h" + w.id); err == nil {
		t.Error("the host end is left")
	}
}

func TestVethPodInTheKernel(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	w.put(w.podValues(ns)...)
	w.shows(ns, "-d link show eth0", "mtu 1450", "02:fe:00:00:00:07", "alias contiv:pod-"+w.id, "LOWER_UP", "group default")
	w.shows(ns, "-o addr show", "10.1.1.2/32", "fd00:1::2/128", "127.0.0.1/8", "::1/128")
	w.shows(ns, "route", "10.1.1.1 dev eth0", "default via 10.1.1.1 dev eth0")
	w.shows(ns, "-6 route", "fd00:1::1 dev eth0", "default via fd00:1::1 dev eth0")
	w.shows(ns, "neigh", "10.1.1.1 dev eth0 lladdr 02:00:00:00:00:01 PERMANENT", "fd00:1::1 dev eth0 lladdr 02:00:00:00:00:01 PERMANENT")
	if out := w.ip(ns, "-6", "addr", "show", "scope", "global"); strings.Contains(out, "tentative") {
		t.Errorf("an address is tentative:\n%s", out)
	}
	// The link-local address is the kernel's, which needs a moment for duplicate address detection.
	w.eventually("addresses that are not tentative", func() bool {
		return !strings.Contains(w.ip(ns, "-6", "addr"), "tentative")
	})
	if out := w.runIn(ns, "cat", "/proc/sys/net/ipv6/conf/eth0/accept_dad"); out != "0\n" {
		t.Errorf("accept_dad is %q", out)
	}
	out := w.runIn(ns, "ethtool", "-k", "eth0")
	for _, off := range []string{"tx-checksumming: off", "tx-tcp-segmentation: off", "generic-segmentation-offload: off"} {
		if !strings.Contains(out, off) {
			t.Errorf("ethtool -k lacks %q:\n%s", off, out)
		}
	}
	if out := w.runIn(ns, "cat", "/proc/sys/net/ipv6/conf/eth0/accept_ra"); out != "0\n" {
		t.Errorf("accept_ra is %q", out)
	}
	if dev, ok := w.b.LinuxDevice("host-" + w.id); !ok || dev != "h"+w.id {
		t.Errorf("LinuxDevice = %q, %t", dev, ok)
	}
	if _, ok := w.b.LinuxDevice("pod-" + w.id); ok {
		t.Error("LinuxDevice gives the pod end, which is not in the agent's namespace")
	}
}

// TestHostEndsAreClosed tests that a pod configures nothing on the node through its link, and does not reach the node past VPP.
func TestHostEndsAreClosed(t *testing.T) {
	w := newWorld(t)
	check := func(dev string, want map[string]string) {
		t.Helper()
		for path, value := range want {
			text, err := os.ReadFile(fmt.Sprintf("/proc/sys/net/"+path, dev))
			if err != nil || strings.TrimSpace(string(text)) != value {
				t.Errorf("%s of %s is %q, %v, want %s", path, dev, text, err, value)
			}
		}
	}
	deaf := map[string]string{"ipv6/conf/%s/accept_ra": "0", "ipv6/conf/%s/autoconf": "0",
		"ipv6/conf/%s/accept_redirects": "0", "ipv4/conf/%s/accept_redirects": "0", "ipv4/conf/%s/rp_filter": "1"}
	apart := map[string]string{"ipv6/conf/%s/disable_ipv6": "1", "ipv4/conf/%s/arp_ignore": "8"}
	pod, host := w.pair(w.netns("pod"), "10.1.1.2/32", "fd00:1::2/128")
	w.put(pod, host)
	check("h"+w.id, deaf)
	check("h"+w.id, apart)
	if out := w.run("ip", "-6", "addr", "show", "dev", "h"+w.id); strings.Contains(out, "inet6") {
		t.Errorf("the end that VPP reads has an address of the host: %s", out)
	}
	w.remove(pod, host)
	for _, end := range []*linux_interfaces.Interface{pod, host} { // those of the Linux dataplane
		end.GetVeth().TxChecksumOffloading = linux_interfaces.VethLink_CHKSM_OFFLOAD_DEFAULT
	}
	w.put(pod, host)
	check("h"+w.id, deaf)
	check("h"+w.id, map[string]string{"ipv6/conf/%s/disable_ipv6": "0"})
}

func TestVethEndsComeAndGoOneByOne(t *testing.T) {
	for _, podFirst := range []bool{true, false} {
		w := newWorld(t)
		ns := w.netns("pod" + map[bool]string{true: "1", false: "2"}[podFirst])
		pod, host := w.pair(ns, "10.1.1.2/32")
		first, second := proto.Message(pod), proto.Message(host)
		if !podFirst {
			first, second = host, pod
		}
		w.put(first)
		w.quiet(first)
		w.put(second)
		w.shows(ns, "-o link show eth0", "LOWER_UP", "mtu 1450", "02:fe:00:00:00:07")
		w.quiet(first, second)
		w.remove(first)
		w.quiet(second)
		w.put(first)
		w.quiet(first, second)
		w.remove(second)
		w.restart()
		w.quiet(first)
		w.remove(first)
		w.quiet()
		for _, dev := range []string{"h" + w.id, spareName(pod.GetName()), spareName(host.GetName())} {
			if _, err := os.Stat("/sys/class/net/" + dev); err == nil {
				t.Errorf("device %s is left", dev)
			}
		}
	}
}

func TestLinkUpdates(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	pod := proto.Clone(values[1]).(*linux_interfaces.Interface)
	// ip may print an error before that line, if a namespace that another test has removed is still in its list of names.
	before := regexp.MustCompile(`(?m)^\d+:`).FindString(w.ip(ns, "-o", "link", "show", "eth0"))

	pod.Mtu, pod.PhysAddress = 1400, "02:fe:00:00:00:08"
	pod.GetVeth().TxChecksumOffloading = linux_interfaces.VethLink_CHKSM_OFFLOAD_ENABLED
	w.put(pod)
	w.shows(ns, "-o link show eth0", before, "mtu 1400", "02:fe:00:00:00:08")
	if out := w.runIn(ns, "ethtool", "-k", "eth0"); !strings.Contains(out, "tx-checksumming: on") {
		t.Error("tx checksums are still off")
	}
	values[1] = pod
	w.quiet(values...)

	// A new address: the kernel drops routes and neighbours with the old one, but they must stay.
	pod = proto.Clone(pod).(*linux_interfaces.Interface)
	pod.IpAddresses = []string{"10.1.1.3/32", "fd00:1::3/128"}
	w.put(pod)
	w.shows(ns, "-o addr show eth0", "10.1.1.3/32", "fd00:1::3/128")
	w.shows(ns, "route", "default via 10.1.1.1 dev eth0")
	w.shows(ns, "neigh", "10.1.1.1 dev eth0 lladdr")
	values[1] = pod
	w.quiet(values...)

	// Down and up again: routes and addresses that the kernel drops are restored.
	down := proto.Clone(pod).(*linux_interfaces.Interface)
	down.Enabled = false
	if _, err := w.commit(0, kvs(t, []proto.Message{down})); err != nil {
		t.Fatal(err)
	}
	w.shows(ns, "-o addr show eth0", "10.1.1.3/32", "fd00:1::3/128")
	w.put(pod)
	w.quiet(values...)
	w.shows(ns, "-6 route", "default via fd00:1::1 dev eth0")

	// A change of the name requires another device.
	renamed := proto.Clone(pod).(*linux_interfaces.Interface)
	renamed.HostIfName = "net1"
	w.put(renamed)
	w.shows(ns, "-6 route", "default via fd00:1::1 dev net1")
	values[1] = renamed
	w.quiet(values...)
	w.remove(values...)
	w.quiet()
}

func TestRepairsDamage(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	for _, damage := range []string{
		"addr del 10.1.1.2/32 dev eth0", "route del default", "-6 addr flush dev eth0 scope global", "neigh del 10.1.1.1 dev eth0",
		"link set eth0 down", "link set eth0 mtu 1300", "link del eth0", "route add 1.2.3.0/24 dev eth0 proto 201",
	} {
		w.ip(ns, strings.Fields(damage)...)
		rec, err := w.commit(3, nil) // downstream resync
		if err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		if len(rec.Executed) == 0 {
			t.Errorf("%s: was not noticed", damage)
		}
		w.quiet(values...)
	}
	w.shows(ns, "route", "default via 10.1.1.1 dev eth0")
	w.shows(ns, "-6 route", "default via fd00:1::1 dev eth0")
}

func TestNamespaceReferences(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	sleep := exec.Command("nsenter", "--net="+ns, "sh", "-c", "echo entered; exec sleep 60")
	entered, err := sleep.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	if _, err := entered.Read(make([]byte, 1)); err != nil { // before that, the process is still in the namespace of the test
		t.Fatal(err)
	}
	end := func(name, peer string, typ linux_namespace.NetNamespace_ReferenceType, ref string) *linux_interfaces.Interface {
		v := w.veth(name, peer, "", name, "10.3.0.1/24")
		v.Namespace = &linux_namespace.NetNamespace{Type: typ, Reference: ref}
		return v
	}
	name := strings.TrimPrefix(ns, "/var/run/netns/")
	pid := linux_namespace.NetNamespace_PID
	w.roundTrip(end("a", "b", linux_namespace.NetNamespace_NSID, name), end("b", "a", linux_namespace.NetNamespace_FD, ns))
	w.roundTrip(end("c", "d", pid, itoa(sleep.Process.Pid)), end("d", "c", linux_namespace.NetNamespace_FD, ns))
	v := end("e", "f", pid, itoa(os.Getpid()))
	v.HostIfName = w.dev("e")
	w.roundTrip(v, end("f", "e", pid, itoa(sleep.Process.Pid)))
}

func TestDummy(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	if err := exec.Command("nsenter", "--net="+ns, "ip", "link", "add", "x", "type", "dummy").Run(); err != nil {
		t.Skip("this kernel has no dummy devices")
	}
	dummy := &linux_interfaces.Interface{
		Name: "dummy-" + w.id, Type: linux_interfaces.Interface_DUMMY, HostIfName: "dum0", Namespace: pathNS(ns), Mtu: 9000,
		IpAddresses: []string{"10.5.0.1/24"}, PhysAddress: "02:00:00:00:00:55",
	}
	w.roundTrip(dummy)
	if out := w.ip(ns, "link"); strings.Contains(out, "dum0") {
		t.Errorf("left behind:\n%s", out)
	}
}

func TestTap(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	vpp, tap := w.tap(ns)
	dev := w.taps["vpp-tap"]
	values := []proto.Message{vpp, tap, route(tap, "10.1.1.1/32", "", 0)}
	w.put(values...)
	w.shows(ns, "-o link show eth0", "mtu 1400", "02:fe:00:00:00:09", "alias contiv:linux-tap-")
	if path, name, ok := w.b.LinuxTap("vpp-tap"); !ok || path != ns || name != "eth0" {
		t.Errorf("LinuxTap = %q, %q, %t", path, name, ok)
	}
	w.quiet(values...)
	w.restart()
	w.quiet(values...)
	if mac, ok := w.b.LinuxTapMAC("vpp-tap"); !ok || mac.String() != "02:fe:00:00:00:09" {
		t.Errorf("LinuxTapMAC = %s, %t", mac, ok)
	}
	if path, name, ok := w.b.LinuxTap("vpp-tap"); !ok || path != ns || name != "eth0" {
		t.Errorf("after a restart: LinuxTap = %q, %q, %t", path, name, ok)
	}
	w.remove(tap, values[2])
	if out := w.run("ip", "-o", "link", "show", dev); strings.Contains(out, "contiv:") {
		t.Errorf("the TAP came back with its tag: %s", out)
	}
	w.put(tap, values[2])
	w.quiet(values...)

	// VPP dies and its TAP disappears; the new VPP creates another one.
	w.ip(ns, "link", "del", "eth0")
	w.run("ip", "tuntap", "add", dev, "mode", "tap")
	if _, err := w.commit(3, nil); err != nil {
		t.Fatal(err)
	}
	w.quiet(values...)
	w.remove(values...)
	w.quiet()

	// A name that does not belong to a TAP, such as the host's own eth0.
	w.taps["vpp-tap"] = w.dev("x")
	w.run("ip", "link", "add", w.taps["vpp-tap"], "type", "bridge")
	if f := w.putFails(vpp, tap).Failed[0]; !errors.Is(f.Err, errNoLink) {
		t.Errorf("a bridge was taken for a TAP: %v", f)
	}
}

func TestLoopbackAndExisting(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	w.ip(ns, "link", "add", "ext0", "type", "bridge")
	existing := &linux_interfaces.Interface{
		Name: "ext-" + w.id, Type: linux_interfaces.Interface_EXISTING, HostIfName: "ext0", Namespace: pathNS(ns), Enabled: true,
		IpAddresses: []string{"10.4.0.1/24", "fd00:4::1/64"},
	}
	w.roundTrip(w.loopback(ns), existing)
	w.shows(ns, "-o link show ext0", "ext0", "UP")
	if out := w.ip(ns, "-o", "addr"); strings.Contains(out, "10.4.0.1") || strings.Contains(out, "fd00:4::1") {
		t.Errorf("addresses are left on the existing device:\n%s", out)
	}
	if out := w.ip(ns, "link"); strings.Contains(out, "contiv:") {
		t.Errorf("left behind:\n%s", out)
	}
	missing := proto.Clone(existing).(*linux_interfaces.Interface)
	missing.HostIfName = "ext1"
	if f := w.putFails(missing).Failed[0]; !retriable(f.Err) || !strings.Contains(f.Error(), "ext1") {
		t.Errorf("a missing device: %v", f)
	}
}

func TestNamespaceGone(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	w.run("ip", "netns", "del", strings.TrimPrefix(ns, "/var/run/netns/"))

	again := proto.Clone(values[0]).(*linux_interfaces.Interface)
	again.Name = "lo2-" + w.id
	failed := w.putFails(again)
	if err := failed.Failed[0].Err; !errors.Is(err, nsdo.ErrGone) || retriable(err) || !strings.Contains(err.Error(), ns) {
		t.Errorf("create: %v, want a final nsdo.ErrGone that names %s", err, ns)
	}
	w.remove(again)
	w.remove(values...)
	w.quiet()
}

func TestNamespaceGoneIsNotDumped(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	w.put(values...)
	w.run("ip", "netns", "del", strings.TrimPrefix(ns, "/var/run/netns/"))
	w.restart()
	_, err := w.commit(2, kvs(t, values))
	if !errors.Is(err, nsdo.ErrGone) {
		t.Errorf("resync: %v, want nsdo.ErrGone", err)
	}
	if _, err := w.commit(2, nil); err != nil {
		t.Errorf("resync to nothing: %v", err)
	}
	if _, err := os.Stat("/sys/class/net/h" + w.id); err == nil {
		t.Error("the host end is left")
	}
}

func TestForeignLinksStay(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	w.ip(ns, "link", "add", "eth0", "type", "bridge")
	w.ip(ns, "link", "set", "eth0", "alias", "somebody's")
	w.ip(ns, "link", "add", "other", "type", "bridge")
	w.ip(ns, "link", "set", "other", "up")
	w.ip(ns, "addr", "add", "10.7.0.1/24", "dev", "other")
	pod, host := w.pair(ns)
	failed := w.putFails(pod, host)
	for _, f := range failed.Failed {
		if !errors.Is(f.Err, errForeign) || !strings.Contains(f.Error(), "eth0") {
			t.Errorf("%v, want errForeign that names eth0", f)
		}
	}
	if _, err := os.Stat("/sys/class/net/h" + w.id); err == nil {
		t.Error("half a pair was left behind")
	}
	w.remove(pod, host)
	w.quiet(w.loopbackPut(ns)...)
	w.shows(ns, "-o link", "somebody's", "other")
	w.shows(ns, "-o addr", "10.7.0.1/24")
}

// loopbackPut adds the namespace's lo, so that dumps read the namespace.
func (w *world) loopbackPut(ns string) []proto.Message {
	lo := w.loopback(ns)
	w.put(lo)
	return []proto.Message{lo}
}

func TestFailedCreateLeavesNothing(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	pod, host := w.pair(ns)
	pod.PhysAddress = "01:00:00:00:00:01" // multicast: the kernel rejects it
	if f := w.putFails(pod, host).Failed[0]; retriable(f.Err) {
		t.Errorf("retriable: %v", f)
	}
	w.remove(pod, host)

	// Only one end, and from a spare end.
	w.put(host)
	w.putFails(pod)
	w.remove(pod)
	w.quiet(host)
	pod.PhysAddress = ""
	w.put(pod)
	w.quiet(host, pod)
	w.remove(pod, host)

	dev := w.dev("t")
	w.run("ip", "tuntap", "add", dev, "mode", "tap")
	w.taps["vpp-tap"] = dev
	tap := &linux_interfaces.Interface{
		Name: "tap-" + w.id, Type: linux_interfaces.Interface_TAP_TO_VPP, HostIfName: "eth0", Namespace: pathNS(ns),
		PhysAddress: "01:00:00:00:00:01", Link: &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
	w.putFails(&vpp_interfaces.Interface{Name: "vpp-tap"}, tap)
	if out := w.run("ip", "-o", "link", "show", dev); strings.Contains(out, "contiv:") {
		t.Errorf("the TAP is tagged after a failure: %s", out)
	}
	if out := w.ip(ns, "-o", "link"); strings.Contains(out, "eth0") {
		t.Errorf("left in the pod:\n%s", out)
	}
}

func TestHalfMadePairIsCleanedUp(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	pod, host := w.pair(ns)
	// The leftovers of a crash between creating and tagging.
	h := w.dev("h")
	w.run("ip", "link", "add", h, "group", itoa(groupNew), "type", "veth", "peer", "name", "eth0", "group", itoa(groupNew), "netns", strings.TrimPrefix(ns, "/var/run/netns/"))
	w.put(pod, host)
	w.quiet(pod, host)
	w.remove(pod, host)
	w.run("ip", "link", "add", h, "group", itoa(groupNew), "type", "veth", "peer", "name", "eth0", "netns", strings.TrimPrefix(ns, "/var/run/netns/"))
	w.quiet()
	if _, err := os.Stat("/sys/class/net/" + h); err == nil {
		t.Error("a resync leaves a half-made pair")
	}
}

// pool provides one pair.
type pool struct{ pod, host string }

func (p *pool) TakeVeth() (podEnd, hostEnd string, ok bool) {
	podEnd, hostEnd = p.pod, p.host
	p.pod = ""
	return podEnd, hostEnd, podEnd != ""
}

func TestPool(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	p := &pool{w.dev("pp"), w.dev("ph")}
	w.run("ip", "link", "add", p.pod, "type", "veth", "peer", "name", p.host)
	w.run("ip", "link", "set", p.host, "up")
	w.b.pool, w.deps.Pool = p, p
	values := w.podValues(ns)
	w.put(values...)
	if dev, ok := w.b.LinuxDevice("host-" + w.id); !ok || dev != p.host {
		t.Errorf("LinuxDevice = %q, %t, want %s", dev, ok, p.host)
	}
	w.shows(ns, "-o link show eth0", "02:fe:00:00:00:07", "LOWER_UP")
	w.quiet(values...)
	w.restart()
	w.quiet(values...)
	w.remove(values...)
	w.quiet()
	if _, err := os.Stat("/sys/class/net/" + p.host); err == nil {
		t.Error("the host end is left")
	}
}
