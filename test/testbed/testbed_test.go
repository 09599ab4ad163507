package testbed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	long := strings.Repeat("x", 1000)
	if err := os.WriteFile(file, []byte("one\ntwo\n"+long+"\nfour\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(tail(file, 3), "\n")
	if len(lines) != 3 || lines[0] != "two" || len(lines[1]) > 410 || lines[2] != "four" {
		t.Errorf("%q", lines)
	}
	if text := tail(file+".none", 3); !strings.Contains(text, "no such file") {
		t.Errorf("a file that is not there: %q", text)
	}
}
