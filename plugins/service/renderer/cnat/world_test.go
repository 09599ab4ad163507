package cnat_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/internal/testbed"
	"contiv.dev/vswitch/internal/testbed/kubeapi"
)

const (
	// prefix starts the names of the tests' namespaces.
	prefix    = "cvc"
	outsideIP = "fd00:192:168:16::200"
	servePort = 8080
)

// world is a dual-stack cluster of nodes with real VPP, an API server of which the test is in control, and a machine outside.
type world struct {
	*testbed.Cluster
	t   testing.TB
	ctx context.Context
	api *kubeapi.Server
}

// machine answers over TCP and UDP with its name and the client's address.
type machine struct {
	*testbed.Namespace
	name string
	ip   netip.Addr
	node string
}

func newWorld(t testing.TB, nodes int, args ...string) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces need root")
	}
	if _, ok := vpptest.Find(); !ok {
		t.Skip(vpptest.ErrNoVPP)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, api: kubeapi.New()}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	w.must(os.WriteFile(kubeconfig, kubeapi.Kubeconfig("127.0.0.1:6443"), 0o600))
	name := fmt.Sprintf("%s%d", prefix, os.Getpid()%100000)
	_, noVhost := os.Stat("/dev/vhost-net")
	c, err := testbed.NewCluster(ctx, testbed.ClusterOptions{
		Name: name, Nodes: nodes, Unstarted: true,
		Node: testbed.NodeOptions{
			BinDir: dir, Dataplane: "vpp", AgentArgs: append([]string{"--kubeconfig=" + kubeconfig}, args...),
			VPP: &vpptest.Options{Vhostshim: noVhost != nil, HeapMB: 256, Buffers: 16384},
		},
		ConfigOf: func(i int) string {
			return "useTAPInterfaces: true\nipamConfig:\n  podSubnetCIDR: 10.1.0.0/16,fd10:1::/48\n" +
				"  podSubnetOneNodePrefixLen: 24,64\nnodeConfig:\n- nodeName: " + testbed.NodeName(name, i) +
				"\n  mainVPPInterface:\n    interfaceName: host-" + testbed.UplinkNIC + "\n"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = c
	t.Cleanup(w.close)
	for i, n := range c.Nodes {
		w.must(n.Do(func() error {
			l, err := net.Listen("tcp", "127.0.0.1:6443")
			if err == nil {
				w.api.Serve(l)
			}
			return err
		}))
		w.must(w.api.Put(kubeapi.Node(n.Name, []netip.Addr{netip.MustParseAddr(testbed.MgmtAddress(i))})))
		w.start(n)
	}
	return w
}

func (w *world) start(n *testbed.Node) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	w.must(n.StartAgent(ctx))
}

func (w *world) close() {
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(15))
			if command := os.Getenv("CONTIV_E2E_INSPECT"); command != "" && n.VPP != nil {
				cmd := n.Command(w.ctx, "sh", "-c", command)
				cmd.Env = append(os.Environ(), "NODE="+n.Name, "VPPCTL=vppctl -s "+n.VPP.CLISocket())
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

// pod adds a pod to a node; family is 0 for its IPv4 address, 1 for its IPv6 one.
func (w *world) pod(node int, name string, family int) *machine {
	w.t.Helper()
	w.must(w.api.Put(kubeapi.Pod(w.Nodes[node].Name, name, nil))) // a pod that the API server does not know starts closed
	p, err := w.Nodes[node].AddPod(w.ctx, name)
	w.must(err)
	w.t.Cleanup(func() { _ = p.Delete(context.WithoutCancel(w.ctx)) })
	return w.serve(&machine{p.Namespace, name, p.IPs[family], w.Nodes[node].Name})
}

// outside is a machine on the network that connects the nodes, which knows nothing of pods.
func (w *world) outside() *machine {
	w.t.Helper()
	_, err := w.Underlay.Run(w.ctx, "ip", "addr", "add", outsideIP+"/112", "dev", "uplink", "nodad")
	w.must(err)
	// As on a wire: VPP's af_packet would get packets whose checksums nobody fills in.
	_, err = w.Underlay.Run(w.ctx, "ethtool", "-K", "uplink", "tx", "off")
	w.must(err)
	return w.serve(&machine{w.Underlay, "outside", netip.MustParseAddr(outsideIP), ""})
}

func (w *world) serve(m *machine) *machine {
	w.t.Helper()
	at := netip.AddrPortFrom(m.ip, servePort).String()
	w.must(m.Do(func() error {
		l, err := net.Listen("tcp", at)
		if err != nil {
			return err
		}
		u, err := net.ListenPacket("udp", at)
		if err != nil {
			return err
		}
		w.t.Cleanup(func() { _, _ = l.Close(), u.Close() })
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				go m.answer(conn)
			}
		}()
		go func() {
			buf := make([]byte, 100)
			for _, from, err := u.ReadFrom(buf); err == nil; _, from, err = u.ReadFrom(buf) {
				_, _ = u.WriteTo(fmt.Appendf(nil, "%s %s\n", m.name, from), from)
			}
		}()
		return nil
	}))
	return m
}

func (m *machine) answer(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		fmt.Fprintf(conn, "%s %s\n", m.name, conn.RemoteAddr())
	}
}

// call is a client's connection, or its UDP socket.
type call struct {
	net.Conn
	in *bufio.Reader
}

func (m *machine) dial(network, to string) (*call, error) {
	var c *call
	return c, m.Do(func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).Dial(network, to)
		if err == nil {
			c = &call{conn, bufio.NewReader(conn)}
		}
		return err
	})
}

// ask has the server's name and what it thinks the client's address is.
func (c *call) ask() (name string, client netip.Addr, err error) {
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

func (m *machine) askOnce(network, to string) (name string, client netip.Addr, err error) {
	c, err := m.dial(network, to)
	if err != nil {
		return "", client, err
	}
	defer c.Close()
	return c.ask()
}

// reaches makes connections until all the servers have been reached, and then until some in a row are answered by them.
func (w *world) reaches(m *machine, network, to string, names ...string) {
	w.t.Helper()
	missing := map[string]bool{}
	for _, n := range names {
		missing[n] = true
	}
	ctx, cancel := context.WithTimeout(w.ctx, 8*time.Second)
	defer cancel()
	tries := map[string]int{}
	err := testbed.Eventually(ctx, 5*time.Millisecond, func() error {
		name, client, err := m.askOnce(network, to)
		if err != nil {
			tries[err.Error()]++
			return err
		}
		tries[name+" sees "+client.String()]++
		delete(missing, name)
		if len(missing) > 0 {
			return fmt.Errorf("not reached: %v", missing)
		}
		return nil
	})
	if err != nil {
		w.t.Errorf("from %s to %s %s: %v; %v", m.name, network, to, err, tries)
		return
	}
	if err := testbed.Eventually(ctx, 5*time.Millisecond, func() error { // a change may come only now
		for range 6 {
			name, _, err := m.askOnce(network, to)
			if err != nil {
				return err
			}
			if !slices.Contains(names, name) {
				return fmt.Errorf("%s answers; want %v", name, names)
			}
		}
		return nil
	}); err != nil {
		w.t.Errorf("from %s to %s %s: %v", m.name, network, to, err)
	}
}

// refused: the client gets an error at once.
func (w *world) refused(m *machine, network, to string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 8*time.Second)
	defer cancel()
	if err := testbed.Eventually(ctx, 150*time.Millisecond, func() error {
		name, _, err := m.askOnce(network, to)
		var timeout net.Error
		switch {
		case err == nil:
			return fmt.Errorf("%s answers", name)
		case errors.As(err, &timeout) && timeout.Timeout():
			return fmt.Errorf("no answer, and no error: %w", err)
		}
		return nil
	}); err != nil {
		w.t.Errorf("from %s to %s %s: %v", m.name, network, to, err)
	}
}

// sees: the server that answers sees this client.
func (w *world) sees(m *machine, network, to, client string) {
	w.t.Helper()
	if name, got, err := m.askOnce(network, to); err != nil || got != netip.MustParseAddr(client) {
		w.t.Errorf("from %s to %s %s: %s sees %s, %v; want %s", m.name, network, to, name, got, err, client)
	}
}

// service makes a service of TCP and UDP port 80.
func (w *world) service(name, ip string, change func(*corev1.Service), servers ...*machine) *corev1.Service {
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

func (w *world) endpoints(s *corev1.Service, servers ...*machine) {
	w.t.Helper()
	family := kubeapi.FamilyOf(netip.MustParseAddr(s.Spec.ClusterIP))
	list := []discoveryv1.Endpoint{}
	for _, m := range servers {
		list = append(list, kubeapi.Endpoint(m.node, m.ip))
	}
	w.must(w.api.Put(kubeapi.Slice(s, family, servePort, list...)))
}
