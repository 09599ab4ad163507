// Command contiv-demo shows the main functions end to end on one machine: pods, wired by the real CNI binary through running
// agents, reach each other, the host and the pods of other nodes; an agent is killed and restarted under a running ping; nothing
// is left behind. It runs everything in network namespaces of its own and needs root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"contiv.dev/vswitch/internal/filelock"
	"contiv.dev/vswitch/test/testbed/netns"
)

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "directory of contiv-agent and contiv-cni")
	flag.StringVar(&o.pods, "pods", "auto", "interfaces between VPP and pods: tap, veth, or auto: tap if the kernel has vhost-net")
	flag.StringVar(&o.dataplane, "dataplane", "auto", "vpp, linux, or auto: vpp if it is installed")
	flag.StringVar(&o.transport, "transport", "vxlan", "transport between nodes: vxlan or nooverlay")
	flag.IntVar(&o.nodes, "nodes", 1, "number of nodes")
	flag.StringVar(&o.name, "name", "contiv-demo", "prefix of the names of its nodes and network namespaces")
	flag.BoolVar(&o.keep, "keep", false, "leave the nodes running until Ctrl-C, for contiv-netctl")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "demo failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if os.Geteuid() != 0 {
		return fmt.Errorf("network namespaces need root: run it with sudo")
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if o.nodes < 1 || o.nodes > 20 {
		return fmt.Errorf("-nodes %d: from 1 to 20", o.nodes)
	}
	if !o.keep {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 3*time.Minute)
		defer cancel()
	}
	// A second demo of the same name would remove the network namespaces of the first.
	unlock, err := filelock.Try(filepath.Join(os.TempDir(), o.name+".lock"))
	if errors.Is(err, filelock.ErrLocked) {
		return fmt.Errorf("another demo named %s runs; end it, or choose another -name: %w", o.name, err)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if err := netns.Clean(ctx, o.name); err != nil {
		return fmt.Errorf("remove what an interrupted demo has left: %w", err)
	}
	d := &demo{name: o.name, bin: o.bin}
	defer func() {
		if cerr := d.close(context.WithoutCancel(ctx)); err == nil {
			err = cerr
		}
	}()
	return d.play(ctx, o)
}

// step is a part of the demo.
type step struct {
	title string
	do    func(context.Context) error
}

// play makes the nodes and runs the steps.
func (d *demo) play(ctx context.Context, o options) error {
	start := time.Now()
	if err := d.makeNodes(ctx, o); err != nil {
		return err
	}
	steps := []step{
		{"start the agents", d.startAgents},
		{"add two pods per node with contiv-cni", d.addPods},
		{"ping", d.ping},
	}
	if o.keep {
		steps = append(steps, step{"the nodes run until Ctrl-C", d.wait})
	} else {
		steps = append(steps,
			step{"GET /contiv/v1/ipam", d.showIPAM},
			step{"kill -9 the agent of node 1 and restart it under a running ping", d.restartAgent},
			step{"delete the pods", d.deletePods},
			step{"what is left", d.leftovers})
	}
	for _, step := range steps {
		fmt.Printf("\n== %s\n", step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	fmt.Printf("\ntotal time: %.1f s\n", time.Since(start).Seconds())
	return nil
}
