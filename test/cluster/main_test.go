// Package cluster tests several nodes together: agents as real processes on nodes that are network namespaces, joined by
// bridges, with VPP or the Linux dataplane. The tests need root and touch nothing of the machine's own network namespace.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/matrix"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

const prefix = "cvc"

var binDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "cluster: skipped: network namespaces need root")
		return 0
	}
	atonce.Limit(3)
	dir, err := os.MkdirTemp("", prefix+"-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	if err := gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni"); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	if _, ok := vpptest.Find(); !ok {
		fmt.Fprintf(os.Stderr, "cluster: %v: VPP is skipped\n", vpptest.ErrNoVPP)
	}
	return m.Run()
}

// mode is a dataplane and a transport.
type mode struct {
	dataplane string // vpp or linux
	transport string
	dhcp      bool   // the main interface gets its address from a DHCP server
	sharedNIC bool   // VPP shares the NIC with the host, which has an address on it
	ipv6      bool   // nodes have only IPv6 addresses on the network that connects them
	derived   bool   // with ipv6: nodes get their addresses from nodeInterconnectCIDR, not from sections of their own
	uplink    string // contiv.conf's mainVPPInterface, instead of a section for each node
	unstarted bool   // the test starts the agents
	veth      bool   // pods are connected by VETH, not by TAP
	plugin    bool   // VPP has our plugin
}

func (m mode) String() string {
	return m.dataplane + "-" + m.transport + map[bool]string{true: "-ipv6"}[m.ipv6] + map[bool]string{true: "-derived"}[m.derived] + map[bool]string{true: "-veth"}[m.veth] +
		map[bool]string{true: "-plugin"}[m.plugin]
}

var modes = []mode{
	{dataplane: "vpp", transport: "vxlan"}, {dataplane: "vpp", transport: "nooverlay"},
	{dataplane: "linux", transport: "vxlan"}, {dataplane: "linux", transport: "nooverlay"},
	defaultVPP,
}

// world is a cluster under test.
type world struct {
	*testbed.Cluster
	t    *testing.T
	ctx  context.Context
	mode mode
	pods []*testbed.Pod
}

// families returns the number of addresses of each node in the pod network.
func (w *world) families() int {
	if w.mode.ipv6 && w.mode.transport == "nooverlay" {
		return 1
	}
	return 2
}

// newWorld makes a cluster. Clusters share nothing with each other, so that tests with one cluster each can run in
// parallel.
func newWorld(t *testing.T, m mode, nodes int) *world {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute+time.Duration(kills())*8*time.Second)
	t.Cleanup(cancel)
	name := netns.UniqueName(prefix)
	opts := testbed.ClusterOptions{
		Name: name, Nodes: nodes, Addressed: m.dataplane == "linux",
		Node:     testbed.NodeOptions{BinDir: binDir, Dataplane: m.dataplane},
		ConfigOf: func(i int) string { return configOf(m, testbed.NodeName(name, i), i) }, NoIPv4: m.ipv6, Unstarted: m.unstarted,
	}
	if m.dataplane == "vpp" {
		if _, ok := vpptest.Find(); !ok {
			t.Skip(vpptest.ErrNoVPP)
		}
		_, err := os.Stat("/dev/vhost-net")
		opts.Node.VPP = &vpptest.Options{Vhostshim: err != nil, HeapMB: 256, Buffers: 16384, Plugin: m.plugin}
	}
	c, err := testbed.NewCluster(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, t: t, ctx: ctx, mode: m}
	t.Cleanup(w.close)
	return w
}

func configOf(m mode, node string, i int) string {
	nic := "host-" + testbed.UplinkNIC
	switch {
	case m.dataplane == "linux":
		nic = testbed.UplinkNIC
	case m.sharedNIC:
		nic = "host-" + testbed.MgmtNIC
	}
	address := ""
	interconnect := ""
	switch {
	case m.derived:
		interconnect = "  nodeInterconnectCIDR: fd00:16::/64\n"
	case m.ipv6 && m.dataplane == "vpp":
		_, v6 := testbed.UplinkAddress(i)
		address = "    ip: " + v6 + "/64\n"
	}
	pods, prefix := "10.1.0.0/16,fd10:1::/48", "24,64"
	if m.ipv6 && m.transport == "nooverlay" { // there is no IPv4 path then
		pods, prefix = "fd10:1::/48", "64"
	}
	node = "nodeConfig:\n- nodeName: " + node + "\n  mainVPPInterface:\n    interfaceName: " + nic + "\n" +
		map[bool]string{true: "    useDHCP: true\n"}[m.dhcp] + address
	if m.uplink != "" {
		node = "mainVPPInterface: " + m.uplink + "\n"
	}
	return "nodeToNodeTransport: " + m.transport + fmt.Sprintf("\nuseTAPInterfaces: %t\n", !m.veth) +
		"ipamConfig:\n  podSubnetCIDR: " + pods + "\n  podSubnetOneNodePrefixLen: " + prefix + "\n" + interconnect +
		node
}

func (w *world) close() {
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.inspect(n)
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(15))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, p := range w.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// inspect runs the shell command in CONTIV_E2E_INSPECT in a node, to help find the cause of a failure.
func (w *world) inspect(n *testbed.Node) {
	command := os.Getenv("CONTIV_E2E_INSPECT")
	if command == "" {
		return
	}
	cmd := n.Command(w.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "NODE="+n.Name, "REST="+n.RESTSocket())
	if n.VPP != nil {
		cmd.Env = append(cmd.Env, "VPPCTL=vppctl -s "+n.VPP.CLISocket())
	}
	out, err := cmd.CombinedOutput()
	w.t.Logf("%s: %s: %v\n%s", n.Name, command, err, out)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		text := err.Error()
		w.t.Fatal(text[:min(len(text), 2000)])
	}
}

// pod adds a pod to a node.
func (w *world) pod(n *testbed.Node, name string) *testbed.Pod {
	w.t.Helper()
	p, err := n.AddPod(w.ctx, name)
	w.must(err)
	w.pods = append(w.pods, p)
	return p
}

// reach waits until a ping from ns to dst is answered.
func (w *world) reach(ns *netns.Namespace, dst string) error {
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	return poll.Until(ctx, 50*time.Millisecond, func() error { return ns.PingOnce(ctx, dst, 0) })
}

// mesh checks that every pod reaches every other pod, in every family.
func (w *world) mesh(pods []*testbed.Pod) {
	w.t.Helper()
	var errs []error
	for _, from := range pods {
		for _, to := range pods {
			if from == to {
				continue
			}
			for _, ip := range to.IPs {
				errs = append(errs, w.reach(from.Namespace, ip.String()))
			}
		}
	}
	w.must(errors.Join(errs...))
}

// defaultVPP is the default configuration with VPP.
var defaultVPP = mode{dataplane: "vpp", transport: "vxlan", plugin: true}

// each runs a test once per mode; make test runs Linux with an overlay, and the named modes.
func each(t *testing.T, test func(t *testing.T, m mode), besides ...mode) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) {
			if !slices.Contains(besides, m) {
				matrix.Only(t, "linux-vxlan")
			}
			test(t, m)
		})
	}
}
