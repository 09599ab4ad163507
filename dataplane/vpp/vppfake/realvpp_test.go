package vppfake_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// startVPP runs a real VPP in a network namespace of its own, which has the host devices hv0 and hv1, and returns its API
// socket. Without a VPP, or without root, the test is skipped.
func startVPP(t *testing.T, workers int, plugin bool) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no real VPP")
	}
	if _, ok := vpptest.Find(); !ok || os.Getuid() != 0 {
		t.Skip("no VPP here, or not root")
	}
	ns := fmt.Sprintf("vppfake-%d", os.Getpid())
	run(t, "ip", "netns", "add", ns)
	t.Cleanup(func() { run(t, "ip", "netns", "del", ns) })
	for _, dev := range []string{"hv0", "hv1"} {
		run(t, "ip", "-n", ns, "link", "add", dev, "type", "veth", "peer", "name", dev+"p")
	}
	return vpptest.Start(t, vpptest.Options{Netns: ns, Vhostshim: true, Buffers: 4096, Workers: workers, Plugin: plugin}).Socket()
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
