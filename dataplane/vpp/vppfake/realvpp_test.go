package vppfake_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// spaces numbers network namespaces: several tests run VPPs at the same time.
var spaces atomic.Uint32

// startVPP starts a real VPP in its own network namespace, which has the host devices hv0 and hv1. Without VPP or root the test is skipped.
func startVPP(t *testing.T, workers int, plugin bool) *vpptest.VPP {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no real VPP")
	}
	if _, ok := vpptest.Find(); !ok || os.Getuid() != 0 {
		t.Skip("no VPP here, or not root")
	}
	ns := fmt.Sprintf("vppfake-%d-%d", os.Getpid(), spaces.Add(1))
	run(t, "ip", "netns", "add", ns)
	t.Cleanup(func() { run(t, "ip", "netns", "del", ns) })
	for _, dev := range []string{"hv0", "hv1"} {
		run(t, "ip", "-n", ns, "link", "add", dev, "type", "veth", "peer", "name", dev+"p")
	}
	return vpptest.Start(t, vpptest.Options{Netns: ns, Vhostshim: true, Buffers: 4096, Workers: workers, Plugin: plugin})
}

// advance advances the clock of a VPP, and runs all timers that expire meanwhile, in order. It returns when they are done. The command uses the
// socket of the CLI: other requests of an API client would disturb it.
func advance(t *testing.T, v *vpptest.VPP) func(time.Duration) {
	return func(d time.Duration) {
		t.Helper()
		if _, err := v.CLI(fmt.Sprintf("set clock adjust %f", d.Seconds())); err != nil {
			t.Fatal(err)
		}
	}
}

// fakeClock is a clock that only the test advances.
type fakeClock struct{ ahead atomic.Int64 }

func (c *fakeClock) now() time.Time { return time.Unix(1_000_000, c.ahead.Load()) }

func (c *fakeClock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
