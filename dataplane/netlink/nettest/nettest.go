package nettest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

// NS is a namespace that is removed at the end of its test.
type NS struct {
	*nsdo.Namespace
	Name string
	t    testing.TB
}

// New creates a namespace with lo up. Without root the test is skipped.
func New(t testing.TB) *NS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces")
	}
	return Named(t, fmt.Sprintf("%s%d", NamePrefix(), next.Add(1)))
}

var next atomic.Int64

// NamePrefix returns the prefix of the names that New chooses in this process.
func NamePrefix() string { return fmt.Sprintf("cvrt-%d-", os.Getpid()) }

// Named is New with a name. It starts no process: tests make hundreds of namespaces, and a process takes longer than a namespace.
func Named(t testing.TB, name string) *NS {
	t.Helper()
	n := &NS{Name: name, t: t}
	if err := Add(name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Remove(name); err != nil {
			t.Error(err)
		}
	})
	ns, err := nsdo.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	n.Namespace = ns
	n.Up("lo")
	return n
}

const dir = "/run/netns"

// Add does what ip netns add does.
func Add(name string) error {
	err := onOwnThread(func() error {
		h, err := netns.NewNamed(name)
		if err != nil {
			return err
		}
		return h.Close()
	})
	if err != nil {
		return fmt.Errorf("add namespace %s: %w", name, err)
	}
	return nil
}

// Remove does what ip netns del does.
func Remove(name string) error {
	path := filepath.Join(dir, name)
	if err := errors.Join(unix.Unmount(path, unix.MNT_DETACH), os.Remove(path)); err != nil {
		return fmt.Errorf("remove namespace %s: %w", name, err)
	}
	return nil
}

// onOwnThread runs f, which may change the namespace of its thread, and restores the namespace.
func onOwnThread(f func() error) error {
	runtime.LockOSThread()
	own, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	err = f()
	if back := netns.Set(own); back != nil {
		return errors.Join(err, back) // the thread stays locked and ends
	}
	runtime.UnlockOSThread()
	return err
}

// Up sets interfaces up.
func (n *NS) Up(names ...string) {
	n.t.Helper()
	for _, name := range names {
		n.do("set "+name+" up", func() error {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
	}
}

// Veth creates a pair of interfaces, both up.
func (n *NS) Veth(name, peer string) {
	n.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	n.do("add veth "+name, func() error { return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer}) })
	n.Up(name, peer)
}

// Set writes a kernel parameter; the path begins after /proc/sys.
func (n *NS) Set(path, value string) {
	n.t.Helper()
	n.do("set "+path, func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0) })
}

func (n *NS) do(what string, f func() error) {
	n.t.Helper()
	if err := n.Do(f); err != nil {
		n.t.Fatalf("%s in %s: %v", what, n.Name, err)
	}
}

// IP runs ip in the namespace and returns its output.
func (n *NS) IP(args string) string {
	n.t.Helper()
	return n.Run("ip " + args)
}

// Batch runs lines of ip in one process.
func (n *NS) Batch(lines ...string) {
	n.t.Helper()
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := n.output(cmd); err != nil {
		n.t.Fatalf("ip -batch: %v\n%s", err, out)
	}
}

// Run runs a command in the namespace and returns its output.
func (n *NS) Run(args string) string {
	n.t.Helper()
	words := strings.Fields(args)
	out, err := n.output(exec.Command(words[0], words[1:]...))
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return string(out)
}

// Try runs a command in the namespace and returns its error.
func (n *NS) Try(args string) error {
	words := strings.Fields(args)
	_, err := n.output(exec.Command(words[0], words[1:]...))
	return err
}

// output runs a command. A child process runs in the namespace of the thread that starts it.
func (n *NS) output(cmd *exec.Cmd) (out []byte, err error) {
	err = n.Do(func() error {
		out, err = cmd.CombinedOutput()
		return err
	})
	return out, err
}
