// Command bench prints Contiv's figures as ratios that are measured side by side in one run: against the minimum cost, a peer
// or the simplest implementation. Absolute times are printed for orientation only; the machines are noisy. It needs root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/netns"
)

// bench is one benchmark.
type bench struct {
	name string
	what string
	run  func(ctx context.Context, env *env) error
}

// env is the common environment of the benchmarks.
type env struct {
	bin     string // our binaries
	plugins string // containernetworking/plugins
	vpp     bool   // a real VPP is used
	pods    int    // of the reconcile benchmark
	nodes   int    // of the nodes benchmark

	plots    string  // directory for pictures; none when empty
	recorded []group // of the benchmark that runs

	services    serviceSizes
	dataplane   dataplaneOptions
	policyParts string // of the policy benchmark; all when empty
	policySteps string // of its part agents; all when empty
}

func main() {
	e := &env{}
	flag.StringVar(&e.bin, "bin", "bin", "directory of contiv-agent and contiv-cni; its folder cni-plugins has the plugins to compare with")
	flag.IntVar(&e.pods, "pods", 1000, "number of pods in the reconcile benchmark")
	flag.IntVar(&e.nodes, "nodes", 5000, "number of nodes in the nodes benchmark")
	flag.IntVar(&e.services.services, "services", 1000, "number of services in the cold start of the services benchmark")
	flag.IntVar(&e.services.endpoints, "endpoints", 20, "number of endpoints of each of these services")
	flag.IntVar(&e.services.among, "among", 2000, "number of services while one endpoint changes")
	flag.IntVar(&e.services.changes, "changes", 10, "number of changes of this endpoint")
	flag.StringVar(&e.services.only, "sides", "", "sides of the services benchmark: kube-proxy, linux-nft, linux-iptables, "+
		"vpp, vpp-plugin (default: all but linux-iptables)")
	flag.Func("scale", "of the services benchmark: numbers of services, separated by commas, that VPP with our plugin has one after the other; "+
		"instead of the sides", e.services.parseScale)
	flag.StringVar(&e.policyParts, "policy-parts", "", "parts of the policy benchmark: compiler, members, clocks, agents; empty: all")
	flag.StringVar(&e.policySteps, "policy-steps", "", "steps of the part agents of the policy benchmark: adds, events, restart, remote, many; empty: all")
	flag.IntVar(&e.dataplane.runs, "runs", 7, "number of runs of the dataplane benchmark")
	flag.StringVar(&e.dataplane.parts, "parts", "", "parts of the dataplane benchmark: clocks, load, bare; empty: all")
	flag.StringVar(&e.dataplane.sides, "dataplane-sides", "", "sides of the dataplane benchmark, by name; empty: all")
	flag.StringVar(&e.dataplane.json, "json", "", "file for all values of the dataplane benchmark")
	flag.BoolVar(&e.dataplane.profile, "profile", false, "dataplane benchmark: print the counters of VPP's graph during TCP streams")
	flag.StringVar(&e.plots, "plots", plotsDir, "directory for a picture of each benchmark (bench-NAME.svg); empty: none")
	only := flag.String("only", "", "comma-separated names of benchmarks; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, e, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, e *env, only string) (err error) {
	if e.bin, err = filepath.Abs(e.bin); err != nil {
		return err
	}
	if err := e.makePlotsDir(); err != nil { // fail before minutes of measuring
		return err
	}
	if err := e.services.validate(); err != nil {
		return err
	}
	e.plugins = filepath.Join(e.bin, "cni-plugins")
	path, found := vpptest.Find()
	e.vpp = found
	if found {
		fmt.Println("VPP:", path)
	} else {
		fmt.Println("VPP: none found (VPP_PREFIX or PATH); the benchmarks against it are left out, the fake carries the rest")
	}
	if err := netns.Clean(ctx, "contiv-bench"); err != nil {
		return fmt.Errorf("remove what an interrupted run has left: %w", err)
	}
	names := strings.FieldsFunc(only, func(r rune) bool { return r == ',' })
	for _, b := range benches() {
		if len(names) > 0 && !slices.Contains(names, b.name) {
			continue
		}
		fmt.Printf("\n== %s: %s\n", b.name, b.what)
		start := time.Now()
		if err := b.run(ctx, e); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if err := e.draw(b); err != nil {
			return err
		}
		fmt.Printf("   (took %.1fs)\n", time.Since(start).Seconds())
	}
	return nil
}

func benches() []bench {
	return []bench{
		{"plan", "8 000 flat interfaces and one member among 2 000, scheduler alone", benchPlan},
		{"routes", "10 000 routes into VPP: scheduler, raw pipelined govpp, one call at a time", benchRoutes},
		{"frontends", "4 000 services into VPP with our plugin: scheduler, raw pipelined govpp, one call at a time", benchFrontends},
		{"linux", "the Linux dataplane: rules, sets and routes beside the tools and the raw netlink floor", benchLinux},
		{"cni", "CNI ADD and DEL beside bridge + host-local", benchCNI},
		{"nodes", "one agent in a cluster of many nodes: start, memory, a node that joins", benchNodes},
		{"dataplane", "packets on VPP and on Linux: clocks, TCP, requests, connections", benchDataplane},
		{"policy", "network policy: the compiler, members and packets in VPP, agents on Linux and on VPP", benchPolicy},
		{"services", "kube-proxy and us make the same services reachable", benchServices},
		{"reconcile", "agent restart with many pods: what it takes and what it writes", benchReconcile},
	}
}

// percentile returns the p-th percentile of sorted durations.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func hasVhost() bool {
	_, err := os.Stat("/dev/vhost-net")
	return err == nil
}
