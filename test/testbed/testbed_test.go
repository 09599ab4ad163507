package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// namespace makes a namespace for the test; its name is unique to this process.
func namespace(t *testing.T, name string) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	ns, err := NewNamespace(t.Context(), fmt.Sprintf("cvtb-%d-%s", os.Getpid(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ns.Delete(context.Background()) })
	return ns
}

func (ns *Namespace) must(t *testing.T, command ...string) string {
	t.Helper()
	out, err := ns.Run(t.Context(), command[0], command[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// pair connects two namespaces.
func pair(t *testing.T) (a, b *Namespace) {
	t.Helper()
	a, b = namespace(t, "a"), namespace(t, "b")
	a.must(t, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b.Name)
	for i, ns := range []*Namespace{a, b} {
		ns.must(t, "ip", "addr", "add", fmt.Sprintf("10.9.0.%d/24", i+1), "dev", "eth0")
		ns.must(t, "ip", "addr", "add", fmt.Sprintf("fd09::%d/64", i+1), "dev", "eth0", "nodad")
		ns.must(t, "ip", "link", "set", "eth0", "up")
	}
	return a, b
}

func TestNamespace(t *testing.T) {
	ns := namespace(t, "x")
	if out := ns.must(t, "ip", "-o", "link"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "LOOPBACK,UP") {
		t.Errorf("a new namespace has more than lo, or that is down:\n%s", out)
	}
	inside := func() (n int, err error) {
		all, err := net.Interfaces()
		return len(all), err
	}
	var n int
	failure := errors.New("f's own")
	err := ns.Do(func() (err error) {
		if n, err = inside(); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) || n != 1 {
		t.Errorf("inside: %d links, %v", n, err)
	}
	if _, err := ns.Run(t.Context(), "sh", "-c", "echo broken >&2; exit 3"); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a command that fails: %v", err)
	}
	if _, err := NewNamespace(t.Context(), ns.Name); err == nil {
		t.Error("the same namespace was made twice")
	}
	if err := ns.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { return nil }); err == nil {
		t.Error("a namespace that is gone was entered")
	}
}

func TestClean(t *testing.T) {
	ns, other := namespace(t, "clean-1"), namespace(t, "other")
	p, err := start(ns.Command(t.Context(), "sleep", "60"), t.TempDir(), "sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := Clean(t.Context(), fmt.Sprintf("cvtb-%d-clean", os.Getpid())); err != nil {
		t.Fatal(err)
	}
	if err := Eventually(t.Context(), 5*time.Millisecond, func() error {
		if p.Running() {
			return errors.New("a process in the namespace still runs")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ns.Path()); err == nil {
		t.Error("the namespace is still there")
	}
	if _, err := os.Stat(other.Path()); err != nil {
		t.Errorf("another namespace was removed: %v", err)
	}
}

// TestPing checks that lost packets are counted as lost, and that late or duplicate answers are
// not.
func TestPing(t *testing.T) {
	a, b := pair(t)
	for _, dst := range []string{"10.9.0.2", "fd09::2"} {
		res, err := a.Ping(t.Context(), dst, 5, 10*time.Millisecond)
		if err != nil || res.Sent != 5 || res.Received != 5 || res.Lost() != 0 || res.Min <= 0 || res.Max < res.Avg {
			t.Errorf("%s: %s (%+v), %v", dst, res, res, err)
		}
		within, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := Eventually(within, time.Millisecond, func() error { return a.PingOnce(within, dst, 1400) }); err != nil {
			t.Error(err)
		}
		cancel()
		if err := a.PingOnce(t.Context(), dst, 1501); err == nil {
			t.Errorf("%s: a packet larger than the MTU came through in one piece", dst)
		}
	}
	b.must(t, "ip", "link", "set", "eth0", "down")
	res, err := a.Ping(t.Context(), "10.9.0.2", 3, 10*time.Millisecond)
	if err != nil || res.Lost() != 3 || !strings.HasPrefix(res.String(), "3 sent, 0 received") {
		t.Errorf("the other end is down: %s, %v", res, err)
	}
	if _, err := a.Ping(t.Context(), "nonsense", 1, time.Millisecond); err == nil {
		t.Error("pinged nonsense")
	}
}

// logged waits until a process has written a line.
func logged(t *testing.T, p *Process, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := Eventually(ctx, 5*time.Millisecond, func() error {
		if log := tail(p.LogFile, 1); log != line {
			return fmt.Errorf("the log ends in %q, want %q", log, line)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	p, err := start(exec.Command("sh", "-c", "echo hello; sleep 60"), dir, "polite")
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

	stubborn, err := start(exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"), dir, "stubborn")
	if err != nil {
		t.Fatal(err)
	}
	logged(t, stubborn, "ready")
	if err := stubborn.Stop(200 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "stubborn.log") || stubborn.Running() {
		t.Errorf("what does not stop is killed, and that is told: %v, running %t", err, stubborn.Running())
	}
	if _, err := start(exec.Command("/does/not/exist"), dir, "none"); err == nil {
		t.Error("started nothing")
	}
}

func TestEventually(t *testing.T) {
	n := 0
	if err := Eventually(t.Context(), time.Millisecond, func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || n != 3 {
		t.Errorf("%v after %d attempts", err, n)
	}
	never := errors.New("never")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Eventually(ctx, time.Millisecond, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("%v, want the last error", err)
	}
}

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
