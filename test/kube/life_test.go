package kube

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// traffic starts the traffic that runs while parts are restarted: echo requests between pods of one node and of two, in both
// families, and connections to a pod and to a service that all of them serve.
func (w *world) traffic(pods []*client) (streams []*stream, loads []*load) {
	w.t.Helper()
	a, b := w.unlike(pods)
	var beside *client
	for _, p := range pods[1:] {
		if p.Spec.NodeName == a.Spec.NodeName {
			beside = p
		}
	}
	streams = []*stream{
		w.startStream("pods of two nodes, IPv4", a.ns, b.v4()), w.startStream("pods of two nodes, IPv6", a.ns, b.v6()),
		w.startStream("pods of one node, IPv4", a.ns, beside.v4()),
		w.startStream("node and pod", w.node(a.Spec.NodeName).host, a.v4()),
	}
	// Another pod is used than for the service: VPP takes a connection to a backend for an earlier one to the service that had
	// the same port of the client.
	loads = []*load{w.startLoad("pod to pod", beside.ns, hostPort(b.v4(), webPort), 20*time.Millisecond)}
	s := w.service(a.Metadata.Labels["app"])
	for _, ip := range s.Spec.ClusterIPs {
		server := hostPort(ip, 80)
		w.within(10*time.Second, server+" is served", func() error { _, err := queryFrom(a.ns, server, "/hostname"); return err })
		loads = append(loads, w.startLoad("pod to "+server, a.ns, server, 20*time.Millisecond))
	}
	server := hostPort(w.nodeAddresses(w.node(a.Spec.NodeName))[0], s.nodePort())
	w.within(10*time.Second, server+" is served", func() error { _, err := query(server, "/hostname"); return err })
	return streams, append(loads, w.startLoad("outside to "+server, nil, server, 20*time.Millisecond))
}

// ending is a way to end an agent.
type ending struct {
	name string
	sig  syscall.Signal
	from string // folder of the binaries of the next agent
}

// waysToEnd returns the ways to end an agent: in a pod it is only killed, because testUpgrade tests the others.
func (w *world) waysToEnd() []ending {
	if w.setup.installed {
		return []ending{{"killed", syscall.SIGKILL, binDir}}
	}
	return []ending{
		{"stopped", syscall.SIGTERM, binDir}, {"killed", syscall.SIGKILL, binDir},
		{"replaced by another version", syscall.SIGTERM, upgradeDir},
	}
}

// testAgentRestart checks that an agent that is stopped, killed or replaced by another version loses no packet, and that pods
// that are added and deleted in the meantime are served.
func testAgentRestart(w *world) {
	pods := w.webPods("steady", 2)
	streams, loads := w.traffic(pods)
	for i, how := range w.waysToEnd() {
		app := fmt.Sprintf("meanwhile%d", i)
		for _, n := range w.nodes {
			start := time.Now()
			w.create(webPod(app+"-"+n.name, app, n.name))
			if !w.setup.installed {
				w.must(n.installCNI(how.from))
			}
			w.restartAgent(n, how.sig, how.from)
			w.t.Logf("%s: agent %s, ready again after %s", n.name, how.name, since(start))
		}
		for _, c := range w.readyPods(app, len(w.nodes)) {
			w.answers(pods[0].Metadata.Name, pods[0].ns, hostPort(c.v4(), webPort), c.Metadata.Name)
		}
		w.deletePods(app)
	}
	w.unhurt(streams...)
	w.ended(loads...)
}

// testKubeletRestart checks that pods continue while the kubelet does not run; after its restart the kubelet finds them, and
// starts new ones.
func testKubeletRestart(w *world) {
	pods := w.webPods("steady", 2)
	streams, loads := w.traffic(pods)
	w.must(w.nodes[0].restartKubelet(w.ctx, 2*time.Second))
	w.create(webPod("after-kubelet", "after-kubelet", w.nodes[0].name))
	w.t.Cleanup(func() { w.deletePods("after-kubelet") })
	w.readyPods("after-kubelet", 1)
	w.unhurt(streams...)
	w.ended(loads...)
	for _, p := range pods {
		w.answers(p.Metadata.Name, p.ns, hostPort(pods[0].v4(), webPort), pods[0].Metadata.Name)
	}
	again := w.readyPods("steady", len(pods))
	for i := range pods {
		if pods[i].Metadata.UID != again[i].Metadata.UID || pods[i].v4() != again[i].v4() {
			w.t.Errorf("%s is another pod after the kubelet's restart", pods[i].Metadata.Name)
		}
	}
}

// testDrain drains a node; its pods start on the other node, and later on this node again.
func testDrain(w *world) {
	w.apply(deployment("moving", 6))
	w.t.Cleanup(func() { w.kubectl("delete", "deployment", "moving"); w.deletePods("moving") })
	w.readyPods("moving", 6)
	drained := w.nodes[1]
	start := time.Now()
	// This includes CoreDNS.
	w.kubectl("drain", drained.name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s")
	defer w.kubectl("uncordon", drained.name)
	pods := w.readyPods("moving", 6)
	w.t.Logf("six pods of a deployment: %s ready elsewhere %s after the drain began", drained.name, since(start))
	for _, p := range pods {
		if p.Spec.NodeName == drained.name {
			w.t.Errorf("%s is on the drained node", p.Metadata.Name)
		}
		w.answers(drained.name, drained.host, hostPort(p.v4(), webPort), p.Metadata.Name)
	}
	w.kubectl("uncordon", drained.name)
	w.kubectl("rollout", "restart", "deployment/moving")
	w.within(allPodsUp, "pods on the node that is back", func() error {
		pods, err := w.pods(w.ctx, "moving")
		if err != nil {
			return err
		}
		if err := allReady(pods, 6); err != nil {
			return err
		}
		for _, p := range pods {
			if p.Spec.NodeName == drained.name {
				return nil
			}
		}
		return errors.New("none")
	})
}

// testAPIServerAway stops the API server while pods are added and deleted. Traffic continues, also during an agent's restart;
// pods that the kubelets have received are started; and afterwards the state is complete.
func testAPIServerAway(w *world) {
	pods := w.webPods("steady", 2)
	for i := range 10 {
		w.create(webPod(fmt.Sprintf("old-%d", i), "old", ""))
	}
	w.readyPods("old", 10)
	streams, loads := w.traffic(pods)
	for i := range 10 {
		w.create(webPod(fmt.Sprintf("new-%d", i), "new", ""))
	}
	w.must(w.do(w.ctx, http.MethodDelete, podsPath+"?labelSelector=app%3Dold", nil, nil))
	w.within(20*time.Second, "new pods are scheduled", func() error {
		list, err := w.pods(w.ctx, "new")
		for _, p := range list {
			if p.Spec.NodeName == "" {
				return fmt.Errorf("%s is not", p.Metadata.Name)
			}
		}
		return err
	})
	time.Sleep(time.Second) // an agent that is killed may lose changes that it received just before (kube.Deps.SaveInterval)
	start := w.stopAPIServer()
	for _, n := range w.nodes {
		began := time.Now()
		w.restartAgent(n, syscall.SIGKILL, binDir)
		w.t.Logf("%s: agent killed while the API server is away, ready again after %s", n.name, since(began))
	}
	for _, to := range pods {
		w.answers(pods[0].Metadata.Name, pods[0].ns, hostPort(to.v4(), webPort), to.Metadata.Name)
	}
	time.Sleep(3 * time.Second) // the kubelets handle the pods that they have received
	start()
	for _, c := range w.readyPods("new", 10) {
		w.answers(pods[0].Metadata.Name, pods[0].ns, hostPort(c.v4(), webPort), c.Metadata.Name)
	}
	w.within(time.Minute, "the old pods are gone", func() error { return w.none("old") })
	w.deletePods("new")
	w.unhurt(streams...)
	w.ended(loads...)
}

// testLogs checks that the agents' logs have no faults that the tests have not detected.
func testLogs(w *world) {
	for _, n := range w.nodes {
		out, err := w.agentLog(n)
		w.must(err)
		if errs := linesWith(out, "level=ERROR", "panic:", "DATA RACE", "is forbidden"); len(errs) > 0 {
			w.t.Errorf("%s: the agent's log has %d such lines; the first: %s", n.name, len(errs), errs[0])
		}
	}
}

// agentLog returns the agents' log of a node since the node was created; for pods, only of those that still exist in the node.
func (w *world) agentLog(n *node) (string, error) {
	files := []string{filepath.Join(n.dir, "log", "agent.log")}
	if w.setup.installed {
		pods := filepath.Join(n.dir, "log", "pods", agentNamespace+"_"+agentsName+"-*")
		var err error
		if files, err = filepath.Glob(filepath.Join(pods, "agent", "*.log")); err != nil {
			return "", err
		}
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no log of an agent", n.name)
	}
	all := ""
	for _, file := range files {
		out, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all += string(out)
	}
	return all, nil
}
