package intdataplane

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/nsdo"
)

// nsName returns a name that no other test on the machine uses.
func nsName(t testing.TB, name string) string {
	h := fnv.New32a()
	h.Write([]byte(t.Name()))
	return fmt.Sprintf("intdp-%d-%x-%s", os.Getpid(), h.Sum32(), name)
}

// netns creates a namespace that is removed with the test.
func netns(t testing.TB, name string) *nsdo.Namespace {
	t.Helper()
	tabletest.NeedRoot(t)
	return nettest.Named(t, nsName(t, name)).Namespace
}

// stepper is a driver on a real kernel whose loop does not run: step does the work of the loop, without its throttle. It receives no
// interfaces except those that the test sends.
type stepper struct {
	t testing.TB
	d *InternalDataplane
}

func newStepper(t testing.TB, config Config, ns *nsdo.Namespace) *stepper {
	t.Helper()
	config.RulesConfig.Hostname = "node1"
	d, err := New(config, Options{NS: ns})
	if err != nil {
		t.Fatal(err)
	}
	return &stepper{t, d}
}

func (s *stepper) step(msgs ...any) {
	s.t.Helper()
	var managers []Manager
	for _, family := range s.d.families {
		managers = append(managers, family.managers()...)
	}
	managers = append(managers, s.d.vxlan, routeLinks{s.d.routes}, s.d.services)
	for _, msg := range msgs {
		for _, m := range managers {
			m.OnUpdate(msg)
		}
	}
	for _, m := range managers {
		if err := m.CompleteDeferredWork(); err != nil {
			s.t.Fatal(err)
		}
	}
	for {
		result := s.d.apply(context.Background())
		if result.Err != nil || len(s.d.progress.broken)+len(s.d.progress.isolated) > 0 {
			s.t.Fatalf("%v, broken: %v, isolated: %v", result.Err, s.d.progress.broken, s.d.progress.isolated)
		}
		if result.Again != wire.GraceLook {
			return
		}
		wire.WaitForReaders() // objects that are removed after a grace period still exist
	}
}

func (s *stepper) stop() {
	if err := s.d.Stop(context.Background()); err != nil {
		s.t.Error(err)
	}
}

// TestKernelPermutations: a driver that goes through a sequence of worlds has the same kernel state as a driver that is started again in
// each world on the state of the last one, and as a driver that starts in that world on an empty kernel.
func TestKernelPermutations(t *testing.T) {
	var worlds []world
	all := scenarios()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, w := range all[name] {
			w = maps.Clone(w)
			// The interfaces and nodes of these keys do not exist here.
			maps.DeleteFunc(w, func(key string, _ any) bool {
				return strings.HasPrefix(key, "link") || strings.HasPrefix(key, "vtep node1")
			})
			worlds = append(worlds, w)
		}
	}
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			config := permuted
			config.RulesConfig.Backend = backend
			config.RulesConfig.IPIPEnabled = false
			walked, restarted := netns(t, "walk"), netns(t, "restart")
			walker := newStepper(t, config, walked)
			defer walker.stop()
			random := rand.New(rand.NewPCG(42, 1))
			before := world{}
			for i := range 14 {
				next := worlds[random.IntN(len(worlds))]
				msgs := change(before, next, random)
				random.Shuffle(len(msgs), func(i, j int) { msgs[i], msgs[j] = msgs[j], msgs[i] })
				walker.step(msgs...)
				before = next
				fresh := newStepper(t, config, restarted)
				fresh.step(change(nil, next, random)...)
				fresh.stop()
				got, want := kernelText(t, walked, backend), kernelText(t, restarted, backend)
				if i == 13 {
					never := netns(t, "fresh")
					s := newStepper(t, config, never)
					s.step(change(nil, next, random)...)
					s.stop()
					if direct := kernelText(t, never, backend); direct != want {
						t.Errorf("restarts differ from a start:\n%s", difference(direct, want))
					}
				}
				if got != want {
					t.Fatalf("step %d: the kernel differs from that of a restarted driver:\n%s", i, difference(want, got))
				}
			}
		})
	}
}

// BenchmarkEndpointAdd adds a pod on a node with 200 others and 200 policies: chains, dispatch and routes.
func BenchmarkEndpointAdd(b *testing.B) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		b.Run(backend, func(b *testing.B) {
			s := newStepper(b, Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: backend}}, netns(b, "bench"))
			defer s.stop()
			msgs := []any{openProfile()}
			for i := range 200 {
				name := fmt.Sprintf("p%d", i)
				var list []*proto.Rule
				for port := range 10 {
					list = append(list, tcpPort("allow", int32(port+1)))
				}
				msgs = append(msgs, policy(name, list...), endpoint(name, fmt.Sprintf("cali%d", i), i+1, spread200(i),
					withTiers(ingress(name))))
			}
			s.step(msgs...)
			b.ResetTimer()
			for i := range b.N {
				s.step(endpoint("new", "calinew", 250, spread200(1000+i), withTiers(ingress(fmt.Sprintf("p%d", i%200)))))
				b.StopTimer()
				s.step(gone("new"))
				b.StartTimer()
			}
		})
	}
}

// BenchmarkStart is a node with 500 pods and 5000 policies of 10 rules, in both families: the first start and, in ms/restart, a start that
// finds everything in place.
func BenchmarkStart(b *testing.B) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		b.Run(backend, func(b *testing.B) {
			msgs := []any{openProfile()}
			for i := range 500 {
				var names []string
				for p := range 10 {
					name := fmt.Sprintf("policy-%d-%d", i, p)
					var list []*proto.Rule
					for port := range 10 {
						list = append(list, tcpPort("allow", int32(port+1)))
					}
					names = append(names, name)
					msgs = append(msgs, policy(name, list...))
				}
				msgs = append(msgs, endpoint(fmt.Sprintf("pod%d", i), fmt.Sprintf("cali%d", i), 1, spread200(i),
					withTiers(ingress(names...))))
			}
			var restart time.Duration
			for i := range b.N {
				b.StopTimer()
				config, ns := Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: backend}}, netns(b,
					fmt.Sprintf("bench%d-%d", b.N, i))
				b.StartTimer()
				s := newStepper(b, config, ns)
				s.step(msgs...)
				b.StopTimer()
				s.stop()
				began := time.Now()
				again := newStepper(b, config, ns)
				again.step(msgs...)
				restart += time.Since(began)
				if again.d.progress.writes > 0 {
					b.Errorf("the restart wrote %d objects", again.d.progress.writes)
				}
				again.stop()
			}
			b.ReportMetric(float64(restart.Milliseconds())/float64(b.N), "ms/restart")
		})
	}
}

// spread200 gives endpoint i unique addresses.
func spread200(i int) func(*proto.WorkloadEndpoint) {
	return func(ep *proto.WorkloadEndpoint) {
		ep.Ipv4Nets = []string{fmt.Sprintf("10.66.%d.%d/32", i/250%250, i%250)}
		ep.Ipv6Nets = []string{fmt.Sprintf("fd00:66::%x/128", i)}
	}
}

// BenchmarkSetMember adds one member to a set of 1000.
func BenchmarkSetMember(b *testing.B) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		b.Run(backend, func(b *testing.B) {
			s := newStepper(b, Config{IPv6Enabled: true, RulesConfig: rules.Config{Backend: backend}}, netns(b, "bench"))
			defer s.stop()
			set := ipSet("s")
			for i := range 1000 {
				set.Members = append(set.Members, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
			}
			s.step(openProfile(), set, policy("p", fromSet("allow", "s")), endpoint("a", "calia", 1, withTiers(ingress("p"))))
			b.ResetTimer()
			for i := range b.N {
				member := []string{fmt.Sprintf("10.1.%d.%d", i/250%250, i%250)}
				s.step(&proto.IPSetDeltaUpdate{Id: "s", AddedMembers: member})
				b.StopTimer()
				s.step(&proto.IPSetDeltaUpdate{Id: "s", RemovedMembers: member})
				b.StartTimer()
			}
		})
	}
}

// twoNodes returns two nodes with a pod each, connected by one link:
//
//	pod a eth0 ── calia (node 1) eth0 ── eth0 (node 2) calib ── eth0 pod b
func twoNodes(t *testing.T) (nodes, pods [2]*nsdo.Namespace) {
	tabletest.NeedRoot(t)
	var hosts, inside [2]*nettest.NS
	for i, name := range []string{"1", "2"} {
		hosts[i], inside[i] = nettest.Named(t, nsName(t, "node"+name)), nettest.Named(t, nsName(t, "pod"+name))
		nodes[i], pods[i] = hosts[i].Namespace, inside[i].Namespace
	}
	hosts[0].Batch("link add eth0 type veth peer name eth0 netns " + hosts[1].Name)
	for i, suffix := range []string{"a", "b"} {
		n := i + 1
		host := "cali" + suffix
		hosts[i].Batch("link set eth0 up", fmt.Sprintf("addr add 192.0.2.%d/24 dev eth0", n),
			fmt.Sprintf("link add %s address 02:00:00:00:00:ff type veth peer name eth0 address 02:00:00:00:00:0%d netns %s",
				host, n, inside[i].Name),
			"link set "+host+" up")
		inside[i].Batch("link set eth0 up", fmt.Sprintf("addr add 10.65.%d.%d/32 dev eth0", i, n),
			"route add 169.254.1.1 dev eth0 scope link", "route add default via 169.254.1.1 dev eth0",
			"neigh add 169.254.1.1 lladdr 02:00:00:00:00:ff dev eth0 nud permanent",
			fmt.Sprintf("addr add fd00:65:%d::%d/128 dev eth0 nodad", i, n), "route add ::/0 via fe80::1 dev eth0",
			"neigh add fe80::1 lladdr 02:00:00:00:00:ff dev eth0 nud permanent")
	}
	return nodes, pods
}

// startNode starts the driver of node i (0 or 1) of twoNodes.
func startNode(t *testing.T, ns *nsdo.Namespace, i int, backend string) *InternalDataplane {
	t.Helper()
	config := Config{IPv6Enabled: true, RouteRefreshInterval: 200 * time.Millisecond, RulesConfig: rules.Config{Backend: backend,
		Hostname: fmt.Sprintf("node%d", i+1), VXLANEnabled: true}}
	d, err := New(config, Options{NS: ns, RetryInterval: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// report sends messages and waits until they are applied.
func report(t *testing.T, d *InternalDataplane, msgs ...any) {
	t.Helper()
	for _, msg := range msgs {
		if err := d.SendMessage(msg); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestKernelRoutesAreLeft: if everything is in place, neither a restart nor a comparison of routes writes a route, neighbour or forwarding
// entry, not even one that is restored at once: packets would be lost meanwhile.
func TestKernelRoutesAreLeft(t *testing.T) {
	nodes, _ := twoNodes(t)
	d := startNode(t, nodes[0], 0, rules.BackendNFT)
	report(t, d, nodeMessages(0)...)
	eventually(t, "the way to the other node", func() bool {
		routes := runIn(t, nodes[0], "ip", "route") + runIn(t, nodes[0], "ip", "-6", "route")
		neighs := runIn(t, nodes[0], "ip", "neigh", "show", "dev", "contiv-vxlan", "nud", "permanent")
		return strings.Count(routes, "dev contiv-vxlan proto 202") == 2 && strings.Count(neighs, "PERMANENT") == 2
	})
	reported := monitor(t, nodes[0])
	if err := d.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	d = startNode(t, nodes[0], 0, rules.BackendNFT)
	report(t, d, nodeMessages(0)...)
	time.Sleep(500 * time.Millisecond) // the refresh of routes runs twice
	for _, line := range reported() {
		if strings.Contains(line, "proto 202") || strings.Contains(line, "contiv-vxlan") && strings.Contains(line, "PERMANENT") {
			t.Errorf("written: %s", line)
		}
	}
}

// monitor listens to routes and neighbours of a namespace. The returned function stops it and returns the lines.
func monitor(t *testing.T, ns *nsdo.Namespace) func() []string {
	t.Helper()
	var cmd *exec.Cmd
	lines := make(chan string, 10000)
	if err := ns.Do(func() error {
		cmd = exec.Command("ip", "monitor", "route", "neigh")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		go func() {
			defer close(lines)
			for s := bufio.NewScanner(out); s.Scan(); {
				lines <- s.Text()
			}
		}()
		return cmd.Start()
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended if all went well
	mark := func(addr string) (heard []string) {
		end := time.After(20 * time.Second)
		for again := time.After(0); ; {
			select {
			case line := <-lines:
				if strings.Contains(line, addr+" ") {
					return heard
				}
				heard = append(heard, line)
			case <-again: // it may not have been listening yet
				runIn(t, ns, "ip", "neigh", "replace", addr, "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "permanent")
				runIn(t, ns, "ip", "neigh", "del", addr, "dev", "eth0")
				again = time.After(100 * time.Millisecond)
			case <-end:
				t.Fatal("ip monitor says nothing")
			}
		}
	}
	mark("192.0.2.98")
	return func() []string {
		heard := mark("192.0.2.99")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return heard
	}
}

// TestKernelNodeToNode: pods of two nodes reach each other through VXLAN, and directly if the nodes share a subnet.
func TestKernelNodeToNode(t *testing.T) {
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			nodes, pods := twoNodes(t)
			var drivers [2]*InternalDataplane
			for i := range nodes {
				drivers[i] = startNode(t, nodes[i], i, backend)
				report(t, drivers[i], nodeMessages(i)...)
			}
			ping := func(what, dst string) {
				t.Helper()
				eventually(t, what, func() bool {
					return pods[0].Do(func() error { return exec.Command("ping", "-n", "-c", "1", "-W", "1", dst).Run() }) == nil
				})
			}
			ping("IPv4 by VXLAN", "10.65.1.2")
			ping("IPv6 by VXLAN", "fd00:65:1::2")
			if route := runIn(t, nodes[0], "ip", "route", "get", "10.65.1.2"); !strings.Contains(route, "contiv-vxlan") {
				t.Errorf("route: %s", route)
			}
			if err := pods[0].Do(func() error {
				return exec.Command("ping", "-n", "-c", "1", "-W", "1",
					"10.65.0.9").Run()
			}); err == nil {
				t.Error("an address of this node that no pod has answers")
			}
			for i := range drivers {
				report(t, drivers[i], remote(fmt.Sprintf("10.65.%d.0/24", 1-i), fmt.Sprintf("node%d", 2-i), fmt.Sprintf("192.0.2.%d", 2-i),
					proto.IPPoolType_VXLAN, sameSubnet))
			}
			ping("directly", "10.65.1.2")
			if route := runIn(t, nodes[0], "ip", "route", "get", "10.65.1.2"); !strings.Contains(route, "via 192.0.2.2 dev eth0") {
				t.Errorf("route: %s", route)
			}
		})
	}
}

// nodeMessages returns the messages to node i (0 or 1) of twoNodes.
func nodeMessages(i int) []any {
	msgs := []any{openProfile(), &proto.InSync{}}
	own := endpoint("pod", []string{"calia", "calib"}[i], i+1, func(ep *proto.WorkloadEndpoint) {
		ep.Ipv4Nets = []string{fmt.Sprintf("10.65.%d.%d/32", i, i+1)}
		ep.Ipv6Nets = []string{fmt.Sprintf("fd00:65:%d::%d/128", i, i+1)}
	})
	for n := range 2 {
		name := fmt.Sprintf("node%d", n+1)
		parent := fmt.Sprintf("192.0.2.%d", n+1)
		msgs = append(msgs, &proto.HostMetadataUpdate{Hostname: name, Ipv4Addr: parent},
			vtep(name, fmt.Sprintf("66:00:00:00:00:0%d", n+1), fmt.Sprintf("10.65.%d.0", n), fmt.Sprintf("fd00:65:%d::", n), parent))
		for _, dst := range []string{fmt.Sprintf("10.65.%d.0/24", n), fmt.Sprintf("fd00:65:%d::/64", n)} {
			r := remote(dst, name, parent, proto.IPPoolType_VXLAN)
			if n == i {
				r.Types = proto.RouteUpdate_TYPES_LOCAL_WORKLOAD
			}
			msgs = append(msgs, r)
		}
	}
	return append(msgs, own)
}
