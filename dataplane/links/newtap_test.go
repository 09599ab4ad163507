package links

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/nsdo"
)

// VPP can attach to the device that we create, and the device keeps its queueing discipline when it is set up and down.
func TestMakeTap(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	defer w.b.leaveAll()
	if made, err := w.b.MakeTap(filepath.Base(ns), "eth0", false); err != nil || !made {
		t.Fatalf("MakeTap = %t, %v", made, err)
	}
	h, err := w.b.enter(ns)
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.sock.link("eth0")
	if err != nil || !orphaned(l) || enabledUp(l) || !mayBeTapOf(l, "any") {
		t.Fatalf("%+v, %v: want a TAP that waits for VPP, down", l, err)
	}
	noqueue := func(when string) {
		t.Helper()
		if out := w.ip(ns, "link", "show", "eth0"); !strings.Contains(out, "qdisc noqueue") {
			t.Errorf("%s: %s", when, out)
		}
	}
	noqueue("made")
	if made, err := w.b.MakeTap(ns, "eth0", false); err != nil || made {
		t.Errorf("a second time: made %t, %v", made, err)
	}

	vpp := w.openTap(ns, "eth0")
	w.ip(ns, "link", "set", "eth0", "up")
	noqueue("up")
	w.ip(ns, "link", "set", "eth0", "down")
	w.ip(ns, "link", "set", "eth0", "up")
	noqueue("up again")
	if err := w.b.DropTap(ns, "eth0"); err != nil {
		t.Fatal(err)
	}
	w.wantTaps(ns, "VPP has it: not dropped", 1, "eth0")
	vpp.die()
	vpp = w.openTap(ns, "eth0")
	noqueue("attached again")
	vpp.die()
	if err := w.b.DropTap(ns, "eth0"); err != nil {
		t.Fatal(err)
	}
	w.wantTaps(ns, "dropped", 0)
	if err := w.b.DropTap(ns, "eth0"); err != nil {
		t.Errorf("drop what is not there: %v", err)
	}
}

// An existing device with the name stays unchanged, whatever its type, and so does a device that has an owner.
func TestMakeTapLeavesOthersAlone(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	defer w.b.leaveAll()
	w.ip(ns, "link", "add", "eth0", "type", "veth", "peer", "name", "other")
	if made, err := w.b.MakeTap(ns, "eth0", false); err != nil || made {
		t.Errorf("a VETH has the name: made %t, %v", made, err)
	}
	if err := w.b.DropTap(ns, "eth0"); err != nil {
		t.Error(err)
	}
	w.shows(ns, "link show eth0", "eth0")

	if made, err := w.b.MakeTap(ns, "tap0", false); err != nil || !made {
		t.Fatalf("made %t, %v", made, err)
	}
	w.ip(ns, "link", "set", "tap0", "alias", tagOf("somebody"))
	if err := w.b.DropTap(ns, "tap0"); err != nil {
		t.Error(err)
	}
	w.wantTaps(ns, "one with an owner", 1, "tap0")

	if made, err := w.b.MakeTap(ns, "tun0", true); err != nil || !made {
		t.Fatalf("TUN: made %t, %v", made, err)
	}
	if out := w.ip(ns, "-d", "link", "show", "tun0"); !strings.Contains(out, "type tun") {
		t.Errorf("not a TUN: %s", out)
	}
	if _, err := w.b.MakeTap(ns+"-gone", "eth0", false); !errors.Is(err, nsdo.ErrGone) {
		t.Errorf("no such namespace: %v", err)
	}
	if err := w.b.DropTap(ns+"-gone", "eth0"); err != nil {
		t.Errorf("drop in a namespace that is gone: %v", err)
	}
}
