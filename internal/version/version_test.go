package version

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"contiv.dev/vswitch/test/testbed/gobuild"
)

func TestStamped(t *testing.T) {
	vcs := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}}
	for _, tc := range []struct {
		release, commit string
		build           *debug.BuildInfo
		want            string
	}{
		{"0.1.0", "4f3a2b1", vcs, "0.1.0 (4f3a2b1)"},
		{"0.1.0", "", vcs, "0.1.0 (0123456789ab-dirty)"},
		{"", "", vcs, "devel (0123456789ab-dirty)"},
		{"", "", nil, "devel"},
	} {
		if got := stamped(tc.release, tc.commit, tc.build).String(); got != tc.want {
			t.Errorf("stamped(%q, %q) = %q, want %q", tc.release, tc.commit, got, tc.want)
		}
	}
}

// TestEveryBinaryIsStamped checks that the version that `make build` passes to the linker is in all our
// programs, including contiv-cni.
func TestEveryBinaryIsStamped(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	flags := ""
	for line := range strings.Lines(string(makefile)) {
		if value, ok := strings.CutPrefix(line, "STAMP "); ok {
			flags = strings.TrimSpace(strings.TrimLeft(value, " :="))
		}
	}
	flags = strings.NewReplacer("$(VERSION)", "9.8.7", "$(COMMIT)", "abcdef012345").Replace(flags)
	if !strings.Contains(flags, "9.8.7") || !strings.Contains(flags, "abcdef012345") {
		t.Fatalf("the Makefile has no STAMP with VERSION and COMMIT: %q", flags)
	}
	dir := t.TempDir()
	commands, err := filepath.Glob("../../cmd/*contiv*")
	if err != nil {
		t.Fatal(err)
	}
	for i, command := range commands {
		commands[i] = "contiv.dev/vswitch/cmd/" + filepath.Base(command)
	}
	if err := (gobuild.Build{LDFlags: flags}).Commands(dir, commands...); err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob(dir + "/*")
	if err != nil || len(programs) < 6 {
		t.Fatalf("programs %v, %v", programs, err)
	}
	for _, program := range programs {
		cmd := exec.Command(program, "--version")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), filepath.Base(program)+" 9.8.7 (abcdef012345)") {
			t.Errorf("%s --version: %v %s", filepath.Base(program), err, out)
		}
	}
}
