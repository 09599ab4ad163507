package k8s

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
)

// TestMain removes the renderer that the tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := buildRenderer(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// buildRenderer builds the program of module k8s/render, once per test run, and gives its directory.
var buildRenderer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "render")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir+"/", ".")
	cmd.Dir, cmd.Env = "render", append(os.Environ(), "CGO_ENABLED=0") // whatever the tests have: one build to cache
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build the renderer: %w\n%s", err, out)
	}
	return dir, nil
})

func renderer(t *testing.T) string {
	t.Helper()
	dir, err := buildRenderer()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "render")
}

// render is the manifest that values make; "" for the chart's own.
func render(t *testing.T, bin, values string) (string, error) {
	t.Helper()
	args := []string{"contiv-vpp"}
	if values != "" {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"-values", file}, args...)
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(bin, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", &renderError{errs.String()}
	}
	return out.String(), nil
}

type renderError struct{ text string }

func (e *renderError) Error() string { return e.text }

// variants are values that users choose; each must render, and be taken by an API server.
func variants() map[string]string {
	return map[string]string{
		"default":     "",
		"linux":       "dataplane: linux",
		"vpp":         "{dataplane: vpp, vpp: {hugepages2Mi: 256Mi, updateStrategy: RollingUpdate, extraConfig: 'nat44 { }'}}",
		"three":       "etcd: {replicas: 3}\nkubernetes: {server: 'https://192.0.2.1:6443'}",
		"external":    "etcd: {mode: external, external: {endpoints: ['https://192.0.2.1:2379'], tlsSecret: etcd}}",
		"insecure":    "etcd: {mode: external, external: {endpoints: ['http://192.0.2.1:2379'], insecure: true}}",
		"embedded":    "etcd: {mode: embedded}\npreflight: {enabled: false}\nrbac: {ownNodeOnly: false}\nmaxUnavailable: 10%",
		"digest":      "images: {agent: {digest: 'sha256:" + strings.Repeat("0a", 32) + "'}, pullSecrets: [mine]}",
		"contiv.conf": "contivConf: {ipamConfig: {podSubnetOneNodePrefixLen: '24,64', podSubnetCIDR: '10.1.0.0/16,fd10:1::/48'}}",
	}
}

// TestRenderedManifestIsTheCharts: contiv-vpp.yaml and the schema are what `make manifests` makes.
func TestRenderedManifestIsTheCharts(t *testing.T) {
	base, err := os.ReadFile("schema.base.json")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := Schema(base)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contiv-vpp/values.schema.json", schema)
	text, err := render(t, renderer(t), "")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contiv-vpp.yaml", []byte(text))
}

func same(t *testing.T, file string, want []byte) {
	t.Helper()
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the chart makes: run make manifests", file)
	}
}

// documents are the objects of a manifest.
func documents(t *testing.T, manifest string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for dec := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var d map[string]any
		if err := dec.Decode(&d); err != nil {
			if err.Error() == "EOF" {
				return all
			}
			t.Fatalf("%v in\n%s", err, manifest)
		}
		all = append(all, d)
	}
}

// at follows a path of keys and indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			s, _ := v.([]any)
			if p >= len(s) {
				return nil
			}
			v = s[p]
		}
	}
	return v
}

// TestVariants: whatever users choose, every variant renders; its contiv.conf is one that the agent takes; containers run as
// what they need and no more.
func TestVariants(t *testing.T) {
	bin := renderer(t)
	for name, values := range variants() {
		t.Run(name, func(t *testing.T) {
			text, err := render(t, bin, values)
			if err != nil {
				t.Fatal(err)
			}
			pods := 0
			for _, d := range documents(t, text) {
				if d["kind"] == "ConfigMap" {
					conf, _ := at(d, "data", "contiv.conf").(string)
					if _, err := conffile.Load([]byte(conf), contivconf.Env{NodeName: "node-1"}); err != nil {
						t.Errorf("contiv.conf: %v\n%s", err, conf)
					}
				}
				if spec := at(d, "spec", "template", "spec"); spec != nil {
					pods++
					checkPod(t, at(d, "metadata", "name"), spec)
				}
			}
			if pods == 0 {
				t.Error("no pods")
			}
		})
	}
}

// checkPod: only the agent and VPP are privileged; everything else has no capability (pre-flight: those for its trials), and a
// file system that it cannot write.
func checkPod(t *testing.T, workload, spec any) {
	t.Helper()
	if at(spec, "priorityClassName") != "system-node-critical" || at(spec, "hostNetwork") != true {
		t.Errorf("%v: %v", workload, spec)
	}
	containers, _ := at(spec, "containers").([]any)
	inits, _ := at(spec, "initContainers").([]any)
	for _, c := range append(inits, containers...) {
		name := at(c, "name")
		privileged := at(c, "securityContext", "privileged") == true
		if want := name == "agent" || name == "vpp"; privileged != want {
			t.Errorf("%v/%v: privileged %v", workload, name, privileged)
		}
		if !privileged && (at(c, "securityContext", "readOnlyRootFilesystem") != true || at(c, "securityContext", "capabilities",
			"drop", 0) != "ALL" ||
			at(c, "securityContext", "allowPrivilegeEscalation") != false) {
			t.Errorf("%v/%v is not confined: %v", workload, name, at(c, "securityContext"))
		}
		if at(c, "resources", "requests", "memory") == nil {
			t.Errorf("%v/%v requests no memory", workload, name)
		}
		if image, _ := at(c, "image").(string); strings.HasSuffix(image, ":latest") || !strings.ContainsAny(image, ":@") {
			t.Errorf("%v/%v: image %s is not pinned", workload, name, image)
		}
	}
}

// TestDataplanes: on nodes of VPP, VPP and agent have pods of their own, so that an upgrade of one does not restart the other;
// on Linux there is no VPP; with auto a label decides, and no node has two agents.
func TestDataplanes(t *testing.T) {
	bin := renderer(t)
	for mode, want := range map[string]string{
		"linux": "contiv-agent", "vpp": "contiv-vpp contiv-agent", "auto": "contiv-vpp contiv-agent-linux contiv-agent-vpp",
	} {
		text, err := render(t, bin, "dataplane: "+mode)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		operators := map[any]any{}
		for _, d := range documents(t, text) {
			if d["kind"] != "DaemonSet" {
				continue
			}
			name, _ := at(d, "metadata", "name").(string)
			names = append(names, name)
			operators[name] = at(d, "spec", "template", "spec", "affinity", "nodeAffinity",
				"requiredDuringSchedulingIgnoredDuringExecution",
				"nodeSelectorTerms", 0, "matchExpressions", 0, "operator")
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: DaemonSets %s, want %s", mode, got, want)
		}
		if mode == "auto" && (operators["contiv-agent-linux"] != "NotIn" ||
			operators["contiv-agent-vpp"] != "In" || operators["contiv-vpp"] != "In") {
			t.Errorf("auto: %v", operators)
		}
	}
}

// TestSchema: values that would fail on the nodes, or be ignored, are refused with their name.
func TestSchema(t *testing.T) {
	bin := renderer(t)
	for values, want := range map[string]string{
		"dataplane: vp":          "dataplane",
		"dataPlane: vpp":         "dataPlane",
		"vpp: {heap: 1}":         "heap",
		"vpp: {buffers: 1}":      "buffers",
		"etcd: {replicas: 2}":    "replicas",
		"etcd: {mode: external}": "endpoints",
		"etcd: {mode: external, external: {endpoints: ['https://a:1']}}": "etcd",
		"contivConf: {mtuSise: 1500}":                                    "mtuSise",
		"contivConf: {ipamConfig: {podSubnet: x}}":                       "podSubnet",
		"contivConf: {useTAPInterfaces: maybe}":                          "useTAPInterfaces",
		"contivConf: {nodeConfig: [{nodename: a}]}":                      "nodename",
		"cni: {version: '1.2'}":                                          "version",
		"cni: {conflist: .hidden.conflist}":                              "conflist",
		"kubernetes: {server: '192.0.2.1:6443'}":                         "server",
		"images: {agent: {digest: abc}}":                                 "digest",
		"agent: {restPort: 70000}":                                       "restPort",
		"agent: {extraArgs: [verify]}":                                   "extraArgs",
		"maxUnavailable: 0":                                              "maxUnavailable",
	} {
		if _, err := render(t, bin, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
