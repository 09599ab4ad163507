package scheduler

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when a goroutine of the module is still running.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(5 * time.Second); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines left over:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leaked waits until no goroutine except the caller's runs code of the module.
func leaked(timeout time.Duration) string {
	for deadline := time.Now().Add(timeout); ; runtime.Gosched() {
		buf := make([]byte, 1<<20)
		var left []string
		for i, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if i > 0 && strings.Contains(g, "contiv.dev/vswitch/") {
				left = append(left, g)
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
	}
}
