package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"contiv.dev/vswitch/test/testbed/poll"
)

const runDir = "/run/kubelab" // lab/lib.sh: KUBELAB_RUN

// setup describes the cluster to make.
type setup struct {
	name      string
	dataplane string // dataplane of the agent; "" for the reference: bridge and kube-proxy
	installed bool   // installed by the chart; otherwise the agents are processes in the nodes
	relay     bool   // the agents read the state of Kubernetes from etcd, where contiv-ksr writes it
	documents bool   // bare nodes with kube-proxy and the networks of the documents; a script installs contiv
}

func (s setup) reference() bool { return s.dataplane == "" }

// world is a cluster under test.
type world struct {
	*api
	t     *testing.T
	ctx   context.Context
	setup setup
	nodes []*node

	reference, results *results // measurements of the reference, and of this cluster
}

// newWorld makes a cluster of two nodes, with the agent or the reference in them.
func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	start := time.Now()
	w := newNodes(t, s)
	switch {
	case s.installed:
		w.install()
	case !s.reference():
		w.startAgents()
	}
	w.within(60*time.Second, "the nodes are ready", w.nodesReady)
	t.Logf("%s: two nodes ready after %s", s.name, since(start))
	w.manifest("lab/coredns.yaml")
	w.within(time.Minute, "CoreDNS runs", func() error { // so that it does not count as part of a test
		out := w.kubectl("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-dns", "-o", "jsonpath={.items[*].status.phase}")
		if out != "Running" {
			return fmt.Errorf("it is %q", out)
		}
		return nil
	})
	return w
}

// newNodes makes a cluster of two nodes without pods. The nodes of the reference have their
// network.
func newNodes(t *testing.T, s setup) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), worldLimit())
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, setup: s}
	_ = lab(ctx, nil, "down.sh") // remains of an interrupted run; an error means that there are none
	audit, err := auditArgs()
	w.must(err)
	t.Cleanup(w.close)
	w.must(lab(ctx, append(w.labEnv(), "API_ARGS="+audit), "up.sh", "2"))
	w.api, err = newAPI(filepath.Join(runDir, "pki"), "admin", "")
	w.must(err)
	for i := 1; i <= 2; i++ {
		n, err := newNode(i)
		w.must(err)
		w.nodes = append(w.nodes, n)
	}
	return w
}

// labEnv returns the environment that describes the cluster to the scripts.
func (w *world) labEnv() []string {
	if w.setup.documents {
		return []string{"DNS=0", "CNI_CONF=none", "SERVICES=10.96.0.0/12", "PODS=10.1.0.0/16"}
	}
	env := []string{"DUAL=1", "DNS=0"}
	if !w.setup.reference() {
		env = append(env, "CNI_CONF=none", "PROXY=0")
	}
	return env
}

// lab runs one of the scripts.
func lab(ctx context.Context, env []string, script string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join("lab", script), args...)
	cmd.Env = append(os.Environ(), env...)
	// The output does not go to a pipe, because the processes that the script leaves behind would
	// keep it open.
	out, err := os.CreateTemp("", "kubelab-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, tail(out.Name(), 20))
	}
	return nil
}

func (w *world) close() {
	if w.t.Failed() {
		for _, n := range w.nodes {
			for _, name := range []string{"agent", "vpp"} {
				w.t.Logf("the end of %s's log in %s:\n%s", name, n.name, tail(filepath.Join(n.dir, "log", name+".log"), 15))
			}
		}
	}
	if w.t.Failed() && w.setup.installed {
		w.inspect()
	}
	if os.Getenv("CONTIV_KUBE_KEEP") != "" {
		w.t.Logf("the cluster is left running, %s/kubeconfig; lab/down.sh ends it", runDir)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := lab(ctx, nil, "down.sh"); err != nil {
		w.t.Errorf("the cluster is not gone: %v", err)
	}
	segments, _ := filepath.Glob("/dev/shm/" + segmentPrefix + "*") // the pattern is valid
	for _, file := range segments {
		_ = os.Remove(file)
	}
}

// inspect logs the output of the pods of the installation.
func (w *world) inspect() {
	for _, args := range [][]string{
		{"-n", agentNamespace, "get", "pods", "-o", "wide"},
		{"-n", agentNamespace, "logs", "-l", "app.kubernetes.io/part-of=contiv", "--all-containers", "--prefix", "--tail=15"},
		{"get", "events", "-A", "--field-selector", "type=Warning"},
	} {
		out, err := kubectl(w.ctx, nil, args...)
		if err != nil {
			out += err.Error()
		}
		w.t.Logf("kubectl %s:\n%s", strings.Join(args, " "), out)
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// within waits until a condition holds.
func (w *world) within(limit time.Duration, what string, ok func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	if err := poll.Until(ctx, 20*time.Millisecond, ok); err != nil {
		w.t.Fatalf("not within %s: %s: %v", limit, what, err)
	}
}

// kubectl runs kubectl, as users do.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := kubectl(w.ctx, nil, args...)
	w.must(err)
	return out
}

func kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(cacheDir(), "bin", "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(runDir, "kubeconfig"))
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// manifest applies a file.
func (w *world) manifest(file string) {
	w.t.Helper()
	w.kubectl("apply", "-f", file)
}

// apply applies a manifest.
func (w *world) apply(manifest string) {
	w.t.Helper()
	_, err := kubectl(w.ctx, []byte(manifest), "apply", "-f", "-")
	w.must(err)
}

func (w *world) nodesReady() error {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct{ Type, Status, Message string }
			}
		}
	}
	if err := w.do(w.ctx, "GET", "/api/v1/nodes", nil, &list); err != nil {
		return err
	}
	ready := 0
	for _, n := range list.Items {
		for _, c := range n.Status.Conditions {
			switch {
			case c.Type == "Ready" && c.Status == "True":
				ready++
			case c.Type == "Ready":
				return fmt.Errorf("%s is not ready: %s", n.Metadata.Name, c.Message)
			}
		}
	}
	if ready < len(w.nodes) {
		return fmt.Errorf("%d of %d nodes", ready, len(w.nodes))
	}
	return nil
}

// hostProcess returns the PID of a part of the control plane.
func hostProcess(name string) (int, error) {
	data, err := os.ReadFile(filepath.Join(runDir, "pid", name))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// stopAPIServer kills the API server; start starts it again.
func (w *world) stopAPIServer() (start func()) {
	w.t.Helper()
	pid, err := hostProcess("kube-apiserver")
	w.must(err)
	argv, err := commandLine(pid)
	w.must(err)
	w.must(syscall.Kill(pid, syscall.SIGKILL))
	w.within(5*time.Second, "the API server is gone", func() error {
		if alive(pid) {
			return errors.New("it runs")
		}
		return nil
	})
	w.http.CloseIdleConnections()
	return func() {
		log, err := os.OpenFile(filepath.Join(runDir, "log", "kube-apiserver.log"), os.O_APPEND|os.O_WRONLY, 0)
		w.must(err)
		defer log.Close()
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		w.must(cmd.Start())
		go func() { _ = cmd.Wait() }() //lint:allow go: reaps the API server, which down.sh ends
		w.must(os.WriteFile(filepath.Join(runDir, "pid", "kube-apiserver"), fmt.Appendln(nil, cmd.Process.Pid), 0o644))
		w.within(30*time.Second, "the API server is back", func() error { return w.do(w.ctx, "GET", "/readyz", nil, nil) })
	}
}

// since returns a rounded duration.
func since(start time.Time) time.Duration { return time.Since(start).Round(10 * time.Millisecond) }
