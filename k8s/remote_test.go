package k8s

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const remoteValues = "{dataplane: linux, agent: {remote: {enabled: true}}, etcd: {mode: embedded}}"

// object returns an object of a manifest.
func object(t *testing.T, manifest, kind, name string) map[string]any {
	t.Helper()
	for _, d := range documents(t, manifest) {
		if d["kind"] == kind && at(d, "metadata", "name") == name {
			return d
		}
	}
	t.Fatalf("the manifest has no %s %s", kind, name)
	return nil
}

// TestRemoteAccess checks that the agent, with the flags and the Secrets of the manifest, answers the kubelet's probes without the token,
// and contiv-netctl from another machine with it; it answers no other requests, and contiv-netctl trusts no other certificate.
func TestRemoteAccess(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "k8srest")
	m.inside("ip", "addr", "add", "10.99.9.1/32", "dev", "lo")
	bin, manifest := programs(t), rendered(t, remoteValues)
	for file, from := range map[string][2]string{
		"ca.crt": {"contiv-rest-tls", "ca.crt"}, "tls.crt": {"contiv-rest-tls", "tls.crt"},
		"tls.key": {"contiv-rest-tls", "tls.key"}, "token": {"contiv-rest-token", "token"},
		"read-token": {"contiv-rest-read-token", "token"},
	} {
		m.write("rest/"+file, decoded(t, at(object(t, manifest, "Secret", from[0]), "data", from[1])))
	}
	agent := at(object(t, manifest, "DaemonSet", "contiv-agent"), "spec", "template", "spec", "containers", 0)
	args := []string{"--dataplane=fake", "--kubernetes=off", "--node-name=n1", "--run-dir=" + m.path("run"),
		"--data-dir=" + m.path("data")}
	for _, a := range argv(agent) {
		if strings.HasPrefix(a, "--http") {
			args = append(args, strings.Replace(a, "/etc/contiv-rest", m.path("rest"), 1))
		}
	}
	m.program(filepath.Join(bin, "contiv-agent"), args...)

	m.eventually("readiness", func() bool { return m.probe(agent, "readinessProbe") == "200" })
	for _, probe := range []string{"startupProbe", "livenessProbe"} {
		if status := m.probe(agent, probe); status != "200" {
			t.Errorf("%s: status %s", probe, status)
		}
	}
	netctl := func(args ...string) (string, error) {
		line := append([]string{filepath.Join(bin, "contiv-netctl"), "--server=10.99.9.1:9999"}, args...)
		out, err := m.command(line...).CombinedOutput()
		return string(out), err
	}
	token := "--token-file=" + m.path("rest/token")
	if out, err := netctl("nodes", "--ca="+m.path("rest/ca.crt"), token); err != nil || !strings.Contains(out, "n1") {
		t.Errorf("contiv-netctl nodes: %v\n%s", err, out)
	}
	if out, err := netctl("nodes", "--ca="+m.path("rest/ca.crt")); err == nil || !strings.Contains(out, "token") {
		t.Errorf("without the token: %v\n%s", err, out)
	}
	// Prometheus' token can read, but not change anything.
	look := "--token-file=" + m.path("rest/read-token")
	if out, err := netctl("nodes", "--ca="+m.path("rest/ca.crt"), look); err != nil || !strings.Contains(out, "n1") {
		t.Errorf("contiv-netctl nodes with the token that only reads: %v\n%s", err, out)
	}
	if out, err := netctl("ping", "n1", "10.99.9.1", "--ca="+m.path("rest/ca.crt"), look); err == nil ||
		!strings.Contains(out, "only reads") {
		t.Errorf("contiv-netctl ping with the token that only reads: %v\n%s", err, out)
	}
	other := decoded(t, at(object(t, rendered(t, remoteValues), "Secret", "contiv-rest-tls"), "data", "ca.crt"))
	m.write("other.crt", other)
	if out, err := netctl("nodes", "--ca="+m.path("other.crt"), token); err == nil || !strings.Contains(out, "certificate") {
		t.Errorf("by another CA: %v\n%s", err, out)
	}
}

// TestMetricsOfEverything checks that Prometheus' operator finds agents and contiv-ksr by one PodMonitor, with the read-only token.
func TestMetricsOfEverything(t *testing.T) {
	t.Parallel()
	manifest := rendered(t, relayRemote)
	monitor := object(t, manifest, "PodMonitor", "contiv-agent")
	endpoint := at(monitor, "spec", "podMetricsEndpoints", 0)
	if got := at(endpoint, "authorization", "credentials", "name"); got != "contiv-rest-read-token" {
		t.Errorf("Prometheus has the token of %v", got)
	}
	for kind, name := range map[string]string{"DaemonSet": "contiv-agent", "Deployment": "contiv-ksr"} {
		template := at(object(t, manifest, kind, name), "spec", "template")
		labels, _ := at(template, "metadata", "labels").(map[string]any)
		components := fmt.Sprint(at(monitor, "spec", "selector", "matchExpressions", 0, "values"))
		if labels["app.kubernetes.io/part-of"] != "contiv" ||
			!strings.Contains(components, fmt.Sprint(labels["app.kubernetes.io/component"])) {
			t.Errorf("the PodMonitor (%s) does not select %s: %v", components, name, labels)
		}
		container := at(template, "spec", "containers", 0)
		if port := at(container, "ports", 0, "name"); port != at(endpoint, "port") {
			t.Errorf("%s has the port %v, and the PodMonitor asks for %v", name, port, at(endpoint, "port"))
		}
		if line := strings.Join(argv(container), " "); !strings.Contains(line, "--http-read-token-file=/etc/contiv-rest/read-token") {
			t.Errorf("%s: %s", name, line)
		}
	}
	ksr := at(object(t, manifest, "Deployment", "contiv-ksr"), "spec", "template", "spec", "containers", 0)
	if line := strings.Join(argv(ksr), " "); strings.Contains(line, "--http-token-file") || strings.Contains(line, "127.0.0.1") {
		t.Errorf("contiv-ksr: %s", line)
	}
}

func decoded(t *testing.T, value any) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(fmt.Sprint(value))
	if err != nil || len(data) == 0 {
		t.Fatalf("value of a Secret: %v, %v", value, err)
	}
	return data
}

// probeURL returns the URL that the kubelet probes.
func probeURL(container any, probe string) string {
	get := at(container, probe, "httpGet")
	scheme, _ := at(get, "scheme").(string)
	if scheme == "" {
		scheme = "HTTP"
	}
	return fmt.Sprintf("%s://%v:%v%v", strings.ToLower(scheme), at(get, "host"), at(get, "port"), at(get, "path"))
}

// probe probes as the kubelet does, which does not verify certificates, and returns the status.
func (m *machine) probe(container any, probe string) string {
	out, _ := m.command("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "5",
		probeURL(container, probe)).Output()
	return string(out) // 000 if there is no answer
}

// upgradeKeepsSecrets checks that an upgrade renders the certificate and the token that are in the cluster, so that clients keep their
// access.
func (a *apiServer) upgradeKeepsSecrets() {
	config := `{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:6443","certificate-authority":"` + a.path("ca.crt") + `"}}],
"users":[{"name":"u","user":{"client-certificate":"` + a.path("admin.crt") + `","client-key":"` + a.path("admin.key") + `"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`
	a.write("admin.kubeconfig", []byte(config))
	a.write("values.yaml", []byte(remoteValues))
	upgrade := func() string {
		chart := must(filepath.Abs("contiv-vpp"))
		cmd := a.command(renderer(a.t), "-kubeconfig", a.path("admin.kubeconfig"), "-values", a.path("values.yaml"), chart)
		out, err := cmd.Output()
		if e, ok := err.(*exec.ExitError); ok {
			a.t.Fatalf("render: %v\n%s", err, e.Stderr)
		}
		return string(out)
	}
	first := upgrade()
	a.must(first, "apply", "--validate=strict", "-f", "-")
	second := upgrade()
	for secret, key := range map[string]string{"contiv-rest-tls": "tls.key", "contiv-rest-token": "token",
		"contiv-rest-read-token": "token"} {
		before := at(object(a.t, first, "Secret", secret), "data", key)
		after := at(object(a.t, second, "Secret", secret), "data", key)
		if before == nil || before != after {
			a.t.Errorf("%s of %s changes with an upgrade", key, secret)
		}
	}
	// If a user deletes a Secret, the next upgrade makes a new one.
	a.answer(a.call(http.MethodDelete, systemPath+"secrets/contiv-rest-token", ""))
	third := upgrade()
	if at(object(a.t, third, "Secret", "contiv-rest-token"), "data", "token") ==
		at(object(a.t, first, "Secret", "contiv-rest-token"), "data", "token") {
		a.t.Error("the token was deleted and is the same again")
	}
}

// relay checks that the service account of contiv-ksr has the permissions for everything that it watches, and that contiv-ksr writes to
// etcd; it may change nothing in Kubernetes, nor read Secrets. The agents may no longer watch, but find etcd.
func (a *apiServer) relay() {
	manifest := rendered(a.t, "{dataplane: linux, kubernetes: {relay: true}, etcd: {replicas: 3}}")
	a.must(manifest, "apply", "--validate=strict", "-f", "-")
	var all []permission
	for _, what := range []string{"nodes", "namespaces", "pods", "services", "endpointslices.discovery.k8s.io",
		"networkpolicies.networking.k8s.io", "servicecidrs.networking.k8s.io", "clusternetworkpolicies.policy.networking.k8s.io"} {
		for verb, may := range map[string]bool{"list": true, "watch": true, "update": false, "delete": false} {
			all = append(all, permission{"contiv-ksr", verb, what, "any", may})
		}
		all = append(all, permission{"contiv-agent", "watch", what, "any", false})
	}
	a.permissions(append(all,
		permission{"contiv-ksr", "list", "secrets", "kube-system", false},
		permission{"contiv-ksr", "list", "configmaps", "any", false},
		permission{"contiv-ksr", "patch", "nodes/status", "", false},
		permission{"contiv-ksr", "create", "events", "default", false},
		permission{"contiv-agent", "list", "endpointslices.discovery.k8s.io", "kube-system", true},
		permission{"contiv-agent", "list", "endpointslices.discovery.k8s.io", "default", false},
		permission{"contiv-agent", "patch", "nodes/status", "", true},
		permission{"contiv-agent", "create", "events", "any", true}, // on Services and NetworkPolicies
	))
	a.ksr(at(object(a.t, manifest, "Deployment", "contiv-ksr"), "spec", "template", "spec", "containers", 0))
}

// ksr runs the command line of the container.
func (a *apiServer) ksr(container any) {
	a.t.Helper()
	here := strings.NewReplacer("/usr/local/bin/", programs(a.t)+"/", "/etc/contiv-etcd/", a.path("etcd-"),
		"/run/contiv-ksr", a.path("ksr"))
	config := a.kubeconfig("contiv-ksr", "")
	line := []string{"CONTIV_NAMESPACE=kube-system", "POD_NAME=ksr-1", "CONTIV_KUBECONFIG=" + config}
	for _, arg := range argv(container) {
		line = append(line, here.Replace(arg))
		if arg == "agent" {
			line = append(line, "--kubeconfig="+config)
		}
	}
	a.program("/usr/bin/env", line...)
	start := time.Now()
	a.eventually("contiv-ksr is ready", func() bool { return a.probe(container, "readinessProbe") == "200" })
	if status := a.probe(container, "livenessProbe"); status != "200" {
		a.t.Errorf("liveness: %s", status)
	}
	// Node n1 is in etcd.
	key := base64.StdEncoding.EncodeToString([]byte("/vnf-agent/contiv-ksr/k8s/node/n1"))
	a.eventually("node n1 is in etcd", func() bool {
		return strings.Contains(a.etcdAPI("range", `{"key":"`+key+`"}`), `"count":"1"`)
	})
	a.t.Logf("contiv-ksr has written the state %s after its start", time.Since(start).Round(10*time.Millisecond))
}
