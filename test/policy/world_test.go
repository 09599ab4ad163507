package policy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	npapi "sigs.k8s.io/network-policy-api/apis/v1alpha2"
	"sigs.k8s.io/yaml"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/whoami"
)

const (
	apiAddress       = "127.0.0.1:6443"
	httpPort, dbPort = 8080, 8081 // both are served by TCP and UDP in every namespace
	timeout          = 400 * time.Millisecond
)

// world is two nodes with pods. The label app of a pod is its name without digits; port http of web is 8080.
//
//	n1: web1 cli1 oth1      n2: web2 cli2      out: a machine on the nodes' network
type world struct {
	*testbed.Cluster
	t      *testing.T
	onVPP  bool
	ctx    context.Context
	api    *kubeapi.Server
	dir    string
	spaces map[string]*netns.Namespace
	addrs  map[string][]netip.Addr
	pods   map[string]*testbed.Pod

	markers int // policies that handled has put
}

func newWorld(t *testing.T, backend string) *world {
	t.Helper()
	return newWorldWith(t, backend, func(*testbed.ClusterOptions) {})
}

// newWorldWith returns a world with changed options; longer extends its lifetime.
func newWorldWith(t *testing.T, backend string, change func(*testbed.ClusterOptions), longer ...time.Duration) *world {
	t.Helper()
	lifetime := 4 * time.Minute
	for _, d := range longer {
		lifetime += d
	}
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	w := &world{t: t, onVPP: backend == onVPP, ctx: ctx, api: kubeapi.New(), dir: t.TempDir(), spaces: map[string]*netns.Namespace{},
		addrs: map[string][]netip.Addr{}, pods: map[string]*testbed.Pod{}}
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	w.must(os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600))
	name := netns.UniqueName(prefix)
	opts := testbed.ClusterOptions{
		Name: name, Nodes: 2, Unstarted: true, Addressed: !w.onVPP,
		Node:     testbed.NodeOptions{BinDir: binDir, Dataplane: "linux", AgentArgs: []string{"--kubeconfig=" + kubeconfig, "--log-level=info", "--verify"}},
		ConfigOf: func(i int) string { return w.config(testbed.NodeName(name, i)) },
	}
	if w.onVPP {
		_, err := os.Stat("/dev/vhost-net")
		opts.Node.Dataplane = "vpp"
		opts.Node.VPP = &vpptest.Options{Vhostshim: err != nil, HeapMB: 512, Buffers: 16384, Plugin: true}
	} else {
		opts.Node.AgentArgs = append(opts.Node.AgentArgs, "--linux-backend="+backend)
	}
	change(&opts)
	c, err := testbed.NewCluster(ctx, opts)
	w.must(err)
	w.Cluster = c
	t.Cleanup(w.close)
	w.must(w.api.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"team": "red"}}}))
	w.spaces["out"], w.addrs["out"] = w.Underlay, []netip.Addr{netip.MustParseAddr("192.168.16.250"), netip.MustParseAddr("fd00:16::fa")}
	for i, a := range w.addrs["out"] {
		w.run(w.Underlay, "ip", "addr", "add", a.String()+[]string{"/24", "/64"}[i], "dev", "uplink")
	}
	if w.onVPP { // as on a wire: VPP's af_packet would receive packets without valid checksums
		w.run(w.Underlay, "ethtool", "-K", "uplink", "tx", "off")
	}
	for i, n := range c.Nodes {
		w.node(i, n)
	}
	for i, names := range []string{"web1 cli1 oth1", "web2 cli2"} {
		for _, name := range strings.Fields(names) {
			w.pod(c.Nodes[i], name)
		}
	}
	for _, to := range []string{"web1", "web2"} {
		w.within("packets between nodes", time.Minute, func() error { return w.reach("cli1", to) })
		w.within("packets between nodes", time.Minute, func() error { return w.reach("cli2", to) })
	}
	return w
}

func (w *world) config(node string) string {
	nic, vpp := testbed.UplinkNIC, ""
	if w.onVPP {
		nic, vpp = "host-"+nic, "useTAPInterfaces: true\n"
	}
	return "nodeToNodeTransport: vxlan\n" + vpp + "ipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n" +
		"  podSubnetOneNodePrefixLen: 24,64\n  serviceCIDR: 10.96.0.0/12,fd10:96::/108\n" +
		"  nodeInterconnectCIDR: 192.168.16.0/24,fd00:16::/64\n" +
		"nodeConfig:\n- nodeName: " + node + "\n  mainVPPInterface:\n    interfaceName: " + nic + "\n"
}

// addresses returns the addresses of a node on the nodes' network, and of its host: VPP has its own uplink.
func (w *world) addresses(i int, n *testbed.Node) (node, host []netip.Addr) {
	w.t.Helper()
	if !w.onVPP {
		v4, v6 := testbed.UplinkAddress(i)
		node = []netip.Addr{netip.MustParseAddr(v4), netip.MustParseAddr(v6)}
		return node, node
	}
	v6 := fmt.Sprintf("fd00:99::%x", 101+i)
	w.run(n.Namespace, "ip", "addr", "add", v6+"/64", "dev", testbed.MgmtNIC, "nodad")
	return []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 16, byte(i + 1)}), netip.MustParseAddr(fmt.Sprintf("fd00:16::%x", i+1))},
		[]netip.Addr{netip.MustParseAddr(testbed.MgmtAddress(i)), netip.MustParseAddr(v6)}
}

func (w *world) node(i int, n *testbed.Node) {
	w.t.Helper()
	w.run(n.Namespace, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	w.must(n.Do(func() error {
		l, err := net.Listen("tcp", apiAddress)
		if err == nil {
			w.api.Serve(l)
		}
		return err
	}))
	host := fmt.Sprintf("h%d", i+1)
	node, own := w.addresses(i, n)
	w.spaces[host], w.addrs[host] = n.Namespace, own
	if !w.onVPP {
		var gateways []string // nodes have a default gateway
		for _, gateway := range w.addrs["out"] {
			gateways = append(gateways, "route add default via "+gateway.String()+" dev "+testbed.UplinkNIC)
		}
		w.must(n.IP(w.ctx, gateways...))
	}
	w.must(w.api.Put(kubeapi.Node(n.Name, node, fmt.Sprintf("10.1.%d.0/24", i+1))))
	w.serve(host)
	start, cancel := context.WithTimeout(w.ctx, 2*time.Minute)
	defer cancel()
	w.must(n.StartAgent(start))
	if i == 0 { // out sends to pods through the first node
		w.must(w.Underlay.IP(w.ctx, "route add 10.1.0.0/16 via "+node[0].String(), "route add fd10:1::/48 via "+node[1].String()))
	}
	if w.onVPP {
		w.must(n.IP(w.ctx, fmt.Sprintf("route add default via 172.30.%d.1", i+1),
			fmt.Sprintf("route add default via fd00:172:30:%d::1", i+1)))
	}
}

// object returns a pod's object; without addresses it is as before the ADD.
func (w *world) object(node, name string) *corev1.Pod {
	p := kubeapi.Pod(node, name, w.addrs[name])
	p.Labels = map[string]string{"app": strings.TrimRight(name, "0123456789")}
	p.Spec.Containers = []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: httpPort}}}}
	return p
}

func (w *world) pod(n *testbed.Node, name string) {
	w.t.Helper()
	w.must(w.api.Put(w.object(n.Name, name)))
	p, err := n.AddPod(w.ctx, name)
	w.must(err)
	w.pods[name], w.spaces[name], w.addrs[name] = p, p.Namespace, p.IPs
	w.must(w.api.Put(w.object(n.Name, name)))
	w.serve(name)
}

func (w *world) serve(name string) {
	w.t.Helper()
	s, err := whoami.Serve(w.spaces[name], name, httpPort, dbPort)
	w.must(err)
	w.t.Cleanup(s.Close)
}

// policy puts a policy, written as YAML of its spec: with a tier it is a ClusterNetworkPolicy. The empty text deletes it.
func (w *world) policy(name, spec string) {
	w.t.Helper()
	cnp := &npapi.ClusterNetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if strings.Contains(spec, "tier:") {
		w.must(yaml.UnmarshalStrict([]byte(spec), &cnp.Spec))
		w.must(w.api.Put(cnp))
		return
	}
	np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if spec == "" {
		w.must(w.api.Delete(np, cnp))
		return
	}
	w.must(yaml.UnmarshalStrict([]byte(spec), &np.Spec))
	w.must(w.api.Put(np))
}

// handled waits until the first node's agent has handled all changes that the API server has sent so far.
func (w *world) handled() {
	w.t.Helper()
	w.markers++
	name := fmt.Sprintf("marker-%04d", w.markers)
	w.policy(name, `{podSelector: {matchLabels: {app: none}}}`)
	w.within("the agent handles policy "+name, 30*time.Second, func() error {
		text, err := w.Nodes[0].Get(w.ctx, "/controller/event-history?last=8")
		if err == nil && !strings.Contains(text, name) {
			err = errors.New("it is not in the history of events")
		}
		return err
	})
	w.policy(name, "")
}

// killAgent kills the first node's agent at a random moment of its work, and restarts it.
func (w *world) killAgent() {
	w.t.Helper()
	time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	w.must(w.Nodes[0].Agent.Kill())
	w.must(w.Nodes[0].StartAgent(w.ctx))
}

// reach sends a request to a server by TCP and IPv4.
func (w *world) reach(from, to string) error { return w.query(from, "tcp", w.addrs[to][0], httpPort) }

func (w *world) query(from, protocol string, to netip.Addr, port uint16) error {
	switch protocol {
	case "icmp":
		return w.spaces[from].PingOnce(w.ctx, to.String(), 0)
	case "sctp":
		return sctp(w.spaces[from], to, w.spaceOf(to), port)
	}
	_, err := whoami.Query(w.ctx, w.spaces[from], protocol, netip.AddrPortFrom(to, port), timeout)
	return err
}

func (w *world) spaceOf(a netip.Addr) *netns.Namespace {
	for name, list := range w.addrs {
		for _, b := range list {
			if a == b {
				return w.spaces[name]
			}
		}
	}
	w.t.Fatalf("nothing has address %s", a)
	return nil
}

// expect checks lines such as "+ cli1 web1 tcp 8080": + is allowed, - is not. Both families are checked. It retries for a while,
// because a policy may not be applied yet.
func (w *world) expect(lines string) {
	w.t.Helper()
	for line := range strings.Lines(lines) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		port := uint16(0)
		if len(f) > 4 {
			_, err := fmt.Sscan(f[4], &port)
			w.must(err)
		}
		for _, to := range w.addrs[f[2]] {
			w.within(fmt.Sprintf("%s to %s", strings.TrimSpace(line), to), time.Minute, func() error {
				err := w.query(f[1], f[3], to, port)
				if (err == nil) != (f[0] == "+") {
					return fmt.Errorf("answered with error %w", orNone(err))
				}
				return nil
			})
		}
	}
}

var errNone = errors.New("none")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func (w *world) within(what string, d time.Duration, f func() error) {
	w.t.Helper()
	err := f()
	for end := time.Now().Add(d); err != nil && time.Now().Before(end); err = f() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
	}
}

func (w *world) run(ns *netns.Namespace, name string, args ...string) {
	w.t.Helper()
	_, err := ns.Run(w.ctx, name, args...)
	w.must(err)
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// verified checks that the agents' incremental updates have the same result as a resync.
func (w *world) verified(ctx context.Context) {
	for _, n := range w.Nodes {
		if failed, err := n.Metric(ctx, "contiv_controller_verification_errors_total"); err != nil || failed > 0 {
			w.t.Errorf("%s: %v verifications failed, error %v", n.Name, failed, err)
		}
	}
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	w.verified(ctx)
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(15))
			if command := os.Getenv("CONTIV_E2E_INSPECT"); command != "" {
				out, _ := n.Command(ctx, "sh", "-c", command).CombinedOutput()
				w.t.Logf("%s", out)
			}
		}
	}
	w.api.Close()
	for _, p := range w.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}
