package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
)

// options are the flags.
type options struct {
	name, bin, pods, dataplane, transport string
	nodes                                 int
	keep                                  bool
}

// demo is one run.
type demo struct {
	nodes   []*testbed.Node
	cluster *testbed.Cluster // nil with one node
	pods    []pod
	vpp     bool
	name    string
	bin     string
	dir     string // of the agents' certificate and token, with -keep
}

// pod is a pod and its node.
type pod struct {
	*testbed.Pod
	node *testbed.Node
}

// makeNodes makes one node with its own etcd, or a cluster with a shared etcd.
func (d *demo) makeNodes(ctx context.Context, o options) (err error) {
	opts := d.nodeOptions(ctx, o)
	if o.keep {
		if opts.AgentArgs, err = d.remoteREST(); err != nil {
			return err
		}
	}
	if o.nodes == 1 {
		opts.Name, opts.Config, opts.BeforeVPP = o.name, configOf(o, d.vpp, ""), plugNIC
		n, err := testbed.NewNode(ctx, opts)
		if err != nil {
			return err
		}
		d.nodes = []*testbed.Node{n}
		return nil
	}
	fmt.Printf("nodes: %d, connected by %s, with an etcd that they share\n", o.nodes, o.transport)
	d.cluster, err = testbed.NewCluster(ctx, testbed.ClusterOptions{
		Name: o.name, Nodes: o.nodes, Node: opts, Addressed: !d.vpp, Unstarted: true,
		ConfigOf: func(i int) string { return configOf(o, d.vpp, testbed.NodeName(o.name, i)) },
	})
	if err == nil {
		d.nodes = d.cluster.Nodes
	}
	return err
}

// configOf returns contiv.conf of a node; without a name, of a node that has no NIC.
func configOf(o options, vpp bool, node string) string {
	nic := testbed.UplinkNIC
	if vpp {
		nic = "host-" + nic // by AF_PACKET
	}
	config := fmt.Sprintf("useTAPInterfaces: %t\nnodeToNodeTransport: %s\n", tapPods(o), o.transport)
	if node != "" {
		config += "nodeConfig:\n- nodeName: " + node + "\n  mainVPPInterface: {interfaceName: " + nic + "}\n"
	}
	return config
}

// plugNIC adds a NIC to the only node, because a node needs one. The NIC is connected to nothing.
func plugNIC(ctx context.Context, ns *netns.Namespace) error {
	for _, args := range [][]string{
		{"link", "add", testbed.MgmtNIC, "type", "veth", "peer", "name", "cable"}, {"link", "set", "cable", "up"},
		{"link", "set", testbed.MgmtNIC, "up"}, {"addr", "add", testbed.MgmtAddress(0) + "/24", "dev", testbed.MgmtNIC},
	} {
		if _, err := ns.Run(ctx, "ip", args...); err != nil {
			return err
		}
	}
	return nil
}

func hasVhost() bool {
	_, err := os.Stat("/dev/vhost-net")
	return err == nil
}

func tapPods(o options) bool { return o.pods == "tap" || o.pods == "auto" && hasVhost() }

// nodeOptions selects the dataplane and prints it.
func (d *demo) nodeOptions(ctx context.Context, o options) testbed.NodeOptions {
	opts := testbed.NodeOptions{BinDir: o.bin, Dataplane: "linux"}
	path, found := vpptest.Find()
	if o.dataplane == "linux" || !found {
		if found {
			fmt.Println("dataplane: Linux")
		} else {
			fmt.Println("dataplane: Linux; no VPP found (VPP_PREFIX or PATH)")
			fmt.Println("  VPP 25.10: https://packagecloud.io/fdio/release (packages vpp, vpp-plugin-core)")
		}
		return opts
	}
	fmt.Printf("dataplane: VPP, %s\n", path)
	d.vpp, opts.Dataplane, opts.VPP = true, "vpp", &vpptest.Options{Buffers: 16384}
	if _, err := vpptest.Plugin(ctx, ""); err == nil {
		fmt.Println("plugin: contiv_plugin.so, built for this VPP")
		opts.VPP.Plugin = true
	} else {
		fmt.Printf("plugin: none: %v\n", err)
		fmt.Println("  without it VPP enforces no network policy and serves no IPv6 services, and netctl status and check report this")
	}
	switch {
	case !tapPods(o):
		fmt.Println("pods: VETH and AF_PACKET (TAP needs vhost-net, which this kernel lacks, or -pods was veth)")
	case hasVhost():
		fmt.Println("pods: TAP")
	default:
		fmt.Println("pods: TAP; this kernel has no vhost-net, a stand-in for tests is preloaded into VPP")
		opts.VPP.Vhostshim = true
	}
	return opts
}

func (d *demo) close(ctx context.Context) error {
	var errs []error
	if d.dir != "" {
		errs = append(errs, os.RemoveAll(d.dir))
	}
	for _, p := range d.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	if d.cluster != nil {
		return errors.Join(append(errs, d.cluster.Close(ctx))...)
	}
	for _, n := range d.nodes {
		errs = append(errs, n.Close(ctx))
	}
	return errors.Join(errs...)
}
