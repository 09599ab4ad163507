package services

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/poll"
	"contiv.dev/vswitch/test/testbed/stack"
)

// fakeNode is a node without a kernel: its agent runs in this process, on vppfake.
type fakeNode struct {
	name, host string // host is the site for the node's own network namespace
	number     int    // from 1
	plugin     bool   // VPP has our plugin
	setLimit   int    // maximum number of members of a set of network policy; 0: the default
	dir        string
	config     string
	net        *fakeNet
	fake       *vppfake.Fake
	kernel     *fakeKernel
	mgmt       [2]netip.Addr
	agent      *fakeAgent
}

// newFakeWorld returns the world of newWorld, with the same names and addresses, in which no packet leaves this
// process.
func newFakeWorld(t *testing.T, m mode) *world {
	t.Helper()
	return newFakeWorldWith(t, m, func(*fakeNode) {})
}

// newFakeWorldWith is like newFakeWorld, and changes nodes before their agents start.
func newFakeWorldWith(t *testing.T, m mode, change func(*fakeNode)) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", prefix+"-fake-") // paths of sockets must be short
	w := &world{
		t: t, ctx: ctx, mode: m, api: kubeapi.New(), sites: map[string]site{}, nodeOf: map[string]string{},
		addrs: map[string][2]netip.Addr{}, dir: dir,
	}
	w.must(err)
	w.fakes = &fakeNet{
		kubeconfig: w.kubeconfig(), etcdDir: filepath.Join(dir, "etcd"), sites: map[string]*fakeSite{},
		macs: map[netip.Addr]vppfake.MAC{}, ports: map[fakePorts]uint16{},
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.serveFakeCluster()
	w.fakeOutside()
	for i := range 2 {
		w.fakeNode(i, change)
	}
	w.fakeUplinks()
	for i, names := range []string{"a b p1", "c d p2"} {
		for _, name := range strings.Fields(names) {
			w.fakePod(w.fakes.nodes[i], name)
		}
	}
	w.fakeConnected()
	return w
}

// serveFakeCluster starts etcd and the API server.
func (w *world) serveFakeCluster() {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	w.api.Serve(l)
	w.t.Cleanup(w.api.Close)
	w.must(os.WriteFile(w.kubeconfig(), kubeapi.Kubeconfig(l.Addr().String()), 0o600))
	etcd, err := clusterdb.StartEmbedded(w.ctx, clusterdb.Config{
		Embedded: clusterdb.EmbeddedConfig{DataDir: w.fakes.etcdDir},
	}, slog.New(slog.DiscardHandler))
	w.must(err)
	w.t.Cleanup(etcd.Close)
}

func (n *fakeNet) etcdSocket() string { return filepath.Join(n.etcdDir, "etcd.sock") }

// fakeOutside makes the client outside of the cluster.
func (w *world) fakeOutside() {
	s := stack.New("out")
	link := stack.Link{Device: outDevice, MAC: outMAC()}
	n1 := w.nodeAddrs(0)
	for f, bits := range []int{24, 64} {
		link.Addrs = append(link.Addrs, netip.PrefixFrom(outAddrs[f], bits))
		s.SetRoute(externalNets[f], stack.Route{Dst: netip.MustParsePrefix(externalNets[f]), Via: n1[f], Device: outDevice})
		w.fakes.setMAC(outAddrs[f], outMAC())
	}
	s.SetLink(link)
	w.addFakeSite(newFakeSite("out", s, nil), outAddrs)
}

func (w *world) addFakeSite(s *fakeSite, addrs [2]netip.Addr) {
	w.fakes.addSite(s)
	w.sites[s.name], w.addrs[s.name] = s, addrs
}

// fakeNode makes the i-th node, with an agent.
func (w *world) fakeNode(i int, change func(*fakeNode)) {
	w.t.Helper()
	n := &fakeNode{
		plugin: w.mode.hasPlugin(),
		name:   fmt.Sprintf("n%d", i+1), host: fmt.Sprintf("h%d", i+1), number: i + 1, net: w.fakes,
		mgmt: [2]netip.Addr{netip.MustParseAddr(testbed.MgmtAddress(i)), netip.MustParseAddr(fmt.Sprintf("fd00:99::%x", 101+i))},
	}
	change(n)
	n.dir, n.config = filepath.Join(w.dir, n.name), w.config(n.name)
	w.must(os.MkdirAll(n.dir, 0o700))
	n.fake = vppfake.New(vppfake.Config{Seed: uint64(i + 1), Resolve: w.fakes.resolve, Plugin: w.mode.hasPlugin()})
	w.t.Cleanup(func() {
		if refused, crashes := n.fake.Refused(), n.fake.Crashes(); len(refused)+len(crashes) > 0 {
			w.t.Errorf("VPP of %s has refused %v, and died of %v", n.name, refused, crashes)
		}
		w.must(n.fake.Close())
	})
	w.must(n.fake.Listen(filepath.Join(n.dir, "vpp.sock")))
	host := stack.New(n.host)
	host.Forwards = true // set on every Kubernetes node
	host.SetLink(stack.Link{Device: testbed.MgmtNIC, Addrs: []netip.Prefix{
		netip.PrefixFrom(n.mgmt[0], 24), netip.PrefixFrom(n.mgmt[1], 64),
	}})
	for dst, via := range map[string]string{
		"0.0.0.0/0": fmt.Sprintf("172.30.%d.1", i+1), "::/0": fmt.Sprintf("fd00:172:30:%d::1", i+1),
	} {
		host.SetRoute(dst, stack.Route{Dst: netip.MustParsePrefix(dst), Via: netip.MustParseAddr(via), Device: "vpp1"})
	}
	n.kernel = newFakeKernel(host)
	w.addFakeSite(newFakeSite(n.host, host, n), n.mgmt)
	w.nodeOf[n.host] = n.name
	w.uplinks = append(w.uplinks, w.nodeAddrs(i))
	node := kubeapi.Node(n.name, w.addrsOf(n.host), fmt.Sprintf("10.1.%d.0/24", i+1), fmt.Sprintf("fd10:1:0:%d::/64", i+1))
	node.Labels[corev1.LabelTopologyZone] = fmt.Sprintf("zone%d", i+1)
	w.must(w.api.Put(node))
	agent, err := startFakeAgent(n)
	w.must(err)
	n.agent = agent
	w.t.Cleanup(func() { w.must(n.agent.stop()) })
	w.within(30*time.Second, "the agent of "+n.name, n.ready) // in this order, so that the numbers of nodes become their IDs
	w.fakes.nodes = append(w.fakes.nodes, n)
	w.members = append(w.members, n)
}

func (n *fakeNode) ready() error { return n.agent.ready() }

// fakeUplinks adds the machines on the network between nodes as neighbours of each other, as ARP and neighbour
// discovery do.
func (w *world) fakeUplinks() {
	w.t.Helper()
	for i, n := range w.fakes.nodes {
		mac, ok := n.fake.MAC(fakeUplinkTag)
		if !ok {
			w.t.Fatalf("VPP of %s has no %s", n.name, fakeUplinkTag)
		}
		for _, addr := range w.uplinks[i] {
			w.fakes.setMAC(addr, mac)
		}
	}
}

func (n *fakeNode) netns(pod string) string { return "/run/netns/" + n.name + "-" + pod }

// fakePod makes a pod with a server.
func (w *world) fakePod(n *fakeNode, name string) {
	w.t.Helper()
	ips, err := n.agent.addPod(w.ctx, name)
	w.must(err)
	if len(ips) != 2 {
		w.t.Fatalf("pod %s has not one address of each family: %v", name, ips)
	}
	s := newFakeSite(name, n.kernel.pod(n.netns(name)), n)
	w.addFakeSite(s, [2]netip.Addr{ips[0], ips[1]})
	w.nodeOf[name] = n.name
	w.must(w.api.Put(podObject(n.name, name, ips)))
}

// fakeConnected waits until the nodes have each other's data.
func (w *world) fakeConnected() {
	w.t.Helper()
	for _, way := range []string{"p1 c", "p2 a", "h1 c", "h2 a"} {
		from, to, _ := strings.Cut(way, " ")
		for _, addr := range w.addrs[to] {
			w.within(time.Minute, from+" reaches "+addr.String(), func() error {
				_, err := w.queryOnce(from, "udp", netip.AddrPortFrom(addr, targetPort), retryWait)
				return err
			})
		}
	}
}

// restart implements member.
func (n *fakeNode) restart(context.Context) error {
	if err := n.agent.stop(); err != nil {
		return err
	}
	n.kernel.restarted()
	agent, err := startFakeAgent(n)
	if err != nil {
		return err
	}
	n.agent = agent
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return poll.Until(ctx, 5*time.Millisecond, n.ready)
}

// writes implements member.
func (n *fakeNode) writes(context.Context) (float64, error) {
	return float64(n.agent.vpp.Writes()) + float64(n.kernel.written()), nil
}

// known implements member.
func (n *fakeNode) known(context.Context) (int, error) {
	var services []struct{ Name string }
	err := json.Unmarshal(n.agent.rest.get("/contiv/v1/services"), &services)
	return len(services), err
}

// health implements member. Both nodes are on this machine, so each answers at its own loopback address.
func (n *fakeNode) health(port int) (status int, err error) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(fmt.Sprintf("http://%s:%d/healthz", n.healthAddr(), port))
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (n *fakeNode) healthAddr() string {
	pid := os.Getpid()
	return netip.AddrFrom4([4]byte{127, byte(pid >> 8), byte(pid), byte(n.number)}).String()
}
