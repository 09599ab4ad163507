// Package e2e tests the product as users run it: the agent and the CNI binary as real processes on a node that is a network
// namespace, pods that are namespaces too, and VPP. If there is no VPP, the tests that need no packets run with its fake.
//
// The tests need root. They touch nothing of the machine's own network namespace, and remove the remains of interrupted runs.
//
//	CONTIV_E2E_PODS=300   more pods in tests with many pods
//	CONTIV_E2E_SEED=42    repeat a random run
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
)

// prefix is the prefix of the names of all nodes, and so of all namespaces and directories; our process ID follows it.
const prefix = "cve2e-"

var (
	binDir string
	isRoot = os.Geteuid() == 0
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if !isRoot {
		fmt.Fprintln(os.Stderr, "e2e: skipped but for the property test: network namespaces need root")
		return m.Run()
	}
	removeLeftovers()
	atonce.Limit(3) // tests wait most of the time
	dir, err := os.MkdirTemp("", prefix+"bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	start := time.Now()
	err = gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni",
		"github.com/containernetworking/plugins/plugins/meta/portmap")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	if _, ok := vpptest.Find(); !ok {
		fmt.Fprintf(os.Stderr, "e2e: %v: tests with packets are skipped\n", vpptest.ErrNoVPP)
	}
	fmt.Fprintf(os.Stderr, "e2e: built in %.1fs\n", time.Since(start).Seconds())
	defer removeOurs(strconv.Itoa(os.Getpid()))
	return m.Run()
}

// removeLeftovers removes what earlier runs, whose process has ended, have left behind.
func removeLeftovers() {
	entries, _ := os.ReadDir("/run/netns") // without namespaces there is no directory
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok {
			continue
		}
		owner, _, _ := strings.Cut(rest, "-")
		if pid, err := strconv.Atoi(owner); err == nil && syscall.Kill(pid, 0) != nil {
			removeOurs(owner)
		}
	}
}

// removeOurs ends the processes in the namespaces of a run, and removes the namespaces and the run's directories.
func removeOurs(owner string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	namespaces, _ := filepath.Glob("/run/netns/" + prefix + owner + "-*") // the pattern is valid
	for _, path := range namespaces {
		name := filepath.Base(path)
		out, _ := exec.CommandContext(ctx, "ip", "netns", "pids", name).Output()
		for pid := range strings.FieldsSeq(string(out)) {
			if n, err := strconv.Atoi(pid); err == nil && n != os.Getpid() {
				_ = syscall.Kill(n, syscall.SIGKILL) // the process may have ended
			}
		}
		_ = exec.CommandContext(ctx, "ip", "netns", "del", name).Run() // on an error, the next run tries again
	}
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "contiv-"+prefix+owner+"-*"))
	for _, dir := range dirs {
		_ = os.RemoveAll(dir)
	}
}
