package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	agentImage   = "docker.io/contiv/agent"
	agentTag     = "0.1.0"
	upgradeTag   = "0.1.1"
	etcdImage    = "registry.k8s.io/etcd"
	etcdTag      = "lab"
	agentsName   = "contiv-agent"
	renderFolder = "../../k8s/render"
)

// install does what the README says: the chart, with values for this cluster. Images come from the binaries under test.
func (w *world) install() {
	w.t.Helper()
	dir := w.t.TempDir()
	for tag, from := range map[string]string{agentTag: binDir, upgradeTag: upgradeDir} {
		plugins := filepath.Join(cacheDir(), "cni-bin")
		w.pack(dir, agentImage+":"+tag, filepath.Join(from, "contiv-agent"), filepath.Join(from, "contiv-cni"),
			filepath.Join(from, "contiv-init"), filepath.Join(from, "contiv-netctl"), filepath.Join(plugins, "loopback"), filepath.Join(plugins, "portmap"))
	}
	w.pack(dir, etcdImage+":"+etcdTag, filepath.Join(cacheDir(), "bin", "etcd"))
	// The chart wants etcd on a node of the control plane.
	w.kubectl("label", "node", w.nodes[0].name, "node-role.kubernetes.io/control-plane=")
	start := time.Now()
	w.chart(agentTag)
	w.within(2*time.Minute, "the nodes are ready", w.nodesReady)
	w.t.Logf("nodes are ready %s after `kubectl apply`", since(start))
}

// chart renders the chart and applies it.
func (w *world) chart(tag string) {
	w.t.Helper()
	values := filepath.Join(w.t.TempDir(), "values.yaml")
	w.must(os.WriteFile(values, fmt.Appendf(nil, `dataplane: linux
kubernetes: {server: "%s"}
images: {agent: {tag: "%s"}, etcd: {tag: "%s"}}
agent: {remote: {enabled: true}}
contivConf:
  nodeToNodeTransport: vxlan
  ipamConfig:
    podSubnetCIDR: 10.244.0.0/16,fd00:244::/56
    podSubnetOneNodePrefixLen: 24,64
    vppHostSubnetCIDR: 172.30.0.0/16,fd00:172:30::/48
    vppHostSubnetOneNodePrefixLen: 24,64
    nodeInterconnectCIDR: 10.10.0.0/24,fd00:10::/64
    vxlanCIDR: 192.168.30.0/24,fd00:192:168:30::/112
    serviceCIDR: 10.96.0.0/16,fd00:96::/112
`, apiServer, tag, etcdTag), 0o644))
	cmd := exec.CommandContext(w.ctx, "go", "run", ".", "-values", values, "-kubeconfig", filepath.Join(runDir, "kubeconfig"),
		"../contiv-vpp")
	cmd.Dir = renderFolder
	cmd.Stderr = os.Stderr
	rendered, err := cmd.Output()
	w.must(err)
	_, err = kubectl(w.ctx, rendered, "apply", "--validate=strict", "-f", "-")
	w.must(err)
}

// pack makes an image of programs, in /usr/local/bin, and gives it to every node.
func (w *world) pack(dir, image string, programs ...string) {
	w.t.Helper()
	root, err := os.MkdirTemp(dir, "root-")
	w.must(err)
	bin := filepath.Join(root, "usr", "local", "bin")
	w.must(os.MkdirAll(bin, 0o755))
	w.must(os.MkdirAll(filepath.Join(root, "tmp"), 0o1777))
	for _, p := range programs {
		data, err := os.ReadFile(p)
		w.must(err)
		w.must(os.WriteFile(filepath.Join(bin, filepath.Base(p)), data, 0o755))
	}
	archive := filepath.Join(runDir, strings.NewReplacer("/", "-", ":", "-").Replace(image)+".tar")
	out, err := exec.CommandContext(w.ctx, filepath.Join(cacheDir(), "bin", "mkimage"), "-root", root, "-tag", image,
		"-entrypoint", "/usr/local/bin/"+filepath.Base(programs[0]), "-o", archive).CombinedOutput()
	if err != nil {
		w.t.Fatalf("mkimage %s: %v: %s", image, err, out)
	}
	for _, n := range w.nodes {
		w.within(time.Minute, n.name+" has "+image, func() error {
			_, err := n.sh(w.ctx, "ctr -n k8s.io images import --all-platforms "+archive)
			return err
		})
	}
}

// testUpgrade: the DaemonSet gets another image under traffic; no packet is lost, and the new agents serve pods.
func testUpgrade(w *world) {
	pods := w.webPods("steady", 2)
	streams, loads := w.traffic(pods)
	start := time.Now()
	w.chart(upgradeTag)
	w.kubectl("-n", agentNamespace, "rollout", "status", "daemonset/"+agentsName, "--timeout=180s")
	w.t.Logf("the agents of %d nodes are replaced after %s", len(w.nodes), since(start))
	w.unhurt(streams...)
	w.ended(loads...)
	images := w.kubectl("-n", agentNamespace, "get", "pods", "-l", "app.kubernetes.io/name="+agentsName,
		"-o", "jsonpath={.items[*].spec.containers[0].image}")
	if want := strings.TrimSpace(strings.Repeat(agentImage+":"+upgradeTag+" ", len(w.nodes))); images != want {
		w.t.Errorf("the agents' images are %q instead of %q", images, want)
	}
	after := w.webPods("after-upgrade", 1)
	w.answers(pods[0].Metadata.Name, pods[0].ns, hostPort(after[0].v4(), webPort), after[0].Metadata.Name)
}

// testNetctl: the command line in any agent's pod reaches all nodes, by the chart's certificates and token, and finds no fault.
func testNetctl(w *world) {
	pods := w.webPods("asked", 2)
	agents := strings.Fields(w.kubectl("-n", agentNamespace, "get", "pods", "-l", "app.kubernetes.io/name="+agentsName, "-o", "name"))
	netctl := func(args ...string) string {
		return w.kubectl(append([]string{"-n", agentNamespace, "exec", agents[0], "-c", "agent", "--", "contiv-netctl"}, args...)...)
	}
	nodes, list := netctl("nodes"), netctl("pods")
	for _, n := range w.nodes {
		if line := lineOf(nodes, n.name); !strings.Contains(line, "yes") {
			w.t.Errorf("netctl nodes: %q", nodes)
		}
	}
	for _, p := range pods {
		if !strings.Contains(list, p.Metadata.Name) {
			w.t.Errorf("netctl pods lacks %s:\n%s", p.Metadata.Name, list)
		}
	}
	w.t.Logf("netctl check:\n%s", netctl("check")) // fails if it finds something
	netctl("ping", "default/"+pods[0].Metadata.Name, "default/"+pods[1].Metadata.Name)
}

func lineOf(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}
