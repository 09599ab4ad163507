package k8s

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFlagsExist checks that the programs have every flag in the manifests. A misspelt flag would otherwise be found only
// on the nodes.
func TestFlagsExist(t *testing.T) {
	t.Parallel()
	dir := programs(t)
	texts := map[string]string{}
	help := func(command ...string) string {
		key := strings.Join(command, " ")
		if text, ok := texts[key]; ok {
			return text
		}
		out, err := exec.Command(filepath.Join(dir, strings.TrimSuffix(filepath.Base(command[0]), ".exe")), append(command[1:], "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v --help: %v\n%s", command, err, out)
		}
		texts[key] = string(out)
		return texts[key]
	}
	checked := 0
	for name := range variants() {
		for _, d := range documents(t, variant(t, name)) {
			for _, kind := range []string{"initContainers", "containers"} {
				list, _ := at(d, "spec", "template", "spec", kind).([]any)
				for _, c := range list {
					checked += checkFlags(t, fmt.Sprintf("%s: %v/%v", name, at(d, "metadata", "name"), at(c, "name")), argv(c), help)
				}
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d flags were looked at", checked)
	}
}

// argv returns a container's command with its arguments.
func argv(container any) []string {
	var all []string
	for _, key := range []string{"command", "args"} {
		list, _ := at(container, key).([]any)
		for _, a := range list {
			all = append(all, fmt.Sprint(a))
		}
	}
	return all
}

// checkFlags looks up the flags of a command line; the arguments after "--" are a separate command line.
func checkFlags(t *testing.T, where string, line []string, help func(...string) string) (checked int) {
	t.Helper()
	command := []string{}
	for i, a := range line {
		switch {
		case a == "--":
			if next := line[i+1:]; strings.Contains(next[0], "contiv-") {
				return checked + checkFlags(t, where, next, help)
			}
			return checked
		case strings.HasPrefix(a, "--"):
			flag, _, _ := strings.Cut(a, "=")
			if !strings.Contains(help(command...), flag+" ") {
				t.Errorf("%s: %v has no flag %s", where, command, flag)
			}
			checked++
		default:
			command = append(command, a)
		}
	}
	return checked
}
