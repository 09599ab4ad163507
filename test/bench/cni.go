package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// cniTimes are the sorted durations of ADDs and DELs.
type cniTimes struct{ add, del []time.Duration }

// benchCNI runs ADD and DEL of our plugin and of bridge + host-local in turns, so that noise affects both.
func benchCNI(ctx context.Context, e *env) error {
	veth := testbed.NodeOptions{
		Name: "contiv-bench", BinDir: e.bin, Dataplane: "fake", Config: "useTAPInterfaces: false\n",
		AgentArgs: []string{"--warm-pool=64"},
	}
	linux := testbed.NodeOptions{Name: "contiv-bench", BinDir: e.bin, Dataplane: "linux", BeforeVPP: plugNIC}
	fmt.Println("   dataplane: Linux, nftables")
	if err := benchCNIOn(ctx, e, linux, "linux"); err != nil {
		return err
	}
	if !e.vpp {
		fmt.Println("   pods: VETH; VPP: the fake")
		return benchCNIOn(ctx, e, veth, "veth")
	}
	tap := veth
	tap.Dataplane, tap.Config = "vpp", "useTAPInterfaces: true\n"
	tap.VPP = &vpptest.Options{Buffers: 65536, Vhostshim: !hasVhost()}
	fmt.Println("   pods: TAP, the default where the kernel has vhost-net (here:", map[bool]string{true: "it has)", false: "a stand-in)"}[hasVhost()])
	if err := benchCNIOn(ctx, e, tap, "tap"); err != nil {
		return err
	}
	veth.Dataplane, veth.VPP = "vpp", &vpptest.Options{Buffers: 65536}
	fmt.Println("   pods: VETH and AF_PACKET")
	return benchCNIOn(ctx, e, veth, "veth")
}

func benchCNIOn(ctx context.Context, e *env, opts testbed.NodeOptions, pods string) error {
	node, err := testbed.NewNode(ctx, opts)
	if err != nil {
		return err
	}
	defer node.Close(context.WithoutCancel(ctx))
	if err := node.StartAgent(ctx); err != nil {
		return err
	}
	if err := poolIsFull(ctx, node); err != nil {
		return err
	}
	peer, closePeer, err := newPeer(ctx, e)
	if err != nil {
		return err
	}
	defer closePeer()
	for _, callers := range []int{1, 10, 50} {
		if err := compareCNI(ctx, e, node, peer, callers); err != nil {
			return err
		}
	}
	return e.draw(bench{name: "cni-" + pods, what: "CNI ADD and DEL beside bridge + host-local, " + pods + " pods"})
}

// poolIsFull waits until the agent has stopped writing to VPP: pods usually do not start on a node that has just started.
func poolIsFull(ctx context.Context, node *testbed.Node) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	metric := "contiv_vpp_writes_total"
	if _, err := node.Metric(ctx, metric); err != nil {
		metric = "contiv_linux_writes_total"
	}
	last, since := -1.0, time.Now()
	return poll.Until(ctx, 100*time.Millisecond, func() error {
		n, err := node.Metric(ctx, metric)
		if err != nil {
			return err
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return errors.New("the warm pool is still being filled")
		}
		return nil
	})
}

func compareCNI(ctx context.Context, e *env, node *testbed.Node, peer *testbed.CNI, callers int) error {
	const rounds = 4
	perRound := max(callers, 10)
	var ours, theirs cniTimes
	for range rounds {
		o, err := cniRound(ctx, node, node.CNI, callers, perRound)
		if err != nil {
			return fmt.Errorf("ours, %d callers: %w", callers, err)
		}
		t, err := cniRound(ctx, node, peer, callers, perRound)
		if err != nil {
			return fmt.Errorf("bridge, %d callers: %w", callers, err)
		}
		ours.merge(o)
		theirs.merge(t)
	}
	ours.sort()
	theirs.sort()
	for _, row := range []struct {
		op           string
		ours, theirs []time.Duration
	}{{"ADD", ours.add, theirs.add}, {"DEL", ours.del, theirs.del}} {
		var bars []bar
		for _, p := range []int{50, 99} {
			o, t := percentile(row.ours, p), percentile(row.theirs, p)
			ours, theirs := milliseconds(fmt.Sprintf("contiv, p%d", p), o), milliseconds(fmt.Sprintf("bridge + host-local, p%d", p), t)
			printRatio(fmt.Sprintf("%2d callers %s p%d (%s / %s)", callers, row.op, p, ms(o), ms(t)), ours, theirs)
			bars = append(bars, ours, theirs)
		}
		e.record(fmt.Sprintf("%s, %d at once", row.op, callers), "ms", bars...)
	}
	return nil
}

func (c *cniTimes) merge(o cniTimes) {
	c.add, c.del = append(c.add, o.add...), append(c.del, o.del...)
}

func (c *cniTimes) sort() {
	slices.Sort(c.add)
	slices.Sort(c.del)
}

// cniRound adds n pods with the given number of concurrent callers, then deletes them. The namespaces are made before the
// measurement and removed after it.
func cniRound(ctx context.Context, node *testbed.Node, cni *testbed.CNI, callers, n int) (cniTimes, error) {
	pods := make([]*testbed.Pod, n)
	defer func() {
		for _, p := range pods {
			if p != nil {
				_ = p.Delete(context.WithoutCancel(ctx))
			}
		}
	}()
	for i := range pods {
		p, err := node.NewPod(ctx, fmt.Sprintf("p%d", i))
		if err != nil {
			return cniTimes{}, err
		}
		pods[i] = p
	}
	add, err := concurrently(callers, pods, func(p *testbed.Pod) error { _, err := cni.Add(ctx, p); return err })
	if err != nil {
		return cniTimes{}, err
	}
	del, err := concurrently(callers, pods, func(p *testbed.Pod) error { return cni.Del(ctx, p) })
	return cniTimes{add: add, del: del}, err
}

// concurrently calls do for each pod from a number of goroutines and measures each call.
func concurrently(callers int, pods []*testbed.Pod, do func(*testbed.Pod) error) ([]time.Duration, error) {
	took, errs := make([]time.Duration, len(pods)), make([]error, len(pods))
	next := make(chan int)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range next {
				start := time.Now()
				errs[i] = do(pods[i])
				took[i] = time.Since(start)
			}
		})
	}
	for i := range pods {
		next <- i
	}
	close(next)
	wg.Wait()
	return took, errors.Join(errs...)
}

// newPeer returns bridge + host-local of containernetworking/plugins in its own network.
func newPeer(ctx context.Context, e *env) (*testbed.CNI, func(), error) {
	if _, err := os.Stat(filepath.Join(e.plugins, "bridge")); err != nil {
		return nil, nil, fmt.Errorf("the peer's plugins: %w; make bench builds them", err)
	}
	dir, err := os.MkdirTemp("", "contiv-bench-peer-")
	if err != nil {
		return nil, nil, err
	}
	const bridge = "cbenchbr0"
	conflist, _ := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "bench-bridge",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": bridge, "isGateway": true,
			"ipam": map[string]any{
				"type": "host-local", "dataDir": filepath.Join(dir, "ipam"),
				"ranges": [][]any{{map[string]any{"subnet": "10.99.0.0/16"}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	})
	cni, err := testbed.NewCNI([]string{e.plugins}, filepath.Join(dir, "cache"), conflist)
	cleanup := func() {
		netns.RemoveLink(context.WithoutCancel(ctx), bridge)
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		cleanup()
		return nil, nil, err
	}
	return cni, cleanup, nil
}
