package nettest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

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
	name := fmt.Sprintf("cvrt-%d-%d", os.Getpid(), next.Add(1))
	run(t, "ip", "netns", "add", name)
	t.Cleanup(func() { run(t, "ip", "netns", "del", name) })
	ns, err := nsdo.Open("/run/netns/" + name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	n := &NS{Namespace: ns, Name: name, t: t}
	n.IP("link set lo up")
	return n
}

var next atomic.Int64

// IP runs ip in the namespace and returns its output.
func (n *NS) IP(args string) string {
	n.t.Helper()
	return run(n.t, append([]string{"ip", "-n", n.Name}, strings.Fields(args)...)...)
}

// Run runs a command in the namespace and returns its output.
func (n *NS) Run(args string) string {
	n.t.Helper()
	return run(n.t, append([]string{"nsenter", "--net=/run/netns/" + n.Name}, strings.Fields(args)...)...)
}

// Try runs a command in the namespace and returns its error.
func (n *NS) Try(args string) error {
	cmd := strings.Fields("nsenter --net=/run/netns/" + n.Name + " " + args)
	return exec.Command(cmd[0], cmd[1:]...).Run()
}

func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
