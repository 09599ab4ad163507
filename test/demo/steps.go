package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

func (d *demo) startAgents(ctx context.Context) error {
	for _, n := range d.nodes {
		start := time.Now()
		if err := n.StartAgent(ctx); err != nil {
			return err
		}
		fmt.Printf("%s: ready after %d ms, pid %d\n", n.Name, time.Since(start).Milliseconds(), n.Agent.PID())
	}
	return nil
}

func (d *demo) addPods(ctx context.Context) error {
	for i, n := range d.nodes {
		for k := range 2 {
			p, err := n.NewPod(ctx, podName(2*i+k))
			if err != nil {
				return err
			}
			d.pods = append(d.pods, pod{p, n})
			start := time.Now()
			if _, err := n.CNI.Add(ctx, p); err != nil {
				return err
			}
			fmt.Printf("pod %s: %v, gateway %v, %.1f ms\n", p.Name, p.IPs, p.Gateways, milliseconds(start))
		}
	}
	return nil
}

// podName returns a, b, c and so on, a unique name for each pod of the cluster.
func podName(i int) string {
	const letters = 'z' - 'a' + 1
	if i < letters {
		return string(rune('a' + i))
	}
	return podName(i/letters-1) + podName(i%letters)
}

func milliseconds(start time.Time) float64 { return float64(time.Since(start).Microseconds()) / 1000 }

// ping pings from each pod to each other one, and between pods and hosts.
func (d *demo) ping(ctx context.Context) error {
	for _, from := range d.pods {
		for _, to := range d.pods {
			if from == to {
				continue
			}
			if err := pingOnce(ctx, from.Name, from.Namespace, to.Name, to.IPs[0].String()); err != nil {
				return err
			}
		}
	}
	for _, p := range d.pods {
		if err := pingOnce(ctx, p.Name, p.Namespace, "its gateway", p.Gateways[0].String()); err != nil {
			return err
		}
		if err := pingOnce(ctx, "its host", p.node.Namespace, p.Name, p.IPs[0].String()); err != nil {
			return err
		}
	}
	return nil
}

func pingOnce(ctx context.Context, fromName string, from *netns.Namespace, toName, to string) error {
	if err := learned(ctx, from, to); err != nil {
		return err
	}
	r, err := from.Ping(ctx, to, 5, 20*time.Millisecond)
	if err != nil {
		return err
	}
	fmt.Printf("%s -> %s (%s): %s\n", fromName, toName, to, r)
	if r.Lost() > 0 {
		return fmt.Errorf("%s -> %s lost %d packets", fromName, toName, r.Lost())
	}
	return nil
}

// learned waits until a ping is answered: the first packet between two nodes may be lost during the resolution of the node's
// own address; everything behind that is static.
func learned(ctx context.Context, from *netns.Namespace, to string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return poll.Until(ctx, 20*time.Millisecond, func() error { return from.PingOnce(ctx, to, 0) })
}

func (d *demo) showIPAM(ctx context.Context) error {
	for _, n := range d.nodes {
		body, err := n.Get(ctx, "/contiv/v1/ipam")
		if err != nil {
			return err
		}
		fmt.Print(body)
	}
	return nil
}

// restartAgent restarts an agent, and pings the last pod from the first one in the meantime.
func (d *demo) restartAgent(ctx context.Context) error {
	type outcome struct {
		netns.PingResult
		err error
	}
	pinging := make(chan outcome, 1)
	go func() {
		r, err := d.pods[0].Ping(ctx, d.pods[len(d.pods)-1].IPs[0].String(), 400, 10*time.Millisecond)
		pinging <- outcome{r, err}
	}()
	time.Sleep(time.Second)
	first := d.nodes[0]
	if err := first.Agent.Kill(); err != nil {
		return err
	}
	start := time.Now()
	if err := first.StartAgent(ctx); err != nil {
		return err
	}
	fmt.Printf("killed; ready again after %d ms\n", time.Since(start).Milliseconds())
	if err := d.showWrites(ctx, first); err != nil {
		return err
	}
	r := <-pinging
	if r.err != nil {
		return r.err
	}
	fmt.Printf("ping during the restart: %s\n", r.PingResult)
	if r.Lost() > 0 {
		return fmt.Errorf("%d packets lost", r.Lost())
	}
	return nil
}

func (d *demo) showWrites(ctx context.Context, n *testbed.Node) error {
	metric, what := "contiv_linux_writes_total", "objects written to the kernel's tables"
	if d.vpp {
		metric, what = "contiv_vpp_writes_total", "requests that changed VPP"
	}
	writes, err := n.Metric(ctx, metric)
	if err != nil {
		return err
	}
	fmt.Printf("%s since then: %.0f\n", what, writes)
	return nil
}

func (d *demo) deletePods(ctx context.Context) error {
	for _, p := range d.pods {
		start := time.Now()
		if err := p.node.CNI.Del(ctx, p.Pod); err != nil {
			return err
		}
		fmt.Printf("%s: %.1f ms\n", p.Name, milliseconds(start))
	}
	return nil
}

// leftovers prints what remains in the nodes, their dataplanes and records, and fails if any of it belongs to a pod.
func (d *demo) leftovers(ctx context.Context) error {
	for _, n := range d.nodes {
		attached, err := n.Get(ctx, "/contiv/v1/pods")
		if err != nil {
			return err
		}
		fmt.Printf("%s: attachments: %s\n", n.Name, strings.TrimSpace(attached))
		dump, err := n.Get(ctx, "/scheduler/dump?view=applied")
		if err != nil {
			return err
		}
		out, err := d.links(ctx, n)
		if err != nil {
			return err
		}
		fmt.Print(out)
		for _, p := range d.pods {
			if strings.Contains(dump, p.ContainerID) {
				return fmt.Errorf("the dataplane of %s still has values of %s", n.Name, p.ContainerID)
			}
		}
	}
	fmt.Println("no value of any pod is left")
	return nil
}

// links returns the interfaces of the dataplane: only those of the node itself remain.
func (d *demo) links(ctx context.Context, n *testbed.Node) (string, error) {
	if d.vpp {
		return n.VPP.CLI("show interface")
	}
	return n.Run(ctx, "ip", "-brief", "link")
}
