package nat44_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// prefix starts the names of the tests' namespaces.
const prefix = "cvn"

// world is a cluster of nodes with real VPP, with an API server of which the test is in control. The network that connects the
// nodes has one more machine, outside.
type world struct {
	*testbed.Cluster
	t   *testing.T
	ctx context.Context
	api *kubeapi.Server
}

// outsideIP is the address of a machine that is not of the cluster, and has no routes to pods.
const outsideIP = "192.168.16.200"

const servePort = 8080

func newWorld(t *testing.T, nodes int, config string, change ...func(*vpptest.Options)) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces need root")
	}
	if _, ok := vpptest.Find(); !ok {
		t.Skip(vpptest.ErrNoVPP)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	dir, err := binDir()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, kubeapi.Kubeconfig("127.0.0.1:6443"), 0o600); err != nil {
		t.Fatal(err)
	}
	name := netns.UniqueName(prefix)
	_, err = os.Stat("/dev/vhost-net")
	opts := &vpptest.Options{Vhostshim: err != nil, HeapMB: 256, Buffers: 8192}
	for _, f := range change {
		f(opts)
	}
	c, err := testbed.NewCluster(ctx, testbed.ClusterOptions{
		Name: name, Nodes: nodes, Unstarted: true,
		Node: testbed.NodeOptions{
			BinDir: dir, Dataplane: "vpp", AgentArgs: []string{"--kubeconfig=" + kubeconfig},
			VPP: opts,
		},
		ConfigOf: func(i int) string {
			return "useTAPInterfaces: true\n" + config + "nodeConfig:\n- nodeName: " + testbed.NodeName(name, i) +
				"\n  mainVPPInterface:\n    interfaceName: host-" + testbed.UplinkNIC + "\n"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, t: t, ctx: ctx, api: kubeapi.New()}
	t.Cleanup(w.close)
	_, err = c.Underlay.Run(ctx, "ip", "addr", "add", outsideIP+"/24", "dev", "uplink")
	w.must(err)
	// As on a wire: VPP's af_packet would get packets whose checksums nothing fills in.
	_, err = c.Underlay.Run(ctx, "ethtool", "-K", "uplink", "tx", "off")
	w.must(err)
	for i, n := range c.Nodes {
		w.serveAPI(n)
		w.must(w.api.Put(kubeapi.Node(n.Name, []netip.Addr{netip.MustParseAddr(testbed.MgmtAddress(i))})))
		start, cancel := context.WithTimeout(ctx, 20*time.Second)
		w.must(n.StartAgent(start))
		cancel()
	}
	return w
}

// binDir is where the agent and the CNI plugin are: built when a test needs them, or where CONTIV_BIN says.
var binDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("CONTIV_BIN"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", binPrefix())
	if err != nil {
		return "", err
	}
	return dir, gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni")
})

// TestMain: each world has nodes and VPPs of its own, and waits most of the time. Worlds whose VPP has workers run alone: those need processors.
func TestMain(m *testing.M) {
	atonce.Limit(3)
	code := m.Run()
	ours, _ := filepath.Glob(filepath.Join(os.TempDir(), binPrefix()+"*")) // the pattern is valid
	for _, dir := range ours {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// binPrefix is of this run: others may be under hop.
func binPrefix() string { return fmt.Sprintf("%s-bin-%d-", prefix, os.Getpid()) }

func (w *world) serveAPI(n *testbed.Node) {
	w.must(n.Do(func() error {
		l, err := net.Listen("tcp", "127.0.0.1:6443")
		if err == nil {
			w.api.Serve(l)
		}
		return err
	}))
}

func (w *world) close() {
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(15))
			if n.VPP != nil {
				log := n.VPP.Log()
				w.t.Logf("the end of VPP's log:\n%s", log[max(0, len(log)-2000):])
			}
			if command := os.Getenv("CONTIV_E2E_INSPECT"); command != "" && n.VPP != nil {
				cmd := n.Command(w.ctx, "sh", "-c", command)
				cmd.Env = append(os.Environ(), "NODE="+n.Name, "VPPCTL=vppctl -s "+n.VPP.CLISocket(), "REST="+n.RESTSocket())
				out, err := cmd.CombinedOutput()
				w.t.Logf("%s: %s: %v\n%s", n.Name, command, err, out)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	w.api.Close()
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// server is a machine that answers over TCP and UDP with its name and the address of the client.
type server struct {
	*netns.Namespace
	name string
	ip   netip.Addr
	node string
}

// pod adds a pod to a node, with a server.
func (w *world) pod(node int, name string) *server {
	w.t.Helper()
	w.must(w.api.Put(kubeapi.Pod(w.Nodes[node].Name, name, nil))) // a pod that the API server does not know starts closed
	p, err := w.Nodes[node].AddPod(w.ctx, name)
	w.must(err)
	w.t.Cleanup(func() { _ = p.Delete(context.WithoutCancel(w.ctx)) })
	s := &server{Namespace: p.Namespace, name: name, ip: p.IPs[0], node: w.Nodes[node].Name}
	w.serve(s)
	return s
}

// host is a node's own namespace, with a server.
func (w *world) host(node int, ip string) *server {
	s := &server{Namespace: w.Nodes[node].Namespace, name: fmt.Sprintf("host%d", node), ip: netip.MustParseAddr(ip),
		node: w.Nodes[node].Name}
	w.serve(s)
	return s
}

// outside is a machine that is not of the cluster.
func (w *world) outside() *server {
	s := &server{Namespace: w.Underlay, name: "outside", ip: netip.MustParseAddr(outsideIP)}
	w.serve(s)
	return s
}

// manager is the same machine, on the network by which hosts are managed.
func (w *world) manager() *server {
	for _, args := range []string{"ip addr add 10.199.0.250/24 dev mgmt", "ethtool -K mgmt tx off"} {
		_, err := w.Underlay.Run(w.ctx, "sh", "-c", args)
		w.must(err)
	}
	for _, n := range w.Nodes { // as every Kubernetes node
		_, err := n.Run(w.ctx, "sysctl", "-qw", "net.ipv4.ip_forward=1")
		w.must(err)
	}
	return &server{Namespace: w.Underlay, name: "manager"}
}

// at is a port of the machine.
func (s *server) at(port uint16) string { return netip.AddrPortFrom(s.ip, port).String() }

func (w *world) serve(s *server) {
	w.t.Helper()
	w.must(s.Do(func() error {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", servePort))
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", netip.AddrPortFrom(s.ip, servePort).String())
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _, _ = l.Close(), u.Close() })
		go s.tcp(l)
		go s.udp(u)
		return nil
	}))
}

func (s *server) tcp(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() { // one line for each that comes
			defer conn.Close()
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				fmt.Fprintf(conn, "%s %s\n", s.name, conn.RemoteAddr())
			}
		}()
	}
}

func (s *server) udp(u net.PacketConn) {
	buf := make([]byte, 100)
	for {
		_, from, err := u.ReadFrom(buf)
		if err != nil {
			return
		}
		fmt.Fprintf(&packetTo{u, from}, "%s %s\n", s.name, from)
	}
}

type packetTo struct {
	net.PacketConn
	to net.Addr
}

func (p *packetTo) Write(b []byte) (int, error) { return p.WriteTo(b, p.to) }

// call is a connection of a client.
type call struct {
	net.Conn
	in *bufio.Reader
}

func dial(ns *netns.Namespace, network, to string) (*call, error) {
	var c *call
	err := ns.Do(func() error {
		conn, err := (&net.Dialer{Timeout: 1500 * time.Millisecond}).Dial(network, to)
		if err == nil {
			c = &call{conn, bufio.NewReader(conn)}
		}
		return err
	})
	return c, err
}

// query has the server's name and what it thinks the client's address is.
func (c *call) query() (name string, client netip.Addr, err error) {
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", client, err
	}
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return "", client, err
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", client, err
	}
	name, at, _ := strings.Cut(strings.TrimSpace(line), " ")
	ap, err := netip.ParseAddrPort(at)
	return name, ap.Addr(), err
}

// queryOnce is a connection for one question.
func queryOnce(ns *netns.Namespace, network, to string) (name string, client netip.Addr, err error) {
	c, err := dial(ns, network, to)
	if err != nil {
		return "", client, err
	}
	defer c.Close()
	return c.query()
}

// reaches makes connections until all the servers have been reached, and nothing else.
func (w *world) reaches(from *server, network, to string, servers ...*server) {
	w.t.Helper()
	missing, known, failed := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, s := range servers {
		missing[s.name], known[s.name] = true, true
	}
	err := w.eventually(func() error {
		name, _, err := queryOnce(from.Namespace, network, to)
		if err != nil {
			failed[err.Error()]++
			return err
		}
		delete(missing, name)
		if len(missing) > 0 {
			return fmt.Errorf("%v not reached", missing)
		}
		return nil
	})
	others := func(tries int) error {
		for range tries {
			name, _, err := queryOnce(from.Namespace, network, to)
			if err == nil && !known[name] {
				err = fmt.Errorf("%q answers", name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err == nil { // a change that removes a service may come only now
		err = w.eventually(func() error { return others(12) })
	}
	if err == nil {
		err = others(6)
	}
	if err != nil {
		w.t.Errorf("from %s to %s %s: %v (before: %v)", from.name, network, to, err, failed)
	}
}

// sees: the server sees the client under an address.
func (w *world) sees(from *server, network, to, client string) {
	w.t.Helper()
	name, at, err := queryOnce(from.Namespace, network, to)
	if err != nil || at.String() != client {
		w.t.Errorf("from %s to %s %s: %s sees %s, want %s: %v", from.name, network, to, name, at, client, err)
	}
}

// silent: there is no answer, and no error.
func (w *world) silent(from *server, network, to string) {
	w.t.Helper()
	name, _, err := queryOnce(from.Namespace, network, to)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		w.t.Errorf("from %s to %s %s: %q %v", from.name, network, to, name, err)
	}
}

func (w *world) eventually(ok func() error) error {
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	return poll.Until(ctx, 5*time.Millisecond, ok)
}

// each runs checks for TCP and UDP.
func (w *world) each(what string, check func(network string)) {
	w.t.Helper()
	for _, network := range []string{"tcp", "udp"} {
		begin := time.Now()
		check(network)
		w.t.Logf("%s by %s: %v", what, network, time.Since(begin).Round(time.Millisecond))
	}
}

// refused: the client gets an error at once, and no answer.
func (w *world) refused(from *server, network, to string) {
	w.t.Helper()
	err := w.eventually(func() error {
		name, _, err := queryOnce(from.Namespace, network, to)
		var timeout net.Error
		switch {
		case err == nil:
			return fmt.Errorf("%s answers", name)
		case errors.As(err, &timeout) && timeout.Timeout():
			return fmt.Errorf("no answer, but no error: %w", err)
		}
		return nil
	})
	if err != nil {
		w.t.Errorf("from %s to %s %s: %v", from.name, network, to, err)
	}
}

// service makes a service of TCP and UDP port 80, with the servers as its endpoints.
func (w *world) service(name, ip string, change func(*corev1.Service), servers ...*server) *corev1.Service {
	w.t.Helper()
	s := kubeapi.Service(name, []netip.Addr{netip.MustParseAddr(ip)}, kubeapi.Port(corev1.ProtocolTCP, 80),
		kubeapi.Port(corev1.ProtocolUDP, 80))
	if change != nil {
		change(s)
	}
	w.must(w.api.Put(s))
	w.endpoints(s, servers...)
	return s
}

func (w *world) endpoints(s *corev1.Service, servers ...*server) {
	w.t.Helper()
	var list []discoveryv1.Endpoint
	for _, b := range servers {
		list = append(list, kubeapi.Endpoint(b.node, b.ip))
	}
	w.must(w.api.Put(kubeapi.Slice(s, discoveryv1.AddressTypeIPv4, servePort, list...)))
}
