package tabletest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/nsdo"
)

// Options configure a network.
type Options struct {
	Pods int // default 3
	// NoRoutes leaves out the host's routes and neighbours towards pods: the driver under test creates them.
	NoRoutes bool
}

// Net is a network of namespaces:
//
//	pod 1 eth0 ── cali1 ┐
//	pod 2 eth0 ── cali2 ├ Host  eth0 ── eth0 Outside
//	pod 3 eth0 ── cali3 ┘
//
// Pods have one address per family and reach everything through the host. Outside answers to its own address and to every address of the
// prefixes in Anywhere. All neighbours are static, so that rules that drop everything do not affect ARP and ND.
type Net struct {
	Host, Outside *Node
	Pods          []*Node

	jobs *lifecycle.Group
	id   atomic.Uint32 // of probes and streams
}

// Node is one namespace.
type Node struct {
	Name  string // as in /run/netns
	NS    *nsdo.Namespace
	Iface string // the host's interface towards it; "" for the host itself
	MAC   string

	net   *Net
	addrs map[table.Family]netip.Addr

	mu        sync.Mutex
	receivers map[recvKey]*receiver
}

// Addr returns the node's address of a family.
func (n *Node) Addr(f table.Family) netip.Addr { return n.addrs[f] }

// Path returns the path of the node's namespace.
func (n *Node) Path() string { return filepath.Join("/run/netns", n.Name) }

// Anywhere returns the prefixes of a family of which Outside has every address.
func Anywhere(f table.Family) []netip.Prefix {
	if f == table.IPv4 {
		return []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.51.100.0/24")}
	}
	return []netip.Prefix{netip.MustParsePrefix("fd00:203::/64"), netip.MustParsePrefix("fd00:198::/64")}
}

// NeedRoot skips a test, with a message, if it cannot create namespaces.
func NeedRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to make network namespaces")
	}
}

// NewNet creates a network, which is removed with the test.
func NewNet(t testing.TB, opts Options) *Net {
	t.Helper()
	NeedRoot(t)
	sweepDead()
	if opts.Pods == 0 {
		opts.Pods = 3
	}
	n := &Net{jobs: lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))}
	t.Cleanup(func() {
		n.close()
		if err := n.jobs.Stop(5 * time.Second); err != nil {
			t.Errorf("stop the network's receivers: %v", err)
		}
	})
	if err := n.build(opts); err != nil {
		t.Fatalf("build the test's network: %v", err)
	}
	return n
}

func (n *Net) build(opts Options) (err error) {
	if n.Host, err = n.newNode("host", hostAddrs()); err != nil {
		return err
	}
	if n.Outside, err = n.newNode("out", outsideAddrs()); err != nil {
		return err
	}
	if err := n.wireOutside(); err != nil {
		return fmt.Errorf("outside: %w", err)
	}
	for i := 1; i <= opts.Pods; i++ {
		pod, err := n.newNode(fmt.Sprintf("pod%d", i), podAddrs(i))
		if err != nil {
			return err
		}
		n.Pods = append(n.Pods, pod)
		if err := n.wirePod(pod, i, opts.NoRoutes); err != nil {
			return fmt.Errorf("pod %d: %w", i, err)
		}
	}
	return n.await()
}

// await waits until packets reach every node. The kernel leaves much of the setup to work queues, which run late on a busy machine.
func (n *Net) await() error {
	for _, node := range append([]*Node{n.Outside}, n.Pods...) {
		if err := errors.Join(n.Host.waitCarrier(node.Iface), node.waitCarrier("eth0")); err != nil {
			return err
		}
	}
	for _, node := range n.nodes() {
		if err := node.waitAddress(node.Addr(table.IPv6)); err != nil {
			return err
		}
	}
	return nil
}

func hostAddrs() map[table.Family]netip.Addr {
	return map[table.Family]netip.Addr{
		table.IPv4: netip.MustParseAddr("192.168.7.1"), table.IPv6: netip.MustParseAddr("fd00:7::1"),
	}
}

func outsideAddrs() map[table.Family]netip.Addr {
	return map[table.Family]netip.Addr{
		table.IPv4: netip.MustParseAddr("192.168.7.2"), table.IPv6: netip.MustParseAddr("fd00:7::2"),
	}
}

func podAddrs(i int) map[table.Family]netip.Addr {
	return map[table.Family]netip.Addr{
		table.IPv4: netip.AddrFrom4([4]byte{10, 65, byte(i >> 8), byte(i)}),
		table.IPv6: netip.MustParseAddr(fmt.Sprintf("fd00:65::%x", i)),
	}
}

// nodes returns all nodes that were created.
func (n *Net) nodes() []*Node {
	var all []*Node
	for _, node := range append([]*Node{n.Host, n.Outside}, n.Pods...) {
		if node != nil {
			all = append(all, node)
		}
	}
	return all
}

// owner returns the node that has an address.
func (n *Net) owner(a netip.Addr) *Node {
	for _, node := range n.nodes() {
		if node.has(a) {
			return node
		}
	}
	return nil
}

// has reports whether an address is one of the node's.
func (n *Node) has(a netip.Addr) bool {
	if a == n.addrs[table.IPv4] || a == n.addrs[table.IPv6] {
		return true
	}
	if n != n.net.Outside {
		return false
	}
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		for _, p := range Anywhere(f) {
			if p.Contains(a) {
				return true
			}
		}
	}
	return false
}

func (n *Net) close() {
	for _, node := range n.nodes() {
		node.close()
	}
}

const namePrefix = "tt"

func (n *Net) newNode(name string, addrs map[table.Family]netip.Addr) (*Node, error) {
	node := &Node{net: n, addrs: addrs, receivers: map[recvKey]*receiver{}}
	full, ns, err := makeNamespace(fmt.Sprintf("%s%d-%%d-%s", namePrefix, os.Getpid(), name))
	if err != nil {
		return nil, err
	}
	node.Name, node.NS = full, ns
	return node, nil
}

// sweepDead removes the namespaces of test processes that died.
func sweepDead() {
	entries, _ := os.ReadDir("/run/netns")
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), namePrefix)
		pid, _, dash := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ok || !dash || err != nil {
			continue
		}
		if _, err := os.Stat("/proc/" + pid); os.IsNotExist(err) {
			_ = nettest.Remove(e.Name()) // another process may have removed it
		}
	}
}
