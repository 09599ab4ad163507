package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/poll"
)

// logged waits until a process has written a line.
func logged(t *testing.T, p *Process, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := poll.Until(ctx, 5*time.Millisecond, func() error {
		log, err := os.ReadFile(p.LogFile)
		if err == nil && strings.TrimSpace(string(log)) != line {
			err = fmt.Errorf("the log is %q, want %q", log, line)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(exec.Command("sh", "-c", "echo hello; sleep 60"), dir, "polite")
	if err != nil {
		t.Fatal(err)
	}
	if !p.Running() || p.PID() <= 0 {
		t.Error("it does not run")
	}
	logged(t, p, "hello")
	if err := p.Stop(30 * time.Second); err != nil || p.Running() {
		t.Errorf("stopped: %v, running %t", err, p.Running())
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill what has ended: %v", err)
	}

	stubborn, err := Start(exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"), dir, "stubborn")
	if err != nil {
		t.Fatal(err)
	}
	logged(t, stubborn, "ready")
	if err := stubborn.Stop(200 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "stubborn.log") || stubborn.Running() {
		t.Errorf("what does not stop is killed, and that is told: %v, running %t", err, stubborn.Running())
	}
	if _, err := Start(exec.Command("/does/not/exist"), dir, "none"); err == nil {
		t.Error("started nothing")
	}
}
