package docs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"contiv.dev/vswitch/test/testbed"
)

// TestScript runs testdata/cluster.txtar, a script in the language of testscript, on a cluster of two Linux nodes with the pods a, b and
// c of the troubleshooting page. Its commands, besides testscript's own:
//
//	contiv-netctl ARGUMENTS, netctl ARGUMENTS  on the first node; worker-1 and worker-2 are replaced by the nodes' names
//	contiv-agent ARGUMENTS                     starts an agent on a third node, which is not part of the cluster, and waits until it is ready
//	curl ARGUMENTS                             on that third node
func TestScript(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel) // runs after the script, which testscript runs in parallel
	l := newLab(ctx, t)
	testscript.Run(t, testscript.Params{
		Files: []string{scriptFile}, RequireExplicitExec: true,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"contiv-netctl": l.netctl, "netctl": l.netctl, "contiv-agent": l.agent, "curl": l.curl,
		},
	})
}

// lab is the environment of the script.
type lab struct {
	*testbed.Cluster
	ctx   context.Context
	bin   string
	alone *testbed.Node
	pods  []*testbed.Pod
}

func newLab(ctx context.Context, t *testing.T) *lab {
	t.Helper()
	l := &lab{ctx: ctx, bin: builtPrograms(t)}
	dir := credentials(t)
	name := fmt.Sprintf("doc%d", os.Getpid()%100000)
	cluster, err := testbed.NewCluster(ctx, testbed.ClusterOptions{
		Name: name, Nodes: 2, Addressed: true,
		Node: testbed.NodeOptions{BinDir: l.bin, Dataplane: "linux", AgentArgs: []string{
			"--http=0.0.0.0:9999", "--http-cert=" + dir + "/tls.crt", "--http-key=" + dir + "/tls.key", "--http-token-file=" + dir + "/token"}},
		ConfigOf: func(i int) string {
			return "nodeConfig:\n- nodeName: " + testbed.NodeName(name, i) + "\n  mainVPPInterface: {interfaceName: " + testbed.UplinkNIC + "}\n"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Cluster = cluster
	t.Cleanup(func() { l.close(t) })
	for i, pods := range [][]string{{"a", "b"}, {"c"}} {
		for _, pod := range pods {
			p, err := cluster.Nodes[i].AddPod(ctx, pod)
			if err != nil {
				t.Fatal(err)
			}
			l.pods = append(l.pods, p)
		}
	}
	l.alone, err = testbed.NewNode(ctx, testbed.NodeOptions{Name: name + "-alone", BinDir: l.bin, Dataplane: "linux"})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) close(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, p := range l.pods {
		_ = p.Delete(ctx) // the pod may have been deleted already
	}
	err := l.Close(ctx)
	if l.alone != nil {
		err = errors.Join(err, l.alone.Close(ctx))
	}
	if err != nil {
		t.Errorf("close: %v", err)
	}
}

// credentials returns the folder of a certificate for all agents and their token.
func credentials(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"contiv-agent"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
		"token":   []byte("a-token-of-the-documents'-test\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// on runs a program on a node. The script checks its output with "stdout".
func (l *lab) on(n *testbed.Node, ts *testscript.TestScript, neg bool, program string, args ...string) {
	for i := range args {
		for j, node := range l.Nodes {
			args[i] = strings.ReplaceAll(args[i], fmt.Sprintf("worker-%d", j+1), node.Name)
		}
	}
	err := ts.Exec("nsenter", append([]string{"--net=" + n.Path(), program}, args...)...)
	if (err != nil) != neg {
		ts.Fatalf("%s %s: %v", filepath.Base(program), strings.Join(args, " "), err)
	}
}

func (l *lab) netctl(ts *testscript.TestScript, neg bool, args []string) {
	n := l.Nodes[0]
	l.on(n, ts, neg, filepath.Join(l.bin, "contiv-netctl"), append([]string{"--socket=" + n.RESTSocket()}, args...)...)
}

// curl runs curl on the node of the documented agent. The agent's socket has another path than in the documents.
func (l *lab) curl(ts *testscript.TestScript, neg bool, args []string) {
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "/run/contiv/rest.sock", l.alone.RESTSocket())
	}
	l.on(l.alone, ts, neg, "curl", append([]string{"-fsS"}, args...)...)
}

// agent starts the agent with the documented arguments. It uses its own directories, so that those of the machine do not change.
func (l *lab) agent(ts *testscript.TestScript, _ bool, args []string) {
	for i := range args {
		if name, path, ok := strings.Cut(args[i], "="); ok && name == "--config" {
			args[i] = name + "=" + ts.MkAbs(path)
		}
	}
	if err := l.alone.StartAgent(l.ctx, args...); err != nil {
		ts.Fatalf("contiv-agent %s: %v", strings.Join(args, " "), err)
	}
}
