// Command contiv-demo shows the main job end to end on one machine: two pods, wired by the real CNI binary through the
// running agent, reach each other and the host; the agent is killed and restarted under a running ping; nothing is left
// behind. It runs everything in network namespaces of its own and needs root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/testbed"
)

func main() {
	bin := flag.String("bin", "bin", "directory of contiv-agent and contiv-cni")
	tap := flag.String("pods", "auto", "how pods are wired: tap, veth, or auto: tap where the kernel has vhost-net")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin, *tap); err != nil {
		fmt.Fprintln(os.Stderr, "demo failed:", err)
		os.Exit(1)
	}
}

// demo is one run.
type demo struct {
	node *testbed.Node
	pods []*testbed.Pod
	real bool // packets really move
}

func run(ctx context.Context, bin, pods string) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("network namespaces need root: run it with sudo")
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	opts, real := nodeOptions(bin, pods)
	d := &demo{real: real}
	start := time.Now()
	if err := testbed.Clean(ctx, opts.Name); err != nil {
		return fmt.Errorf("remove what an interrupted demo has left: %w", err)
	}
	if d.node, err = testbed.NewNode(ctx, opts); err != nil {
		return err
	}
	defer func() {
		if cerr := d.close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"start the agent (embedded etcd)", d.startAgent},
		{"add two pods with contiv-cni", d.addPods},
		{"ping", d.ping},
		{"GET /contiv/v1/ipam", d.showIPAM},
		{"kill -9 the agent and restart it under a running ping", d.restartAgent},
		{"delete the pods", d.deletePods},
		{"what is left", d.leftovers},
	} {
		fmt.Printf("\n== %s\n", step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	fmt.Printf("\nall of it took %.1fs\n", time.Since(start).Seconds())
	return nil
}

// nodeOptions picks the dataplane and says so.
func nodeOptions(bin, pods string) (opts testbed.NodeOptions, real bool) {
	opts = testbed.NodeOptions{Name: "contiv-demo", BinDir: bin}
	path, found := vpptest.Find()
	if !found {
		fmt.Println("dataplane: no VPP found (VPP_PREFIX or PATH): the fake plays it.")
		fmt.Println("  The control plane below is real, but the fake moves no packets: pings are left out.")
		fmt.Println("  VPP 25.10: https://packagecloud.io/fdio/release (packages vpp, vpp-plugin-core)")
		opts.Dataplane, opts.Config = "fake", "useTAPInterfaces: false\n"
		return opts, false
	}
	fmt.Printf("dataplane: VPP, %s\n", path)
	opts.VPP = &vpptest.Options{}
	_, err := os.Stat("/dev/vhost-net")
	vhost := err == nil
	switch {
	case pods == "tap" && !vhost:
		fmt.Println("pods: TAP; this kernel has no vhost-net, a stand-in for tests is preloaded into VPP")
		opts.VPP.Vhostshim = true
		opts.Config = "useTAPInterfaces: true\n"
	case pods == "tap" || pods == "auto" && vhost:
		fmt.Println("pods: TAP")
		opts.Config = "useTAPInterfaces: true\n"
	default:
		fmt.Println("pods: VETH and AF_PACKET (TAP needs vhost-net, which this kernel lacks, or -pods was veth)")
		opts.Config = "useTAPInterfaces: false\n"
	}
	return opts, true
}

func (d *demo) close(ctx context.Context) error {
	for _, p := range d.pods {
		_ = p.Delete(ctx)
	}
	return d.node.Close(ctx)
}

func (d *demo) startAgent(ctx context.Context) error {
	start := time.Now()
	if err := d.node.StartAgent(ctx); err != nil {
		return err
	}
	fmt.Printf("ready after %d ms, pid %d\n", time.Since(start).Milliseconds(), d.node.Agent.PID())
	return nil
}

func (d *demo) addPods(ctx context.Context) error {
	for _, name := range []string{"a", "b"} {
		p, err := d.node.NewPod(ctx, name)
		if err != nil {
			return err
		}
		d.pods = append(d.pods, p)
		start := time.Now()
		if _, err := d.node.CNI.Add(ctx, p); err != nil {
			return err
		}
		fmt.Printf("pod %s: %v, gateway %v, %.1f ms\n", name, p.IPs, p.Gateways, float64(time.Since(start).Microseconds())/1000)
	}
	return nil
}

func (d *demo) ping(ctx context.Context) error {
	if !d.real {
		fmt.Println("left out: the fake moves no packets")
		return nil
	}
	a, b := d.pods[0], d.pods[1]
	const hostIP = "172.30.1.2"
	for _, leg := range []struct {
		what string
		from *testbed.Namespace
		to   string
	}{
		{"pod a -> pod b", a.Namespace, b.IPs[0].String()},
		{"pod b -> pod a", b.Namespace, a.IPs[0].String()},
		{"pod a -> host ", a.Namespace, hostIP},
		{"host  -> pod b", d.node.Namespace, b.IPs[0].String()},
	} {
		r, err := leg.from.Ping(ctx, leg.to, 5, 20*time.Millisecond)
		if err != nil {
			return err
		}
		fmt.Printf("%s (%s): %s\n", leg.what, leg.to, r)
		if r.Lost() > 0 {
			return fmt.Errorf("%s lost %d packets", leg.what, r.Lost())
		}
	}
	return nil
}

func (d *demo) showIPAM(ctx context.Context) error {
	body, err := d.node.Get(ctx, "/contiv/v1/ipam")
	fmt.Print(body)
	return err
}

func (d *demo) restartAgent(ctx context.Context) error {
	var pinging chan testbed.PingResult
	failed := make(chan error, 1)
	if d.real {
		pinging = make(chan testbed.PingResult, 1)
		go func() {
			r, err := d.pods[0].Ping(ctx, d.pods[1].IPs[0].String(), 400, 10*time.Millisecond)
			if err != nil {
				failed <- err
				return
			}
			pinging <- r
		}()
		time.Sleep(time.Second)
	}
	if err := d.node.Agent.Kill(); err != nil {
		return err
	}
	start := time.Now()
	if err := d.node.StartAgent(ctx); err != nil {
		return err
	}
	fmt.Printf("killed; ready again after %d ms\n", time.Since(start).Milliseconds())
	writes, err := d.node.Metric(ctx, "contiv_vpp_writes_total")
	if err != nil {
		return err
	}
	fmt.Printf("requests that changed VPP since then: %.0f\n", writes)
	if !d.real {
		return nil
	}
	select {
	case err := <-failed:
		return err
	case r := <-pinging:
		fmt.Printf("ping under it: %s\n", r)
		if r.Lost() > 0 {
			return fmt.Errorf("%d packets lost", r.Lost())
		}
	}
	return nil
}

func (d *demo) deletePods(ctx context.Context) error {
	for _, p := range d.pods {
		start := time.Now()
		if err := d.node.CNI.Del(ctx, p); err != nil {
			return err
		}
		fmt.Printf("%s: %.1f ms\n", p.Name, float64(time.Since(start).Microseconds())/1000)
	}
	return nil
}

// leftovers shows what VPP, the node and the records still have, and fails if any of it belongs to a pod.
func (d *demo) leftovers(ctx context.Context) error {
	pods, err := d.node.Get(ctx, "/contiv/v1/pods")
	if err != nil {
		return err
	}
	fmt.Println("attachments:", strings.TrimSpace(pods))
	if d.node.VPP == nil {
		return nil
	}
	out, err := d.node.VPP.CLI("show interface")
	if err != nil {
		return err
	}
	fmt.Print("interfaces in VPP (those of the node itself and the warm pool):\n", out)
	dump, err := d.node.Get(ctx, "/scheduler/dump?view=applied")
	if err != nil {
		return err
	}
	for _, p := range d.pods {
		if strings.Contains(dump, p.ContainerID) {
			return fmt.Errorf("the dataplane still has values of %s", p.ContainerID)
		}
	}
	fmt.Println("no value of either pod is left")
	return nil
}
