package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestCore runs the tests of the core. The core is C without VPP's headers, so the tests run on every machine with gcc: sequences of
// packets, damaged packets during configuration changes, and workers in parallel with the control plane. All run with the address and
// undefined-behaviour sanitizers.
func TestCore(t *testing.T) {
	t.Parallel()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: the tests of the VPP plugin's core are skipped (apt-get install gcc libc6-dev)")
	}
	core := newCoreBuild(t, gcc)
	for name, arguments := range map[string][][]string{
		"core_test":   {nil},
		"policy_test": {nil},
		"recall":      {nil},
		"pairs":       {{"1"}},
		"clocks":      {{"100", "2"}}, // only to test that it works; the figures are for manual runs
		"hostile":     {nil},
		"forged":      {nil},
		"fuzz":        {{"200000", "1"}, {"200000", "2"}, {"200000", "3"}},
		"race":        {{"2"}},
		"table":       {{"1"}},
		"backlog":     {nil},
		"frags":       {{"20000", "1"}, {"20000", "2"}},
		"segment":     {{"2000", "1"}, {"2000", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			matrix.Only(t, "core_test", "policy_test", "recall", "pairs", "hostile", "table", "fuzz", "frags", "backlog")
			program := core.program(t, name)
			for _, args := range arguments {
				t.Log(run(t, program, args...))
			}
		})
	}
	t.Run("model", func(t *testing.T) {
		matrix.Only(t)
		agreesWithModel(t, core.program(t, "judge"))
	})
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, text)
	}
	return string(text)
}
