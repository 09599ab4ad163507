package k8s

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestEveryValueIsDescribed checks that all values have a description, which helm and editors show, also those of contiv.conf.
func TestEveryValueIsDescribed(t *testing.T) {
	text, err := os.ReadFile("contiv-vpp/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	checked := 0
	var walk func(path string, s map[string]any)
	walk = func(path string, s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			p, _ := p.(map[string]any)
			checked++
			if text, _ := p["description"].(string); len(text) < 3 {
				t.Errorf("%s%s has no description in the schema", path, name)
			}
			walk(path+name+".", p)
			if items, ok := p["items"].(map[string]any); ok {
				walk(path+name+"[].", items)
			}
		}
	}
	walk("", schema)
	if checked < 150 {
		t.Errorf("only %d values were checked", checked)
	}
}

// podValues are additional settings for the pods of a component.
const podValues = `{podAnnotations: {example.com/note: "%[1]s"}, podLabels: {team: net}, extraEnv: [{name: GODEBUG, value: "x=1"}],
 affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
   {matchExpressions: [{key: zone, operator: In, values: [a]}]}, {matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}}}`

// TestPodSettings checks that annotations, labels, environment and affinity of each component reach its pods, in addition to the settings of the
// chart.
func TestPodSettings(t *testing.T) {
	t.Parallel()
	var values strings.Builder
	values.WriteString("kubernetes: {relay: true}\n")
	for _, c := range []string{"agent", "vpp", "ksr", "etcd"} {
		fmt.Fprintf(&values, "%s: "+podValues+"\n", c, c)
	}
	manifest := rendered(t, values.String())
	for workload, want := range map[string]struct{ component, kind, container string }{
		"contiv-agent-linux": {"agent", "DaemonSet", "agent"}, "contiv-agent-vpp": {"agent", "DaemonSet", "agent"},
		"contiv-vpp": {"vpp", "DaemonSet", "vpp"}, "contiv-ksr": {"ksr", "Deployment", "ksr"}, "contiv-etcd": {"etcd", "StatefulSet", "etcd"},
	} {
		pod := at(object(t, manifest, want.kind, workload), "spec", "template")
		if at(pod, "metadata", "annotations", "example.com/note") != want.component || at(pod, "metadata", "labels", "team") != "net" ||
			at(pod, "metadata", "labels", "app.kubernetes.io/name") != workload {
			t.Errorf("%s: metadata %v", workload, at(pod, "metadata"))
		}
		containers, _ := at(pod, "spec", "containers").([]any)
		i := slices.IndexFunc(containers, func(c any) bool { return at(c, "name") == want.container })
		env, _ := at(containers[i], "env").([]any)
		if !slices.ContainsFunc(env, func(e any) bool { return at(e, "name") == "GODEBUG" && at(e, "value") == "x=1" }) {
			t.Errorf("%s: environment %v", workload, env)
		}
		affinity := at(pod, "spec", "affinity")
		for term := range 2 { // terms are alternatives: each needs the chart's condition
			expressions, _ := at(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", term,
				"matchExpressions").([]any)
			needs := 1
			if want.kind == "DaemonSet" {
				needs = 2
			}
			if len(expressions) != needs || at(expressions[needs-1], "key") != "zone" ||
				needs == 2 && at(expressions[0], "key") != "contiv.dev/dataplane" {
				t.Errorf("%s: node affinity %v", workload, expressions)
			}
		}
		if want.kind != "DaemonSet" && at(affinity, "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0, "topologyKey") != "kubernetes.io/hostname" {
			t.Errorf("%s: two of its pods may share a node: %v", workload, affinity)
		}
	}
}

// TestNetworkPolicyValues checks that the agents and contiv-ksr have the same limit of sets, and that agents with the kernel's dataplane apply policy
// to INVALID packets; by default no program has a flag for either.
func TestNetworkPolicyValues(t *testing.T) {
	t.Parallel()
	const relay, windows = "kubernetes: {relay: true, server: 'https://192.0.2.1:6443'}\n", "windows: {enabled: true}\ncontivConf: {vxlanVNI: 4096}\n"
	limit, invalid := "--policy-set-limit=1000000", "--disable-conntrack-invalid-check"
	manifest := rendered(t, relay+windows+"networkPolicy: {setLimit: 1000000, disableConntrackInvalidCheck: true}\n")
	bare := rendered(t, relay+windows)
	for workload, want := range map[string]struct {
		kind  string
		flags []string
	}{
		"contiv-agent-linux":   {"DaemonSet", []string{limit, invalid}},
		"contiv-agent-vpp":     {"DaemonSet", []string{limit}},
		"contiv-agent-windows": {"DaemonSet", []string{limit}},
		"contiv-ksr":           {"Deployment", []string{limit}},
	} {
		for text, flags := range map[string][]string{manifest: want.flags, bare: nil} {
			var have []string
			for _, a := range argv(at(object(t, text, want.kind, workload), "spec", "template", "spec", "containers", 0)) {
				if strings.HasPrefix(a, "--policy-set-limit") || a == invalid {
					have = append(have, a)
				}
			}
			if !slices.Equal(have, flags) {
				t.Errorf("%s has %v, want %v", workload, have, flags)
			}
		}
	}
}

// alert is an alert of files/alerts.yaml.
type alert struct{ Alert, Expr, For, Severity, Summary, Runbook string }

// TestAlerts checks that each alert is in the rule and in docs/metrics.md with the same link, which leads to an existing heading, and that the code
// has the metrics that the alert uses.
func TestAlerts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("contiv-vpp/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var alerts []alert
	if err := yaml.Unmarshal(text, &alerts); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := at(object(t, rendered(t, "metrics: {rules: {enabled: true, labels: {release: p}, runbookBase: 'https://example.com/docs/'}}"),
		"PrometheusRule", "contiv"), "spec", "groups", 0, "rules").([]any)
	if len(alerts) < 8 || len(rules) != len(alerts) || strings.Count(string(page), "\n| `Contiv") != len(alerts) {
		t.Fatalf("%d alerts in the file, %d in the rule, %d in docs/metrics.md", len(alerts), len(rules), strings.Count(string(page), "\n| `Contiv"))
	}
	code := productStrings(t)
	for i, a := range alerts {
		if at(rules[i], "alert") != a.Alert || at(rules[i], "expr") != a.Expr || at(rules[i], "labels", "severity") != a.Severity ||
			at(rules[i], "annotations", "runbook_url") != "https://example.com/docs/"+a.Runbook {
			t.Errorf("%s: the rule has %v", a.Alert, rules[i])
		}
		if !regexp.MustCompile("(?m)^\\| `" + a.Alert + "` \\|.*\\(" + regexp.QuoteMeta(a.Runbook) + "\\) \\|$").Match(page) {
			t.Errorf("%s: docs/metrics.md has no row with a link to %s", a.Alert, a.Runbook)
		}
		file, anchor, _ := strings.Cut(a.Runbook, "#")
		doc, err := os.ReadFile(filepath.Join("../docs", file))
		heading := "(?im)^## " + strings.ReplaceAll(regexp.QuoteMeta(anchor), "-", " ") + "$"
		if err != nil || !regexp.MustCompile(heading).Match(doc) {
			t.Errorf("%s: %s has no heading %s (%v)", a.Alert, file, anchor, err)
		}
		for _, name := range regexp.MustCompile(`contiv_[a-z_]+`).FindAllString(a.Expr, -1) {
			short := name[strings.LastIndex(name, "_")+1:]
			if !strings.Contains(code, `"`+name+`"`) && !strings.Contains(code, `Name: "`+short+`"`) {
				t.Errorf("%s asks for %s, which no code has", a.Alert, name)
			}
		}
	}
}

// productStrings returns the product's code.
func productStrings(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"../cmd/*/*.go", "../cmd/internal/*/*.go", "../internal/*/*.go", "../plugins/*/*.go", "../dataplane/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	return all.String()
}

// TestKustomization checks that the files that it names exist.
func TestKustomization(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct{ Resources []string }
	if err := yaml.Unmarshal(text, &k); err != nil || len(k.Resources) == 0 {
		t.Fatalf("%v: %s", err, text)
	}
	for _, r := range k.Resources {
		if _, err := os.Stat(r); err != nil {
			t.Error(err)
		}
	}
}

// TestHelmTest checks that `helm test` runs an existing command with existing flags, that it is confined, and that it is not part of the manifests.
func TestHelmTest(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"default": "", "remote": "agent: {remote: {enabled: true}}"} {
		text, err := render(t, renderRequest{Values: values, Tests: true})
		if err != nil {
			t.Fatal(err)
		}
		pod := object(t, text, "Pod", "contiv-test")
		c := at(pod, "spec", "containers", 0)
		if at(pod, "metadata", "annotations", "helm.sh/hook") != "test" || at(c, "securityContext", "readOnlyRootFilesystem") != true ||
			at(c, "securityContext", "privileged") != nil || at(c, "securityContext", "seLinuxOptions", "type") != "spc_t" || at(pod, "spec", "hostNetwork") != true {
			t.Errorf("%s: %v", name, pod)
		}
		line := argv(c)
		out, err := exec.Command(filepath.Join(programs(t), filepath.Base(line[0])), append(line[1:], "--help")...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "contiv-netctl "+strings.Join(line[1:], " ")) {
			t.Errorf("%s: %v --help: %v\n%s", name, line, err, out)
		}
		if strings.Contains(rendered(t, values), "contiv-test") {
			t.Errorf("%s: the manifests have the test", name)
		}
	}
}

// TestAdmissionPolicyInAnyNamespace checks that the text of the policy names no namespace, so that it also works after a tool such as kustomize has
// moved the manifests to another one, and that it applies only to our service account.
func TestAdmissionPolicyInAnyNamespace(t *testing.T) {
	t.Parallel()
	manifest, err := os.ReadFile("contiv-vpp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`expression: request\.userInfo\.username\.matches\('([^']+)'\)`).FindSubmatch(manifest)
	if m == nil {
		t.Fatal("the manifest has no policy about the user's name")
	}
	user := regexp.MustCompile(string(m[1]))
	for name, want := range map[string]bool{
		"system:serviceaccount:kube-system:contiv-agent": true, "system:serviceaccount:network:contiv-agent": true,
		"system:serviceaccount:kube-system:contiv-agent-2": false, "system:serviceaccount:a:b:contiv-agent": false, "contiv-agent": false,
		"x-system:serviceaccount:a:contiv-agent": false,
	} {
		if user.MatchString(name) != want {
			t.Errorf("%s: the policy applies %t, want %t", name, !want, want)
		}
	}
}
