package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/lab"
	"contiv.dev/vswitch/test/testbed/poll"
)

const (
	// services is the number of services: a pod has that many times `ports` flows to them.
	services = 16
	// measured is the number of packets of a measurement.
	measured = 250_000
	// podConnections is the maximum number of connections of a pod in the plugin.
	podConnections = 16_384
)

// clockCase is a path of packets through a node.
type clockCase struct {
	what string
	// flows returns n flows between pod a and the destination of the case.
	flows func(w *clockWorld, n int) flows
	// from returns the pod from whose interface the packets come; nil: pod a.
	from func(w *clockWorld) *testbed.Pod
}

func toPod(family int, pod func(*clockWorld) *testbed.Pod) func(*clockWorld, int) flows {
	return func(w *clockWorld, n int) flows {
		f := flows{src: w.a.IPs[family], n: n}
		for i := range services {
			f.dst = append(f.dst, netip.AddrPortFrom(pod(w).IPs[family], uint16(targets+i)))
		}
		return f
	}
}

func toService(family int) func(*clockWorld, int) flows {
	return func(w *clockWorld, n int) flows {
		f := flows{src: w.a.IPs[family], n: n}
		for i := range services {
			f.dst = append(f.dst, netip.AddrPortFrom(serviceAddrs(i)[family], servicePort))
		}
		return f
	}
}

// targets is the first of the ports at which the services' backend listens: each service has its own, so that an answer identifies its
// service.
const targets = 8000

func serviceAddrs(i int) []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 1, byte(i)}), netip.MustParseAddr(fmt.Sprintf("fd10:96::1:%x", i))}
}

func near(w *clockWorld) *testbed.Pod { return w.b }
func far(w *clockWorld) *testbed.Pod  { return w.c }

func podCases() []clockCase {
	return []clockCase{
		{what: "IPv4, pod to pod", flows: toPod(0, near)}, {what: "IPv6, pod to pod", flows: toPod(1, near)},
		{what: "IPv4, into VXLAN", flows: toPod(0, far)}, {what: "IPv6, into VXLAN", flows: toPod(1, far)},
	}
}

func serviceCases(what string, family int) []clockCase {
	return []clockCase{{what: what + ", to a service", flows: toService(family)}, {
		what: what + ", a service's replies", from: near,
		flows: func(w *clockWorld, n int) flows {
			f := toPod(family, near)(w, n)
			f.backwards = true
			return f
		},
	}}
}

// clockSides returns nodes with different configurations of translation and checks.
func clockSides(e *env) []turnSide {
	if !e.vpp {
		fmt.Println("   clocks: left out: there is no VPP")
		return nil
	}
	type node struct {
		name, config string
		cases        []clockCase
		plain        bool // without services, and with all translation features removed
		contiv       bool // with our plugin
	}
	nodes := []node{
		{name: "plain", plain: true, cases: podCases()},
		{name: "NAT44", cases: append(podCases(), serviceCases("IPv4", 0)...)},
	}
	if _, err := vpptest.Plugin(context.Background(), ""); err == nil {
		nodes = append(nodes, node{
			name: "contiv", contiv: true,
			cases: append(append(podCases(), serviceCases("IPv4", 0)...), serviceCases("IPv6", 1)...),
		})
	} else {
		fmt.Println("   clocks: our own plugin is left out:", firstLines(err.Error(), 1))
	}
	var sides []turnSide
	for _, n := range nodes {
		opts := lab.Options{
			Name: dataplaneName, BinDir: e.bin, Dataplane: "vpp", Config: "useTAPInterfaces: true\n" + n.config,
			AgentArgs:  []string{"--warm-pool=0", "--nat-sessions=2000000"},
			NoServices: n.plain, VPP: vpptest.Options{HeapMB: 2048, Buffers: 32768},
		}
		opts.VPP.Plugin = n.contiv
		sides = append(sides, turnSide{
			name: n.name, standIn: !lab.HasVhostNet(),
			turn: func(ctx context.Context, add adder) error {
				return clockTurn(ctx, opts, n.cases, n.plain, e.dataplane.profile, add)
			},
		})
	}
	return sides
}

// clockWorld has pods a and b on the first node, c on the second. b is the backend of the services.
type clockWorld struct {
	*lab.Lab
	a, b, c *testbed.Pod
	dir     string
	ifs     map[string]string // VPP's interfaces by the addresses of their pods
	plain   bool
	profile bool
}

func clockTurn(ctx context.Context, opts lab.Options, cases []clockCase, plain, profile bool, add adder) error {
	l, err := lab.New(ctx, opts)
	if err != nil {
		return err
	}
	defer l.Close(context.WithoutCancel(ctx))
	w := &clockWorld{Lab: l, plain: plain, profile: profile}
	if w.dir, err = os.MkdirTemp("", "contiv-bench-pcap-"); err != nil {
		return err
	}
	defer os.RemoveAll(w.dir)
	if err := w.prepare(ctx, opts); err != nil {
		return err
	}
	var errs []error
	for _, n := range []int{1, 10_000, 1_000_000} {
		if opts.VPP.Plugin && n > podConnections {
			continue // TestClocks of the plugin measures these, from the uplink
		}
		for _, c := range cases {
			if opts.VPP.Plugin { // several cases together would reach the limit of a pod
				if _, err := l.Nodes[0].VPP.CLI("clear contiv connections"); err != nil {
					return err
				}
			}
			if err := w.measure(ctx, c, n, add); err != nil {
				errs = append(errs, fmt.Errorf("%s, %d flows: %w", c.what, n, err))
			}
			if !l.Nodes[0].VPP.Running() {
				return errors.Join(append(errs, errors.New("VPP has ended: "+lastLines(l.Nodes[0].VPP.Log(), 10)))...)
			}
		}
	}
	return errors.Join(errs...)
}

func (w *clockWorld) prepare(ctx context.Context, opts lab.Options) (err error) {
	for _, p := range []struct {
		name string
		node int
		into **testbed.Pod
	}{{"a", 0, &w.a}, {"b", 0, &w.b}, {"c", 1, &w.c}} {
		if *p.into, err = w.Pod(ctx, p.node, p.name); err != nil {
			return err
		}
		// The pods' kernels must not affect the measurement.
		if _, err := (*p.into).Run(ctx, "nft", "add table inet sink; add chain inet sink in "+
			"{ type filter hook prerouting priority -400; policy drop; }"); err != nil {
			return err
		}
	}
	for i := range services {
		svc := kubeapi.Service(fmt.Sprintf("clocks%d", i), serviceAddrs(i), kubeapi.Port(corev1.ProtocolUDP, servicePort))
		if err := w.Service(svc, uint16(targets+i), lab.Backend{Node: 0, Pod: w.b}); err != nil {
			return err
		}
	}
	out, err := w.Nodes[0].VPP.CLI("show ip neighbor")
	w.ifs = map[string]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 5 { // age, address, flags, MAC, interface
			w.ifs[f[1]] = f[len(f)-1]
		}
	}
	if err != nil || w.ifs[w.a.IPs[0].String()] == "" {
		return fmt.Errorf("the interface of pod %s: %w\n%s", w.a.Name, err, out)
	}
	time.Sleep(2 * time.Second) // wait until services are rendered, and neighbours of the uplink are resolved
	if opts.VPP.Plugin {
		return w.usesPlugin()
	}
	if w.plain {
		return takeTranslationOff(w.Nodes[0].VPP)
	}
	return nil
}

// usesPlugin checks that the agent has enabled features of our plugin on the pods' interfaces. Those before IP are disabled: they lead
// to ethernet-input, and the generated packets have no Ethernet header. contiv-offload-input costs about 7 clocks there.
func (w *clockWorld) usesPlugin() error {
	for _, pod := range []*testbed.Pod{w.a, w.b} {
		ifc := w.ifs[pod.IPs[0].String()]
		out, err := w.Nodes[0].VPP.CLI("show interface features " + ifc)
		if err != nil {
			return err
		}
		found := false
		for _, f := range parseFeatures(ifc, out) {
			found = found || strings.HasPrefix(f.name, "contiv-ip4")
			if f.arc != "device-input" {
				continue
			}
			out, err := w.Nodes[0].VPP.CLI(fmt.Sprintf("set interface feature %s %s arc %s disable", f.ifc, f.name, f.arc))
			if err != nil || strings.TrimSpace(out) != "" {
				return fmt.Errorf("take %s off %s: %w %s", f.name, f.ifc, err, out)
			}
		}
		if !found {
			return errors.New("the plugin is loaded, but the agent has not put it on the pods' interfaces:\n" + out)
		}
	}
	return nil
}

// measure sends n flows once, and then measures how many clocks a packet takes.
func (w *clockWorld) measure(ctx context.Context, c clockCase, n int, add adder) error {
	from := w.a
	if c.from != nil {
		from = c.from(w)
	}
	pcap := filepath.Join(w.dir, "flows.pcap")
	f := c.flows(w, n)
	if err := f.writePcap(pcap); err != nil {
		return err
	}
	node := "ip4-input"
	if f.src.Is6() {
		node = "ip6-input"
	}
	vpp := w.Nodes[0].VPP
	cli := func(format string, args ...any) (string, error) { return cliOf(vpp, format, args...) }
	if _, err := cli("packet-generator new { name s limit %d interface %s node %s pcap %s }", max(n, measured/5), w.ifs[from.IPs[0].String()],
		node, pcap); err != nil {
		return err
	}
	defer cli("packet-generator delete s")
	run := func() (runtimeStats, error) {
		_, err := cli("clear runtime")
		if err == nil {
			_, err = cli("packet-generator enable-stream s")
		}
		if err == nil {
			err = generated(ctx, vpp)
		}
		if err != nil {
			return nil, err
		}
		out, err := cli("show runtime")
		return parseRuntime(out), err
	}
	if _, err := run(); err != nil { // creates the sessions
		return err
	}
	if _, err := cli("packet-generator configure s limit %d", measured); err != nil {
		return err
	}
	stats, err := run()
	if err != nil {
		return err
	}
	if w.profile {
		fmt.Printf("   profile, %s, %d flows:\n%s", c.what, n, stats.costliest(14))
	}
	if share := float64(stats.sent()) / measured; share < 0.99 {
		return fmt.Errorf("only %.1f %% of the packets came through", share*100)
	}
	add(fmt.Sprintf("%s, %s flows", c.what, flowCount(n)), "clocks per packet", stats.graph()/measured)
	return nil
}

func flowCount(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%d M", n/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%d 000", n/1000)
	}
	return fmt.Sprint(n)
}

// inputClocks sends packets of flows from an interface, and returns the clocks that each packet took in our node.
func (w *clockWorld) inputClocks(ctx context.Context, vpp *vpptest.VPP, ifc string, f flows, limit int) (float64, error) {
	pcap := filepath.Join(w.dir, "flows.pcap")
	if err := f.writePcap(pcap); err != nil {
		return 0, err
	}
	if _, err := cliOf(vpp, "packet-generator new { name s limit %d interface %s node ip4-input pcap %s }", limit, ifc, pcap); err != nil {
		return 0, err
	}
	defer cliOf(vpp, "packet-generator delete s")
	for _, command := range []string{"clear runtime", "packet-generator enable-stream s"} {
		if _, err := cliOf(vpp, "%s", command); err != nil {
			return 0, err
		}
	}
	if err := generated(ctx, vpp); err != nil {
		return 0, err
	}
	out, err := cliOf(vpp, "show runtime")
	if err != nil {
		return 0, err
	}
	for _, n := range parseRuntime(out) {
		if n.name == "contiv-ip4-input" && n.vectors >= int64(limit) {
			return n.clocks, nil
		}
	}
	return 0, fmt.Errorf("contiv-ip4-input did not get %d packets:\n%s", limit, out)
}

func cliOf(vpp *vpptest.VPP, format string, args ...any) (string, error) {
	out, err := vpp.CLI(fmt.Sprintf(format, args...))
	if err == nil && strings.Contains(out, "unknown input") {
		err = errors.New(out)
	}
	return out, err
}

// generated waits until the stream has been sent.
func generated(ctx context.Context, vpp *vpptest.VPP) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return poll.Until(ctx, 50*time.Millisecond, func() error {
		out, err := vpp.CLI("show packet-generator")
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "s" && f[1] == "Yes" {
				return errors.New("packets are still being generated")
			}
		}
		return nil
	})
}
