package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestWindowsPage: commands of netctl in docs/windows.md exist, and accept the arguments on the page. No test runs them: they are for a
// Windows node.
func TestWindowsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/windows.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("`contiv-netctl.exe ([^`]+)`").FindAllStringSubmatch(string(page), -1)
	if len(found) == 0 {
		t.Fatal("the page has no command of netctl")
	}
	for _, m := range found {
		cmd, args, err := newCommand().Find(strings.Fields(m[1]))
		if err != nil || cmd.Run == nil && cmd.RunE == nil {
			t.Errorf("%s: is not a command: %v", m[1], err)
			continue
		}
		for _, arg := range args {
			if !strings.HasPrefix(arg, "-") && !strings.Contains(cmd.Use, arg) {
				t.Errorf("%s: the command is %q, which has no %s", m[1], cmd.Use, arg)
			}
		}
	}
}
