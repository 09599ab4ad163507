package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The core is C without VPP's headers, so its tests run wherever there is gcc: stories told by packets, damaged packets and
// random configuration, and workers beside the control plane, with the address and undefined-behaviour sanitizers.

func buildCore(t *testing.T, program string, flags ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: the tests of the VPP plugin's core are skipped (apt-get install gcc libc6-dev)")
	}
	sources, err := filepath.Glob("core/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the core: %v", err)
	}
	out := filepath.Join(t.TempDir(), program)
	args := append([]string{"-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-sign-conversion", "-fno-omit-frame-pointer"}, flags...)
	args = append(args, "-o", out, filepath.Join("core/test", program+".c"))
	if text, err := exec.Command(gcc, append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	return out
}

func runCore(t *testing.T, program string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, text)
	}
	t.Logf("%s", text)
}

var sanitized = []string{"-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"}

func TestCore(t *testing.T) {
	t.Parallel()
	runCore(t, buildCore(t, "core_test", sanitized...))
}

// TestCoreFuzz sends damaged packets through the core while its configuration changes: five fixed seeds.
func TestCoreFuzz(t *testing.T) {
	t.Parallel()
	program := buildCore(t, "fuzz", sanitized...)
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		runCore(t, program, "200000", seed)
	}
}

// TestCoreRace runs four workers beside the control plane.
func TestCoreRace(t *testing.T) {
	t.Parallel()
	runCore(t, buildCore(t, "race", "-O2", "-fsanitize=address", "-pthread"), "2")
}
