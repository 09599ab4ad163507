package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The programs of VPP's container, by the names that the kernel shows.
const (
	vppProcess        = "vpp_main"
	supervisorProcess = "contiv-vpp-supe"
)

// outage measures the loss of packets for pods of a node during an event of VPP there: the loss is logged, and a loss above a limit
// is a fault.
func (w *world) outage(what string, pods []*client, limit time.Duration, happen func()) {
	w.t.Helper()
	streams, loads := w.traffic(pods)
	time.Sleep(time.Second) // traffic before the event
	start := time.Now()
	happen()
	for _, p := range pods {
		w.reaches(pods[0], p)
	}
	w.t.Logf("%s: all pods answer after %s", what, since(start))
	time.Sleep(time.Second) // traffic after the event
	for _, s := range streams {
		s.stop()
	}
	for _, s := range streams {
		lost := time.Duration(w.lost(s)) * s.interval
		w.t.Logf("%s: %s: %d ms lost", what, s.name, lost/time.Millisecond)
		if lost > limit {
			w.t.Errorf("%s: %s lost", s.name, lost)
		}
	}
	for _, l := range loads {
		l.end()
		w.t.Logf("%s: %s", what, l)
	}
}

// reaches checks that a pod receives answers from another in both families.
func (w *world) reaches(from, to *client) {
	w.t.Helper()
	for _, ip := range to.ips() {
		w.within(time.Minute, from.Metadata.Name+" reaches "+to.Metadata.Name+" at "+ip, func() error {
			got, err := queryFrom(from.ns, hostPort(ip, webPort), "/hostname")
			if err == nil && got != to.Metadata.Name {
				err = fmt.Errorf("%s answers", got)
			}
			return err
		})
	}
}

// newPodOn checks that a node serves new pods, too.
func (w *world) newPodOn(n *node, from *client, name string) {
	w.t.Helper()
	w.create(webPod(name, name, n.name))
	w.t.Cleanup(func() { w.deletePods(name) })
	w.reaches(from, w.readyPods(name, 1)[0])
}

// testVPPKill kills VPP under traffic. The pods keep their links and addresses; only packets during the outage are lost.
func testVPPKill(w *world) {
	pods := w.webPods("steady", 2)
	n := w.node(pods[0].Spec.NodeName)
	for i := range 3 {
		w.outage(fmt.Sprintf("kill %d", i+1), pods, 10*time.Second, func() {
			if w.setup.installed { // the supervisor restarts it
				w.must(n.endAll(w.ctx, vppProcess, syscall.SIGKILL))
				return
			}
			w.must(n.vpp.end(syscall.SIGKILL))
			w.must(n.startVPP(w.ctx))
		})
	}
	w.newPodOn(n, pods[0], "after-vpp")
}

// vppContainer is the state of VPP's container on a node: how often the kubelet has started it, and its process.
type vppContainer struct {
	pod      string
	restarts int
	ready    bool
	vpp      string // PID
}

func (w *world) vppContainer(n *node) (vppContainer, error) {
	out, err := kubectl(w.ctx, nil, "-n", agentNamespace, "get", "pods", "-l", "app.kubernetes.io/name="+vppName,
		"--field-selector", "spec.nodeName="+n.name, "-o", "json")
	if err != nil {
		return vppContainer{}, err
	}
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				ContainerStatuses []struct {
					RestartCount int
					Ready        bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return vppContainer{}, err
	}
	if len(list.Items) != 1 || len(list.Items[0].Status.ContainerStatuses) != 1 {
		return vppContainer{}, fmt.Errorf("%s has %d pods of VPP, or its container is not there yet", n.name, len(list.Items))
	}
	pid, err := n.sh(w.ctx, "pgrep -x "+vppProcess)
	if err != nil {
		return vppContainer{}, err
	}
	s := list.Items[0].Status.ContainerStatuses[0]
	return vppContainer{list.Items[0].Metadata.Name, s.RestartCount, s.Ready, strings.TrimSpace(pid)}, nil
}

// vppReady waits until VPP's pod is ready on a node.
func (w *world) vppReady(n *node) (c vppContainer) {
	w.t.Helper()
	w.within(time.Minute, n.name+": VPP's pod is ready", func() (err error) {
		if c, err = w.vppContainer(n); err == nil && !c.ready {
			err = errors.New("it is not")
		}
		return err
	})
	return c
}

// vpps returns the containers of VPP on all nodes, if there are any.
func (w *world) vpps() (all []vppContainer) {
	w.t.Helper()
	for _, n := range w.nodes {
		if w.setup.installed && w.onVPP(n) {
			all = append(all, w.vppReady(n))
		}
	}
	return all
}

// testVPPFrozen stops VPP for a while. It is reported as not ready, and is not killed: it continues with its state.
func testVPPFrozen(w *world) {
	pods := w.webPods("steady", 2)
	n := w.node(pods[0].Spec.NodeName)
	before := w.vppReady(n)
	w.outage("VPP frozen", pods, 30*time.Second, func() {
		_, err := n.sh(w.ctx, "kill -STOP "+before.vpp)
		w.must(err)
		w.within(time.Minute, "VPP's pod is not ready", func() error {
			c, err := w.vppContainer(n)
			if err == nil && c.ready {
				err = errors.New("it is")
			}
			return err
		})
		_, err = n.sh(w.ctx, "kill -CONT "+before.vpp)
		w.must(err)
	})
	if after := w.vppReady(n); after != before {
		w.t.Errorf("VPP before and after: %+v, %+v", before, after)
	}
}

// testVPPContainer kills VPP's container, as the kernel does when memory is short and as the kubelet does; and replaces its pod, as
// for an upgrade of VPP. The kubelet starts it again, pods keep their links and addresses.
func testVPPContainer(w *world) {
	pods := w.webPods("steady", 2)
	n := w.node(pods[0].Spec.NodeName)
	before := w.vppReady(n)
	w.outage("VPP's container killed", pods, 30*time.Second, func() {
		w.must(n.endAll(w.ctx, supervisorProcess, syscall.SIGKILL))
	})
	killed := w.vppReady(n)
	if killed.restarts != before.restarts+1 || killed.vpp == before.vpp {
		w.t.Errorf("VPP before and after: %+v, %+v", before, killed)
	}
	w.outage("VPP's pod replaced", pods, 30*time.Second, func() {
		w.kubectl("-n", agentNamespace, "delete", "pod", killed.pod)
	})
	if replaced := w.vppReady(n); replaced.pod == killed.pod {
		w.t.Errorf("VPP's pod is still %s", killed.pod)
	}
	w.newPodOn(n, pods[0], "after-vpp-pod")
}

// testVPPOutOfMemory checks the case that VPP reaches the memory limit of its container. The kernel kills VPP, the supervisor
// starts it again.
func testVPPOutOfMemory(w *world) {
	pods := w.webPods("steady", 2)
	n := w.node(pods[0].Spec.NodeName)
	before := w.vppReady(n)
	limits, err := n.memoryLimit(before.vpp)
	w.must(err)
	w.outage("VPP out of memory", pods, 30*time.Second, func() {
		restore, err := limits.tighten(4 << 20)
		w.must(err)
		defer restore()
		// The routes need heap that VPP has not used before.
		_, _ = n.sh(w.ctx, "timeout 20 vppctl -s /run/vpp/cli.sock ip route add 203.0.113.0/32 count 200000 via 10.10.0.1") // VPP dies
		w.within(30*time.Second, "VPP is another", func() error {
			if _, err := os.Stat(n.path("/proc/" + before.vpp)); err == nil {
				return errors.New("it lives")
			}
			return nil
		})
	})
	after := w.vppReady(n)
	if after.vpp == before.vpp || after.pod != before.pod {
		w.t.Errorf("VPP before and after: %+v, %+v", before, after)
	}
	w.t.Logf("VPP's container was started again %d times by the kubelet", after.restarts-before.restarts)
}

// testVPPKept checks that the kubelet has never restarted a container of VPP for other reasons: no probe found a healthy VPP
// unhealthy.
func testVPPKept(w *world) {
	for _, c := range w.vpps() {
		if c.restarts != 0 {
			w.t.Errorf("the container of %s was started again %d times", c.pod, c.restarts)
		}
	}
}

// memoryLimit is a container's limit, as files of its control group.
type memoryLimit struct{ limit, usage string }

func (n *node) memoryLimit(pid string) (memoryLimit, error) {
	data, err := os.ReadFile(n.path("/proc/" + pid + "/cgroup"))
	if err != nil {
		return memoryLimit{}, err
	}
	for line := range strings.Lines(string(data)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		switch {
		case controllers == "memory":
			dir := filepath.Join("/sys/fs/cgroup/memory", path)
			return memoryLimit{filepath.Join(dir, "memory.limit_in_bytes"), filepath.Join(dir, "memory.usage_in_bytes")}, nil
		case id == "0" && controllers == "":
			dir := filepath.Join("/sys/fs/cgroup", path)
			if _, err := os.Stat(filepath.Join(dir, "memory.max")); err == nil {
				return memoryLimit{filepath.Join(dir, "memory.max"), filepath.Join(dir, "memory.current")}, nil
			}
		}
	}
	return memoryLimit{}, fmt.Errorf("process %s of %s has no control group for memory", pid, n.name)
}

// tighten sets the limit to the current usage plus room; restore reverts this.
func (m memoryLimit) tighten(room int64) (restore func(), err error) {
	old, err := os.ReadFile(m.limit)
	if err != nil {
		return nil, err
	}
	usage, err := os.ReadFile(m.usage)
	if err != nil {
		return nil, err
	}
	bytes, err := strconv.ParseInt(strings.TrimSpace(string(usage)), 10, 64)
	if err != nil {
		return nil, err
	}
	write := func(text string) error { return os.WriteFile(m.limit, []byte(text), 0o644) }
	return func() { _ = write(string(old)) }, write(strconv.FormatInt(bytes+room, 10))
}
