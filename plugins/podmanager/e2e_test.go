package podmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/controller"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/test/testbed/gobuild"
)

// node is a node from the view of a container runtime: contiv-cni as it is shipped, and an agent with podmanager and the real controller;
// only the network is a fake.
type node struct {
	t    *testing.T
	dir  string
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList

	jobs *lifecycle.Group
	ctl  *controller.Controller
	pm   *PodManager
	net  *fakeNet
}

// noDataplane accepts everything.
type noDataplane struct{}

func (noDataplane) Commit(context.Context, *txn.Txn) (*txn.Record, error) { return &txn.Record{}, nil }
func (noDataplane) Plan(context.Context, *txn.Txn) ([]txn.Op, error)      { return nil, nil }

// newNode returns a node with an agent in this process.
func newNode(t *testing.T, chained ...any) *node {
	t.Helper()
	n := prepareNode(t, chained...)
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.stop)
	return n
}

func prepareNode(t *testing.T, chained ...any) *node {
	t.Helper()
	if testing.Short() || os.Geteuid() != 0 {
		t.Skip("needs root, and builds contiv-cni")
	}
	n := &node{t: t, dir: t.TempDir()}
	if err := gobuild.Commands(n.dir, "contiv.dev/vswitch/cmd/contiv-cni"); err != nil {
		t.Fatal(err)
	}
	conf, err := json.Marshal(map[string]any{"cniVersion": "1.1.0", "name": "contiv", "plugins": append([]any{map[string]any{
		"type": "contiv-cni", "agentSocket": n.socket(), "dns": map[string]any{"search": []string{"cluster.local"}}}}, chained...)})
	if err == nil {
		n.list, err = libcni.NetworkConfFromBytes(conf)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.cni = libcni.NewCNIConfigWithCacheDir([]string{n.dir}, filepath.Join(n.dir, "cache"), nil)
	return n
}

func (n *node) socket() string { return filepath.Join(n.dir, "run", "cni.sock") }

func (n *node) start(ctx context.Context) (err error) {
	log := slog.New(slog.DiscardHandler)
	n.jobs = lifecycle.NewGroup(ctx, log)
	n.ctl, err = controller.New(controller.DefaultConfig(), controller.Deps{Log: log, Applier: noDataplane{}, Jobs: n.jobs})
	if err != nil {
		return err
	}
	n.pm, err = New(Config{Socket: n.socket(), StoreDir: filepath.Join(n.dir, "pods")}, Deps{EventLoop: n.ctl})
	if err != nil {
		return err
	}
	n.net = newFakeNet()
	n.net.pm = n.pm
	if err := errors.Join(n.ctl.Start(n.pm, n.net), n.ctl.PushEvent(api.NewDBResync())); err != nil {
		return err
	}
	n.jobs.Go("cni", func(ctx context.Context) error { return n.pm.Serve(ctx, Checks{}) })
	return nil
}

func (n *node) stop() {
	if err := errors.Join(n.ctl.Close(), n.jobs.Stop(time.Minute)); err != nil {
		n.t.Error(err)
	}
}

// sandbox returns a network namespace with a name for it.
func (n *node) sandbox(name string) *libcni.RuntimeConf {
	n.t.Helper()
	name = fmt.Sprintf("podmgr-%d-%s", os.Getpid(), name)
	if out, err := exec.CommandContext(n.t.Context(), "ip", "netns", "add", name).CombinedOutput(); err != nil {
		n.t.Skipf("no network namespaces: %v: %s", err, out)
	}
	n.t.Cleanup(func() { n.removeSandbox("/run/netns/" + name) })
	return &libcni.RuntimeConf{ContainerID: name, NetNS: "/run/netns/" + name, IfName: "eth0", Args: [][2]string{
		{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"}, {"K8S_POD_INFRA_CONTAINER_ID", name}}}
}

func (n *node) removeSandbox(path string) {
	_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run() // it may already be deleted
}

func (n *node) add(rt *libcni.RuntimeConf) *types100.Result {
	n.t.Helper()
	res, err := n.cni.AddNetworkList(n.t.Context(), n.list, rt)
	if err != nil {
		n.t.Fatalf("ADD %s: %v", rt.ContainerID, err)
	}
	current, err := types100.NewResultFromResult(res)
	if err != nil {
		n.t.Fatal(err)
	}
	return current
}

func (n *node) del(rt *libcni.RuntimeConf) {
	n.t.Helper()
	if err := n.cni.DelNetworkList(n.t.Context(), n.list, rt); err != nil {
		n.t.Errorf("DEL %s: %v", rt.ContainerID, err)
	}
}

func (n *node) has(containers ...string) {
	n.t.Helper()
	var got []string
	for _, a := range n.pm.LocalAttachments() {
		got = append(got, a.ID.ContainerID)
	}
	if strings.Join(got, " ") != strings.Join(containers, " ") || n.net.count() != len(containers) {
		n.t.Errorf("attachments %v (%d wired), want %v", got, n.net.count(), containers)
	}
}

func TestLifeOfAPod(t *testing.T) {
	n := newNode(t)
	rt := n.sandbox("a")
	first := n.add(rt)
	if len(first.IPs) != 1 || first.IPs[0].Address.String() != "10.1.0.2/32" || *first.IPs[0].Interface != 1 ||
		first.Interfaces[1].Sandbox != rt.NetNS || first.DNS.Search[0] != "cluster.local" {
		t.Errorf("result %+v", first)
	}
	if again := n.add(rt); again.IPs[0].Address.String() != first.IPs[0].Address.String() {
		t.Errorf("again %+v", again)
	}
	if err := n.cni.CheckNetworkList(t.Context(), n.list, rt); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	if err := n.cni.GetStatusNetworkList(t.Context(), n.list); err != nil {
		t.Errorf("STATUS: %v", err)
	}
	n.has(rt.ContainerID)
	n.removeSandbox(rt.NetNS)
	var e *types.Error
	if err := n.cni.CheckNetworkList(t.Context(), n.list, rt); !errors.As(err, &e) || e.Code != types.ErrInvalidNetNS {
		t.Errorf("CHECK of a vanished namespace: %v", err)
	}
	n.del(rt)
	n.del(rt)
	n.has()
}

func TestSandboxesOfOnePod(t *testing.T) {
	n := newNode(t)
	older, newer := n.sandbox("old"), n.sandbox("new")
	n.add(older)
	n.add(newer)
	n.del(older)
	n.has(newer.ContainerID)
	stale := n.sandbox("stale")
	n.add(stale)
	// The runtime has lost it, too, so that only GC can find it.
	if err := os.RemoveAll(filepath.Join(n.dir, "cache")); err != nil {
		t.Fatal(err)
	}
	valid := &libcni.GCArgs{ValidAttachments: []types.GCAttachment{{ContainerID: newer.ContainerID, IfName: "eth0"}}}
	if err := n.cni.GCNetworkList(t.Context(), n.list, valid); err != nil {
		t.Errorf("GC: %v", err)
	}
	n.has(newer.ContainerID)
}

// TestPortmapBehindUs checks that the reference plugin finds its input in our result, and that the port is forwarded.
func TestPortmapBehindUs(t *testing.T) {
	if _, err := exec.LookPath("iptables"); err != nil {
		t.Skip("no iptables")
	}
	n := newNode(t, map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "backend": "iptables"})
	if err := gobuild.Commands(n.dir, "github.com/containernetworking/plugins/plugins/meta/portmap"); err != nil {
		t.Skip(err)
	}
	// The host is a namespace, too: the machine's own rules are not changed.
	host := n.sandbox("host")
	n.cni = libcni.NewCNIConfigWithCacheDir([]string{n.dir}, filepath.Join(n.dir, "cache"), inNetns{host.NetNS})
	rt := n.sandbox("a")
	rt.CapabilityArgs = map[string]any{"portMappings": []map[string]any{{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}}}
	res, err := n.cni.AddNetworkList(t.Context(), n.list, rt)
	if err != nil {
		t.Skipf("portmap does not work on this machine: %v", err)
	}
	if !strings.Contains(fmt.Sprint(res), "10.1.0.2") {
		t.Errorf("result %v", res)
	}
	rules := func() string {
		out, err := inNetns{host.NetNS}.command(t.Context(), "iptables", "-t", "nat", "-S").CombinedOutput()
		if err != nil {
			t.Errorf("iptables: %v", err)
		}
		return string(out)
	}
	if got := rules(); !strings.Contains(got, "--to-destination 10.1.0.2:80") {
		t.Errorf("rules:\n%s", got)
	}
	if err := n.cni.CheckNetworkList(t.Context(), n.list, rt); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	n.del(rt)
	n.has()
	if got := rules(); strings.Contains(got, "10.1.0.2") {
		t.Errorf("rules are left:\n%s", got)
	}
}

// inNetns executes plugins in a network namespace.
type inNetns struct{ path string }

func (i inNetns) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + i.path}, args...)...)
}

// ExecPlugin implements invoke.Exec.
func (i inNetns) ExecPlugin(ctx context.Context, plugin string, stdin []byte, environ []string) ([]byte, error) {
	cmd := i.command(ctx, plugin)
	cmd.Env, cmd.Stdin = environ, bytes.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		failure := &types.Error{}
		if json.Unmarshal(out, failure) == nil && failure.Msg != "" {
			return nil, failure
		}
		return nil, fmt.Errorf("%s: %w: %s", plugin, err, out)
	}
	return out, nil
}

// FindInPath implements invoke.Exec.
func (inNetns) FindInPath(plugin string, paths []string) (string, error) {
	return invoke.FindInPath(plugin, paths)
}

// Decode implements invoke.Exec.
func (inNetns) Decode(data []byte) (version.PluginInfo, error) {
	return (&version.PluginDecoder{}).Decode(data)
}
