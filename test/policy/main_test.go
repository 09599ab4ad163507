// Package policy tests the effect of network policies on packets: two nodes with real agents, pods in network namespaces, and a test
// double of the API server that has the policies. It needs root and touches nothing of the machine's own network namespace.
package policy

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/matrix"
)

const prefix = "cvp"

var binDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	atonce.Limit(3) // tests wait most of the time
	if binDir = os.Getenv("CONTIV_POLICY_BIN"); binDir != "" || os.Geteuid() != 0 {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", prefix+"-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	err = gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni",
		"github.com/containernetworking/plugins/plugins/meta/portmap")
	if err != nil {
		fmt.Fprintln(os.Stderr, "policy:", err)
		return 1
	}
	return m.Run()
}

// onVPP is the name of the backend VPP with our plugin; the others are those of the Linux dataplane.
const onVPP = "vpp"

// each runs a test once per backend, in parallel with other tests: each has its own cluster, and waits most of the time. make test runs
// nft, and the named backends.
func each(t *testing.T, test func(t *testing.T, backend string), besides ...string) {
	t.Parallel()
	for _, backend := range []string{"nft", "iptables", onVPP} {
		t.Run(backend, func(t *testing.T) {
			if !slices.Contains(besides, backend) {
				matrix.Only(t, "nft")
			}
			if os.Geteuid() != 0 {
				t.Skip("skipped: network namespaces need root")
			}
			if backend == onVPP {
				if _, there := vpptest.Find(); !there {
					t.Skip(vpptest.ErrNoVPP)
				}
			} else if _, err := exec.LookPath(backend); err != nil {
				t.Skipf("skipped: there is no %s", backend)
			}
			t.Parallel()
			test(t, backend)
		})
	}
}
