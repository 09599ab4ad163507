package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/gobuild"
)

// TestShortSoak is a soak of some seconds on Linux: it runs and checks every part of the long soak once.
func TestShortSoak(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("the Linux dataplane needs nft")
	}
	dir := t.TempDir()
	if err := gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	o := options{
		name: fmt.Sprintf("csk%d", os.Getpid()%100000), bin: dir, duration: 15 * time.Second, dataplane: "linux", rate: 1,
		killEvery: 4 * time.Second, stall: 10 * time.Second, keepGoing: true,
	}
	var out strings.Builder
	s, err := newSoak(ctx, o, &out)
	if err != nil {
		t.Fatal(err)
	}
	err = s.run(ctx)
	if cerr := s.close(context.WithoutCancel(ctx)); cerr != nil {
		t.Error(cerr)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	kills, _, _ := s.kills.figures()
	for _, f := range s.streams {
		if f.bytes() < 4<<20 {
			t.Errorf("%s: %d bytes", f.name, f.bytes())
		}
	}
	if kills < 2 || s.churn.added.Load() < 2 || s.services.changes.Load() < 10 || s.connections.made.Load() < 50 {
		t.Errorf("too little happened:\n%s", &out)
	}
}

// TestGrowingSeries checks that a growing series is distinguished from a noisy one.
func TestGrowingSeries(t *testing.T) {
	series := func(growth, noise float64) (values []float64) {
		for i := range 300 {
			values = append(values, 100e6+growth*float64(i)/300+noise*float64(i%7))
		}
		return values
	}
	for _, c := range []struct {
		growth, noise float64
		flat          bool
	}{{0, 0, true}, {0, 5e6, true}, {5e6, 1e6, true}, {40e6, 1e6, false}, {-50e6, 0, true}} {
		if first, last, flat := evaluate(series(c.growth, c.noise), flatBytes); flat != c.flat {
			t.Errorf("%+v: %.0f, then %.0f: %v", c, first, last, flat)
		}
	}
	if _, _, flat := evaluate([]float64{1, 1e9}, flatBytes); !flat {
		t.Error("two values are no series")
	}
}

// TestInventory checks that objects that are left behind, or lost, are named.
func TestInventory(t *testing.T) {
	before := inventory{"n1 devices": {"eth0", "eth1"}, "n2 devices": {"eth0"}}
	if diff := before.diff(inventory{"n1 devices": {"eth1", "eth0"}, "n2 devices": {"eth0"}}); diff != "" {
		t.Error(diff)
	}
	if diff := before.diff(inventory{"n1 devices": {"eth0", "tap7"}, "n2 devices": {}}); diff != "n1 devices has tap7; n1 devices lacks eth1; n2 devices lacks eth0" {
		t.Error(diff)
	}
	const vpp = "              Name                Idx   Link  Hardware\nhost-eth1                          1     up   host-eth1\n  Link speed: unknown\n"
	inv := inventory{}
	inv.put("x", vpp, func(line string) string { return objectName("VPP interfaces", line) })
	if fmt.Sprint(inv["x"]) != "[host-eth1]" {
		t.Errorf("%q", inv["x"])
	}
	const maps = "7f00-7f01 rw-s 00000000 00:08 71 socket:[71]\n7f02-7f03 rw-p 00000000 00:00 0\n7f04-7f05 rw-s 00000000 00:08 72 socket:[72]\n"
	if got := fmt.Sprint(rings(maps)); got != "[ring 1 ring 2]" {
		t.Error(got)
	}
	if got := objectName("VPP neighbours", "  .29   192.168.16.2   D   02:fb:47:2d:00:7f host-eth1"); got != "" {
		t.Error(got)
	}
	if got := objectName("VPP neighbours", "  .67   10.1.1.2   S   02:fe:ff:5f:fa:79 tap1"); got != "10.1.1.2 tap1" {
		t.Error(got)
	}
}

// TestMemoryOf checks that the memory that a process allocated is counted separately from the files and sockets
// that it mapped.
func TestMemoryOf(t *testing.T) {
	const size = 64 << 20
	before, all := memoryOf(os.Getpid(), "RssAnon"), memoryOf(os.Getpid(), "VmRSS")
	block := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		block[i] = 1
	}
	after := memoryOf(os.Getpid(), "RssAnon")
	runtime.KeepAlive(block)
	if after-before < size/2 || before >= all {
		t.Errorf("%.0f of %.0f bytes, then %.0f with a block of %d", before, all, after, size)
	}
	if got := memoryOf(1<<30, "VmRSS"); got != 0 {
		t.Errorf("a process that does not exist has %.0f bytes", got)
	}
}

// TestFaults checks that faults are counted by kind, and end the run with an error.
func TestFaults(t *testing.T) {
	var out strings.Builder
	f := faults{out: &out}
	if f.err() != nil {
		t.Error(f.err())
	}
	for range shownOfAKind + 5 {
		f.add(time.Second, "stream broken", "x")
	}
	f.add(time.Second, "memory", "y")
	if err := f.err(); err == nil || err.Error() != fmt.Sprintf("stream broken: %d\nmemory: 1", shownOfAKind+5) {
		t.Errorf("%v", err)
	}
	if n := strings.Count(out.String(), "stream broken"); n != shownOfAKind {
		t.Errorf("%d lines", n)
	}
}

func TestOptions(t *testing.T) {
	good := options{duration: time.Minute, dataplane: "linux", rate: 1, killEvery: time.Second, stall: time.Second}
	if err := good.complete(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*options){
		"dataplane": func(o *options) { o.dataplane = "windows" }, "duration": func(o *options) { o.duration = 0 },
		"rate": func(o *options) { o.rate = 0 },
	} {
		o := good
		change(&o)
		if o.complete() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestWarmPool checks that the pairs in the warm pool may change, but not their number.
func TestWarmPool(t *testing.T) {
	take := func(devices string) inventory {
		inv := inventory{}
		inv.put("node", devices, func(line string) string { return strings.Fields(line)[0] })
		return inv
	}
	before := take("lo x\ncvh41a28002f0@cvq41a28002f0 x\ncvq41a28002f0@cvh41a28002f0 x\nhost-cvh41a28002f0 x\n")
	if diff := before.diff(take("lo x\ncvh56ff065dcf@cvq56ff065dcf x\ncvq56ff065dcf@cvh56ff065dcf x\nhost-cvh56ff065dcf x\n")); diff != "" {
		t.Errorf("other pairs: %s", diff)
	}
	if diff := before.diff(take("lo x\ncvh56ff065dcf@cvq56ff065dcf x\n")); !strings.Contains(diff, "lacks 3 of the warm pool") {
		t.Errorf("fewer pairs: %q", diff)
	}
	if diff := before.diff(take("lo x\ncvh1 x\n" + strings.Repeat("host-cvh56ff065dcf x\n", 4))); !strings.Contains(diff, "has cvh1") ||
		!strings.Contains(diff, "has 4 of the warm pool") {
		t.Errorf("more pairs: %q", diff)
	}
}
