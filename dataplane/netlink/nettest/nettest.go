package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
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

// Named is New with a name.
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
	return n
}

const dir = "/run/netns"

// Add creates a namespace with this name, with lo up. The error is fs.ErrExist if the name is in use. It starts no process: tests make
// hundreds of namespaces, and a process takes longer than a namespace.
func Add(name string) error {
	if !isMountPoint(dir) {
		// ip makes it one when it adds the first namespace of the machine. Namespaces that are mounted before that cannot be removed.
		if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
			return fmt.Errorf("ip netns add %s: %w: %s", name, err, out)
		}
		if err := nsdo.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nsdo.Create(filepath.Join(dir, name))
}

func isMountPoint(dir string) bool {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, 0, 0, &stat)
	return err == nil && stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// Remove removes a namespace. The error is fs.ErrNotExist if the name is not in use.
func Remove(name string) error { return nsdo.Remove(filepath.Join(dir, name)) }

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
