// Package services tests the effect of services on packets, which must be the same on every dataplane: two nodes with real agents, pods and
// clients in network namespaces, and a test double of the API server (test/testbed/kubeapi) that has the services. An expectation is
// written as "client protocol address -> servers". kube-proxy runs the same cases with CONTIV_SERVICES_MODES=kube-proxy: its behaviour is
// the reference for the expectations.
//
// Everywhere, without root, the cases run on vppfake: agents in this process, and packets that are simulated. The other modes need root and
// touch nothing of the machine's own network namespace.
package services

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/matrix"
)

const prefix = "cvs"

var binDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	// Cases wait most of the time, and so do the tests that wait for a free world.
	atonce.Limit(64)
	if binDir = os.Getenv("CONTIV_SERVICES_BIN"); binDir != "" || !needBinaries() {
		return m.Run() // with or without the binaries
	}
	dir, err := os.MkdirTemp("", prefix+"-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	if err := gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni"); err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		return 1
	}
	return m.Run()
}

// needBinaries reports whether real agents run: all modes except the fake need them.
func needBinaries() bool {
	return os.Geteuid() == 0 && slices.ContainsFunc(modes(), func(m mode) bool { return !m.isFake() })
}

// mode is the program that serves services.
type mode string

// The modes. vpp-plugin and fake-plugin are VPP with our plugin, and its fake; vpp and fake are without. The fake runs agents in this
// process on vppfake, and needs nothing else. With kube-proxy, our agents connect the pods on the Linux dataplane and do not use
// Kubernetes.
const (
	fake          mode = "fake"
	fakePlugin    mode = "fake-plugin"
	linuxNFT      mode = "linux-nft"
	linuxIptables mode = "linux-iptables"
	vpp           mode = "vpp"
	vppPlugin     mode = "vpp-plugin"
	kubeProxy     mode = "kube-proxy"
)

// modesVariable names the modes to run, separated by commas; without it our own modes run.
const modesVariable = "CONTIV_SERVICES_MODES"

func modes() []mode {
	all := []mode{fake, fakePlugin, linuxNFT, linuxIptables, vpp, vppPlugin, kubeProxy}
	only := os.Getenv(modesVariable)
	if only == "" {
		return all[:6]
	}
	return slices.DeleteFunc(all, func(m mode) bool { return !slices.Contains(strings.Split(only, ","), string(m)) })
}

// workersVariable is the number of worker threads of real VPP, and roundsVariable the number of rounds of updates in RollingUpdate.
const (
	workersVariable = "CONTIV_SERVICES_WORKERS"
	roundsVariable  = "CONTIV_SERVICES_ROUNDS"
)

// setting returns the value of an environment variable, or the default.
func setting(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s=%s is not a number", variable, text)
	}
	return n
}

// isVPP reports whether the mode uses VPP or its fake.
func (m mode) isVPP() bool { return m.realVPP() || m.isFake() }

func (m mode) realVPP() bool { return m == vpp || m == vppPlugin }

func (m mode) isFake() bool { return m == fake || m == fakePlugin }

// hasPlugin reports whether VPP serves with our plugin, which has none of the faults of VPP's own NAT.
func (m mode) hasPlugin() bool { return m == vppPlugin || m == fakePlugin }

// needs skips the test if something that the mode needs is missing.
func (m mode) needs(t *testing.T) {
	t.Helper()
	if !m.isFake() && os.Geteuid() != 0 {
		t.Skipf("%s: skipped: network namespaces need root", m)
	}
	switch m {
	case vpp, vppPlugin:
		if _, ok := vpptest.Find(); !ok {
			t.Skip(vpptest.ErrNoVPP)
		}
	case linuxNFT, linuxIptables:
		tool := map[mode]string{linuxNFT: "nft", linuxIptables: "iptables"}[m]
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s: skipped: there is no %s", m, tool)
		}
	case kubeProxy:
		if kubeProxyPath() == "" {
			t.Skip("kube-proxy: skipped: none found (KUBE_PROXY, PATH, ~/.cache/kubelab/bin)")
		}
	}
}

func kubeProxyPath() string {
	if path := os.Getenv("KUBE_PROXY"); path != "" {
		return path
	}
	if path, err := exec.LookPath("kube-proxy"); err == nil {
		return path
	}
	home, _ := os.UserHomeDir() // if empty, the path is relative and does not exist
	path := filepath.Join(home, ".cache", "kubelab", "bin", "kube-proxy")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// mainly skips a test in other modes, unless modesVariable or the matrix selects them.
func mainly(t *testing.T, in ...mode) {
	t.Helper()
	if os.Getenv(modesVariable) != "" {
		return
	}
	var names []string
	for _, m := range in {
		names = append(names, string(m))
	}
	matrix.Only(t, names...)
}

// each runs a test once per mode, in parallel with other tests. Without modesVariable, make test uses the modes of the default
// configuration, the fake, and the named modes.
func each(t *testing.T, test func(t *testing.T, m mode), besides ...mode) {
	t.Parallel()
	for _, m := range modes() {
		t.Run(string(m), func(t *testing.T) {
			mainly(t, append(besides, fakePlugin, linuxNFT, vppPlugin)...)
			m.needs(t)
			if !m.isFake() {
				t.Parallel()
			}
			test(t, m)
		})
	}
}
