package intdataplane

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/nsdo"
)

// These tests program a real kernel, in separate namespaces, once with each backend.

// node is a driver on the host of a test network. The host has no routes to pods except those of the driver.
type node struct {
	*tabletest.Net
	t      testing.TB
	config Config
	d      *InternalDataplane

	serving sync.WaitGroup // processes in pods

	mu     sync.Mutex
	status map[string]string // by workload, or host endpoint
}

// onBothBackends runs a test on each backend, on a network with three pods.
func onBothBackends(t *testing.T, config Config, test func(t *testing.T, n *node)) {
	tabletest.NeedRoot(t)
	t.Parallel() // each has separate namespaces, and waits most of the time
	for _, backend := range []string{rules.BackendNFT, rules.BackendIptables} {
		t.Run(backend, func(t *testing.T) {
			if backend == rules.BackendIptables {
				if _, err := exec.LookPath("iptables-restore"); err != nil {
					t.Skip("SKIPPED: iptables is not installed")
				}
			}
			t.Parallel()
			n := &node{Net: tabletest.NewNet(t, tabletest.Options{NoRoutes: true}), t: t, config: config}
			n.config.IPv6Enabled = true
			n.config.RulesConfig.Backend = backend
			n.config.RulesConfig.Hostname = "node1"
			n.start()
			t.Cleanup(func() { n.stop() })
			test(t, n)
		})
	}
}

// start starts a new driver, as a new process would.
func (n *node) start() {
	n.t.Helper()
	n.startWith(func(*InternalDataplane) {})
}

// startWith calls prepare with the driver before the driver starts.
func (n *node) startWith(prepare func(*InternalDataplane)) {
	n.t.Helper()
	d, err := New(n.config, Options{NS: n.Host.NS, RetryInterval: 500 * time.Millisecond, RouteGrace: time.Second})
	if err != nil {
		n.t.Fatal(err)
	}
	n.d, n.status = d, map[string]string{}
	prepare(d)
	d.Start()
	d.jobs.Go("test: status", func(context.Context) error {
		for {
			msg, err := d.RecvMessage()
			if err != nil {
				return nil
			}
			n.note(msg)
		}
	})
}

func (n *node) note(msg any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch msg := msg.(type) {
	case *proto.WorkloadEndpointStatusUpdate:
		n.status[msg.GetId().GetWorkloadId()] = msg.GetStatus().GetStatus()
	case *proto.WorkloadEndpointStatusRemove:
		delete(n.status, msg.GetId().GetWorkloadId())
	case *proto.HostEndpointStatusUpdate:
		n.status[msg.GetId().GetEndpointId()] = msg.GetStatus().GetStatus()
	}
}

func (n *node) statusOf(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.status[name]
}

func (n *node) stop() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.d.Stop(ctx); err != nil {
		n.t.Errorf("stop: %v", err)
	}
}

// apply sends messages and waits until they are applied.
func (n *node) apply(msgs ...any) {
	n.t.Helper()
	if err := n.tryApply(msgs...); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) tryApply(msgs ...any) error {
	for _, msg := range msgs {
		if err := n.d.SendMessage(msg); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return n.d.Flush(ctx)
}

// up waits until the endpoints have the status "up".
func (n *node) up(names ...string) {
	n.t.Helper()
	for _, name := range names {
		eventually(n.t, name+" up", func() bool { return n.statusOf(name) == "up" })
	}
}

// pod returns the endpoint of pod i (from 1); its profile allows everything.
func (n *node) pod(i int, change ...func(*proto.WorkloadEndpoint)) *proto.WorkloadEndpointUpdate {
	pod := n.Pods[i-1]
	ep := &proto.WorkloadEndpoint{State: "active", Name: pod.Iface, Mac: pod.MAC, ProfileIds: []string{"open"},
		Ipv4Nets: []string{pod.Addr(table.IPv4).String() + "/32"}, Ipv6Nets: []string{pod.Addr(table.IPv6).String() + "/128"}}
	for _, f := range change {
		f(ep)
	}
	return &proto.WorkloadEndpointUpdate{Id: wlID(fmt.Sprintf("pod%d", i)), Endpoint: ep}
}

// addr returns pod i's address.
func (n *node) addr(i int, f table.Family) netip.Addr { return n.Pods[i-1].Addr(f) }

// run runs a command on the host and returns its output.
func (n *node) run(name string, args ...string) string {
	n.t.Helper()
	return runIn(n.t, n.Host.NS, name, args...)
}

// set writes a kernel parameter of the host; the path begins after /proc/sys.
func (n *node) set(path, value string) {
	n.t.Helper()
	if err := n.Host.NS.Do(func() error { return os.WriteFile("/proc/sys/"+path, []byte(value), 0) }); err != nil {
		n.t.Fatal(err)
	}
}

// get reads a kernel parameter of the host.
func (n *node) get(path string) string {
	n.t.Helper()
	var value []byte
	if err := n.Host.NS.Do(func() (err error) {
		value, err = os.ReadFile("/proc/sys/" + path)
		return err
	}); err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}

// kernel returns all of our objects in the host's kernel, see kernelText.
func (n *node) kernel() string {
	n.t.Helper()
	text := kernelText(n.t, n.Host.NS, n.config.RulesConfig.Backend)
	for _, family := range []string{"-4", "-6"} {
		text += "\n" + n.run("ip", family, "route", "show", "proto", "202")
	}
	return text
}

// kernelText returns the rules and sets of a namespace, in a form that does not depend on their history.
func kernelText(t testing.TB, ns *nsdo.Namespace, backend string) string {
	t.Helper()
	var lines []string
	add := func(text string) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if head, _, cut := strings.Cut(line, " ["); cut && strings.HasPrefix(line, ":") {
				line = head
			}
			if line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
	}
	if backend == rules.BackendNFT {
		add(strings.Join(nftBlocks(runIn(t, ns, "nft", "-s", "list", "ruleset")), "\n"))
		return strings.Join(lines, "\n")
	}
	for _, cmd := range []string{"iptables-save", "ip6tables-save"} {
		var blocks []string // only rules of the same chain keep their order
		for line := range strings.Lines(runIn(t, ns, cmd)) {
			if strings.HasPrefix(line, ":") || strings.HasPrefix(line, "*") {
				blocks = append(blocks, line)
			} else {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(blocks)
		add(strings.Join(blocks, ""))
	}
	sets := strings.Split(runIn(t, ns, "ipset", "save"), "\n")
	slices.Sort(sets)
	add(strings.Join(sets, "\n"))
	return byChain(lines)
}

// byChain sorts rules by chain; rules of the same chain keep their order.
func byChain(lines []string) string {
	key := func(line string) string {
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "-A" {
			return fields[1]
		}
		return line
	}
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return line == "" || strings.HasPrefix(line, "#") ||
			line == "COMMIT"
	})
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(key(a), key(b)) })
	return strings.Join(lines, "\n")
}

// runIn runs a command in a namespace and returns its output.
func runIn(t testing.TB, ns *nsdo.Namespace, name string, args ...string) string {
	t.Helper()
	var out []byte
	err := ns.Do(func() (err error) {
		out, err = exec.Command(name, args...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// nftBlocks returns the chains, sets and maps of a listing, sorted, since they are listed in the order of their creation.
func nftBlocks(listing string) []string {
	var blocks []string
	table, block := "", ""
	for line := range strings.Lines(listing) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(line, "table "):
			table = line
		case line == "}", line == "": // there is no empty line before the first block
		case line == "\t}":
			blocks, block = append(blocks, table+"\n"+block), ""
		default:
			block += line + "\n"
		}
	}
	slices.Sort(blocks)
	return blocks
}

func bothFamilies(each func(f table.Family)) {
	each(table.IPv4)
	each(table.IPv6)
}

// open returns messages with three pods that may do everything.
func (n *node) open() []any {
	return []any{openProfile(), n.pod(1), n.pod(2), n.pod(3), &proto.InSync{}}
}

func TestKernelPolicyMatrix(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		peers := &proto.IPSetUpdate{Id: "pods", Type: proto.IPSetUpdate_NET, Members: []string{n.addr(1, 4).String() + "/32",
			n.addr(1, 6).String() + "/128"}}
		web := policy("web", &proto.Rule{Action: "allow", SrcIpSetIds: []string{"pods"}, Protocol: udp(), DstPorts: ports(80)},
			&proto.Rule{Action: "pass", Protocol: udp(), DstPorts: ports(90)})
		second := &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "second", Name: "deny-3"},
			Policy: &proto.Policy{InboundRules: []*proto.Rule{
				{Action: "deny", SrcNet: []string{n.addr(3, 4).String() + "/32", n.addr(3, 6).String() + "/128"}}, {Action: "next-tier"}}}}
		tiers := withTiers(ingress("web"), &proto.TierInfo{Name: "second", IngressPolicies: []string{"deny-3"}})
		closed := func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = nil }
		n.apply(openProfile(), peers, web, second, n.pod(1), n.pod(2, tiers), n.pod(3), &proto.InSync{})
		n.up("pod1", "pod2", "pod3")
		bothFamilies(func(f table.Family) {
			two, out := n.addr(2, f), n.Outside.Addr(f)
			n.Expect(t,
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(two, 80), Why: "allowed by the set"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(two, 80), Why: "not in the set: end of tier"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(two, 90), Why: "passed, passed, profile"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(two, 90), Why: "passed, denied by the second tier"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].TCP(two, 80), Why: "another protocol"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(two, 80), Why: "from outside"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[1].TCP(out, 80), Why: "egress by profile"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(n.addr(1, f), 80), Why: "open pod"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Host.UDP(two, 7), Why: "the node may always reach its workloads"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].TCP(n.Host.Addr(f), 80),
					Why: "workload to node: EndpointToHostAction"})
		})
		n.apply(n.pod(2, closed), &proto.IPSetDeltaUpdate{Id: "pods", AddedMembers: []string{n.addr(3, 4).String() + "/32"}})
		bothFamilies(func(f table.Family) {
			n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, f), 80), Why: "no policy, no profile"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[1].UDP(n.Outside.Addr(f), 80), Why: "no policy, no profile, egress"})
		})
		n.apply(n.pod(2, tiers))
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[2].UDP(n.addr(2, 4), 80), Why: "now in the set"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(n.addr(2, 6), 80), Why: "the other family is not"})
	})
}

func udp() *proto.Protocol {
	return &proto.Protocol{NumberOrName: &proto.Protocol_Name{Name: "udp"}}
}

func ports(list ...int32) []*proto.PortRange {
	var out []*proto.PortRange
	for _, p := range list {
		out = append(out, &proto.PortRange{First: p, Last: p})
	}
	return out
}

func TestKernelUnknownInterfaceIsCutOff(t *testing.T) {
	onBothBackends(t, Config{RulesConfig: rules.Config{EndpointToHostAction: "ACCEPT"}}, func(t *testing.T, n *node) {
		n.apply(openProfile(), n.pod(1), n.pod(2), &proto.InSync{})
		n.up("pod1", "pod2")
		// A pod whose endpoint was not announced, with a route of another program.
		bothFamilies(func(f table.Family) {
			a := n.addr(3, f)
			n.run("ip", "route", "add", fmt.Sprintf("%s/%d", a, a.BitLen()), "dev", n.Pods[2].Iface)
			n.run("ip", "neigh", "replace", a.String(), "lladdr", n.Pods[2].MAC, "dev", n.Pods[2].Iface, "nud", "permanent")
			n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(n.addr(1, f), 80), Why: "from it to a pod"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(n.Outside.Addr(f), 80), Why: "from it to outside"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[2].UDP(n.Host.Addr(f), 80), Why: "from it to the node"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(a, 80), Why: "to it"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.Host.Addr(f), 80), Why: "a known pod to the node"})
		})
		n.apply(n.pod(3))
		n.up("pod3")
		bothFamilies(func(f table.Family) {
			n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[2].UDP(n.addr(1, f), 80), Why: "announced"})
		})
	})
}

func TestKernelHostEndpoint(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		uplink := n.Outside.Iface
		ssh := policy("in", tcpPort("allow", 443))
		n.apply(append(n.open(), ssh, hostEndpoint("up", uplink, hostPolicy("in")))...)
		eventually(t, "host endpoint up", func() bool { return n.statusOf("up") == "up" })
		n.up("pod1")
		bothFamilies(func(f table.Family) {
			host := n.Host.Addr(f)
			n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(host, 443), Why: "allowed"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.TCP(host, 80), Why: "denied"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(host, 22), Why: "failsafe in"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Host.TCP(n.Outside.Addr(f), 2379), Why: "failsafe out"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(n.addr(1, f), 80), Why: "forwarded"})
		})
		n.apply(hostGone("up"))
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(n.Host.Addr(4), 80), Why: "endpoint gone"})
	})
}

func TestKernelUntrackedAndPreDNAT(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		both := func(rules ...*proto.Rule) *proto.Policy {
			return &proto.Policy{InboundRules: rules, OutboundRules: rules}
		}
		u := &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Name: "u"}, Policy: both(&proto.Rule{Action: "deny", Protocol: udp(),
			DstPorts: ports(81)},
			&proto.Rule{Action: "allow", Protocol: udp(), DstPorts: ports(80)}, &proto.Rule{Action: "allow", Protocol: udp(),
				SrcPorts: ports(80)})}
		pre := policy("pre", &proto.Rule{Action: "deny", Protocol: udp(), DstPorts: ports(91)})
		tiers := []*proto.TierInfo{{Name: "default", IngressPolicies: []string{"u"}, EgressPolicies: []string{"u"}}}
		n.apply(append(n.open(), u, pre, hostEndpoint("up", n.Outside.Iface, func(ep *proto.HostEndpoint) {
			ep.UntrackedTiers, ep.ProfileIds = tiers, []string{"open"}
		}), hostEndpoint("all", "*", func(ep *proto.HostEndpoint) { ep.PreDnatTiers = []*proto.TierInfo{ingress("pre")} }))...)
		n.up("pod1")
		bothFamilies(func(f table.Family) {
			host := n.Host.Addr(f)
			n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(host, 80), Why: "untracked, both ways"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(host, 81), Why: "untracked deny"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(host, 90), Why: "by profile"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(host, 91), Why: "before DNAT"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(n.addr(1, f), 91), Why: "before DNAT, forwarded"})
		})
	})
}

func TestKernelMasqueradeAndFloatingIPs(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		external := map[table.Family]netip.Addr{4: addr("172.31.0.9"), 6: addr("fd00:31::9")}
		one := n.pod(1, func(ep *proto.WorkloadEndpoint) {
			ep.Ipv4Nat = []*proto.NatInfo{{ExtIp: external[4].String(), IntIp: n.addr(1, 4).String()}}
			ep.Ipv6Nat = []*proto.NatInfo{{ExtIp: external[6].String(), IntIp: n.addr(1, 6).String()}}
		})
		n.apply(openProfile(), one, n.pod(2), ipPool("four", "10.65.0.0/16", true), ipPool("six", "fd00:65::/64", true),
			&proto.InSync{})
		n.up("pod1", "pod2")
		bothFamilies(func(f table.Family) {
			far := tabletest.Anywhere(f)[0].Addr().Next()
			n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(far, 80), SeenAs: n.Host.Addr(f), Why: "masqueraded"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(2, f), 80), Why: "inside the pool"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.UDP(external[f], 80).ArrivesAt(n.addr(1, f), 80),
					Why: "floating IP from outside"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[1].UDP(external[f], 80).ArrivesAt(n.addr(1, f), 80),
					Why: "floating IP from a pod"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Host.UDP(external[f], 80).ArrivesAt(n.addr(1, f), 80),
					Why: "floating IP from the node"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(external[f], 81).ArrivesAt(n.addr(1, f), 81),
					SeenAs: external[f], Why: "hairpin"})
		})
		n.apply(n.pod(1), ipPool("four", "10.65.0.0/16", false))
		far := tabletest.Anywhere(4)[0].Addr().Next()
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(far, 82), Why: "no longer masqueraded"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.UDP(external[4], 83).ArrivesAt(n.addr(1, 4), 83),
				Why: "no floating IP"})
	})
}

func TestKernelSpoofedSources(t *testing.T) {
	onBothBackends(t, Config{RulesConfig: rules.Config{EndpointToHostAction: "ACCEPT"}}, func(t *testing.T, n *node) {
		n.apply(n.open()...)
		n.up("pod1", "pod2", "pod3")
		// The reverse path check is one of two protections; this tests the other.
		n.set("net/ipv4/conf/"+n.Pods[0].Iface+"/rp_filter", "0")
		bothFamilies(func(f table.Family) {
			n.Expect(t,
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 80).FromAddr(n.addr(2, f)),
					Why: "another pod's address"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(3, f), 80).FromAddr(n.Outside.Addr(f)),
					Why: "outside's address"},
				tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.Host.Addr(f), 80).FromAddr(n.addr(2, f)), Why: "to the node"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.Outside.Addr(f), 80), Why: "its own"})
		})
		n.set("net/ipv4/conf/"+n.Pods[0].Iface+"/rp_filter", "1") // as the driver sets it
		n.apply(n.pod(1, func(ep *proto.WorkloadEndpoint) {
			ep.AllowSpoofedSourcePrefixes = []string{n.Outside.Addr(4).String() + "/32"}
		}))
		n.Expect(t, tabletest.Case{Want: tabletest.Arrive, Probe: n.Pods[0].UDP(n.addr(3, 4), 80).FromAddr(n.Outside.Addr(4)),
			Why: "allowed to"})
	})
}

func TestKernelNothingBeforeInSync(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		before := n.kernel()
		for _, msg := range []any{openProfile(), n.pod(1), n.pod(2), hostEndpoint("up", n.Outside.Iface)} {
			if err := n.d.SendMessage(msg); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(300 * time.Millisecond)
		if after := n.kernel(); after != before {
			t.Errorf("written before InSync:\n%s", difference(before, after))
		}
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Outside.TCP(n.Host.Addr(4), 80), Why: "nothing is filtered yet"})
		n.apply(&proto.InSync{})
		n.up("pod1", "pod2")
		n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Outside.TCP(n.Host.Addr(4), 80), Why: "filtered"},
			tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].TCP(n.addr(2, 4), 80), Why: "reachable"})
	})
}

func TestKernelFlushedByAnother(t *testing.T) {
	onBothBackends(t, Config{IptablesRefreshInterval: 500 * time.Millisecond, RouteRefreshInterval: 500 * time.Millisecond},
		func(t *testing.T, n *node) {
			n.apply(openProfile(), n.pod(1), n.pod(2, func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = nil }), &proto.InSync{})
			n.up("pod1", "pod2")
			want := n.kernel()
			if n.config.RulesConfig.Backend == rules.BackendNFT {
				n.run("nft", "flush", "ruleset")
			} else {
				for _, cmd := range []string{"iptables", "ip6tables"} {
					for _, l := range []string{"raw", "mangle", "nat", "filter"} {
						n.run(cmd, "-t", l, "-F")
					}
				}
			}
			n.run("ip", "route", "flush", "proto", "202")
			healed := func() bool { return n.kernel() == want }
			for end := time.Now().Add(20 * time.Second); !healed(); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not healed:\n%s", difference(want, n.kernel()))
				}
			}
			n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, 4), 80), Why: "default deny"},
				tabletest.Case{Want: tabletest.Pass, Probe: n.Host.UDP(n.addr(1, 4), 80), Why: "route"})
		})
}

// guarded sends one stream that must arrive (except for the given number of lost packets), and one that must not arrive at all, while
// during runs.
func (n *node) guarded(lost int, during func()) {
	n.t.Helper()
	allowed := n.Stream(n.t, n.Pods[0].UDP(n.addr(2, 4), 80), time.Millisecond)
	allowed6 := n.Stream(n.t, n.Pods[0].UDP(n.addr(2, 6), 80), time.Millisecond)
	denied := n.Stream(n.t, n.Pods[0].UDP(n.addr(2, 4), 99), time.Millisecond)
	during()
	eventually(n.t, "the streams have sent enough", func() bool {
		return min(allowed.Sent(), allowed6.Sent(),
			denied.Sent()) >= 100
	})
	for name, stream := range map[string]*tabletest.Stream{"IPv4": allowed, "IPv6": allowed6} {
		if sent, arrived := stream.Stop(); sent-arrived > lost {
			n.t.Errorf("%s stream: %d of %d packets arrived", name, arrived, sent)
		}
	}
	if sent, arrived := denied.Stop(); arrived > 0 {
		n.t.Errorf("denied stream: %d of %d packets arrived", arrived, sent)
	}
}

// web returns messages with pods; the second pod accepts only UDP to port 80.
func (n *node) web() []any {
	return []any{openProfile(), policy("web", &proto.Rule{Action: "allow", Protocol: udp(), DstPorts: ports(80)}),
		n.pod(1), n.pod(2, withTiers(ingress("web"))), n.pod(3), ipPool("four", "10.65.0.0/16", true), ipSet("s", "10.0.0.1",
			"fd00::1"), &proto.InSync{}}
}

func TestKernelRestartUnderTraffic(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(n.web()...)
		n.up("pod1", "pod2", "pod3")
		before := n.kernel()
		n.guarded(0, func() {
			for range 3 {
				n.stop()
				n.start()
				n.apply(n.web()...)
				n.up("pod1", "pod2", "pod3")
				dump, err := n.d.Dump()
				if err != nil || dump.Writes != 0 {
					t.Errorf("restart: %v, %d objects were written, want none", err, dump.Writes)
				}
			}
		})
		if after := n.kernel(); after != before {
			t.Errorf("restarts changed the kernel:\n%s", difference(before, after))
		}
	})
}

func TestKernelPolicySwapsUnderTraffic(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(n.web()...)
		n.up("pod1", "pod2", "pod3")
		allow := &proto.Rule{Action: "allow", Protocol: udp(), DstPorts: ports(80)}
		n.guarded(0, func() {
			for i := range swaps(n.config.RulesConfig.Backend) {
				// The same policy in many forms, so that no rule keeps its position.
				set := ipSet(fmt.Sprintf("set%d", i), n.addr(1, 4).String(), n.addr(1, 6).String())
				forms := [][]*proto.Rule{
					{allow},
					{tcpPort("allow", int32(i+1)), {Action: "allow", Protocol: udp(), DstPorts: ports(80, 81, 82)}},
					{{Action: "deny", Protocol: udp(), DstPorts: ports(99)}, allow},
					{{Action: "allow", Protocol: udp(), DstPorts: ports(80), SrcIpSetIds: []string{set.GetId()}}},
				}
				n.apply(set, policy("web", forms[i%len(forms)]...), n.pod(3, withTiers(ingress("web"))))
				name := fmt.Sprintf("web%d", i)
				n.apply(policy(name, allow), n.pod(2, withTiers(ingress(name))), n.pod(3))
				n.apply(n.pod(2, withTiers(ingress("web"))), noPolicy(name))
			}
		})
	})
}

// swaps returns the number of rounds of three applies; CONTIV_POLICY_SWAPS sets it.
func swaps(backend string) int {
	if n, err := strconv.Atoi(os.Getenv("CONTIV_POLICY_SWAPS")); err == nil && n > 0 {
		return n
	}
	return map[string]int{rules.BackendNFT: 100, rules.BackendIptables: 8}[backend]
}

func TestKernelSetOverItsLimit(t *testing.T) {
	onBothBackends(t, Config{MaxIPSetSize: 4}, func(t *testing.T, n *node) {
		one, three := n.addr(1, 4).String(), n.addr(3, 4).String()
		n.apply(openProfile(), ipSet("peers", one), policy("p", fromSet("allow", "peers")), policy("q", fromSet("deny",
			"peers"), &proto.Rule{Action: "allow"}),
			n.pod(1), n.pod(2, withTiers(ingress("p"))), n.pod(3, withTiers(ingress("q"))), &proto.InSync{})
		n.up("pod1", "pod2", "pod3")
		usable := []tabletest.Case{{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(2, 4), 80), Why: "allowed by the set"},
			{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(3, 4), 80), Why: "denied by the set"},
			{Want: tabletest.Pass, Probe: n.Pods[1].UDP(n.addr(3, 4), 80), Why: "not denied"}}
		n.Expect(t, usable...)
		n.apply(&proto.IPSetDeltaUpdate{Id: "peers", AddedMembers: []string{three, "10.0.0.1", "10.0.0.2", "10.0.0.3"}})
		n.Expect(t, tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, 4), 81), Why: "allows nothing"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[1].UDP(n.addr(3, 4), 81), Why: "denies everything"},
			tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[1].UDP(n.addr(1, 4), 81), Why: "others go on"})
		n.apply(&proto.IPSetDeltaUpdate{Id: "peers", RemovedMembers: []string{three, "10.0.0.1"}})
		usable[0].Probe, usable[1].Probe, usable[2].Probe = n.Pods[0].UDP(n.addr(2, 4), 82), n.Pods[0].UDP(n.addr(3, 4), 82),
			n.Pods[1].UDP(n.addr(3, 4), 82)
		n.Expect(t, usable...)
	})
}

func TestKernelInterfaceVanishes(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(openProfile(), n.pod(1), n.pod(2), &proto.InSync{})
		n.up("pod1", "pod2")
		for range 5 {
			// Announced, and removed before or while it is programmed.
			if err := n.d.SendMessage(n.pod(3)); err != nil {
				t.Fatal(err)
			}
			n.run("ip", "link", "add", "califlap", "type", "veth", "peer", "name", "flap")
			n.run("ip", "link", "set", "califlap", "up")
			n.run("ip", "link", "set", "flap", "up")
			if err := n.d.SendMessage(endpoint("flap", "califlap", 77)); err != nil {
				t.Fatal(err)
			}
			n.run("ip", "link", "del", "califlap")
			n.apply(gone("pod3"))
		}
		n.run("ip", "link", "del", n.Pods[1].Iface)
		eventually(t, "pod2 not up", func() bool { s := n.statusOf("pod2"); return s == "down" || s == "error" })
		eventually(t, "flap not up", func() bool { s := n.statusOf("flap"); return s == "down" || s == "error" })
		n.apply(n.pod(3), gone("flap"))
		n.up("pod3")
		bothFamilies(func(f table.Family) {
			n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(3, f), 80), Why: "others go on"})
		})
	})
}

func TestKernelTwoEndpointsOnOneInterface(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		old := n.pod(2)
		fresh := n.pod(2, withTiers(ingress("p")))
		fresh.Id = wlID("pod2-fresh")
		n.apply(openProfile(), policy("p", tcpPort("allow", 80)), n.pod(1), old, &proto.InSync{})
		n.up("pod1", "pod2")
		n.apply(fresh)
		eventually(t, "the fresh one waits", func() bool { return n.statusOf("pod2-fresh") == "down" })
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].TCP(n.addr(2, 4), 81), Why: "the old one's policy"})
		n.apply(gone("pod2"))
		n.up("pod2-fresh")
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].TCP(n.addr(2, 4), 80), Why: "the fresh one's policy"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].TCP(n.addr(2, 4), 81), Why: "the fresh one's policy"})
	})
}

func TestKernelUninstall(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		before := n.kernel()
		n.apply(n.web()...)
		n.up("pod1")
		if err := n.d.Uninstall(context.Background()); err != nil {
			t.Fatal(err)
		}
		after := n.kernel()
		if strings.Contains(after, "cali") || strings.Contains(after, "contiv") {
			t.Errorf("left:\n%s", difference(before, after))
		}
		// A driver of a later process removes leftovers too.
		n.start()
		n.apply(n.web()...)
		n.stop()
		n.start()
		if err := n.d.Uninstall(context.Background()); err != nil {
			t.Fatal(err)
		}
		if after := n.kernel(); strings.Contains(after, "cali") || strings.Contains(after, "contiv") {
			t.Errorf("left by an earlier process:\n%s", after)
		}
	})
}

func TestKernelBackendSwitch(t *testing.T) {
	onBothBackends(t, Config{}, func(t *testing.T, n *node) {
		n.apply(n.web()...)
		n.up("pod1", "pod2", "pod3")
		other := rules.BackendIptables
		if n.config.RulesConfig.Backend == other {
			other = rules.BackendNFT
		}
		// A packet that is being processed by a table of nftables while the table is removed finds its maps empty.
		n.guarded(2, func() {
			n.stop()
			n.config.RulesConfig.Backend = other
			n.start()
			n.apply(n.web()...)
			n.up("pod1", "pod2", "pod3")
		})
		eventually(t, "the other backend's rules are gone", func() bool {
			nft, ipt := n.run("nft", "list", "tables"), n.run("iptables-save")
			return strings.Contains(nft, "contiv") == (other == rules.BackendNFT) && strings.Contains(ipt,
				"cali-") == (other == rules.BackendIptables)
		})
		n.Expect(t, tabletest.Case{Want: tabletest.Pass, Probe: n.Pods[0].UDP(n.addr(2, 4), 80), Why: "allowed"},
			tabletest.Case{Want: tabletest.Drop, Probe: n.Pods[0].UDP(n.addr(2, 4), 81), Why: "denied"})
	})
}

func TestKernelInsertMode(t *testing.T) {
	tabletest.NeedRoot(t)
	for mode, ours := range map[string]int{"insert": 0, "append": 1} {
		n := &node{Net: tabletest.NewNet(t, tabletest.Options{NoRoutes: true}), t: t, config: Config{IptablesInsertMode: mode,
			RulesConfig: rules.Config{Backend: rules.BackendIptables}}}
		n.run("iptables", "-A", "FORWARD", "-p", "udp", "--dport", "9", "-j", "ACCEPT")
		n.start()
		n.apply(&proto.InSync{})
		var list []string
		for line := range strings.Lines(n.run("iptables", "-S", "FORWARD")) {
			if strings.HasPrefix(line, "-A") {
				list = append(list, line)
			}
		}
		if len(list) != 2 || !strings.Contains(list[ours], "cali-FORWARD") {
			t.Errorf("%s: %q", mode, list)
		}
		n.stop()
	}
}
