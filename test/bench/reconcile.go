package main

import (
	"context"
	"fmt"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
)

// benchReconcile restarts the agent of a node with few and with many pods. With the fake VPP pods have VETH pairs; with a
// real VPP they have VETH pairs too, or TAPs if the kernel has vhost-net.
func benchReconcile(ctx context.Context, e *env) error {
	opts := testbed.NodeOptions{
		Name: "contiv-bench-rec", BinDir: e.bin, Dataplane: "fake",
		Config: "useTAPInterfaces: false\nipamConfig:\n  podSubnetOneNodePrefixLen: 20\n", AgentArgs: []string{"--warm-pool=0"},
	}
	if e.vpp {
		// TAPs are used, because VPP makes them in 2 ms; the stand-in for vhost-net carries no traffic here.
		opts.Dataplane, opts.VPP = "vpp", &vpptest.Options{Vhostshim: !hasVhost(), Buffers: 600 * e.pods, HeapMB: 1024}
		opts.Config = "tapv2RxRingSize: 64\ntapv2TxRingSize: 64\nuseTAPInterfaces: true\nipamConfig:\n  podSubnetOneNodePrefixLen: 20\n"
	}
	node, err := testbed.NewNode(ctx, opts)
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	if err := node.StartAgent(ctx); err != nil {
		return err
	}
	var pods []*testbed.Pod
	defer func() {
		for _, p := range pods {
			_ = p.Delete(context.WithoutCancel(ctx))
		}
	}()
	var small time.Duration
	for _, n := range []int{10, e.pods} {
		for len(pods) < n {
			p, err := node.AddPod(ctx, fmt.Sprintf("p%d", len(pods)))
			if err != nil {
				return fmt.Errorf("pod %d: %w", len(pods), err)
			}
			pods = append(pods, p)
		}
		took, writes, err := restart(ctx, node)
		if err != nil {
			return err
		}
		fmt.Printf("   %4d pods: ready %s after kill -9, %.0f writes to VPP\n", n, ms(took), writes)
		if small == 0 {
			small = took
			continue
		}
		e.ratio(fmt.Sprintf("ready after kill -9: %d pods to 10", n), milliseconds(fmt.Sprintf("%d pods", n), took), milliseconds("10 pods", small))
	}
	return nil
}

func restart(ctx context.Context, node *testbed.Node) (time.Duration, float64, error) {
	if err := node.Agent.Kill(); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := node.StartAgent(ctx); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	writes, err := node.Metric(ctx, "contiv_vpp_writes_total")
	return took, writes, err
}
