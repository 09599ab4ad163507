package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

// command is a command in a document.
type command struct{ file, text string }

// notRun returns the commands of documents that no test runs, each with the reason. TestNotRun checks the parts that can be checked without the
// machine that they need: values of the chart, names in the cluster, targets of the Makefile, paths.
func notRun() map[string]string {
	const (
		aMake    = "takes minutes; TestTargets knows the target, and the target's own tests run what it does"
		aCluster = "needs a Kubernetes cluster with Helm or kubectl; `make e2e` runs the same manifests on a real one"
		aTool    = "needs a machine with this tool"
		aPage    = "serves until it is interrupted; TestUI of cmd/contiv-netctl runs it and opens the page in a browser"
	)
	return map[string]string{
		"make build": aMake, "make demo": aMake, "make test": aMake, "make test-all": aMake, "make lint": aMake, "make images": aMake,
		"helm install contiv k8s/contiv-vpp -n kube-system -f k3s.yaml":                                                                                   aCluster,
		"helm install contiv k8s/contiv-vpp -n kube-system --set kubernetes.server=https://192.0.2.10:6443 --set agent.remote.enabled=true":               aCluster,
		"helm install contiv k8s/contiv-vpp -n kube-system --set dataplane=linux --set agent.remote.enabled=true":                                         aCluster,
		"alias netctl='kubectl -n kube-system exec ds/contiv-agent-linux -c agent -- contiv-netctl'":                                                      aCluster,
		"make release PUSH=registry.example.org/contiv":                                                                                                   "needs a registry; TestPush of hack/release pushes to one in the process",
		"helm install contiv oci://registry.example.org/contiv/contiv-vpp -n kube-system --set images.agent.repository=registry.example.org/contiv/agent": aCluster,
		"kubeadm init --service-cidr=10.96.0.0/12 --skip-phases=addon/kube-proxy":                                                                         aTool,
		"kind create cluster --config kind.yaml":                                                                                                          aTool,
		"kind load image-archive bin/images/agent.tar":                                                                                                    aTool,
		"k3s server --flannel-backend=none --disable-network-policy --disable-kube-proxy":                                                                 aTool,
		"k3s ctr images import bin/images/agent.tar":                                                                                                      aTool,
		"reboot":           "would reboot the machine of the test",
		"contiv-netctl ui": aPage, "ssh -L 8080:127.0.0.1:8080 root@worker-1 contiv-netctl ui --listen 127.0.0.1:8080": aPage,
		"contiv-netctl ui --server 10.99.0.101:9999 --ca ca.crt --token-file read-token": aPage,
		"contiv-netctl trace default/a svc/default/db -o json > trace.json":              aPage,
		"contiv-netctl trace a svc/far":                                                  "needs a Kubernetes API server; TestServices of cmd/contiv-netctl runs it",
	}
}

// documented returns the commands in the documents for users: the lines of blocks without a language. In a block that begins with a prompt ("# "
// or "$ ") only lines with a prompt are commands, the rest is output.
func documented(t *testing.T) []command {
	t.Helper()
	var all []command
	for name, text := range documents(t) {
		if filepath.Dir(name) != "docs" && !slices.Contains([]string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "k8s/README.md"}, name) {
			continue
		}
		for _, line := range commandsOf(text) {
			all = append(all, command{name, line})
		}
	}
	if len(all) < 25 {
		t.Fatalf("only %d commands were found", len(all))
	}
	return all
}

var (
	blockPattern   = regexp.MustCompile("(?ms)^( *)```\n(.*?)\n *```")
	heredocPattern = regexp.MustCompile(`(?ms)^ *cat >\S+ <<EOF\n.*?^ *EOF\n`)
	commentPattern = regexp.MustCompile(`\s+#.*`)
)

func commandsOf(text string) (lines []string) {
	for _, m := range blockPattern.FindAllStringSubmatch(closedBlocks(text), -1) {
		body := heredocPattern.ReplaceAllString(strings.ReplaceAll(m[2], "\\\n", " ")+"\n", "")
		prompted := regexp.MustCompile(`(?m)^ *[$#] `).MatchString(body)
		for line := range strings.Lines(body) {
			line = strings.TrimSpace(line)
			rest := strings.TrimPrefix(strings.TrimPrefix(line, "$ "), "# ")
			if line == "" || prompted && rest == line {
				continue
			}
			if !prompted {
				rest = commentPattern.ReplaceAllString(line, "")
			}
			if rest = strings.Join(strings.Fields(rest), " "); rest != "" {
				lines = append(lines, rest)
			}
		}
	}
	return lines
}

// closedBlocks removes the blocks that name a language; otherwise their ends would be taken for beginnings.
func closedBlocks(text string) string {
	return regexp.MustCompile("(?ms)^ *```[a-z]+\n.*?^ *```$").ReplaceAllString(text, "")
}

// scriptFile is the script of TestScript; kubernetesFile is that of TestDocuments of test/kube, which runs on a real Kubernetes.
const (
	scriptFile     = "testdata/cluster.txtar"
	kubernetesFile = "testdata/kubernetes.txtar"
)

// scripted returns the commands of both scripts.
func scripted(t *testing.T) (lines []string) {
	t.Helper()
	for _, file := range []string{scriptFile, kubernetesFile} {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(archive.Comment)) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "[vpp] ")
			lines = append(lines, strings.TrimPrefix(line, "! "))
		}
	}
	return lines
}

// TestCommandsAreRun checks that a command in a document is in a script that a test runs, or is in the list of commands that are not run, with
// the reason.
func TestCommandsAreRun(t *testing.T) {
	reasons, run := notRun(), scripted(t)
	shown := map[string]bool{}
	for _, c := range documented(t) {
		shown[c.text] = true
		if slices.Contains(run, c.text) == (reasons[c.text] != "") {
			t.Errorf("%s shows %q: it must be either in docs/%s or docs/%s, which tests run, or in notRun, with a reason",
				c.file, c.text, scriptFile, kubernetesFile)
		}
	}
	for text := range reasons {
		if !shown[text] {
			t.Errorf("notRun has %q, which no document shows any more", text)
		}
	}
}

// TestNotRun checks the parts of commands that can be checked without running them.
func TestNotRun(t *testing.T) {
	var chart map[string]any
	data, err := os.ReadFile("../k8s/contiv-vpp/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	manifests := chartTexts(t)
	for text := range notRun() {
		words := strings.Fields(text)
		for i, w := range words {
			switch {
			case w == "k8s/contiv-vpp":
				if _, err := os.Stat("../" + w + "/Chart.yaml"); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			case w == "--set":
				key, _, _ := strings.Cut(words[i+1], "=")
				if err := inValues(chart, strings.Split(key, ".")); err != nil {
					t.Errorf("%q: %v", text, err)
				}
			case strings.HasPrefix(w, "ds/"), strings.HasPrefix(w, "contiv-etcd-"), w == "contiv.dev/dataplane=vpp":
				name := strings.TrimSuffix(strings.TrimPrefix(w, "ds/"), "=vpp")
				if !strings.Contains(manifests, name) {
					t.Errorf("%q: the chart has no %s", text, name)
				}
			case w == "-c":
				if !strings.Contains(manifests, "name: "+words[i+1]+"\n") {
					t.Errorf("%q: the chart has no container %s", text, words[i+1])
				}
			case strings.HasPrefix(w, "/etc/cni"), strings.HasPrefix(w, "/opt/cni"), strings.HasPrefix(w, "/var/lib/contiv"):
				if base := filepath.Base(w); base != "contiv-cni" && !strings.Contains(manifests+string(data), base) {
					t.Errorf("%q: the chart has no %s", text, base)
				}
			}
		}
	}
	heredocs(t, chart)
}

// heredocs checks that the files that documents write are YAML, and that values for Helm are values of the chart.
func heredocs(t *testing.T, chart map[string]any) {
	found := 0
	for name, text := range documents(t) {
		for _, m := range regexp.MustCompile(`(?s)cat >(\S+\.yaml) <<EOF\n(.*?)\n *EOF\n`).FindAllStringSubmatch(text, -1) {
			found++
			var values map[string]any
			if err := yaml.Unmarshal([]byte(m[2]), &values); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			}
			if _, isKind := values["apiVersion"]; isKind {
				continue
			}
			if err := subsetOf(values, chart, ""); err != nil {
				t.Errorf("%s: %s: %v", name, m[1], err)
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d files were found", found)
	}
}

func subsetOf(values, chart map[string]any, at string) error {
	for key, v := range values {
		known, ok := chart[key]
		if !ok && len(chart) > 0 {
			return fmt.Errorf("the chart has no value %s%s", at, key)
		}
		inner, isMap := v.(map[string]any)
		below, _ := known.(map[string]any)
		if isMap && !strings.Contains(key, "elector") {
			if err := subsetOf(inner, below, at+key+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

func inValues(chart map[string]any, path []string) error {
	next, ok := chart[path[0]]
	if !ok {
		return fmt.Errorf("the chart has no value %s", path[0])
	}
	if len(path) == 1 {
		return nil
	}
	inner, _ := next.(map[string]any)
	return inValues(inner, path[1:])
}

// chartTexts returns the manifest and the templates of the chart.
func chartTexts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	files, err := filepath.Glob("../k8s/contiv-vpp/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, "../k8s/contiv-vpp.yaml") {
		data, err := os.ReadFile(f)
		if err == nil {
			b.Write(data)
		}
	}
	return b.String()
}
