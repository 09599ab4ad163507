package k8s

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/conffile"
	"contiv.dev/vswitch/test/testbed/gobuild"
)

// TestMain creates and removes the directory of the programs that the tests share.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "k8s-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	work = dir
	code := m.Run()
	if err := stopRenderer(); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		code = max(code, 1)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// work is the directory of the programs that the tests share.
var work string

// buildPrograms builds the programs that the manifests run, once.
var buildPrograms = sync.OnceValue(func() error {
	const cmd = "contiv.dev/vswitch/cmd/"
	return gobuild.Commands(work, cmd+"contiv-agent", cmd+"contiv-init", cmd+"contiv-ksr", cmd+"contiv-netctl", cmd+"contiv-vpp-supervisor")
})

// programs returns the directory of the programs that the manifests run.
func programs(t *testing.T) string {
	t.Helper()
	if err := buildPrograms(); err != nil {
		t.Fatal(err)
	}
	return work
}

// TestNotes checks that the manifest has the DaemonSet and the label that the notes of Helm name.
func TestNotes(t *testing.T) {
	for name, values := range variants() {
		notes, err := render(t, renderRequest{Values: values, Notes: true})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, requested, _ := strings.Cut(notes, "exec ds/")
		requested, _, _ = strings.Cut(requested, " ")
		manifest := variant(t, name)
		if requested == "" || !strings.Contains(manifest, "kind: DaemonSet\nmetadata:\n  name: "+requested+"\n") {
			t.Errorf("%s: no DaemonSet %q is in the manifest:\n%s", name, requested, notes)
		}
		if !strings.Contains(manifest, "app.kubernetes.io/component: agent\n") {
			t.Errorf("%s: no pod has the label that the notes ask for", name)
		}
	}
}

// TestManagedKubernetes checks that the notes say what to do if the cluster shows no control plane nodes, and that etcd then runs on the nodes with
// the label of docs/install.md.
func TestManagedKubernetes(t *testing.T) {
	const warning = "stay Pending"
	guide, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "dataplane: linux\netcd:\n  replicas: 3\n"
	_, values, ok := strings.Cut(string(guide), begin)
	values, _, _ = strings.Cut(values, "```")
	if !ok {
		t.Fatalf("docs/install.md has no values that begin with %q", begin)
	}
	values = begin + values
	for values, want := range map[string]bool{"": true, "etcd: {mode: embedded}": false, values: false} {
		notes, err := render(t, renderRequest{Values: values, Notes: true})
		if err != nil || strings.Contains(notes, warning) != want {
			t.Errorf("%q: the notes warn %t, %v", values, !want, err)
		}
	}
	set := object(t, rendered(t, values), "StatefulSet", "contiv-etcd")
	if selector := at(set, "spec", "template", "spec", "nodeSelector"); fmt.Sprint(selector) != "map[contiv.dev/etcd:true]" {
		t.Errorf("etcd runs on nodes with %v", selector)
	}
}

// variants returns values that users choose; each must render, and be accepted by an API server.
func variants() map[string]string {
	return map[string]string{
		"default":  "",
		"linux":    "dataplane: linux",
		"vpp":      "{dataplane: vpp, vpp: {hugepages2Mi: 256Mi, updateStrategy: RollingUpdate, extraConfig: 'nat44 { }'}}",
		"three":    "etcd: {replicas: 3}\nkubernetes: {server: 'https://192.0.2.1:6443'}",
		"external": "etcd: {mode: external, external: {endpoints: ['https://192.0.2.1:2379'], tlsSecret: etcd}}",
		"insecure": "etcd: {mode: external, external: {endpoints: ['http://192.0.2.1:2379'], insecure: true}}",
		"embedded": "etcd: {mode: embedded}\npreflight: {enabled: false}\nrbac: {ownNodeOnly: false}\nmaxUnavailable: 10%",
		"digest":   "images: {agent: {digest: 'sha256:" + strings.Repeat("0a", 32) + "'}, pullSecrets: [mine]}",
		"remote":   "agent: {remote: {enabled: true}}",
		"services": "services: {ignoreExternalIPs: true, nodePortAddresses: [192.0.2.0/24, 'fd00::/8'], reservedNodePorts: ['tcp:22'], reservedAddresses: [192.0.2.53, 'fd00:5::/64']}",
		"policy":   "{networkPolicy: {setLimit: 100000, disableConntrackInvalidCheck: true}, kubernetes: {relay: true}}",
		"given": "agent: {remote: {enabled: true, tlsSecret: mine, tokenSecret: my-token}}\n" +
			"metrics: {podMonitor: {enabled: true, labels: {release: prometheus}}, dashboard: {enabled: true, namespace: default}}",
		"rules":          "metrics: {rules: {enabled: true, labels: {release: prometheus}}}",
		"pods":           "{agent: " + fmt.Sprintf(podValues, "a") + ", etcd: " + fmt.Sprintf(podValues, "e") + "}",
		"relay":          "kubernetes: {relay: true, server: 'https://192.0.2.1:6443'}\netcd: {replicas: 3}",
		"relay-remote":   relayRemote,
		"relay-external": relayExternal,
		"windows":        windowsValues,
		"windows-external": "{windows: {enabled: true}, contivConf: {nodeToNodeTransport: nooverlay}, kubernetes: {relay: true, server: 'https://192.0.2.1:6443'}, " +
			"agent: {remote: {enabled: true}}, etcd: {mode: external, external: {endpoints: ['https://192.0.2.1:2379'], tlsSecret: etcd}}}",
		"bare":        "{tolerations: [], ksr: {tolerations: []}, kubernetes: {relay: true}}",
		"contiv.conf": "contivConf: {ipamConfig: {podSubnetOneNodePrefixLen: '24,64', podSubnetCIDR: '10.1.0.0/16,fd10:1::/48'}}",
	}
}

// relayRemote serves metrics of all programs beyond loopback.
const relayRemote = "{dataplane: linux, kubernetes: {relay: true}, agent: {remote: {enabled: true}}, etcd: {replicas: 3}, " +
	"metrics: {podMonitor: {enabled: true}}}"

// windowsValues are the values of a cluster with Windows nodes.
const windowsValues = "{windows: {enabled: true, podLabels: {team: net}, extraArgs: ['--log-level=debug']}, contivConf: {vxlanVNI: 4096}, " +
	"kubernetes: {server: 'https://192.0.2.1:6443'}}"

// relayExternal are the values of a large cluster with its own etcd.
const relayExternal = "{kubernetes: {relay: true}, ksr: {replicas: 1}, " +
	"etcd: {mode: external, external: {endpoints: ['https://192.0.2.1:2379'], tlsSecret: etcd}}}"

// TestRenderedManifestIsTheCharts checks that contiv-vpp.yaml, the schema and the dashboard are the output of `make manifests`.
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
	same(t, "contiv-vpp.yaml", []byte(rendered(t, "")))
	dashboard, err := os.ReadFile("../docs/observability/contiv-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "contiv-vpp/files/contiv-dashboard.json", dashboard)
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

// documents returns the objects of a manifest.
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

// at returns the value at a path of keys and indices.
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

// TestVariants checks that every variant renders, that the agent accepts its contiv.conf, and that containers run with the permissions
// that they need and no others.
func TestVariants(t *testing.T) {
	t.Parallel()
	for name := range variants() {
		t.Run(name, func(t *testing.T) {
			pods := 0
			for _, d := range documents(t, variant(t, name)) {
				if at(d, "metadata", "name") == "contiv-agent-cfg" && d["kind"] == "ConfigMap" {
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

// checkPod checks that only the agent and VPP are privileged, and that all other containers have no capability (pre-flight: those for its
// trials; cni: to write to directories of other users), the runtime's seccomp profile, and a read-only file system.
func checkPod(t *testing.T, workload, spec any) {
	t.Helper()
	class := "system-node-critical"
	if workload == "contiv-ksr" {
		class = "system-cluster-critical"
	}
	if at(spec, "priorityClassName") != class || at(spec, "hostNetwork") != true {
		t.Errorf("%v: %v", workload, spec)
	}
	if name := fmt.Sprint(workload); strings.HasPrefix(name, "contiv-agent") || name == "contiv-ksr" {
		// The agent and contiv-ksr report what hangs before the kubelet kills them.
		grace, _ := at(spec, "terminationGracePeriodSeconds").(int)
		if time.Duration(grace)*time.Second <= daemon.StopLimit {
			t.Errorf("%v is killed after %d s, before it gives up stopping (%s)", workload, grace, daemon.StopLimit)
		}
	}
	containers, _ := at(spec, "containers").([]any)
	inits, _ := at(spec, "initContainers").([]any)
	for _, c := range append(inits, containers...) {
		name := at(c, "name")
		if workload == "contiv-agent-windows" {
			checkWindowsContainer(t, spec, c)
			continue
		}
		privileged := at(c, "securityContext", "privileged") == true
		if want := name == "agent" || name == "vpp"; privileged != want {
			t.Errorf("%v/%v: privileged %v", workload, name, privileged)
		}
		if !privileged && (at(c, "securityContext", "readOnlyRootFilesystem") != true || at(c, "securityContext", "capabilities",
			"drop", 0) != "ALL" ||
			at(c, "securityContext", "allowPrivilegeEscalation") != false || at(c, "securityContext", "seccompProfile", "type") != "RuntimeDefault") {
			t.Errorf("%v/%v is not confined: %v", workload, name, at(c, "securityContext"))
		}
		added, _ := at(c, "securityContext", "capabilities", "add").([]any)
		want := map[any]string{"preflight": "[SYS_ADMIN NET_ADMIN NET_RAW]", "cni": "[DAC_OVERRIDE]"}[name]
		if want == "" {
			want = "[]"
		}
		if !privileged && fmt.Sprint(added) != want {
			t.Errorf("%v/%v adds capabilities %v, want %s", workload, name, added, want)
		}
		checkSELinux(t, workload, spec, c)
		if at(c, "resources", "requests", "memory") == nil {
			t.Errorf("%v/%v requests no memory", workload, name)
		}
		if image, _ := at(c, "image").(string); strings.HasSuffix(image, ":latest") || !strings.ContainsAny(image, ":@") {
			t.Errorf("%v/%v: image %s is not pinned", workload, name, image)
		}
	}
}

// checkSELinux checks that exactly the containers that use directories of the node have access to them on nodes with SELinux. Privileged containers
// have it without an option.
func checkSELinux(t *testing.T, workload, spec, container any) {
	t.Helper()
	if at(container, "securityContext", "privileged") == true {
		return
	}
	ofNode := map[any]bool{}
	volumes, _ := at(spec, "volumes").([]any)
	for _, v := range volumes {
		ofNode[at(v, "name")] = at(v, "hostPath") != nil
	}
	uses := false
	mounts, _ := at(container, "volumeMounts").([]any)
	for _, m := range mounts {
		uses = uses || ofNode[at(m, "name")]
	}
	if label := at(container, "securityContext", "seLinuxOptions", "type"); (label == "spc_t") != uses || label != nil && !uses {
		t.Errorf("%v/%v: SELinux type %v, uses directories of the node: %t", workload, at(container, "name"), label, uses)
	}
}

// checkWindowsContainer checks that a container of a host-process pod has no security context of Linux.
func checkWindowsContainer(t *testing.T, spec, c any) {
	t.Helper()
	if at(spec, "securityContext", "windowsOptions", "hostProcess") != true || at(c, "securityContext", "privileged") != nil {
		t.Errorf("%v is not a host-process container: %v", at(c, "name"), at(spec, "securityContext"))
	}
	if at(c, "resources", "requests", "memory") == nil {
		t.Errorf("%v requests no memory", at(c, "name"))
	}
}

// TestDataplanes checks that VPP and the agent have their own pods on nodes with VPP, so that an upgrade of one does not restart the
// other; with Linux there is no VPP; with auto a label decides, and no node has two agents.
func TestDataplanes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"linux": "contiv-agent", "vpp": "contiv-vpp contiv-agent", "auto": "contiv-vpp contiv-agent-linux contiv-agent-vpp",
	} {
		var names []string
		operators := map[any]any{}
		for _, d := range documents(t, rendered(t, "dataplane: "+mode)) {
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

// TestSharedSockets checks that the agent finds VPP's API and its statistics at the paths of VPP's pod, on the node's disk.
func TestSharedSockets(t *testing.T) {
	t.Parallel()
	manifest := rendered(t, "dataplane: vpp")
	for _, pod := range []struct{ workload, container string }{{"contiv-vpp", "vpp"}, {"contiv-agent", "agent"}} {
		spec := at(object(t, manifest, "DaemonSet", pod.workload), "spec", "template", "spec")
		path := ""
		volumes, _ := at(spec, "volumes").([]any)
		for _, v := range volumes {
			if at(v, "name") == "run-vpp" {
				path, _ = at(v, "hostPath", "path").(string)
			}
		}
		mounts, _ := at(spec, "containers", 0, "volumeMounts").([]any)
		mounted := slices.ContainsFunc(mounts, func(m any) bool {
			return at(m, "name") == "run-vpp" && at(m, "mountPath") == "/run/vpp" && at(m, "readOnly") == nil
		})
		if path != "/run/vpp" || !mounted || at(spec, "containers", 0, "name") != pod.container {
			t.Errorf("%s has not the node's /run/vpp: %q, %v", pod.workload, path, mounts)
		}
	}
}

// TestVPPResources checks that the container has memory for everything that VPP is given, unless the user sets it; that configuration for
// the agent alone does not restart VPP; and that nothing is left in the node's /dev.
func TestVPPResources(t *testing.T) {
	t.Parallel()
	const withNIC = "{dataplane: vpp, contivConf: {nodeConfig: [{nodeName: a, mainVPPInterface: {interfaceName: host-eth1}}]}}"
	config := map[string]any{}
	for values, limit := range map[string]any{
		"{dataplane: vpp}": "1848Mi",
		"{dataplane: vpp, contivConf: {natExternalTraffic: false}}":                 "1848Mi",
		"{dataplane: vpp, vpp: {heapMB: 4096, buffers: 262144}}":                    "6368Mi",
		"{dataplane: vpp, vpp: {heapMB: 4096, resources: {limits: {memory: 5Gi}}}}": "5Gi",
		"{dataplane: vpp, vpp: {hugepages2Mi: 256Mi}}":                              "1848Mi",
		withNIC: "1848Mi",
	} {
		template := at(object(t, rendered(t, values), "DaemonSet", "contiv-vpp"), "spec", "template")
		vpp := at(template, "spec", "containers", 0)
		if got := at(vpp, "resources", "limits", "memory"); got != limit {
			t.Errorf("%s: memory %v, want %v", values, got, limit)
		}
		if strings.Contains(values, "hugepages2Mi") && at(vpp, "resources", "limits", "hugepages-2Mi") != "256Mi" {
			t.Errorf("%s: %v", values, at(vpp, "resources"))
		}
		if path, _ := at(vpp, "terminationMessagePath").(string); path == "" || strings.HasPrefix(path, "/dev") {
			t.Errorf("%s: the kubelet makes %q", values, path)
		}
		config[values] = at(template, "metadata", "annotations", "contiv.dev/config")
	}
	same := config["{dataplane: vpp}"]
	if config["{dataplane: vpp, contivConf: {natExternalTraffic: false}}"] != same {
		t.Error("an option of the agent changes VPP's pods")
	}
	if config[withNIC] == same {
		t.Error("another NIC does not change VPP's pods")
	}
}

// TestRelay checks that agents with the relay have no API server, with which they would not start; that replicas of contiv-ksr run on
// different nodes, and tolerate nodes that have no network yet.
func TestRelay(t *testing.T) {
	t.Parallel()
	manifest := variant(t, "relay")
	for _, name := range []string{"contiv-agent-linux", "contiv-agent-vpp"} {
		agent := at(object(t, manifest, "DaemonSet", name), "spec", "template", "spec", "containers", 0)
		line := strings.Join(argv(agent), " ")
		starter, own, _ := strings.Cut(line, " -- ")
		if !strings.Contains(starter, "--kubernetes-server=https://192.0.2.1:6443") || strings.Contains(own, "kubernetes-server") ||
			!strings.Contains(own, "--kubernetes=relay") || strings.Contains(fmt.Sprint(at(agent, "env")), "CONTIV_KUBERNETES_SERVER") {
			t.Errorf("%s: %s\n%v", name, line, at(agent, "env"))
		}
		preflight := at(object(t, manifest, "DaemonSet", name), "spec", "template", "spec", "initContainers", 0)
		if line := argv(preflight); !slices.Contains(line, "--relay") {
			t.Errorf("%s: pre-flight asks for network policies, which the account may not list: %v", name, line)
		}
	}
	if rules := fmt.Sprint(object(t, manifest, "ClusterRole", "contiv-agent")["rules"]); strings.Contains(rules, "watch") {
		t.Errorf("agents may watch: %s", rules)
	} else if !strings.Contains(rules, "resources:[events] verbs:[create]") {
		t.Errorf("agents may write no Events on policies and services: %s", rules)
	}
	during := rendered(t, variants()["relay"]+"\nrbac: {agentWatch: true}")
	if rules := fmt.Sprint(object(t, during, "ClusterRole", "contiv-agent")["rules"]); !strings.Contains(rules, "endpointslices") {
		t.Errorf("agents that are not replaced yet may not watch: %s", rules)
	}
	spec := at(object(t, manifest, "Deployment", "contiv-ksr"), "spec", "template", "spec")
	if key := at(spec, "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution", 0, "topologyKey"); key !=
		"kubernetes.io/hostname" {
		t.Errorf("replicas on one node: %v", key)
	}
	for _, taint := range []string{"node-role.kubernetes.io/control-plane", "node.kubernetes.io/not-ready",
		"node.kubernetes.io/network-unavailable"} {
		if !strings.Contains(fmt.Sprint(at(spec, "tolerations")), taint+" operator:Exists") {
			t.Errorf("%s is not tolerated: %v", taint, at(spec, "tolerations"))
		}
	}
}

// TestSchema checks that values that would fail on the nodes, or be ignored, are rejected with their name.
func TestSchema(t *testing.T) {
	t.Parallel()
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
		"vpp: {extraArgs: [frozen-after=1s]}":                            "extraArgs",
		"kubernetes: {relay: true}\netcd: {mode: embedded}":              "etcd.mode",
		"metrics: {podMonitor: {enabled: true}}":                         "agent.remote.enabled",
		"metrics: {podMonitor: {interval: soon}}":                        "interval",
		"agent: {remote: {enabled: yes, tlsSecret: A_B}}":                "tlsSecret",
		"agent: {remote: {token: abc}}":                                  "token",
		"ksr: {replicas: 0}":                                             "replicas",
		"maxUnavailable: 0":                                              "maxUnavailable",
		"networkPolicy: {setLimit: -1}":                                  "setLimit",
	} {
		if _, err := render(t, renderRequest{Values: values}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

// TestConfigDigests checks that the digest of a configuration is a string even if it looks like a number, which is not allowed in an
// annotation.
func TestConfigDigests(t *testing.T) {
	t.Parallel()
	for extra, digest := range map[string]string{"# 547": "09970e9740877053", "# 4622": "9987225845389995"} {
		for _, d := range documents(t, rendered(t, "{dataplane: vpp, vpp: {extraConfig: '"+extra+"'}}")) {
			config := at(d, "spec", "template", "metadata", "annotations", "contiv.dev/config")
			if _, ok := config.(string); config != nil && !ok {
				t.Errorf("%v: %v is a %[2]T", at(d, "metadata", "name"), config)
			}
			if at(d, "metadata", "name") == "contiv-vpp" && at(d, "kind") == "DaemonSet" && config != digest {
				t.Errorf("%v: digest %v, want %s", extra, config, digest)
			}
		}
	}
}

// TestJobOfItsOwn checks that values that change a Job also change its name, because a Job cannot be changed; for instance after a Job for
// which no node was suitable.
func TestJobOfItsOwn(t *testing.T) {
	t.Parallel()
	specs := map[any]string{}
	for _, values := range []string{
		"", "etcd: {nodeSelector: {etcd: here}}", "tolerations: [{key: a, operator: Exists}]", "images: {pullPolicy: Always}",
		"images: {pullSecrets: [mine]}", "priorityClassName: mine", "kubernetes: {server: 'https://192.0.2.1:6443'}",
		"images: {agent: {tag: new}}", "agent: {logLevel: debug}",
	} {
		for _, d := range documents(t, rendered(t, values)) {
			if d["kind"] != "Job" {
				continue
			}
			spec, name := fmt.Sprint(at(d, "spec")), at(d, "metadata", "name")
			if other, taken := specs[name]; taken && other != spec {
				t.Errorf("%s: %v would be changed to\n%s\nfrom\n%s", values, name, spec, other)
			}
			specs[name] = spec
		}
	}
	if len(specs) != 8 {
		t.Errorf("%d Jobs, want one for each that differs", len(specs))
	}
}
