package plugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/test/testbed/matrix"
)

// TestCore runs the tests of the core, which is C without VPP's headers, so they run wherever there is gcc: sequences of packets, damaged
// packets under a changing configuration, and workers beside the control plane. All of it with the address and undefined-behaviour
// sanitizers.
func TestCore(t *testing.T) {
	t.Parallel()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc: the tests of the VPP plugin's core are skipped (apt-get install gcc libc6-dev)")
	}
	sources, err := filepath.Glob("core/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the core: %v", err)
	}
	sources = append(sources, "shell/frag.c") // which has no VPP headers either
	dir := t.TempDir()
	flags := []string{"-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-sign-conversion", "-fno-omit-frame-pointer",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread"}
	var objects []string
	for _, source := range sources {
		object := filepath.Join(dir, strings.TrimSuffix(filepath.Base(source), ".c")+".o")
		run(t, gcc, append(flags, "-c", "-o", object, source)...)
		objects = append(objects, object)
	}
	for name, arguments := range map[string][][]string{
		"core_test":   {nil},
		"policy_test": {nil},
		"hostile":     {nil},
		"forged":      {nil},
		"fuzz":        {{"200000", "1"}, {"200000", "2"}, {"200000", "3"}},
		"race":        {{"2"}},
		"table":       {{"1"}},
		"frags":       {{"20000", "1"}, {"20000", "2"}},
		"segment":     {{"2000", "1"}, {"2000", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			matrix.Only(t, "core_test", "policy_test", "hostile", "table", "fuzz", "frags")
			program := filepath.Join(dir, name)
			run(t, gcc, append(append(flags, "-o", program, filepath.Join("core/test", name+".c")), objects...)...)
			for _, args := range arguments {
				t.Log(run(t, program, args...))
			}
		})
	}
	t.Run("model", func(t *testing.T) {
		matrix.Only(t)
		program := filepath.Join(dir, "judge")
		run(t, gcc, append(append(flags, "-o", program, "core/test/judge.c"), objects...)...)
		agreesWithModel(t, program)
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
