package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/lab"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/traffic"
)

const (
	linuxSide = "linux"

	loadPort  = 7000 // port of the servers
	warmUp    = 400 * time.Millisecond
	streamed  = 2 * time.Second
	requested = time.Second
	message   = 64 // bytes of a request, and of its answer
	threads   = 4  // number of threads that make connections
)

// loadSides returns the ways to connect pods. VPP receives large packets from TAPs if it has our plugin
// (docs/adr/0013).
func loadSides(e *env) []turnSide {
	type way struct {
		name, dataplane, config string
		noOffload               bool // in pods
		plugin                  bool // VPP has ours
	}
	ways := []way{{name: linuxSide, dataplane: "linux"}, {name: "linux, no GSO", dataplane: "linux", noOffload: true}}
	if e.vpp {
		ways = append(ways,
			way{name: "TAP", dataplane: "vpp", config: "useTAPInterfaces: true\n"},
			way{name: "TAP with plugin", dataplane: "vpp", config: "useTAPInterfaces: true\n", plugin: true},
			way{name: "TAP with plugin without GSO", dataplane: "vpp", config: "useTAPInterfaces: true\nenableGSO: false\n", plugin: true},
			way{name: "TAP with plugin and ring 256", dataplane: "vpp", config: "useTAPInterfaces: true\ntapv2TxRingSize: 256\n", plugin: true},
			way{name: "VETH", dataplane: "vpp", config: "useTAPInterfaces: false\n"})
	}
	var sides []turnSide
	for _, w := range ways {
		opts := lab.Options{
			Name: dataplaneName, BinDir: e.bin, Dataplane: w.dataplane, Config: w.config, AgentArgs: []string{"--warm-pool=0"},
			VPP: vpptest.Options{HeapMB: 512, Buffers: 32768, Plugin: w.plugin},
		}
		sides = append(sides, turnSide{
			name: w.name, standIn: strings.HasPrefix(w.name, "TAP") && !lab.HasVhostNet(),
			turn: func(ctx context.Context, add adder) error {
				return loadTurn(ctx, opts, w.noOffload, e.dataplane.profile, add)
			},
		})
	}
	return sides
}

// loadWorld has three pods: a and b are on the same node, c is on the other node. All serve; c is behind a
// service.
type loadWorld struct {
	*lab.Lab
	traffic *traffic.Traffic
	a, b, c *testbed.Pod
	service netip.AddrPort
	profile bool
	before  threadTimes // when the stream's measurement began
	add     adder
}

// loadTurn measures one side in its own lab.
func loadTurn(ctx context.Context, opts lab.Options, noOffload, profile bool, add adder) error {
	l, err := lab.New(ctx, opts)
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	w := &loadWorld{Lab: l, traffic: traffic.New(), profile: profile, add: add}
	defer w.traffic.Close()
	if err := w.prepare(ctx, noOffload); err != nil {
		return err
	}
	if err := w.measure(); err != nil {
		return errors.Join(err, w.crashed())
	}
	return w.crashed()
}

// crashed returns an error that names the VPPs that have ended.
func (w *loadWorld) crashed() error {
	var errs []error
	for _, n := range w.Nodes {
		if n.VPP != nil && !n.VPP.Running() {
			errs = append(errs, fmt.Errorf("VPP of %s has ended: %s", n.Name, lastLines(n.VPP.Log(), 10)))
		}
	}
	return errors.Join(errs...)
}

func (w *loadWorld) prepare(ctx context.Context, noOffload bool) (err error) {
	for _, p := range []struct {
		name string
		node int
		into **testbed.Pod
	}{{"a", 0, &w.a}, {"b", 0, &w.b}, {"c", 1, &w.c}} {
		if *p.into, err = w.Pod(ctx, p.node, p.name); err != nil {
			return err
		}
		if noOffload {
			if _, err := (*p.into).Run(ctx, "ethtool", "-K", "eth0", "tso", "off", "gso", "off", "gro", "off"); err != nil {
				return err
			}
		}
		if _, err := w.traffic.Serve((*p.into).Namespace, loadPort); err != nil {
			return err
		}
	}
	ip := netip.MustParseAddr("10.96.0.80")
	w.service = netip.AddrPortFrom(ip, 80)
	svc := kubeapi.Service("load", []netip.Addr{ip, netip.MustParseAddr("fd10:96::80")}, kubeapi.Port(corev1.ProtocolTCP, 80))
	if err := w.Service(svc, loadPort, lab.Backend{Node: 1, Pod: w.c}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, to := range append(w.at(w.b), append(w.at(w.c), w.service)...) {
		if err := poll.Until(ctx, 50*time.Millisecond, func() error {
			return w.traffic.Once(w.a.Namespace, 0, to, message, time.Second)
		}); err != nil {
			return fmt.Errorf("%s from a: %w", to, err)
		}
	}
	return nil
}

// at returns the addresses of a pod's server, in both families.
func (w *loadWorld) at(p *testbed.Pod) []netip.AddrPort {
	return []netip.AddrPort{netip.AddrPortFrom(p.IPs[0], loadPort), netip.AddrPortFrom(p.IPs[1], loadPort)}
}

func (w *loadWorld) measure() error {
	same, other := w.at(w.b), w.at(w.c)
	for _, s := range []struct {
		what string
		to   netip.AddrPort
	}{
		{"same node, IPv4", same[0]}, {"same node, IPv6", same[1]}, {"other node, IPv4", other[0]}, {"other node, IPv6", other[1]},
	} {
		if err := w.stream(s.what, s.to); err != nil {
			return err
		}
	}
	for _, s := range []struct {
		what string
		to   netip.AddrPort
	}{{"same node", same[0]}, {"other node", other[0]}} {
		got, err := w.traffic.Query(w.a.Namespace, s.to, message, requested)
		if err != nil {
			return err
		}
		addTimes(w.add, "request and reply, "+s.what, got)
	}
	for _, s := range []struct {
		what string
		to   netip.AddrPort
	}{{"same node", same[0]}, {"other node", other[0]}, {"other node, by service", w.service}} {
		got := w.traffic.Connect(w.a.Namespace, s.to, threads, message, requested)
		w.add("connections per second, "+s.what, "1/s", got.PerSecond())
		if len(got.Took) == 0 {
			return fmt.Errorf("connections, %s: all %d failed: %w", s.what, got.Failed, got.Err)
		}
		w.add("connections that failed, "+s.what, "of a thousand", 1000*float64(got.Failed)/float64(got.Failed+len(got.Took)))
	}
	return nil
}

func addTimes(add adder, what string, got *traffic.Queries) {
	for _, p := range []int{50, 99} {
		add(fmt.Sprintf("%s, p%d", what, p), "µs", float64(got.Percentile(p).Nanoseconds())/1000)
	}
}

// stream measures one TCP connection from pod a.
func (w *loadWorld) stream(what string, to netip.AddrPort) error {
	m := &streamMeter{traffic: w.traffic, from: w.a.Namespace, pids: w.PIDs(), add: w.add, begin: w.clearProfile}
	m.end = w.printProfile
	return m.measure(what, to)
}

// streamMeter measures one TCP connection at a time.
type streamMeter struct {
	traffic *traffic.Traffic
	from    *netns.Namespace
	pids    []int // processes whose processor time counts, in addition to this process and the kernel
	add     adder
	begin   func()            // called when the measurement begins
	end     func(what string) // called when it ends
}

func (m *streamMeter) measure(what string, to netip.AddrPort) error {
	s, err := m.traffic.Stream(m.from, to, traffic.StreamOptions{Name: what, Up: true, StallTimeout: 10 * time.Second})
	if err != nil {
		return err
	}
	time.Sleep(warmUp)
	if m.begin != nil {
		m.begin()
	}
	cpu, err := traffic.CPU(m.pids...)
	if err != nil {
		return errors.Join(err, s.Stop())
	}
	bytes, begin := s.Up.Load(), time.Now()
	time.Sleep(streamed)
	bytes, took := s.Up.Load()-bytes, time.Since(begin)
	after, err := traffic.CPU(m.pids...)
	if m.end != nil {
		m.end(what)
	}
	if err := errors.Join(err, s.Stop()); err != nil {
		return err
	}
	if bytes == 0 {
		return fmt.Errorf("TCP, %s: nothing arrived in %s", what, took)
	}
	m.add("TCP, "+what, "Gb/s", float64(bytes)*8/1e9/took.Seconds())
	m.add("CPU, "+what, "s/GB", (after-cpu).Seconds()/(float64(bytes)/1e9))
	return nil
}

// clearProfile and printProfile print the profile of VPP during the measurement, and the processor time of
// threads.
func (w *loadWorld) clearProfile() {
	w.before = w.threads()
	for _, n := range w.Nodes {
		if w.profile && n.VPP != nil {
			_, _ = n.VPP.CLI("clear runtime") // after an error there is no profile
		}
	}
}

func (w *loadWorld) printProfile(what string) {
	if w.profile {
		fmt.Printf("   threads, %s:\n%s", what, w.threads().since(w.before))
	}
	for _, n := range w.Nodes {
		if !w.profile || n.VPP == nil {
			continue
		}
		text, err := n.VPP.CLI("show runtime")
		if err != nil {
			continue // another check detects that VPP has ended
		}
		fmt.Printf("   profile of %s, %s:\n%s", n.Name, what, parseRuntime(text).costliest(8))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
