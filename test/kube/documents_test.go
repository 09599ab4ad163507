package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
)

// documentsScript has the commands of README.md, docs/install.md and docs/upgrade.md that need a cluster. TestCommandsAreRun of docs compares
// them.
const documentsScript = "../../docs/testdata/kubernetes.txtar"

// TestDocuments runs the commands of the documents exactly as written, on two bare nodes with kube-proxy, as kubeadm leaves them.
// Commands of the script, besides testscript's own:
//
//	helm, kubectl  the programs; N is the second node's name, 192.0.2.10 the API server's address
//	netctl         the alias of docs/install.md
//	ctr, rm        on both nodes; bin/images is the folder of the images of this run
//	ready          waits until both nodes are ready
//
// What a command prints is in the test's log.
func TestDocuments(t *testing.T) {
	if !wanted("documents") {
		t.Skipf("CONTIV_KUBE=%s", os.Getenv("CONTIV_KUBE"))
	}
	w := newNodes(t, setup{name: "documents", dataplane: "auto", documents: true})
	images, err := builtImages()
	w.must(err)
	w.must(w.loadChartsEtcd(images))
	w.kubectl("label", "node", w.nodes[0].name, "node-role.kubernetes.io/control-plane=") // kubeadm does the same
	helm := filepath.Join(filepath.Dir(binDir), "helm")
	build := exec.CommandContext(w.ctx, "go", "build", "-o", helm, "helm.sh/helm/v3/cmd/helm")
	build.Dir = renderFolder
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, out)
	}
	root, err := filepath.Abs("../..")
	w.must(err)
	l := &letter{world: w, root: root, images: images.dir, helm: helm}
	t.Run("script", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: []string{documentsScript}, RequireExplicitExec: true,
			Condition: func(name string) (bool, error) {
				_, ok := vpptest.Find()
				return ok, nil
			},
			Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
				"helm": l.program(helm), "kubectl": l.program(filepath.Join(cacheDir(), "bin", "kubectl")),
				"netctl": l.netctl, "ctr": l.onNodes("ctr"), "rm": l.onNodes("rm"), "ready": l.ready,
			},
		})
	})
}

// loadChartsEtcd loads the etcd image that the chart names on the nodes, because there is no registry.
func (w *world) loadChartsEtcd(i images) error {
	values, err := os.ReadFile("../../k8s/contiv-vpp/values.yaml")
	if err != nil {
		return err
	}
	m := regexp.MustCompile(`etcd: \{repository: (\S+), tag: (\S+),`).FindSubmatch(values)
	if m == nil {
		return fmt.Errorf("values.yaml names no image of etcd")
	}
	archive := filepath.Join(i.dir, "etcd-chart.tar")
	files := map[string]string{"usr/local/bin/etcd": filepath.Join(cacheDir(), "bin", "etcd")}
	if err := repack(w.ctx, "", archive, string(m[1])+":"+string(m[2]), files); err != nil {
		return err
	}
	w.load(archive)
	return nil
}

// letter runs the commands of the documents exactly as written.
type letter struct {
	*world
	root, images, helm string
}

// program runs a command on the administrator's machine, in the directory of the repository.
func (l *letter) program(path string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		for i, arg := range args {
			switch {
			case arg == "N":
				args[i] = l.nodes[1].name
			case strings.HasSuffix(arg, ".yaml") && !strings.Contains(arg, "/"):
				args[i] = ts.MkAbs(arg)
			default:
				args[i] = strings.ReplaceAll(arg, "https://192.0.2.10:6443", apiServer)
			}
		}
		script := `cd "$0" && exec "$@"`
		ts.Setenv("KUBECONFIG", filepath.Join(runDir, "kubeconfig"))
		err := ts.Exec("sh", append([]string{"-c", script, l.root, path}, args...)...)
		ts.Logf("%s", ts.ReadFile("stdout")+ts.ReadFile("stderr"))
		if (err != nil) != neg {
			ts.Fatalf("%s %s: %v", filepath.Base(path), strings.Join(args, " "), err)
		}
	}
}

func (l *letter) netctl(ts *testscript.TestScript, neg bool, args []string) {
	alias := []string{"-n", "kube-system", "exec", "ds/contiv-agent-linux", "-c", "agent", "--", "contiv-netctl"}
	l.program(filepath.Join(cacheDir(), "bin", "kubectl"))(ts, neg, append(alias, args...))
}

func (l *letter) onNodes(program string) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		command := strings.ReplaceAll(program+" "+strings.Join(args, " "), "bin/images/", l.images+"/")
		for _, n := range l.nodes {
			if out, err := n.sh(l.ctx, command); (err != nil) != neg {
				ts.Fatalf("%s: %v\n%s", command, err, out)
			}
		}
	}
}

func (l *letter) ready(ts *testscript.TestScript, _ bool, _ []string) {
	ctx, cancel := context.WithTimeout(l.ctx, 3*time.Minute)
	defer cancel()
	start := time.Now()
	for err := l.nodesReady(); err != nil; err = l.nodesReady() {
		select {
		case <-ctx.Done():
			l.inspect()
			ts.Fatalf("the nodes are not ready: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	ts.Logf("the nodes are ready after %s", since(start))
}
