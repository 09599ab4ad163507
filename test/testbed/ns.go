package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const netnsDir = "/run/netns"

// Namespace is a named network namespace.
type Namespace struct {
	Name string
	File string // path of the file, if it is not /run/netns/Name
}

var unique atomic.Int64

// UniqueName returns a short name for a cluster or a namespace; it begins with the prefix, and no other call in a running process returns
// it.
func UniqueName(prefix string) string {
	return fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), unique.Add(1))
}

// NewNamespace creates a namespace with lo up.
func NewNamespace(ctx context.Context, name string) (*Namespace, error) {
	if err := run(ctx, "ip", "netns", "add", name); err != nil {
		return nil, err
	}
	ns := &Namespace{Name: name}
	if _, err := ns.Run(ctx, "ip", "link", "set", "lo", "up"); err != nil {
		_ = ns.Delete(ctx)
		return nil, err
	}
	return ns, nil
}

// Path returns the namespace's file.
func (ns *Namespace) Path() string {
	if ns.File != "" {
		return ns.File
	}
	return filepath.Join(netnsDir, ns.Name)
}

// Delete removes the name; the namespace ends with its last process.
func (ns *Namespace) Delete(ctx context.Context) error {
	return run(ctx, "ip", "netns", "del", ns.Name)
}

// Command returns a command that runs inside the namespace but uses the machine's own file systems.
func (ns *Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + ns.Path(), name}, args...)...)
}

// Run runs a command inside the namespace and returns its standard output.
func (ns *Namespace) Run(ctx context.Context, name string, args ...string) (string, error) {
	return output(ns.Command(ctx, name, args...))
}

// Do runs f on a thread that is in the namespace: sockets that f makes belong to it. f must make its sockets before it passes work to
// other goroutines.
func (ns *Namespace) Do(f func() error) error {
	done := make(chan error, 1)
	//lint:allow go: ends with f; a thread whose way back fails dies with its goroutine
	go func() {
		runtime.LockOSThread()
		done <- ns.onThread(f)
	}()
	return <-done
}

// onThread runs f in the namespace on the locked thread. It unlocks the thread if the thread has returned to its own namespace.
func (ns *Namespace) onThread(f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	there, err := os.Open(ns.Path())
	if err != nil {
		return err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %s: %w", ns.Name, err)
	}
	err = f()
	if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
		runtime.UnlockOSThread()
	}
	return err
}

// PingOnce sends one echo request of size bytes (the IP packet, 0: ping's default), with the don't-fragment bit, and returns an error if
// no answer arrives soon. It is for polling.
func (ns *Namespace) PingOnce(ctx context.Context, dst string, size int) error {
	args := []string{"-n", "-c", "1", "-W", "0.3", "-M", "do"}
	if size > 0 {
		headers := 28
		if strings.Contains(dst, ":") {
			headers = 48
		}
		args = append(args, "-s", strconv.Itoa(size-headers))
	}
	out, err := ns.Command(ctx, "ping", append(args, dst)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ping %s from %s: %w: %s", dst, ns.Name, err, strings.Join(strings.Fields(string(out)), " "))
	}
	return nil
}

func run(ctx context.Context, name string, args ...string) error {
	_, err := output(exec.CommandContext(ctx, name, args...))
	return err
}

func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// RemoveLink removes a link of the current namespace, if it exists.
func RemoveLink(ctx context.Context, name string) { _ = run(ctx, "ip", "link", "del", name) }

// Clean removes what an interrupted run has left behind: the namespaces whose names start with prefix, and all processes in them.
func Clean(ctx context.Context, prefix string) error {
	out, err := output(exec.CommandContext(ctx, "ip", "netns", "list"))
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		pids, err := output(exec.CommandContext(ctx, "ip", "netns", "pids", name))
		if err == nil {
			for pid := range strings.FieldsSeq(pids) {
				_ = run(ctx, "kill", "-9", pid) // the process may have ended in the meantime
			}
		}
		errs = append(errs, run(ctx, "ip", "netns", "del", name))
	}
	return errors.Join(errs...)
}
