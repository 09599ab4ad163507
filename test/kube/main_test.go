// Package kube tests on a real Kubernetes: API server, controllers, scheduler, and nodes with kubelet and containerd, each in
// its own namespaces (scripts in lab/). The agent runs in the nodes as it does for users; the reference bridge plugin with
// kube-proxy runs for comparison. `make e2e` runs it, on these clusters one after the other (CLUSTERS=name,name):
//
//	reference        bridge and kube-proxy; the others are compared with it
//	linux, vpp       agents as processes in the nodes: for quick tests of a change
//	installed        the chart, with etcd and TLS, on the kernel's dataplane: all tests
//	installed-vpp    the same on VPP, in separate pods: all tests, and those of faults of VPP
//	installed-auto   the chart with its defaults: one node on VPP and one on the kernel, by label
//	installed-relay  agents that receive the state of Kubernetes from contiv-ksr
//	documents        the commands of README.md and docs/ as they are written, with the real helm (documents_test.go)
//
// Test suites of other projects run on the clusters of the chart, but only if -run names them (suites_test.go), as
// `make e2e CLUSTERS=installed-auto SUITES=netpol,cnp,conformance` does:
//
//	netpol       Kubernetes' tests of NetworkPolicy
//	cnp          the conformance tests of ClusterNetworkPolicy, of sigs.k8s.io/network-policy-api
//	conformance  the conformance tests of Kubernetes' SIG Network
//
// If the kernel has no SCTP sockets, their SCTP tests make only the handshake, with raw packets (lab/rawsctp).
//
// Only one test can run at a time on a machine: a bridge in the machine's own network namespace connects the nodes (10.10.0.0/24,
// fd00:10::/64), and ports 6443, 2379 and 2479 are used.
package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binDir has the binaries under test; upgradeDir has the same programs in another version, which is built differently.
var binDir, upgradeDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if reason := whyNot(); reason != "" {
		fmt.Fprintln(os.Stderr, "kube: skipped: "+reason)
		return 0
	}
	dir, err := os.MkdirTemp("", "kube-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "kube:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir, upgradeDir = filepath.Join(dir, "old"), filepath.Join(dir, "new")
	for to, flags := range map[string]string{binDir: "-s -w", upgradeDir: "-w"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", to+"/",
			"contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni", "contiv.dev/vswitch/cmd/contiv-init",
			"contiv.dev/vswitch/cmd/contiv-netctl")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "kube: go build: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// whyNot returns the reason why a cluster cannot run here.
func whyNot() string {
	if os.Getenv("CONTIV_KUBE") == "" {
		return "a real Kubernetes takes the machine's own addresses and ports: make e2e"
	}
	if os.Geteuid() != 0 {
		return "namespaces need root"
	}
	for _, name := range []string{"kube-apiserver", "kubelet", "containerd", "etcd"} {
		if _, err := os.Stat(filepath.Join(cacheDir(), "bin", name)); err != nil {
			return name + " is not built: test/kube/lab/build.sh"
		}
	}
	return ""
}

// cacheDir returns the folder into which lab/build.sh writes.
func cacheDir() string {
	if dir := os.Getenv("KUBELAB_CACHE"); dir != "" {
		return dir
	}
	base, err := os.UserCacheDir()
	if err != nil {
		base = "/root/.cache"
	}
	return filepath.Join(base, "kubelab")
}

// wanted reports whether a cluster is to be tested: CONTIV_KUBE=linux,vpp or all.
func wanted(name string) bool {
	list := os.Getenv("CONTIV_KUBE")
	return list == "all" || strings.Contains(","+list+",", ","+name+",")
}
