package links

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb/linux/interfaces"
	"contiv.dev/vswitch/dataplane/nb/vpp/interfaces"
	"contiv.dev/vswitch/dataplane/txn"
)

// vppTap is a TAP that VPP creates in place: persistent, with several queues, and held open until VPP dies.
type vppTap struct {
	w    *world
	ns   string
	file *os.File
}

// openTap creates a TAP called dev in a namespace, or attaches to it.
func (w *world) openTap(ns, dev string) *vppTap {
	w.t.Helper()
	t := &vppTap{w: w, ns: ns}
	h, err := w.b.enter(ns)
	if err == nil {
		err = w.b.inNS(h, func() error {
			fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			t.file = os.NewFile(uintptr(fd), dev)
			req, err := unix.NewIfreq(dev)
			if err != nil {
				return err
			}
			req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE)
			if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF, uintptr(unsafe.Pointer(req))); errno != 0 {
				return errno
			}
			return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
		})
	}
	w.b.leaveAll()
	if err != nil {
		w.t.Fatalf("make TAP %s in %s: %v", dev, ns, err)
	}
	w.t.Cleanup(t.die)
	return t
}

// die closes the TAP like a VPP that is killed: the device stays.
func (t *vppTap) die() { _ = t.file.Close() }

// remove deletes a TAP as VPP does.
func (t *vppTap) remove() {
	t.w.t.Helper()
	if err := unix.IoctlSetInt(int(t.file.Fd()), unix.TUNSETPERSIST, 0); err != nil {
		t.w.t.Error(err)
	}
	t.die()
}

// inPlaceTap returns the values of a dual-stack pod whose TAP VPP creates in place.
func (w *world) inPlaceTap(ns string) (vpp proto.Message, linux []proto.Message) {
	w.inPlace = true
	w.taps["vpp-tap"] = "eth0"
	tap := &linux_interfaces.Interface{
		Name: "tap-" + w.id, Type: linux_interfaces.Interface_TAP_TO_VPP, HostIfName: "eth0", Enabled: true, Mtu: 1400,
		Namespace: pathNS(ns), IpAddresses: []string{"10.1.1.2/32", "fd00:1::2/128"}, PhysAddress: "02:fe:00:00:00:09",
		Link: &linux_interfaces.Interface_Tap{Tap: &linux_interfaces.TapLink{VppTapIfName: "vpp-tap"}},
	}
	return &vpp_interfaces.Interface{Name: "vpp-tap", Type: vpp_interfaces.Interface_TAP}, []proto.Message{
		tap, neighbour(tap, "10.1.1.1", "02:00:00:00:00:01"), neighbour(tap, "fd00:1::1", "02:00:00:00:00:01"),
		route(tap, "10.1.1.1/32", "", 0), route(tap, "0.0.0.0/0", "10.1.1.1", 0),
		route(tap, "fd00:1::1/128", "", 0), route(tap, "::/0", "fd00:1::1", 0),
	}
}

// wantTaps expects the given number of TAPs in a namespace, including those named.
func (w *world) wantTaps(ns, when string, want int, named ...string) {
	w.t.Helper()
	var taps []string
	for _, line := range strings.Split(strings.TrimSpace(w.ip(ns, "-o", "link", "show", "type", "tun")), "\n") {
		if parts := strings.Split(line, ": "); len(parts) > 2 {
			taps = append(taps, parts[1])
		}
	}
	if len(taps) != want {
		w.t.Errorf("%s: TAPs %q, want %d", when, taps, want)
	}
	for _, name := range named {
		if !slices.Contains(taps, name) {
			w.t.Errorf("%s: TAPs %q, %s is missing", when, taps, name)
		}
	}
}

// A VPP that attaches to a TAP sets its MAC, and the kernel drops the neighbours after they were dumped.
func TestAttachedTapKeepsItsNeighbours(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		w := newWorld(t)
		ns := w.netns("pod" + map[bool]string{true: "1", false: "2"}[restarted])
		vpp, linux := w.inPlaceTap(ns)
		held := w.openTap(ns, "eth0")
		values := append(linux, vpp)
		w.put(values...)
		check := func() {
			t.Helper()
			w.shows(ns, "neigh", "10.1.1.1 dev eth0 lladdr 02:00:00:00:00:01 PERMANENT",
				"fd00:1::1 dev eth0 lladdr 02:00:00:00:00:01 PERMANENT")
			w.shows(ns, "route", "10.1.1.1 dev eth0", "default via 10.1.1.1 dev eth0")
			w.shows(ns, "-6 route", "fd00:1::1 dev eth0", "default via fd00:1::1 dev eth0")
		}
		check()
		held.die()
		if restarted {
			w.restart()
		}
		attached := 0
		w.vppDead = true
		w.attach = func(name string) {
			path, dev, ok := w.b.LinuxTap(name)
			mac, _ := w.b.LinuxTapMAC(name)
			if !ok || path != ns || dev != "eth0" || mac.String() != "02:fe:00:00:00:09" {
				t.Errorf("LinuxTap = %q, %q, %t, MAC %s", path, dev, ok, mac)
				return
			}
			w.openTap(ns, "eth0")
			w.ip(ns, "link", "set", "eth0", "address", mac.String())
			w.ip(ns, "-6", "route", "del", "default") // no kernel does it today
			if out := w.ip(ns, "neigh"); strings.Contains(out, "PERMANENT") {
				t.Errorf("setting the MAC leaves neighbours, so this tests nothing:\n%s", out)
			}
			attached++
		}
		kind, list := txn.DownstreamResync, []txn.KV(nil)
		if restarted {
			kind, list = txn.FullResync, kvs(t, values)
		}
		if _, err := w.commit(kind, list); err != nil || attached != 1 {
			t.Fatalf("%v, attached %d times", err, attached)
		}
		check()
		w.quiet(values...)
		if len(w.b.attaching) > 0 {
			t.Errorf("still waiting for %v", w.b.attaching)
		}
	}
}

func TestTapInPlace(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	vpp, linux := w.inPlaceTap(ns)
	values := append(linux, vpp)

	// ADD, DEL and ADD again while VPP has not deleted the first one.
	first := w.openTap(ns, "eth0")
	w.put(values...)
	w.remove(linux...)
	w.wantTaps(ns, "after a DEL", 1)
	w.shows(ns, "-o link", ": cvx", "alias contiv-peer:tap-"+w.id)
	second := w.openTap(ns, "eth0")
	w.put(values...)
	w.wantTaps(ns, "after a second ADD", 2, "eth0")
	w.quiet(values...)
	w.remove(linux...)
	w.wantTaps(ns, "after a second DEL", 2)
	third := w.openTap(ns, "eth0")
	w.put(values...)
	w.wantTaps(ns, "after a third ADD", 3, "eth0")
	w.restart()
	w.quiet(values...)
	w.wantTaps(ns, "what VPP holds is left to it", 3, "eth0")

	// VPP deletes one, and dies before it deletes the other.
	first.remove()
	w.wantTaps(ns, "VPP has deleted one", 2, "eth0")
	second.die()
	w.quiet(values...)
	w.wantTaps(ns, "after a resync", 1, "eth0")

	// Only the Linux end is created again: the device stays in its namespace meanwhile.
	w.remove(linux...)
	w.wantTaps(ns, "without a Linux end", 1)
	w.put(linux...)
	w.wantTaps(ns, "with it again", 1, "eth0")
	w.quiet(values...)

	// VPP dies, then the pod is deleted: only the agent can remove the device.
	third.die()
	w.remove(values...)
	w.wantTaps(ns, "deleted without VPP", 0)
	w.quiet()
}

// The devices of failed ADDs do not block the ADD that succeeds.
func TestTapLeftBehind(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	vpp, linux := w.inPlaceTap(ns)
	values := append(linux, vpp)
	// VPP dies after the first device was put aside, then the pod is added again.
	first := w.openTap(ns, "eth0")
	w.put(values...)
	w.remove(values...)
	first.die()
	second := w.openTap(ns, "eth0")
	w.put(values...)
	w.wantTaps(ns, "added again", 2, "eth0")
	w.quiet(values...)
	w.wantTaps(ns, "after a resync", 1, "eth0")

	// The same, but no value is desired in the namespace when the resync runs.
	w.remove(values...)
	second.die()
	w.wantTaps(ns, "deleted", 1)
	w.quiet()
	w.wantTaps(ns, "after a resync to nothing", 0)
	if len(w.b.aside) > 0 {
		t.Errorf("still stored: %v", w.b.aside)
	}

	// A device that VPP created just before it died has no mark: the new VPP's device replaces it.
	w.openTap(ns, "eth0").die()
	w.openTap(ns, "eth0")
	w.put(values...)
	w.wantTaps(ns, "attached", 1, "eth0")
	w.quiet(values...)
	w.remove(values...)

	// A device of another program.
	w.openTap(ns, "eth0")
	w.ip(ns, "link", "set", "eth0", "alias", "contiv:another")
	if f := w.putFails(values...).Failed[0]; !errors.Is(f.Err, errForeign) {
		t.Errorf("%v, want errForeign", f)
	}
	w.shows(ns, "-o link show eth0", "alias contiv:another")
}
