//go:build linux

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnectivity: all tests pass on two nodes in both families, a broken network makes them fail, and the test leaves nothing behind.
func TestConnectivity(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "linux", "vxlan")
	out := w.want(true, []string{"connectivity", "test", "--bulk", "5"}, "✓ pod to pod on the same node, IPv4 ",
		"✓ pod to pod on another node, IPv6, TCP", "✓ pod to pod on another node, IPv4, UDP", "✓ pod to pod on another node, IPv4, packets of 1450 bytes",
		"✓ pod to another node, IPv4", "✓ node to a pod on another node, IPv6", "✓ bulk data from another node, IPv6", "5 MB intact",
		"! pod to the outside", " 0 failed")
	t.Log(out)
	w.noTestPods()

	var rep connectivityReport
	text := w.stdout("connectivity", "test", "--bulk", "0", "-o", "json", "--nodes", w.Nodes[0].Name)
	if err := json.Unmarshal([]byte(text), &rep); err != nil || rep.Failed > 0 || rep.Passed < 8 || len(rep.Nodes) != 1 {
		t.Errorf("%v: %+v of\n%s", err, rep, text)
	}
	if err := w.Cut(w.ctx, 1); err != nil {
		t.Fatal(err)
	}
	w.want(false, []string{"connectivity", "test", "--nodes", w.Nodes[0].Name + "," + w.Nodes[1].Name, "--timeout", "20s"})
	if err := w.Mend(w.ctx, 1); err != nil {
		t.Fatal(err)
	}
	w.noTestPods()
	w.until(true, []string{"check"}, "0 findings")

	w.node(1, "nft add table ip fw && nft 'add chain ip fw f { type filter hook forward priority 10; }' && nft add rule ip fw f udp dport 8080 drop")
	w.want(false, []string{"connectivity", "test", "--bulk", "0"}, "✗ pod to pod on another node, IPv4, UDP", "✓ pod to pod on another node, IPv4, TCP",
		"1 failed")
	w.noTestPods()
	w.until(true, []string{"check"}, "0 findings")
}

// TestConnectivityOnVPP: the same tests pass between pods that VPP connects.
func TestConnectivityOnVPP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "vpp", "vxlan")
	w.want(true, []string{"connectivity", "test", "--bulk", "5"}, "✓ pod to pod on the same node, IPv4 ", "✓ pod to pod on another node, IPv6, TCP",
		"✓ bulk data to another node, IPv4", "✓ bulk data from another node, IPv6", "5 MB intact", " 0 failed")
	w.noTestPods()
}

// stdout returns what the command prints for scripts.
func (w *world) stdout(args ...string) string {
	w.t.Helper()
	n := w.Nodes[0]
	cmd := n.Command(w.ctx, filepath.Join(binDir, "contiv-netctl"), append([]string{"--socket=" + n.RESTSocket()}, args...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	data, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("contiv-netctl %s: %v\n%s\n%s", strings.Join(args, " "), err, data, &errs)
	}
	return string(data)
}

// noTestPods checks that no pod and no network namespace of a test is left.
func (w *world) noTestPods() {
	w.t.Helper()
	out := w.want(true, []string{"pods"})
	if strings.Contains(out, "contiv-test") {
		w.t.Errorf("pods of the test are left:\n%s", out)
	}
}
