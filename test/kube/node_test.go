package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed/netns"
)

// node is a node of the cluster.
type node struct {
	name string
	i    int    // 1, 2, …
	dir  string // folder of its files on this machine
	init int    // PID of its first process

	agent *process
	vpp   *process
	host  *netns.Namespace // namespace of the node itself, as for hostNetwork pods
}

func newNode(i int) (*node, error) {
	n := &node{name: fmt.Sprintf("node%d", i), i: i}
	n.dir = filepath.Join(runDir, n.name)
	pid, err := hostProcess(n.name)
	if err != nil {
		return nil, err
	}
	if n.init, err = onlyChild(pid); err != nil {
		return nil, fmt.Errorf("first process of %s: %w", n.name, err)
	}
	n.host = &netns.Namespace{Name: n.name, File: fmt.Sprintf("/proc/%d/ns/net", n.init)}
	return n, nil
}

// ip returns the node's address in Kubernetes.
func (n *node) ip() string  { return fmt.Sprintf("10.10.0.1%d", n.i) }
func (n *node) ip6() string { return fmt.Sprintf("fd00:10::1%d", n.i) }

// path returns the path of a file of the node on this machine.
func (n *node) path(file string) string { return fmt.Sprintf("/proc/%d/root%s", n.init, file) }

// config returns contiv.conf: the pods' networks are those of the API server; VPP has its own addresses in addition to the
// host's.
func (w *world) config() string {
	conf := `nodeToNodeTransport: vxlan
useTAPInterfaces: true
ipamConfig:
  podSubnetCIDR: 10.244.0.0/16,fd00:244::/56
  podSubnetOneNodePrefixLen: 24,64
  vppHostSubnetCIDR: 172.30.0.0/16,fd00:172:30::/48
  vppHostSubnetOneNodePrefixLen: 24,64
  nodeInterconnectCIDR: 10.10.0.0/24,fd00:10::/64
  vxlanCIDR: 192.168.30.0/24,fd00:192:168:30::/112
  serviceCIDR: 10.96.0.0/16,fd00:96::/112
`
	if hasVPP(w.setup) {
		conf += "nodeConfig:\n"
	}
	for _, n := range w.nodes {
		if !w.onVPP(n) {
			continue
		}
		conf += fmt.Sprintf("- nodeName: %s\n  gateway: 10.10.0.1\n  mainVPPInterface:\n    interfaceName: host-eth0\n"+
			"    ip: %s/24,%s/64\n",
			n.name, n.vppIP(), n.vppIP6())
	}
	return conf
}

// onVPP reports whether VPP processes a node's packets: with auto, only the first node's.
func (w *world) onVPP(n *node) bool {
	return w.setup.dataplane == "vpp" || w.setup.dataplane == "auto" && n.i == 1
}

func (n *node) vppIP() string  { return fmt.Sprintf("10.10.0.10%d", n.i) }
func (n *node) vppIP6() string { return fmt.Sprintf("fd00:10::10%d", n.i) }

// startAgents installs the plugin and starts the agent on every node, after VPP if the node has it.
func (w *world) startAgents() {
	w.t.Helper()
	credential := w.agentCredential()
	for _, n := range w.nodes {
		w.must(os.WriteFile(filepath.Join(n.dir, "contiv.conf"), []byte(w.config()), 0o644))
		w.must(os.WriteFile(filepath.Join(n.dir, "agent.kubeconfig"), credential, 0o600))
		w.must(n.installCNI(binDir))
		if w.setup.dataplane == "vpp" {
			w.must(n.startVPP(w.ctx))
		}
		w.must(n.startAgent(w.setup.dataplane, binDir))
	}
	for _, n := range w.nodes {
		w.within(60*time.Second, n.name+": the agent is ready", func() error { return n.agentReady(w.ctx) })
		w.must(n.installConflist(w.setup.dataplane))
	}
}

// installCNI replaces the CNI binary as the installer does: by a rename.
func (n *node) installCNI(from string) error {
	data, err := os.ReadFile(filepath.Join(from, "contiv-cni"))
	if err != nil {
		return err
	}
	tmp := filepath.Join(n.dir, "cni-bin", ".contiv-cni.tmp")
	if err := os.WriteFile(tmp, data, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(n.dir, "cni-bin", "contiv-cni"))
}

// installConflist makes the node ready. On VPP a pod's answers leave by VPP and not by the host, where portmap has translated
// the request: so portmap must also replace the client's address with the host's.
func (n *node) installConflist(dataplane string) error {
	portmap := object{"type": "portmap", "capabilities": object{"portMappings": true}, "masqAll": dataplane == "vpp"}
	list, err := json.Marshal(object{"cniVersion": "1.1.0", "name": "contiv", "plugins": []any{
		object{"type": "contiv-cni", "agentSocket": "/run/contiv/cni.sock"}, portmap,
	}})
	if err != nil {
		return err
	}
	tmp := filepath.Join(n.dir, "cni-net.d", ".tmp")
	if err := os.WriteFile(tmp, list, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(n.dir, "cni-net.d", "10-contiv.conflist"))
}

// startAgent does not wait until the agent is ready.
func (n *node) startAgent(dataplane, from string) (err error) {
	n.agent, err = n.start("agent", nil, filepath.Join(from, "contiv-agent"), "--node-name="+n.name, "--dataplane="+dataplane,
		"--config="+filepath.Join(n.dir, "contiv.conf"), "--kubeconfig="+filepath.Join(n.dir, "agent.kubeconfig"),
		"--etcd-endpoints=http://10.10.0.1:2479", "--etcd-insecure-transport")
	return err
}

func (n *node) agentReady(ctx context.Context) error {
	if n.agent != nil && !n.agent.running() {
		return errors.New("the agent has ended")
	}
	_, err := n.rest(ctx, "/readiness")
	return err
}

// rest sends a GET request to the agent.
func (n *node) rest(ctx context.Context, path string) (string, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", n.path("/run/contiv/rest.sock"))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("GET %s: %s: %s", path, resp.Status, strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// segmentPrefix is the prefix of the names of VPP's shared memory.
const segmentPrefix = "kubelab-"

// startVPP starts VPP as the VPP container does, without hugepages.
func (n *node) startVPP(ctx context.Context) error {
	bin, ok := vpptest.Find()
	if !ok {
		return vpptest.ErrNoVPP
	}
	conf := filepath.Join(n.dir, "vpp.conf")
	plugins := filepath.Join(filepath.Dir(filepath.Dir(bin)), "lib", "x86_64-linux-gnu", "vpp_plugins")
	path := ""
	if _, err := os.Stat(plugins); err == nil {
		path = "path " + plugins
	}
	text := fmt.Sprintf(`unix { nodaemon nosyslog nocolor nobanner cli-listen /run/vpp/cli.sock cli-no-pager runtime-dir /run/vpp }
socksvr { socket-name /run/vpp/api.sock }
statseg { socket-name /run/vpp/stats.sock }
api-segment { prefix %s%s }
memory { main-heap-size 512M }
buffers { page-size default buffers-per-numa 65536 }
plugins { %s plugin dpdk_plugin.so { disable } }
`, segmentPrefix, n.name, path)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		return err
	}
	var env []string
	if _, err := os.Stat("/dev/vhost-net"); err != nil {
		shim, err := vpptest.Vhostshim(ctx)
		if err != nil {
			return err
		}
		env = append(env, "LD_PRELOAD="+shim)
	}
	var err error
	n.vpp, err = n.start("vpp", env, "sh", "-c", "mkdir -p /run/vpp && rm -f /run/vpp/*.sock && exec "+bin+" -c "+conf)
	return err
}

// podNamespace returns the network namespace that has an address.
func (n *node) podNamespace(ip string) (*netns.Namespace, error) {
	want, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, err
	}
	dir := n.path("/run/netns")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ns := &netns.Namespace{Name: n.name + "/" + e.Name(), File: filepath.Join(dir, e.Name())}
		found := false
		_ = ns.Do(func() error { // a namespace that is being removed has no addresses
			found = hasAddress(want)
			return nil
		})
		if found {
			return ns, nil
		}
	}
	return nil, fmt.Errorf("no network namespace in %s has the address %s", n.name, ip)
}

// hasAddress reports whether the thread's network namespace has an address.
func hasAddress(want netip.Addr) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == want {
			return true
		}
	}
	return false
}

// kubelet returns the PID of the node's kubelet.
func (n *node) kubelet(ctx context.Context) (int, error) {
	out, err := n.sh(ctx, "pgrep -x kubelet")
	if err != nil {
		return 0, err
	}
	inside, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		return 0, fmt.Errorf("kubelet of %s: %w", n.name, err)
	}
	return inside, nil
}

// restartKubelet kills the kubelet and starts it again after a while.
func (n *node) restartKubelet(ctx context.Context, after time.Duration) error {
	inside, err := n.kubelet(ctx)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(n.path(fmt.Sprintf("/proc/%d/cmdline", inside)))
	if err != nil {
		return err
	}
	argv := strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
	if _, err := n.sh(ctx, fmt.Sprintf("kill -9 %d", inside)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(after): // the kubelet does not run for this time
	}
	_, err = n.start("kubelet", nil, argv...)
	return err
}

// restartAgent ends the agent by a signal and starts it again, possibly another version; in a pod the kubelet does that.
func (w *world) restartAgent(n *node, sig syscall.Signal, from string) {
	w.t.Helper()
	if w.setup.installed {
		w.must(n.endAll(w.ctx, "contiv-agent", sig))
	} else {
		w.must(n.agent.end(sig))
		w.must(n.startAgent(w.setup.dataplane, from))
	}
	w.within(60*time.Second, n.name+": the agent is back", func() error { return n.agentReady(w.ctx) })
}

// endAll sends a signal to the node's processes with a name, as the kernel stores it (15 characters), and waits until they have
// ended.
func (n *node) endAll(ctx context.Context, name string, sig syscall.Signal) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	_, err := n.sh(ctx, fmt.Sprintf("pids=$(pgrep -x %s) && kill -%d $pids && "+
		"for p in $pids; do while test -e /proc/$p; do sleep 0.01; done; done", name, sig))
	return err
}
