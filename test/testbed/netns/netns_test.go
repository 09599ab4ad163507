package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/poll"
)

// namespace makes a namespace for the test; its name is unique to this process.
func namespace(t *testing.T, name string) *Namespace {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
	ns, err := New(t.Context(), fmt.Sprintf("cvtb-%d-%s", os.Getpid(), name))
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
	if _, err := New(t.Context(), ns.Name); err == nil {
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
	p, err := Start(ns.Command(t.Context(), "sleep", "60"), t.TempDir(), "sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := Clean(t.Context(), fmt.Sprintf("cvtb-%d-clean", os.Getpid())); err != nil {
		t.Fatal(err)
	}
	if err := poll.Until(t.Context(), 5*time.Millisecond, func() error {
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
		if err := poll.Until(within, time.Millisecond, func() error { return a.PingOnce(within, dst, 1400) }); err != nil {
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
