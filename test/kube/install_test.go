package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	agentsName   = "contiv-agent"
	vppName      = "contiv-vpp"
	renderFolder = "../../k8s/render"
)

// install follows the README: it applies the chart, with values for this cluster.
func (w *world) install() {
	w.t.Helper()
	start := time.Now()
	images, err := builtImages()
	w.must(err)
	archives := []string{images.agent(), images.upgrade(), images.etcd()}
	if hasVPP(w.setup) {
		archives = append(archives, images.vpp())
	}
	w.load(archives...)
	w.t.Logf("the nodes have the images after %s", since(start))
	// The chart requires etcd on a node of the control plane.
	w.kubectl("label", "node", w.nodes[0].name, "node-role.kubernetes.io/control-plane=")
	if w.setup.dataplane == "auto" {
		w.kubectl("label", "node", w.nodes[0].name, "contiv.dev/dataplane=vpp")
	}
	start = time.Now()
	w.chart(imageTag)
	w.within(2*time.Minute, "the nodes are ready", w.nodesReady)
	w.t.Logf("nodes are ready %s after `kubectl apply`", since(start))
}

// values returns the values for this cluster; tag is the tag of the agent's image.
func (w *world) values(tag string) []byte {
	args := ""
	if hasVPP(w.setup) && !hasVhost() {
		args = "--preload=/" + shimInImage
	}
	limit := 0
	if w.setup.relay {
		limit = setLimit
	}
	return fmt.Appendf(nil, `dataplane: %s
kubernetes: {server: "%s", relay: %t}
images: {agent: {tag: "%s"}, vpp: {tag: "%s"}, etcd: {tag: "%s"}}
agent: {remote: {enabled: true}}
vpp: {extraArgs: [%s]}
networkPolicy: {setLimit: %d}
contivConf:
  %s
`, w.setup.dataplane, apiServer, w.setup.relay, tag, imageTag, etcdTag, args, limit, strings.ReplaceAll(w.config(), "\n", "\n  "))
}

// chart renders the chart and applies it.
func (w *world) chart(tag string) {
	w.t.Helper()
	_, err := kubectl(w.ctx, w.render(tag), "apply", "--validate=strict", "-f", "-")
	w.must(err)
}

// render returns the chart's objects with the values of this cluster.
func (w *world) render(tag string, flags ...string) []byte {
	w.t.Helper()
	values := filepath.Join(w.t.TempDir(), "values.yaml")
	w.must(os.WriteFile(values, w.values(tag), 0o644))
	args := slices.Concat([]string{"run", ".", "-values", values, "-kubeconfig", filepath.Join(runDir, "kubeconfig")}, flags, []string{"../contiv-vpp"})
	cmd := exec.CommandContext(w.ctx, "go", args...)
	cmd.Dir = renderFolder
	cmd.Stderr = os.Stderr
	rendered, err := cmd.Output()
	w.must(err)
	return rendered
}

// testHelmTest runs the pod of `helm test`: the connectivity test between the nodes passes.
func testHelmTest(w *world) {
	manifest := w.render(imageTag, "-tests")
	_, err := kubectl(w.ctx, manifest, "apply", "--validate=strict", "-f", "-")
	w.must(err)
	phase := func() string {
		return w.kubectl("-n", agentNamespace, "get", "pod", "contiv-test", "-o", "jsonpath={.status.phase}")
	}
	w.within(5*time.Minute, "the test has ended", func() error {
		if p := phase(); p != "Succeeded" && p != "Failed" {
			return fmt.Errorf("the pod's phase is %q", p)
		}
		return nil
	})
	report := w.kubectl("-n", agentNamespace, "logs", "contiv-test")
	w.t.Logf("helm test:\n%s", report)
	if p := phase(); p != "Succeeded" {
		w.t.Errorf("the test's pod has %s", p)
	}
	for _, n := range w.nodes {
		if !strings.Contains(report, n.name) {
			w.t.Errorf("the report does not name node %s", n.name)
		}
	}
	_, err = kubectl(w.ctx, manifest, "delete", "-f", "-")
	w.must(err)
}

// testUpgrade changes the image of the DaemonSet under traffic; no packet is lost, and the new agents serve pods. VPP is not
// restarted.
func testUpgrade(w *world) {
	pods := w.webPods("steady", 2)
	streams, loads := w.traffic(pods)
	before := w.vpps()
	start := time.Now()
	w.chart(upgradeTag)
	w.kubectl("-n", agentNamespace, "rollout", "status", "daemonset/"+agentsName, "--timeout=180s")
	w.t.Logf("the agents of %d nodes are replaced after %s", len(w.nodes), since(start))
	w.unhurt(streams...)
	w.ended(loads...)
	if after := w.vpps(); !slices.Equal(after, before) {
		w.t.Errorf("VPPs before and after: %+v, %+v", before, after)
	}
	images := w.kubectl("-n", agentNamespace, "get", "pods", "-l", "app.kubernetes.io/name="+agentsName,
		"-o", "jsonpath={.items[*].spec.containers[0].image}")
	if want := strings.TrimSpace(strings.Repeat(agentImage+":"+upgradeTag+" ", len(w.nodes))); images != want {
		w.t.Errorf("the agents' images are %q instead of %q", images, want)
	}
	after := w.webPods("after-upgrade", 1)
	w.answers(pods[0].Metadata.Name, pods[0].ns, hostPort(after[0].v4(), webPort), after[0].Metadata.Name)
}

// testNetctl checks that the command line in any agent's pod reaches all nodes, with the chart's certificates and token, and
// finds no fault.
func testNetctl(w *world) {
	pods := w.webPods("asked", 2)
	names := w.kubectl("-n", agentNamespace, "get", "pods", "-l", "app.kubernetes.io/component=agent", "-o", "name")
	agents := strings.Fields(names)
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
	w.t.Logf("netctl check:\n%s", netctl("check")) // fails if it reports a fault
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
