//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/cmd/contiv-netctl/internal/client"
	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/atonce"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/poll"
)

// prefix is the prefix of the names of all namespaces that these tests make.
const prefix = "ntc"

var binDir string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run() // tests that need root are skipped with a message
	}
	atonce.Limit(3) // the tests wait most of the time
	dir, err := os.MkdirTemp("", prefix+"-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "contiv-netctl:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binDir = dir
	err = gobuild.Commands(dir, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-cni", "contiv.dev/vswitch/cmd/contiv-netctl")
	if err != nil {
		fmt.Fprintln(os.Stderr, "contiv-netctl:", err)
		return 1
	}
	return m.Run()
}

// world is a cluster of two nodes whose agents reach each other by TLS, and three pods: a and b on the first node, c on the second.
type world struct {
	*testbed.Cluster
	t       *testing.T
	ctx     context.Context
	dir     string
	a, b, c *testbed.Pod

	hasPlugin bool
}

func newWorld(t *testing.T, dataplane, transport string) *world {
	t.Helper()
	return newKubeWorld(t, dataplane, transport, "", nil)
}

// newKubeWorld returns a world whose agents use a kubeconfig, if it is not empty; before is called for each node before its agent starts.
func newKubeWorld(t *testing.T, dataplane, transport, kubeconfig string, before func(*testbed.Node) error) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, dir: t.TempDir(), hasPlugin: dataplane == "vpp"}
	w.credentials()
	name := fmt.Sprintf("%s%03x%d", prefix, testNumber(t), os.Getpid()%10000)
	filter := "nft"
	switch dataplane {
	case iptables:
		dataplane, filter = "linux", iptables
	case bare:
		dataplane = "vpp"
	}
	opts := testbed.ClusterOptions{
		Name: name, Nodes: 2, Addressed: dataplane == "linux",
		Node: testbed.NodeOptions{BinDir: binDir, Dataplane: dataplane, AgentArgs: []string{
			"--http=0.0.0.0:9999", "--http-cert=" + w.dir + "/tls.crt", "--http-key=" + w.dir + "/tls.key",
			"--http-token-file=" + w.dir + "/token", "--nat-sessions-by-pod=5s",
			"--linux-backend=" + filter,
		}},
		ConfigOf: func(i int) string {
			nic := map[string]string{"vpp": "host-eth1", "linux": "eth1"}[dataplane]
			return "nodeToNodeTransport: " + transport + "\nuseTAPInterfaces: true\nipamConfig:\n  podSubnetCIDR: " +
				"10.1.0.0/16,fd10:1::/48\n" +
				"  podSubnetOneNodePrefixLen: 24,64\n  serviceCIDR: 10.96.0.0/12,fd10:96::/112\n" +
				"nodeConfig:\n- nodeName: " + testbed.NodeName(name, i) +
				"\n  mainVPPInterface:\n    interfaceName: " + nic + "\n"
		},
	}
	if dataplane == "vpp" {
		if _, ok := vpptest.Find(); !ok {
			t.Skip(vpptest.ErrNoVPP)
		}
		_, err := os.Stat("/dev/vhost-net")
		opts.Node.VPP = &vpptest.Options{Vhostshim: err != nil, HeapMB: 512, Buffers: 8192, Plugin: w.hasPlugin}
	}
	opts.Unstarted = true
	if kubeconfig != "" {
		opts.Node.AgentArgs = append(opts.Node.AgentArgs, "--kubeconfig="+kubeconfig)
	}
	cluster, err := testbed.NewCluster(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	w.Cluster = cluster
	t.Cleanup(w.close)
	for _, n := range cluster.Nodes {
		if before != nil {
			err = before(n)
		}
		if err = errors.Join(err, n.StartAgent(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	w.a, w.b, w.c = w.pod(0, "a"), w.pod(0, "b"), w.pod(1, "c")
	for _, p := range []*testbed.Pod{w.b, w.c} {
		if err := poll.Until(ctx, 50*time.Millisecond, func() error {
			return w.a.PingOnce(ctx, p.IPs[0].String(),
				0)
		}); err != nil {
			t.Fatalf("before anything is tested, a does not reach %s: %v", p.Name, err)
		}
	}
	return w
}

// iptables is the Linux dataplane with the other filter, bare is VPP without our plugin.
const (
	iptables = "iptables"
	bare     = "bare"
)

// testNumber makes the names of worlds unique whose tests run at the same time.
func testNumber(t *testing.T) uint32 { return crc32.ChecksumIEEE([]byte(t.Name())) % 0x1000 }

var errNothing = errors.New("nothing yet")

// until runs the command until its output is as wanted.
func (w *world) until(ok bool, args []string, texts ...string) {
	w.t.Helper()
	out, got := "", false
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	err := poll.Until(ctx, 50*time.Millisecond, func() error {
		out, got = w.netctl(args...)
		for _, text := range texts {
			if got != ok || !strings.Contains(out, text) {
				return errNothing
			}
		}
		return nil
	})
	for _, text := range texts {
		if err != nil || got != ok || !strings.Contains(out, text) {
			w.t.Fatalf("contiv-netctl %s: no %q, or success is not %t, in\n%s", strings.Join(args, " "), text, ok, out)
		}
	}
}

func (w *world) pod(node int, name string) *testbed.Pod {
	w.t.Helper()
	p, err := w.Nodes[node].AddPod(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (w *world) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if w.t.Failed() {
		for _, n := range w.Nodes {
			w.t.Logf("the end of the agent's log of %s:\n%s", n.Name, n.LogTail(40))
		}
	}
	for _, p := range []*testbed.Pod{w.a, w.b, w.c} {
		if p != nil {
			_ = p.Delete(ctx) // the pod may have been removed
		}
	}
	if err := w.Close(ctx); err != nil {
		w.t.Errorf("close: %v", err)
	}
}

// credentials makes a certificate for all agents and their token.
func (w *world) credentials() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{client.SharedName}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		w.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		"token":   []byte(theToken + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

const theToken = "a-token-that-is-not-guessed"

// netctl runs the command on the first node, as its root user.
func (w *world) netctl(args ...string) (out string, ok bool) {
	w.t.Helper()
	n := w.Nodes[0]
	cmd := n.Command(w.ctx, filepath.Join(binDir, "contiv-netctl"), append([]string{"--socket=" + n.RESTSocket()}, args...)...)
	data, err := cmd.CombinedOutput()
	return string(data), err == nil
}

// want runs the command and checks its output for texts.
func (w *world) want(ok bool, args []string, texts ...string) string {
	w.t.Helper()
	out, got := w.netctl(args...)
	if got != ok {
		w.t.Errorf("contiv-netctl %s: success %t, want %t:\n%s", strings.Join(args, " "), got, ok, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			w.t.Errorf("contiv-netctl %s: no %q in\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// node runs a command on a node.
func (w *world) node(i int, command string) {
	w.t.Helper()
	if out, err := w.Nodes[i].Run(w.ctx, "sh", "-c", command); err != nil {
		w.t.Fatalf("%s: %v %s", command, err, out)
	}
}

// vpp runs a command on a node's VPP.
func (w *world) vpp(i int, command string) string {
	w.t.Helper()
	out, err := w.Nodes[i].VPP.CLI(command)
	if err != nil {
		w.t.Fatalf("%s: %v", command, err)
	}
	return out
}

// repair makes a node's dataplane as it should be by a resync.
func (w *world) repair(i int) {
	w.t.Helper()
	if _, err := w.Nodes[i].Post(w.ctx, "/controller/resync"); err != nil {
		w.t.Fatal(err)
	}
}
