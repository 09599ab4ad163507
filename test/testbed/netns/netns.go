package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/internal/nsdo"
)

const dir = "/run/netns"

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

// New creates a namespace with lo up.
func New(_ context.Context, name string) (*Namespace, error) {
	if err := nettest.Add(name); err != nil {
		return nil, err
	}
	return &Namespace{Name: name}, nil
}

// Path returns the namespace's file.
func (ns *Namespace) Path() string {
	if ns.File != "" {
		return ns.File
	}
	return filepath.Join(dir, ns.Name)
}

// Delete removes the name; the namespace ends with its last process.
func (ns *Namespace) Delete(context.Context) error { return nettest.Remove(ns.Name) }

// Command returns a command that runs inside the namespace but uses the machine's own file systems. It is for processes that the caller
// starts; Run needs one process less.
func (ns *Namespace) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + ns.Path(), name}, args...)...)
}

// Run runs a command inside the namespace and returns its standard output.
func (ns *Namespace) Run(ctx context.Context, name string, args ...string) (string, error) {
	return ns.output(exec.CommandContext(ctx, name, args...))
}

// IP runs lines of ip(8) inside the namespace, in one process: "link set eth0 up" and so on. The first that fails ends it.
func (ns *Namespace) IP(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if _, err := ns.output(cmd); err != nil {
		return fmt.Errorf("%w (lines: %s)", err, strings.Join(lines, "; "))
	}
	return nil
}

// output runs a command inside the namespace: a process inherits the namespace of the thread that starts it.
func (ns *Namespace) output(cmd *exec.Cmd) (string, error) {
	out, err := outputOf(cmd, func() error { return ns.Do(cmd.Start) })
	if err != nil {
		return out, fmt.Errorf("in %s: %w", ns.Name, err)
	}
	return out, nil
}

// Do runs f on a thread that is in the namespace: sockets that f makes belong to it. f must make its sockets before it passes work to
// other goroutines.
func (ns *Namespace) Do(f func() error) error {
	n, err := nsdo.Open(ns.Path())
	if err != nil {
		return err
	}
	defer n.Close()
	return n.Do(f)
}

// PingOnce sends one echo request of size bytes (the IP packet, 0: ping's default), with the don't-fragment bit, and returns an error if
// no answer arrives soon. It is for polling.
func (ns *Namespace) PingOnce(ctx context.Context, dst string, size int) error {
	args := []string{"-n", "-c", "1", "-W", "0.3", "-M", "do"}
	if size > 0 {
		addr, err := netip.ParseAddr(dst)
		if err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		headers := 28
		if addr.Is6() {
			headers = 48
		}
		args = append(args, "-s", strconv.Itoa(size-headers))
	}
	if out, err := ns.Run(ctx, "ping", append(args, dst)...); err != nil {
		return fmt.Errorf("ping %s: %w: %s", dst, err, strings.Join(strings.Fields(out), " "))
	}
	return nil
}

func run(ctx context.Context, name string, args ...string) error {
	_, err := output(exec.CommandContext(ctx, name, args...))
	return err
}

func output(cmd *exec.Cmd) (string, error) { return outputOf(cmd, cmd.Start) }

// outputOf starts a command, waits for its end and returns its standard output.
func outputOf(cmd *exec.Cmd, start func() error) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := start()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
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
		errs = append(errs, nettest.Remove(name))
	}
	return errors.Join(errs...)
}
