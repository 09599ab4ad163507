package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// largeCluster configures networks for 16,000 nodes.
const largeCluster = "useTAPInterfaces: false\nipamConfig:\n" +
	"  podSubnetCIDR: 10.0.0.0/8\n  podSubnetOneNodePrefixLen: 22\n  serviceCIDR: 192.168.0.0/16\n" +
	"  vppHostSubnetCIDR: 172.16.0.0/12\n  vppHostSubnetOneNodePrefixLen: 26\n" +
	"  nodeInterconnectCIDR: 100.64.0.0/16\n  vxlanCIDR: 100.65.0.0/16\n"

// joins is the number of nodes that join one after the other.
const joins = 40

// benchNodes starts an agent in clusters of several sizes, whose other nodes are only records in etcd, and makes nodes
// join.
func benchNodes(ctx context.Context, e *env) error {
	modes := []string{"fake", "linux"}
	if e.vpp {
		modes = append(modes, "vpp")
	}
	for _, dataplane := range modes {
		sizes := []int{100, e.nodes}
		if dataplane == "vpp" {
			sizes[1] = min(e.nodes, 1000)
		}
		var small time.Duration
		for _, n := range sizes {
			join, err := inCluster(ctx, e, dataplane, n)
			if err != nil {
				return fmt.Errorf("%d nodes, %s: %w", n, dataplane, err)
			}
			if small == 0 {
				small = join
				continue
			}
			e.ratio(fmt.Sprintf("%s: a join among %d to one among %d", dataplane, n, sizes[0]),
				milliseconds(fmt.Sprintf("%d nodes", n), join), milliseconds(fmt.Sprintf("%d nodes", sizes[0]), small))
		}
	}
	return nil
}

// inCluster returns the median time in which the agent handles the join of a node.
func inCluster(ctx context.Context, e *env, dataplane string, size int) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "contiv-bench-etcd-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	server, err := clusterdb.StartEmbedded(ctx, clusterdb.Config{Embedded: clusterdb.EmbeddedConfig{DataDir: dir}},
		slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, err
	}
	defer server.Close()
	socket := "unix://" + filepath.Join(dir, "etcd.sock")
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{socket}, DialTimeout: 5 * time.Second})
	if err != nil {
		return 0, err
	}
	defer etcd.Close()
	for id := 2; id <= size; id++ {
		if err := putNode(ctx, etcd, id); err != nil {
			return 0, err
		}
	}
	opts := testbed.NodeOptions{
		Name: "contiv-bench-n", BinDir: e.bin, Dataplane: dataplane, Config: largeCluster + nicOf(dataplane),
		AgentArgs: []string{"--etcd-endpoints=" + socket, "--warm-pool=0"},
		BeforeVPP: func(ctx context.Context, ns *netns.Namespace) error { return plugNIC(ctx, ns) },
	}
	if dataplane == "vpp" {
		opts.VPP = &vpptest.Options{HeapMB: 1024, Buffers: 16384}
	}
	node, err := testbed.NewNode(ctx, opts)
	if err != nil {
		return 0, err
	}
	defer node.Close(context.WithoutCancel(ctx))
	return watchJoins(ctx, node, etcd, dataplane, size)
}

// nicOf returns the uplink: a device that is connected to nothing.
func nicOf(dataplane string) string {
	nic := "host-" + testbed.UplinkNIC
	if dataplane == "linux" {
		nic = testbed.UplinkNIC
	}
	return "nodeConfig:\n- nodeName: contiv-bench-n\n  mainVPPInterface: {interfaceName: " + nic + "}\n"
}

func plugNIC(ctx context.Context, ns *netns.Namespace) error {
	for _, args := range []string{
		"link add " + testbed.UplinkNIC + " type veth peer name far", "link set far up", "link set " + testbed.UplinkNIC + " up",
		"addr add 100.64.0.1/16 dev " + testbed.UplinkNIC,
	} {
		if _, err := ns.Run(ctx, "ip", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

func putNode(ctx context.Context, etcd *clientv3.Client, id int) error {
	key := fmt.Sprintf("%sallocatedIDs/%d", clusterdb.KSRPrefix, id)
	record := fmt.Sprintf(`{"id":%d,"name":"node-%d","ip_addresses":["100.64.%d.%d/16"],"mgmt_addresses":["10.255.%d.%d"]}`,
		id, id, id/256, id%256, id/256, id%256)
	_, err := etcd.Put(ctx, key, record)
	return err
}

// watchJoins starts the agent, and makes nodes join one by one.
func watchJoins(ctx context.Context, node *testbed.Node, etcd *clientv3.Client, dataplane string, size int) (time.Duration, error) {
	begin, start := time.Now(), time.Now().Add(2*time.Minute)
	startCtx, cancel := context.WithDeadline(ctx, start)
	defer cancel()
	if err := node.StartAgent(startCtx); err != nil {
		return 0, err
	}
	ready := time.Since(begin)
	var took []time.Duration
	for i := range joins {
		if err := putNode(ctx, etcd, size+1+i); err != nil {
			return 0, err
		}
		event := fmt.Sprintf("node-%d joined", size+1+i)
		if err := poll.Until(startCtx, 2*time.Millisecond, func() error {
			d, err := handled(ctx, node, event)
			if err == nil {
				took = append(took, d)
			}
			return err
		}); err != nil {
			return 0, fmt.Errorf("%s: %w", event, err)
		}
	}
	slices.Sort(took)
	rss, err := node.Metric(ctx, "process_resident_memory_bytes")
	if err != nil {
		return 0, err
	}
	fmt.Printf("   %5s, %5d nodes: ready %s after the start, %.0f MB, a join handled in %s (p50), %s (p95)\n", dataplane, size,
		ms(ready), rss/1e6, ms(took[len(took)/2]), ms(took[len(took)*95/100]))
	return took[len(took)/2], nil
}

// handled returns how long the event loop took for an event, including the transaction.
func handled(ctx context.Context, node *testbed.Node, event string) (time.Duration, error) {
	var records []struct {
		Description                    string
		ProcessingStart, ProcessingEnd time.Time
	}
	if err := node.GetJSON(ctx, "/controller/event-history?last=5", &records); err != nil {
		return 0, err
	}
	for _, r := range records {
		if strings.Contains(r.Description, event) {
			return r.ProcessingEnd.Sub(r.ProcessingStart), nil
		}
	}
	return 0, fmt.Errorf("not handled yet")
}
