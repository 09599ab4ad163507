package services

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/whoami"
)

const (
	apiAddress = "127.0.0.1:6443"
	// All servers answer at both ports, by TCP and UDP.
	targetPort, otherPort = 8080, 8081
)

// world is two nodes, n1 and n2. Pods a, b and p1 are on n1, c, d and p2 on n2; a to d are servers, p1 and p2 clients. h1 and
// h2 are the nodes' own network namespaces, servers as well; out is a client on the network that connects the nodes.
type world struct {
	*testbed.Cluster
	t    *testing.T
	ctx  context.Context
	mode mode
	fabric
	api *kubeapi.Server
	// sites maps names to the sites of clients and servers, addrs to their addresses (IPv4, IPv6).
	sites  map[string]site
	addrs  map[string][2]netip.Addr
	nodeOf map[string]string // node of each server
	// uplinks are the nodes' addresses on the network that connects them. With VPP they are VPP's, and the hosts have others.
	uplinks [][2]netip.Addr
	members []member
	fakes   *fakeNet                    // only with the fake, instead of the fields below
	spaces  map[string]*netns.Namespace // of sites
	pods    []*testbed.Pod
	proxy   []*netns.Process // kube-proxy
	dir     string
}

// The outside client's addresses, and the networks of external addresses, which are routed to the first node.
var (
	outAddrs     = [2]netip.Addr{netip.MustParseAddr("192.168.16.250"), netip.MustParseAddr("fd00:16::fa")}
	externalNets = [2]string{"203.0.113.0/24", "2001:db8:113::/64"}
)

func newWorld(t *testing.T, m mode) *world {
	t.Helper()
	if m.isFake() {
		turn(t, fakeWorlds)
		return newFakeWorld(t, m)
	}
	return newRealWorld(t, m, fabric{workers: setting(t, workersVariable, 0)})
}

// realWorlds and fakeWorlds bound the number of worlds that exist at the same time. Clusters share nothing with each other, and wait most of
// the time; the fakes share the machine's loopback addresses.
var realWorlds, fakeWorlds = make(chan struct{}, 3), make(chan struct{}, 1)

// turn waits until one more world may exist; the test has it until its end.
func turn(t *testing.T, worlds chan struct{}) {
	worlds <- struct{}{}
	t.Cleanup(func() { <-worlds })
}

// fabric describes how real nodes forward packets: the number of VPP's worker threads, and whether packets between nodes have no overlay.
type fabric struct {
	workers   int
	noOverlay bool
}

// newRealWorld returns a world with real nodes.
func newRealWorld(t *testing.T, m mode, f fabric) *world {
	t.Helper()
	turn(t, realWorlds)
	lifetime := 10*time.Minute + time.Duration(setting(t, roundsVariable, 0))*10*time.Second +
		2*time.Second*time.Duration(setting(t, hammerVariable, 0)/setting(t, rateVariable, 370))
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	w := &world{
		t: t, ctx: ctx, mode: m, fabric: f, api: kubeapi.New(), spaces: map[string]*netns.Namespace{}, nodeOf: map[string]string{},
		sites: map[string]site{}, addrs: map[string][2]netip.Addr{}, dir: t.TempDir(),
	}
	w.must(os.WriteFile(w.kubeconfig(), kubeapi.Kubeconfig(apiAddress), 0o600))
	c, err := testbed.NewCluster(ctx, w.options())
	w.must(err)
	w.Cluster = c
	t.Cleanup(w.close)
	w.outside()
	for i, n := range c.Nodes {
		if !w.mode.realVPP() {
			w.route(n.Namespace)
		}
		// Each rejection is reported; by default the kernel does so once a second.
		w.run(n.Namespace, "sysctl", "-qw", "net.ipv4.icmp_ratelimit=0", "net.ipv6.icmp.ratelimit=0",
			"net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1") // the latter two are set on every Kubernetes node
		w.serveAPI(n.Namespace)
		host := fmt.Sprintf("h%d", i+1)
		w.setSpace(host, n.Namespace)
		w.addrs[host], w.nodeOf[host] = w.hostAddrs(n, i), n.Name
		w.members = append(w.members, realMember{n, w.addrs[host][0], w.writesMetric()})
		w.uplinks = append(w.uplinks, w.nodeAddrs(i))
		node := kubeapi.Node(n.Name, w.addrsOf(host), fmt.Sprintf("10.1.%d.0/24", i+1), fmt.Sprintf("fd10:1:0:%d::/64", i+1))
		node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone%d", i+1)
		w.must(w.api.Put(node))
		w.serve(host)
	}
	for i, n := range c.Nodes {
		start, cancel := context.WithTimeout(ctx, 2*time.Minute)
		w.must(n.StartAgent(start))
		cancel()
		if w.mode.realVPP() {
			gateway := fmt.Sprintf("fd00:172:30:%d::1", i+1)
			w.within(time.Minute, "the way to VPP", func() error { return n.PingOnce(w.ctx, gateway, 0) })
			w.route(n.Namespace)
		}
	}
	for i, names := range []string{"a b p1", "c d p2"} {
		for _, name := range strings.Fields(names) {
			w.pod(c.Nodes[i], name)
		}
	}
	w.startKubeProxy()
	w.connected()
	return w
}

// connected waits until all sites whose packets the tests check can reach each other; later failures are then about services.
func (w *world) connected() {
	w.t.Helper()
	for _, way := range []string{"out 0", "out 1", "p1 c", "p2 a", "h1 c", "h2 a"} {
		from, to, _ := strings.Cut(way, " ")
		addrs := w.addrs[to]
		if from == "out" {
			addrs = w.uplinks[to[0]-'0']
		}
		for _, addr := range addrs {
			w.within(time.Minute, from+" reaches "+addr.String(), func() error {
				return w.spaces[from].PingOnce(w.ctx, addr.String(), 0)
			})
		}
	}
}

func (w *world) kubeconfig() string { return filepath.Join(w.dir, "kubeconfig") }

func (w *world) options() testbed.ClusterOptions {
	name := netns.UniqueName(prefix)
	opts := testbed.ClusterOptions{
		Name: name, Nodes: 2, Unstarted: true, Addressed: !w.mode.realVPP(),
		Node:     testbed.NodeOptions{BinDir: binDir, Dataplane: "linux"},
		ConfigOf: func(i int) string { return w.config(testbed.NodeName(name, i)) },
	}
	args := []string{"--kubeconfig=" + w.kubeconfig(), "--log-level=info"}
	switch w.mode {
	case vpp, vppPlugin:
		_, err := os.Stat("/dev/vhost-net")
		opts.Node.Dataplane = "vpp"
		opts.Node.VPP = &vpptest.Options{Vhostshim: err != nil, HeapMB: 512, Buffers: 16384, Workers: w.workers, Plugin: w.mode.hasPlugin()}
	case kubeProxy:
		args = []string{"--kubernetes=off"}
	default:
		args = append(args, "--linux-backend="+strings.TrimPrefix(string(w.mode), "linux-"))
	}
	opts.Node.AgentArgs = args
	return opts
}

func (w *world) config(node string) string {
	nic := testbed.UplinkNIC
	if w.mode.isVPP() {
		nic = "host-" + nic
	}
	transport := "vxlan"
	if w.noOverlay {
		transport = "nooverlay"
	}
	return "nodeToNodeTransport: " + transport + "\nuseTAPInterfaces: true\n" +
		"ipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n  podSubnetOneNodePrefixLen: 24,64\n" +
		"  serviceCIDR: 10.96.0.0/12,fd10:96::/108\n  nodeInterconnectCIDR: 192.168.16.0/24,fd00:16::/64\n" +
		"nodeConfig:\n- nodeName: " + node + "\n  mainVPPInterface:\n    interfaceName: " + nic + "\n"
}

// nodeAddrs returns a node's addresses on the network that connects nodes; VPP takes them from nodeInterconnectCIDR.
func (w *world) nodeAddrs(i int) [2]netip.Addr {
	if w.mode.isVPP() {
		return [2]netip.Addr{
			netip.AddrFrom4([4]byte{192, 168, 16, byte(i + 1)}), netip.MustParseAddr(fmt.Sprintf("fd00:16::%x", i+1)),
		}
	}
	v4, v6 := testbed.UplinkAddress(i)
	return [2]netip.Addr{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
}

// hostAddrs returns the addresses of a node's own network namespace.
func (w *world) hostAddrs(n *testbed.Node, i int) [2]netip.Addr {
	w.t.Helper()
	if !w.mode.realVPP() {
		return w.nodeAddrs(i)
	}
	v6 := netip.MustParseAddr(fmt.Sprintf("fd00:99::%x", 101+i))
	w.ip(n.Namespace, "addr add "+v6.String()+"/64 dev "+testbed.MgmtNIC+" nodad")
	return [2]netip.Addr{netip.MustParseAddr(testbed.MgmtAddress(i)), v6}
}

// outside makes the client outside of the cluster.
func (w *world) outside() {
	w.t.Helper()
	w.setSpace("out", w.Underlay)
	w.addrs["out"] = outAddrs
	// Checksums must be complete, as on a wire: VPP's af_packet would receive packets without valid checksums.
	w.run(w.Underlay, "ethtool", "-K", "uplink", "tx", "off")
	n1 := w.nodeAddrs(0)
	for f, bits := range []string{"/24", "/64"} {
		w.ip(w.Underlay, "addr add "+outAddrs[f].String()+bits+" dev uplink"+map[int]string{1: " nodad"}[f])
		w.ip(w.Underlay, "route add "+externalNets[f]+" via "+n1[f].String())
	}
}

// route gives a node a default route, as nodes have one. With VPP it leads to VPP; on a real node the operator has to configure it (STN does
// so).
func (w *world) route(ns *netns.Namespace) {
	w.t.Helper()
	if w.mode.realVPP() {
		for i := range w.Nodes {
			if w.Nodes[i].Namespace == ns {
				w.ip(ns, fmt.Sprintf("route add default via 172.30.%d.1", i+1))
				w.ip(ns, fmt.Sprintf("route add default via fd00:172:30:%d::1", i+1))
			}
		}
		return
	}
	for _, gateway := range outAddrs {
		w.ip(ns, "route add default via "+gateway.String()+" dev "+testbed.UplinkNIC)
	}
}

func (w *world) ip(ns *netns.Namespace, args string) {
	w.t.Helper()
	w.run(ns, "ip", strings.Fields(args)...)
}

func (w *world) run(ns *netns.Namespace, name string, args ...string) {
	w.t.Helper()
	_, err := ns.Run(w.ctx, name, args...)
	w.must(err)
}

// serveAPI serves the API at the loopback address of a namespace.
func (w *world) serveAPI(ns *netns.Namespace) {
	w.t.Helper()
	w.must(ns.Do(func() error {
		l, err := net.Listen("tcp", apiAddress)
		if err != nil {
			return err
		}
		w.api.Serve(l)
		return nil
	}))
}

// pod makes a pod with a server.
func (w *world) pod(n *testbed.Node, name string) {
	w.t.Helper()
	w.must(w.api.Put(podObject(n.Name, name, nil))) // a pod has an object before it has a sandbox
	p, err := n.AddPod(w.ctx, name)
	w.must(err)
	w.pods = append(w.pods, p)
	if len(p.IPs) != 2 {
		w.t.Fatalf("pod %s has not one address of each family: %v", name, p.IPs)
	}
	w.setSpace(name, p.Namespace)
	w.addrs[name], w.nodeOf[name] = [2]netip.Addr{p.IPs[0], p.IPs[1]}, n.Name
	w.serve(name)
	w.must(w.api.Put(podObject(n.Name, name, p.IPs)))
}

func (w *world) setSpace(name string, ns *netns.Namespace) {
	w.spaces[name], w.sites[name] = ns, realSite{ns}
}

func (w *world) addrsOf(name string) []netip.Addr {
	both := w.addrs[name]
	return both[:]
}

// serve starts a server in a namespace that answers with its name.
func (w *world) serve(name string) *whoami.Server {
	w.t.Helper()
	s, err := whoami.Serve(w.spaces[name], name, targetPort, otherPort)
	w.must(err)
	w.t.Cleanup(s.Close)
	return s
}

const kubeProxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clusterCIDR: 10.1.0.0/16,fd10:1::/48
clientConnection: {kubeconfig: %s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 1ms}
`

func (w *world) startKubeProxy() {
	w.t.Helper()
	if w.mode != kubeProxy {
		return
	}
	for _, n := range w.Nodes {
		config := filepath.Join(n.Dir, "kube-proxy.yaml")
		w.must(os.WriteFile(config, fmt.Appendf(nil, kubeProxyConfig, n.Name, w.kubeconfig()), 0o600))
		p, err := netns.Start(n.Command(context.WithoutCancel(w.ctx), kubeProxyPath(), "--config="+config), n.Dir, "kube-proxy")
		w.must(err)
		w.proxy = append(w.proxy, p)
	}
}

func (w *world) close() {
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(15))
			w.inspect(n)
		}
		w.t.Logf("at the end:\n%s", w.counters())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, p := range w.proxy {
		_ = p.Kill() // the process may have ended
	}
	w.api.Close()
	for _, p := range w.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// inspect runs the shell command in CONTIV_E2E_INSPECT in a node, to help find the cause of a failure.
func (w *world) inspect(n *testbed.Node) {
	command := os.Getenv("CONTIV_E2E_INSPECT")
	if command == "" {
		return
	}
	cmd := n.Command(w.ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "NODE="+n.Name, "REST="+n.RESTSocket(), "DIR="+n.Dir)
	if n.VPP != nil {
		cmd.Env = append(cmd.Env, "VPPCTL=vppctl -s "+n.VPP.CLISocket())
	}
	out, err := cmd.CombinedOutput()
	w.t.Logf("%s: %s: %v\n%s", n.Name, command, err, out)
}

// counters returns the counters and the state of every VPP, for a failure without another explanation.
func (w *world) counters() string {
	var b strings.Builder
	commands := []string{"show errors", "show interface", "show ip neighbors", "show buffers"}
	if w.mode == vppPlugin {
		commands = append(commands, "show contiv stats", "show contiv endpoints", "show contiv services", "show contiv connections new")
	}
	for _, n := range w.nodesOfVPP() {
		for _, command := range commands {
			out, err := n.VPP.CLI(command)
			if err != nil {
				out = err.Error()
			}
			fmt.Fprintf(&b, "%s: %s\n%s\n", n.Name, command, out)
		}
	}
	return b.String()
}

// nodesOfVPP returns the nodes that have a VPP.
func (w *world) nodesOfVPP() []*testbed.Node {
	if !w.mode.realVPP() {
		return nil
	}
	return w.Nodes
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		text := err.Error()
		w.t.Fatal(text[:min(len(text), 2000)])
	}
}

// within waits until ok returns nil.
func (w *world) within(d time.Duration, what string, ok func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, d)
	defer cancel()
	if err := poll.Until(ctx, 20*time.Millisecond, ok); err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// slices returns the slices of a service: one per family and port that serves. An endpoint is a server's name, followed by conditions after
// colons: notready, terminating (but serving), dead (terminating, not serving), hint=<zone or node>, other (at the other port).
func (w *world) slices(svc *corev1.Service, endpoints []string) []*discoveryv1.EndpointSlice {
	var out []*discoveryv1.EndpointSlice
	for f, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		for _, port := range []int32{targetPort, otherPort} {
			var list []discoveryv1.Endpoint
			for _, text := range endpoints {
				if ep, at := w.endpoint(text, f); at == port {
					list = append(list, ep)
				}
			}
			if len(list) > 0 {
				slice := kubeapi.Slice(svc, family, port, list...)
				slice.Name += fmt.Sprint("-", port)
				out = append(out, slice)
			}
		}
	}
	return out
}

func (w *world) endpoint(text string, family int) (ep discoveryv1.Endpoint, port int32) {
	words := strings.Split(text, ":")
	if w.sites[words[0]] == nil {
		w.t.Fatalf("endpoint %q: there is no server %s", text, words[0])
	}
	ep, port = kubeapi.Endpoint(w.nodeOf[words[0]], w.addrs[words[0]][family]), targetPort
	for _, word := range words[1:] {
		what, value, _ := strings.Cut(word, "=")
		switch what {
		case "notready":
			ep.Conditions = kubeapi.Ready(false, false, false)
		case "terminating":
			ep.Conditions = kubeapi.Ready(false, true, true)
		case "dead":
			ep.Conditions = kubeapi.Ready(false, false, true)
		case "other":
			port = otherPort
		case "hint":
			ep.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: value}}}
		default:
			w.t.Fatalf("endpoint %q: what is %s?", text, word)
		}
	}
	return ep, port
}

// put puts a service and its slices.
func (w *world) put(svc *corev1.Service, endpoints ...string) {
	w.t.Helper()
	w.must(w.api.Put(svc))
	w.putEndpoints(svc, endpoints...)
}

// putEndpoints replaces the endpoints of a service.
func (w *world) putEndpoints(svc *corev1.Service, endpoints ...string) {
	w.t.Helper()
	want := map[string]bool{}
	for _, s := range w.slices(svc, endpoints) {
		w.must(w.api.Put(s))
		want[s.Name] = true
	}
	for _, obj := range w.api.Objects("endpointslices") {
		s, ok := obj.(*discoveryv1.EndpointSlice)
		if ok && s.Labels[discoveryv1.LabelServiceName] == svc.Name && !want[s.Name] {
			w.must(w.api.Delete(s))
		}
	}
}

// await waits until everything that was put is served on both nodes: the last put object is served last.
func (w *world) await(barrier string) {
	w.t.Helper()
	svc := w.service(barrier, 250, nil)
	w.put(svc, "a", "c")
	for _, client := range []string{"p1", "p2"} {
		for f := range w.mode.families() {
			to := netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIPs[f]), 80)
			w.within(3*time.Minute, client+" sees what was put", func() error {
				_, err := w.queryOnce(client, "tcp", to, 300*time.Millisecond)
				return err
			})
		}
	}
}

// service returns a service whose addresses follow from a number, with port 80 of TCP and UDP.
func (w *world) service(name string, number int, change func(*corev1.Service)) *corev1.Service {
	ips := []netip.Addr{
		netip.AddrFrom4([4]byte{10, 96, 1, byte(number)}), netip.MustParseAddr(fmt.Sprintf("fd10:96::1:%x", number)),
	}
	svc := kubeapi.Service(name, ips, kubeapi.Port(corev1.ProtocolTCP, 80), kubeapi.Port(corev1.ProtocolUDP, 80))
	if change != nil {
		change(svc)
	}
	for i := range svc.Spec.Ports {
		if svc.Spec.Type != corev1.ServiceTypeClusterIP && svc.Spec.Ports[i].NodePort == 0 {
			svc.Spec.Ports[i].NodePort = int32(30000 + number)
		}
	}
	return svc
}

// external returns the external addresses for a number.
func external(number int) []string {
	return []string{fmt.Sprintf("203.0.113.%d", number), fmt.Sprintf("2001:db8:113::%x", number)}
}
