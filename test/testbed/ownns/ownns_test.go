package ownns

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(failEnv) != "" && os.Getenv(insideEnv) != "" {
		os.Exit(7)
	}
	os.Exit(Run(m, "cvown"))
}

// failEnv is the environment variable that makes tests fail.
const failEnv = "TEST_OWNNS_FAIL"

// TestAlone checks that there is no device except lo, in this process, in programs that it starts,
// and in /sys.
func TestAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	links, err := net.Interfaces()
	if err != nil || len(links) != 1 || links[0].Flags&net.FlagUp == 0 {
		t.Errorf("links %v, %v", links, err)
	}
	out, err := exec.Command("ip", "-o", "link").Output()
	if err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("ip link: %s, %v", out, err)
	}
	devices, err := os.ReadDir("/sys/class/net")
	if err != nil || len(devices) != 1 {
		t.Errorf("devices %v, %v", devices, err)
	}
}

// TestFailure checks that a failure of tests inside is reported, and that the namespace is removed.
func TestFailure(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	cmd := exec.Command(os.Args[0])
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, insideEnv) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, failEnv+"=1")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("ended with %v", err)
	}
}
