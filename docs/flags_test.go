package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"contiv.dev/vswitch/test/testbed/gobuild"
)

var (
	programPattern = regexp.MustCompile(`(?:^|[\s/])(contiv-(?:agent|netctl|init|ksr|vpp-supervisor)|netctl)(\s.*|$)`)
	flagPattern    = regexp.MustCompile(`(?:^|[\s\[(|])(--[a-z][a-z0-9-]*)`)
	helpPattern    = regexp.MustCompile(`(?m)^ +(?:-[A-Za-z], )?(--[a-z][a-z0-9-]*)`)
	commandPattern = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) `)
	wordPattern    = regexp.MustCompile(`^ +([a-z][a-z-]*)(?: |$)`)
)

// usage lists what a program accepts: its own commands, and the flags of all of them.
type usage struct{ commands, flags map[string]bool }

func usageOf(t *testing.T, program string, command ...string) usage {
	t.Helper()
	out, err := exec.Command(program, append(command, "--help")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v --help: %v\n%s", program, command, err, out)
	}
	u := usage{map[string]bool{}, map[string]bool{"--help": true}}
	for _, m := range helpPattern.FindAllStringSubmatch(string(out), -1) {
		u.flags[m[1]] = true
	}
	_, commands, _ := strings.Cut(string(out), "Available Commands:")
	commands, _, _ = strings.Cut(commands, "\n\n")
	for _, m := range commandPattern.FindAllStringSubmatch(commands, -1) {
		u.commands[m[1]] = true
		if m[1] == "help" || m[1] == "completion" {
			continue
		}
		for flag := range usageOf(t, program, append(command, m[1])...).flags {
			u.flags[flag] = true
		}
	}
	return u
}

// TestMain removes the programs that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if programsDir != "" {
		_ = os.RemoveAll(programsDir)
	}
	os.Exit(code)
}

// programsDir is the folder into which builtPrograms has built the programs.
var programsDir string

var buildPrograms = sync.OnceValue(func() error {
	var err error
	if programsDir, err = os.MkdirTemp("", "docs-test"); err != nil {
		return err
	}
	names, err := filepath.Glob("../cmd/contiv-*")
	if err != nil {
		return err
	}
	for i, name := range names {
		names[i] = "contiv.dev/vswitch/cmd/" + filepath.Base(name)
	}
	return gobuild.Commands(programsDir, names...)
})

// builtPrograms returns a directory with all our programs.
func builtPrograms(t *testing.T) string {
	t.Helper()
	if err := buildPrograms(); err != nil {
		t.Fatal(err)
	}
	return programsDir
}

// usages returns the usages of our programs, and under "" the flags of them all.
func usages(t *testing.T) map[string]usage {
	t.Helper()
	dir := builtPrograms(t)
	all := map[string]usage{"": {flags: map[string]bool{}}}
	for _, program := range []string{"contiv-agent", "contiv-netctl", "contiv-init", "contiv-ksr", "contiv-vpp-supervisor"} {
		all[program] = usageOf(t, filepath.Join(dir, program))
		for flag := range all[program].flags {
			all[""].flags[flag] = true
		}
	}
	all["netctl"] = all["contiv-netctl"]
	return all
}

// TestCommands checks that a program has every command and flag with which a document uses it; a flag without a program
// must be a flag of one of them. All commands of contiv-netctl are in troubleshooting.md.
func TestCommands(t *testing.T) {
	programs := usages(t)
	flags, commands := 0, 0
	for name, text := range documents(t) {
		for _, code := range fragments(text) {
			program, line := "", code
			if m := programPattern.FindStringSubmatch(code); m != nil {
				program, line = m[1], m[2]
			} else if !strings.HasPrefix(code, "--") || strings.HasPrefix(code, "--set ") { // a flag of helm
				continue
			}
			known := programs[program]
			if m := wordPattern.FindStringSubmatch(line); m != nil && len(known.commands) > 0 {
				commands++
				if !known.commands[m[1]] {
					t.Errorf("%s: %q: %s has no command %s", name, code, program, m[1])
				}
			}
			for _, m := range flagPattern.FindAllStringSubmatch(line, -1) {
				flags++
				if !known.flags[m[1]] {
					t.Errorf("%s: %q: no flag %s", name, code, m[1])
				}
			}
		}
	}
	for command := range programs["contiv-netctl"].commands {
		if text := documents(t)["docs/troubleshooting.md"]; command != "help" && !strings.Contains(text, "| `"+command) &&
			!strings.Contains(text, ", `"+command) && !strings.Contains(text, "contiv-netctl "+command) {
			t.Errorf("docs/troubleshooting.md has no contiv-netctl %s", command)
		}
	}
	if flags < 20 || commands < 10 {
		t.Errorf("only %d flags and %d commands were looked at", flags, commands)
	}
}
