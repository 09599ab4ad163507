package k8s

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/etcdpki"
	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/poll"
)

// apiServer is a real kube-apiserver with its etcd, in its own network namespace.
type apiServer struct {
	*machine
	bin    string       // directory of the binaries
	client *http.Client // the administrator's; see call
}

// startAPI starts an API server; the test is skipped if the binaries are not built (test/kube/lab/build.sh).
func startAPI(t *testing.T) *apiServer {
	t.Helper()
	cache := os.Getenv("KUBELAB_CACHE")
	if cache == "" {
		home, err := os.UserCacheDir()
		if err != nil {
			t.Skip("no cache directory with a kube-apiserver: ", err)
		}
		cache = filepath.Join(home, "kubelab")
	}
	a := &apiServer{bin: filepath.Join(cache, "bin")}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(a.bin, name)); err != nil {
			t.Skipf("real API server: no %s in %s; test/kube/lab/build.sh k8s etcd builds it", name, a.bin)
		}
	}
	a.machine = newMachine(t, "k8sapi")
	a.certify()
	a.background("etcd", "--data-dir="+a.path("etcd"), "--listen-client-urls=http://127.0.0.1:2379",
		"--advertise-client-urls=http://127.0.0.1:2379", "--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=error")
	a.background("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443", "--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--allow-privileged=true",
		"--client-ca-file="+a.path("ca.crt"), "--tls-cert-file="+a.path("server.crt"), "--tls-private-key-file="+a.path("server.key"),
		"--service-account-issuer=https://k8s", "--service-account-key-file="+a.path("sa.key"),
		"--service-account-signing-key-file="+a.path("sa.key"), "--endpoint-reconciler-type=none", "--cert-dir="+a.path("certs"))
	return a
}

// certify makes the PKI: the server's certificate, and an administrator's.
func (a *apiServer) certify() {
	a.t.Helper()
	ca, err := etcdpki.NewCA("k8s")
	if err != nil {
		a.t.Fatal(err)
	}
	server, err := ca.Issue(etcdpki.Leaf{Name: "server", Servers: []string{"localhost"},
		Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		a.t.Fatal(err)
	}
	for name, data := range map[string][]byte{"ca.crt": ca.Cert, "server.crt": server.Cert, "server.key": server.Key} {
		a.write(name, data)
	}
	a.write("ca.key", ca.Key)
	a.run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", a.path("sa.key"))
	// The administrator's certificate needs an organisation, which certificates of etcdpki do not have.
	a.run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
		"/O=system:masters/CN=admin",
		"-keyout", a.path("admin.key"), "-out", a.path("admin.csr"))
	a.run("openssl", "x509", "-req", "-in", a.path("admin.csr"), "-CA", a.path("ca.crt"), "-CAkey", a.path("ca.key"),
		"-CAcreateserial",
		"-days", "1", "-out", a.path("admin.crt"))
}

// background starts a binary until the end of the test.
func (a *apiServer) background(name string, args ...string) {
	a.t.Helper()
	a.program(filepath.Join(a.bin, name), args...)
}

func (a *apiServer) await() {
	a.t.Helper()
	poll.Succeeds(a.t, "API server", 2*time.Minute, func() error {
		_, err := a.call(http.MethodGet, "/readyz", "")
		return err
	})
}

// call sends a request as the administrator, with names and values of headers, and returns the answer. Unlike kubectl it starts no process, which
// takes half a CPU-second; what users do with kubectl, the test does with kubectl.
func (a *apiServer) call(method, path, body string, headers ...string) ([]byte, error) {
	if a.client == nil {
		client, err := a.newClient()
		if err != nil {
			return nil, err
		}
		a.client = client
	}
	ctx, cancel := context.WithTimeout(a.t.Context(), 60*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "https://127.0.0.1:6443"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	answer, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, data)
	}
	return data, err
}

// newClient returns a client with the administrator's certificate, whose connections begin in the machine's network namespace.
func (a *apiServer) newClient() (*http.Client, error) {
	namespace, err := nsdo.Open("/run/netns/" + a.netns)
	if err != nil {
		return nil, err
	}
	a.t.Cleanup(func() { _ = namespace.Close() })
	certificate, err := tls.LoadX509KeyPair(a.path("admin.crt"), a.path("admin.key"))
	if err != nil {
		return nil, err
	}
	ca := x509.NewCertPool()
	ca.AppendCertsFromPEM(must(os.ReadFile(a.path("ca.crt"))))
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: ca},
		DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
			err = namespace.Do(func() (err error) {
				conn, err = new(net.Dialer).DialContext(ctx, network, addr)
				return err
			})
			return conn, err
		},
	}
	a.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, nil
}

// get returns an object, or a list of objects.
func (a *apiServer) get(path string) map[string]any {
	a.t.Helper()
	return a.answer(a.call(http.MethodGet, path, ""))
}

// create creates an object, strictly validated, and returns it as it is stored.
func (a *apiServer) create(path, object string) map[string]any {
	a.t.Helper()
	return a.answer(a.call(http.MethodPost, path+"?fieldValidation=Strict", object))
}

func (a *apiServer) answer(data []byte, err error) (object map[string]any) {
	a.t.Helper()
	if err == nil {
		err = json.Unmarshal(data, &object)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return object
}

// paths of the API
const (
	nodesPath  = "/api/v1/nodes"
	systemPath = "/api/v1/namespaces/kube-system/"
)

// kubectl runs as the administrator.
func (a *apiServer) kubectl(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 60*time.Second)
	defer cancel()
	base := []string{"netns", "exec", a.netns, filepath.Join(a.bin, "kubectl"), "--kubeconfig=/dev/null",
		"--server=https://127.0.0.1:6443",
		"--certificate-authority=" + a.path("ca.crt"), "--client-certificate=" + a.path("admin.crt"), "--client-key=" + a.path("admin.key")}
	cmd := exec.CommandContext(ctx, "ip", append(base, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.dir}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String() + errs.String(), nil
}

func (a *apiServer) must(stdin string, args ...string) string {
	a.t.Helper()
	out, err := a.kubectl(stdin, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// TestRealAPIServer checks that a real API server accepts every variant of the manifests, strictly validated and without a warning; it
// would reject a misspelt field. The agent's service account has the permissions that the agent needs, and no others.
func TestRealAPIServer(t *testing.T) {
	t.Parallel()
	a := startAPI(t)
	programs(t) // built while the server starts
	a.await()
	a.must("", "apply", "-f", "testdata/podmonitor-crd.yaml", "-f", "testdata/prometheusrule-crd.yaml")
	a.must("", "wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com",
		"crd/prometheusrules.monitoring.coreos.com")
	t.Run("variants", func(t *testing.T) { a.variants(t) })
	text := variant(t, "default")
	if _, err := a.kubectl(strings.Replace(text, "hostNetwork:", "hostNetworks:", 1), "apply", "--dry-run=server",
		"--validate=strict", "-f",
		"-"); err == nil || !strings.Contains(err.Error(), "hostNetworks") {
		t.Errorf("a misspelt field: %v", err)
	}
	a.must(text, "apply", "--validate=strict", "-f", "-")
	t.Run("RBAC", func(t *testing.T) { a.t = t; a.rbac() })
	t.Run("contiv-init", func(t *testing.T) { a.t = t; a.contivInit() })
	t.Run("remote", func(t *testing.T) { a.t = t; a.upgradeKeepsSecrets() })
}

// variants checks that the API server accepts every variant. One kubectl applies several variants: each start of it takes half a CPU-second.
func (a *apiServer) variants(t *testing.T) {
	dir := t.TempDir()
	for some := range slices.Chunk(slices.Sorted(maps.Keys(variants())), 7) {
		t.Run(strings.Join(some, "+"), func(t *testing.T) {
			t.Parallel()
			args, objects := []string{"apply", "--dry-run=server", "--validate=strict"}, 0
			for _, name := range some {
				file, manifest := filepath.Join(dir, name+".yaml"), variant(t, name)
				if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "-f", file)
				for _, d := range documents(t, manifest) {
					if d != nil {
						objects++
					}
				}
			}
			out, err := a.kubectl("", args...)
			if err != nil {
				t.Error(err) // names the file, which has the name of the variant
			}
			if strings.Contains(out, "Warning") {
				t.Error(out)
			}
			if n := strings.Count(out, " (server dry run)\n"); n != objects {
				t.Errorf("%d of %d objects were applied:\n%s", n, objects, out)
			}
		})
	}
}

// rbac queries the API server for the permissions of the service accounts.
func (a *apiServer) rbac() {
	a.permissions([]permission{
		{"contiv-agent", "watch", "pods", "any", true},
		{"contiv-agent", "watch", "endpointslices.discovery.k8s.io", "any", true},
		{"contiv-agent", "list", "networkpolicies.networking.k8s.io", "any", true},
		{"contiv-agent", "list", "servicecidrs.networking.k8s.io", "", true},
		{"contiv-agent", "watch", "clusternetworkpolicies.policy.networking.k8s.io", "", true},
		{"contiv-agent", "watch", "customresourcedefinitions.apiextensions.k8s.io/clusternetworkpolicies.policy.networking.k8s.io", "", true},
		{"contiv-agent", "list", "customresourcedefinitions.apiextensions.k8s.io", "", false},
		{"contiv-agent", "update", "clusternetworkpolicies.policy.networking.k8s.io/status", "", true},
		{"contiv-agent", "update", "clusternetworkpolicies.policy.networking.k8s.io", "", false},
		{"contiv-agent", "patch", "nodes/status", "", true},
		{"contiv-agent", "create", "events", "default", true},
		{"contiv-agent", "patch", "nodes", "", false},
		{"contiv-agent", "delete", "pods", "any", false},
		{"contiv-agent", "get", "secrets", "kube-system", false},
		{"contiv-agent", "list", "secrets", "any", false},
		{"contiv-agent", "create", "events", "any", true}, // on Services and NetworkPolicies
		{"contiv-agent", "patch", "events", "any", false},
		{"contiv-agent", "update", "services", "any", false},
		{"contiv-etcd-certs", "create", "secrets", "kube-system", true},
		{"contiv-etcd-certs", "get", "secrets/contiv-etcd-ca", "kube-system", true},
		{"contiv-etcd-certs", "get", "secrets/contiv-etcd-client", "kube-system", true},
		{"contiv-etcd-certs", "get", "secrets/other", "kube-system", false},
		{"contiv-etcd-certs", "list", "secrets", "kube-system", false},
		{"contiv-etcd-certs", "create", "secrets", "default", false},
		{"contiv-etcd", "list", "endpointslices.discovery.k8s.io", "kube-system", true},
		{"contiv-etcd", "list", "endpointslices.discovery.k8s.io", "default", false},
		{"contiv-etcd", "get", "secrets", "kube-system", false},
		{"contiv-vpp", "get", "pods", "kube-system", false},
	})
}

// permission is an action that a service account may do, or may not.
type permission struct {
	caller, verb, what, namespace string
	may                           bool
}

// permissions checks permissions.
func (a *apiServer) permissions(all []permission) {
	a.t.Helper()
	for _, p := range all {
		resource, detail, _ := strings.Cut(p.what, "/")
		resource, group, _ := strings.Cut(resource, ".")
		name, sub := detail, ""
		if detail == "status" {
			name, sub = "", detail
		}
		answer := a.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", fmt.Sprintf(`{
"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"system:serviceaccount:kube-system:%s",
"groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"],
"resourceAttributes":{"verb":%q,"group":%q,"resource":%q,"subresource":%q,"name":%q,"namespace":%q}}}`,
			p.caller, p.verb, group, resource, sub, name, p.namespace))
		may, ok := at(answer, "status", "allowed").(bool)
		if !ok || may != p.may {
			a.t.Errorf("%s may %s %s in %q: %v, want %v", p.caller, p.verb, p.what, p.namespace, at(answer, "status"), p.may)
		}
	}
}

// contivInit runs the real program against the API server, with the service accounts of the manifests.
func (a *apiServer) contivInit() {
	a.t.Helper()
	program := filepath.Join(programs(a.t), "contiv-init")
	for _, node := range []string{"n1", "n2"} {
		a.create(nodesPath, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"`+node+`"}}`)
	}
	a.certs(program)
	a.conditions(program)
	a.installer(program)
	a.etcd(program)
	a.relay() // needs etcd
}

// certs checks that the Job makes two Secrets, and that a second run finds them and changes nothing.
func (a *apiServer) certs(program string) {
	config := a.kubeconfig("contiv-etcd-certs", "")
	for range 2 {
		if out, err := a.command(program, "etcd-certs", "--kubeconfig="+config,
			"--namespace=kube-system").CombinedOutput(); err != nil {
			a.t.Fatalf("etcd-certs: %v\n%s", err, out)
		}
	}
	for secret, keys := range map[string][]string{"contiv-etcd-ca": {"ca.crt", "ca.key"}, "contiv-etcd-client": {"ca.crt", "tls.crt", "tls.key"}} {
		for _, key := range keys {
			a.secret(secret, key) // fails if there is no value
		}
	}
}

// installer checks that there is no CNI configuration while the agent is not ready; when it is ready, the configuration is written, and
// the node's network becomes available; files that another program removes are written again.
func (a *apiServer) installer(program string) {
	a.t.Helper()
	for _, d := range []string{"src", "bin", "net.d"} {
		if err := os.MkdirAll(a.path(d), 0o755); err != nil {
			a.t.Fatal(err)
		}
	}
	a.write("src/contiv-cni", []byte("plugin"))
	socket := a.path("rest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		a.t.Fatal(err)
	}
	var ready atomic.Bool
	requested := make(chan struct{}, 1)
	agent := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			select {
			case requested <- struct{}{}:
			default:
			}
		}
	})}
	defer agent.Close()
	go func() { _ = agent.Serve(l) }() // ends with Close
	a.program(program, "cni", "--kubeconfig="+a.path("contiv-agent.kubeconfig"), "--node-name=n1", "--source="+a.path("src"),
		"--binaries=contiv-cni", "--cni-bin-dir="+a.path("bin-cni"), "--cni-conf-dir="+a.path("net.d"), "--agent-socket="+socket, "--interval=300ms")
	select {
	case <-requested:
	case <-time.After(60 * time.Second):
		a.t.Fatal("the installer does not ask the agent")
	}
	conflist := a.path("net.d/10-contiv.conflist")
	if _, err := os.Stat(conflist); err == nil {
		a.t.Error("there is a configuration although the agent is not ready")
	}
	if text, err := os.ReadFile(a.path("bin-cni/contiv-cni")); err != nil || string(text) != "plugin" {
		a.t.Errorf("plugin: %q, %v", text, err)
	}
	ready.Store(true)
	a.eventually("a configuration", func() bool { _, err := os.Stat(conflist); return err == nil })
	a.eventually("NetworkUnavailable=False", func() bool {
		return strings.Contains(a.conditionsOf("n1"), "NetworkUnavailable=False ")
	})
	if err := os.Remove(conflist); err != nil {
		a.t.Fatal(err)
	}
	a.eventually("the configuration again", func() bool { _, err := os.Stat(conflist); return err == nil })
}

// etcd checks that three members find each other by the service's endpoints, trust each other by certificates that they issue themselves,
// and form a cluster; the agent's starter finds them, and still has them when the API server does not answer.
func (a *apiServer) etcd(program string) {
	a.t.Helper()
	ca := a.path("ca-dir")
	if err := os.MkdirAll(ca, 0o755); err != nil {
		a.t.Fatal(err)
	}
	for _, key := range []string{"ca.crt", "ca.key"} {
		a.write("ca-dir/"+key, a.secret("contiv-etcd-ca", key))
	}
	for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
		a.write("etcd-"+key, a.secret("contiv-etcd-client", key))
	}
	config := a.kubeconfig("contiv-etcd", "")
	var endpoints []string
	for i := 1; i <= 3; i++ {
		addr := fmt.Sprintf("10.99.0.%d", i)
		a.inside("ip", "addr", "add", addr+"/32", "dev", "lo")
		endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["%s"],"targetRef":{"kind":"Pod","name":"contiv-etcd-%d"}}`, addr, i-1))
		tls := a.path(fmt.Sprintf("tls%d", i))
		if err := os.MkdirAll(tls, 0o755); err != nil {
			a.t.Fatal(err)
		}
		a.program(program, "etcd", "--kubeconfig="+config, "--namespace=kube-system", fmt.Sprintf("--name=contiv-etcd-%d", i-1),
			"--address="+addr, "--members=3", "--data-dir="+a.path(fmt.Sprintf("node%d", i)), "--ca-dir="+ca, "--tls-dir="+tls, "--",
			filepath.Join(a.bin, "etcd"), fmt.Sprintf("--listen-metrics-urls=http://127.0.0.1:2238%d", i), "--unsafe-no-fsync")
	}
	a.create("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices", `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4","metadata":{"name":"e","namespace":"kube-system",
"labels":{"kubernetes.io/service-name":"contiv-etcd"}},"endpoints":[`+strings.Join(endpoints, ",")+`]}`)
	a.eventually("three members with a leader", func() bool {
		return a.command("curl", "-fsS", "http://127.0.0.1:22383/readyz").Run() == nil &&
			strings.Contains(a.etcdAPI("put", `{"key":"YQ==","value":"YQ=="}`), `"revision"`)
	})
	// An agent's certificate is from the same CA; it must not give access to the members' peer port.
	if out, err := a.command("curl", "-sS", "--max-time", "5", "--cacert", a.path("etcd-ca.crt"), "--cert",
		a.path("etcd-tls.crt"), "--key",
		a.path("etcd-tls.key"), "https://10.99.0.1:12380/version").CombinedOutput(); err == nil {
		a.t.Errorf("a member lets an agent in: %s", out)
	}
	starter := func(args ...string) string {
		cmd := a.command(slices.Concat([]string{program, "agent", "--namespace=kube-system", "--members=3",
			"--cache=" + a.path("endpoints")}, args, []string{"--", "env"})...)
		out, err := cmd.Output()
		if err != nil {
			a.t.Errorf("agent's starter: %v", err)
		}
		return string(out)
	}
	const want = "CONTIV_ETCD_ENDPOINTS=https://10.99.0.1:12379,https://10.99.0.2:12379,https://10.99.0.3:12379\n"
	if got := starter("--timeout=60s", "--kubeconfig="+a.path("contiv-agent.kubeconfig")); !strings.Contains(got, want) ||
		!strings.Contains(got, "CONTIV_ETCD_SERVICE=kube-system/contiv-etcd:12379\n") {
		a.t.Errorf("the agent's environment: %s", got)
	}
	dead := strings.Replace(string(must(os.ReadFile(a.path("contiv-agent.kubeconfig")))), ":6443", ":1", 1)
	a.write("dead.kubeconfig", []byte(dead))
	if got := starter("--timeout=2s", "--kubeconfig="+a.path("dead.kubeconfig")); !strings.Contains(got, want) {
		a.t.Errorf("without the API server: %s", got)
	}
}

// etcdAPI calls etcd's JSON gateway with the agents' certificate, and returns the answer.
func (a *apiServer) etcdAPI(call, request string) string {
	out, _ := a.command("curl", "-sS", "--max-time", "5", "--cacert", a.path("etcd-ca.crt"), "--cert", a.path("etcd-tls.crt"),
		"--key", a.path("etcd-tls.key"), "https://10.99.0.1:12379/v3/kv/"+call, "-d", request).CombinedOutput() // the caller retries
	return string(out)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// secret returns a value of a Secret.
func (a *apiServer) secret(name, key string) []byte {
	a.t.Helper()
	return decoded(a.t, at(a.get(systemPath+"secrets/"+name), "data", key))
}

// conditionsOf returns the conditions of a node.
func (a *apiServer) conditionsOf(node string) string {
	a.t.Helper()
	var b strings.Builder
	conditions, _ := at(a.get(nodesPath+"/"+node), "status", "conditions").([]any)
	for _, c := range conditions {
		fmt.Fprintf(&b, "%v=%v %v;", at(c, "type"), at(c, "status"), at(c, "reason"))
	}
	return b.String()
}

// conditions checks that a finding of pre-flight is an Event and a condition of its node, that an agent that is ready makes the network
// available, and that neither may change another node.
func (a *apiServer) conditions(program string) {
	a.t.Helper()
	own := a.kubeconfig("contiv-agent", "n1")
	preflight := func(node, nic string) (string, error) {
		conf := a.path("contiv.conf")
		a.write("contiv.conf", []byte("nodeConfig: [{nodeName: "+node+", mainVPPInterface: {interfaceName: "+nic+"}}]"))
		out, err := a.command(program, "preflight", "--report", "--kubeconfig="+own, "--node-name="+node,
			"--config="+conf).CombinedOutput()
		return string(out), err
	}
	out, err := preflight("n1", "eth77")
	if code := exitCode(err); code != 3 || !strings.Contains(out, "no interface eth77") {
		a.t.Errorf("pre-flight: exit status %d\n%s", code, out)
	}
	if got := a.conditionsOf("n1"); got != "ContivPreflight=False Lacking;NetworkUnavailable=True ContivPreflightFailed;" {
		a.t.Errorf("conditions: %s", got)
	}
	events := a.get("/api/v1/namespaces/default/events?fieldSelector=reason=PreflightFailed")["items"]
	if !strings.Contains(fmt.Sprint(events), "no interface eth77") {
		a.t.Errorf("events: %v", events)
	}
	if out, err := preflight("n1", "lo"); err != nil {
		a.t.Errorf("pre-flight: %v\n%s", err, out)
	}
	if got := a.conditionsOf("n1"); !strings.HasPrefix(got, "ContivPreflight=True") {
		a.t.Errorf("conditions: %s", got)
	}
	// The API server applies an admission policy some time after it has accepted it.
	a.eventually("the admission policy is in effect", func() bool {
		_, err := a.call(http.MethodPatch, nodesPath+"/n2/status?dryRun=All", `{"status":{"phase":"Running"}}`,
			"Content-Type", "application/merge-patch+json", "Impersonate-User", "system:serviceaccount:kube-system:contiv-agent")
		return err != nil && strings.Contains(err.Error(), "contiv-agent-own-node")
	})
	out, err = preflight("n2", "eth77")
	if exitCode(err) != 3 || !strings.Contains(out, "its own node only") || a.conditionsOf("n2") != "" {
		a.t.Errorf("an agent changed another node's status: %q\n%s", a.conditionsOf("n2"), out)
	}
}

func exitCode(err error) int {
	if e, ok := err.(*exec.ExitError); ok {
		return e.ExitCode()
	}
	return 0
}

// kubeconfig returns the kubeconfig of a service account, bound to a pod on the node if one is named, as the kubelet does it.
func (a *apiServer) kubeconfig(account, node string) string {
	a.t.Helper()
	bound := "null"
	if node != "" {
		pod := a.create(systemPath+"pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"agent-`+node+`"},"spec":{"nodeName":"`+node+
			`","serviceAccountName":"`+account+`","containers":[{"name":"c","image":"i:1"}]}}`)
		bound = fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","name":"agent-%s","uid":%q}`, node, at(pod, "metadata", "uid"))
	}
	answer := a.create(systemPath+"serviceaccounts/"+account+"/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest",
"spec":{"audiences":[],"boundObjectRef":`+bound+`}}`)
	token, _ := at(answer, "status", "token").(string)
	name := account + ".kubeconfig"
	a.write(name, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:6443","certificate-authority":"`+a.path("ca.crt")+`"}}],
"users":[{"name":"u","user":{"token":"`+token+`"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`))
	return a.path(name)
}
