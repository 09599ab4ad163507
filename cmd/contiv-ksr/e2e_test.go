package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/etcdpki"
	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/gobuild"
	"contiv.dev/vswitch/test/testbed/kubeapi"
	"contiv.dev/vswitch/test/testbed/netns"
	"contiv.dev/vswitch/test/testbed/poll"
)

// world is an API server, etcd, two replicas of contiv-ksr and an agent. The API server and etcd are parts of the test; the others are
// processes in the namespace of one node.
type world struct {
	*testing.T
	ctx      context.Context
	node     *testbed.Node
	api      *kubeapi.Server
	etcd     *clusterdb.DB
	endpoint string // endpoint of etcd
	replicas []*netns.Process
	roots    *x509.CertPool // for the certificate of the replica that is reached beyond loopback
}

const apiAddress = "127.0.0.1:6443"

// newWorld starts a world beside those with other names, for tests that run in parallel; args are further flags of contiv-ksr.
func newWorld(t *testing.T, name string, args ...string) *world {
	t.Helper()
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: network namespaces need root")
	}
	w := &world{T: t, ctx: t.Context()}
	bin := t.TempDir()
	if err := gobuild.Commands(bin, "contiv.dev/vswitch/cmd/contiv-agent", "contiv.dev/vswitch/cmd/contiv-ksr"); err != nil {
		t.Fatal(err)
	}
	w.startEtcd()
	var err error
	w.node, err = testbed.NewNode(w.ctx, testbed.NodeOptions{
		Name: fmt.Sprintf("ksr%d-%s", os.Getpid(), name), BinDir: bin, Dataplane: "fake", AgentArgs: []string{"--kubernetes=relay", "--etcd-endpoints=" + w.endpoint},
	})
	w.must(err)
	t.Cleanup(func() { w.must(w.node.Close(context.WithoutCancel(w.ctx))) })
	w.startAPI()
	for i := range 2 {
		w.startReplica(bin, i, args...)
	}
	t.Cleanup(func() {
		for _, p := range w.replicas {
			if p.Running() {
				w.must(p.Stop(30 * time.Second))
			}
		}
	})
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) startEtcd() {
	quiet := slog.New(slog.DiscardHandler)
	server, err := clusterdb.StartEmbedded(w.ctx, clusterdb.Config{
		Embedded: clusterdb.EmbeddedConfig{DataDir: w.TempDir()},
	}, quiet)
	w.must(err)
	w.Cleanup(server.Close)
	w.endpoint = server.Endpoint()
	w.etcd, err = clusterdb.Open(w.ctx, clusterdb.Config{Endpoints: []string{w.endpoint}}, quiet)
	w.must(err)
	w.Cleanup(func() { w.must(w.etcd.Close()) })
}

func (w *world) startAPI() {
	w.api = kubeapi.New()
	w.Cleanup(w.api.Close)
	_, err := w.node.Run(w.ctx, "ip", "link", "set", "lo", "up")
	w.must(err)
	w.must(w.node.Do(func() error {
		l, err := net.Listen("tcp", apiAddress)
		if err == nil {
			w.api.Serve(l)
		}
		return err
	}))
	w.must(os.WriteFile(filepath.Join(w.node.Dir, "kubeconfig"), kubeapi.Kubeconfig(apiAddress), 0o600))
}

func httpAddress(i int) string {
	if i == remoteReplica {
		return fmt.Sprintf("0.0.0.0:%d", 9191+i)
	}
	return fmt.Sprintf("127.0.0.1:%d", 9191+i)
}

// credentials returns the flags of a replica that is reached from other machines: its certificate, and the token for read access.
func (w *world) credentials() (args []string) {
	ca, err := etcdpki.NewCA("ca")
	w.must(err)
	pair, err := ca.Issue(etcdpki.Leaf{Name: certName, Servers: []string{certName}})
	w.must(err)
	w.roots = x509.NewCertPool()
	w.roots.AppendCertsFromPEM(ca.Cert)
	for flag, data := range map[string][]byte{"cert": pair.Cert, "key": pair.Key, "read-token-file": []byte(lookToken)} {
		file := filepath.Join(w.node.Dir, "http-"+flag)
		w.must(os.WriteFile(file, data, 0o600))
		args = append(args, "--http-"+flag+"="+file)
	}
	return args
}

const (
	lookToken = "a-token-that-only-looks"
	certName  = "contiv-agent" // all programs may share one certificate
	// remoteReplica is the replica that is also reached from beyond loopback.
	remoteReplica = 1
)

func (w *world) startReplica(bin string, i int, args ...string) {
	name := fmt.Sprintf("ksr-%d", i)
	cmd := w.node.Command(context.WithoutCancel(w.ctx), filepath.Join(bin, "contiv-ksr"), "--name="+name, "--lease-ttl=2s",
		"--http="+httpAddress(i), "--kubeconfig="+filepath.Join(w.node.Dir, "kubeconfig"))
	cmd.Args = append(cmd.Args, args...)
	if i == remoteReplica {
		cmd.Args = append(cmd.Args, w.credentials()...)
	}
	cmd.Env = append(testbed.ProductEnv(), "CONTIV_ETCD_ENDPOINTS="+w.endpoint)
	p, err := netns.Start(cmd, w.node.Dir, name)
	w.must(err)
	w.replicas = append(w.replicas, p)
}

// get requests a path of a replica's HTTP server, for remoteReplica by TLS and with the token.
func (w *world) get(i int, path string) (body string, err error) {
	if i == remoteReplica {
		return w.query(i, "https://"+certName+path, lookToken)
	}
	return w.query(i, "http://ksr"+path, "")
}

func (w *world) query(i int, url, token string) (body string, err error) {
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	w.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	err = w.node.Do(func() error {
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: w.roots},
		}}
		conn, err := net.Dial("tcp", httpAddress(i)) // in this thread, and so in the node's namespace
		if err != nil {
			return err
		}
		client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return conn, nil }
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		body = string(data)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return err
	})
	return body, err
}

// leader waits for a leader and returns its number.
func (w *world) leader() (leader int) {
	w.Helper()
	w.eventually("a leader", func() error {
		var errs []error
		for i, p := range w.replicas {
			if !p.Running() {
				continue
			}
			body, err := w.get(i, "/metrics")
			if err == nil && strings.Contains(body, "contiv_ksr_leader 1") {
				leader = i
				return nil
			}
			if err == nil {
				err = errors.New("it does not lead")
			}
			errs = append(errs, fmt.Errorf("%s: %w", p.Name, err))
		}
		return errors.Join(errs...)
	})
	return leader
}

// services returns the names of the agent's services with the number of backends of each.
func (w *world) services() (out []string, err error) {
	var report []struct {
		Name  string
		Ports []struct{ Backends []string }
	}
	if err := w.node.GetJSON(w.ctx, "/contiv/v1/services", &report); err != nil {
		return nil, err
	}
	for _, s := range report {
		for _, p := range s.Ports {
			out = append(out, fmt.Sprintf("%s=%d", s.Name, len(p.Backends)))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (w *world) eventually(what string, ok func() error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := poll.Until(ctx, 20*time.Millisecond, ok); err != nil {
		w.Fatalf("%s: %v; the agent's log:\n%s", what, err, w.node.LogTail(20))
	}
}

func (w *world) awaitServices(want ...string) {
	w.Helper()
	w.eventually("services", func() error {
		got, err := w.services()
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}

// operations returns the number of operations of the agent's dataplane when no more are added: the agent lists a service before it is in the
// dataplane.
func (w *world) operations() (n float64) {
	w.Helper()
	same := 0
	w.eventually("the dataplane is at rest", func() error {
		now, err := w.node.Metric(w.ctx, "contiv_scheduler_operations_total")
		if same++; now != n {
			n, same = now, 0
		}
		if err == nil && same < 10 { // polls of 20 ms
			err = fmt.Errorf("%.0f operations by now", now)
		}
		return err
	})
	return n
}

func (w *world) putService(i int, backends ...string) {
	w.Helper()
	s := kubeapi.Service(fmt.Sprintf("s%d", i), []netip.Addr{netip.AddrFrom4([4]byte{10, 96, 1, byte(i)})},
		kubeapi.Port(corev1.ProtocolTCP, 80))
	var endpoints []discoveryv1.Endpoint
	for _, b := range backends {
		endpoints = append(endpoints, kubeapi.Endpoint(w.node.Name, netip.MustParseAddr(b)))
	}
	w.must(w.api.Put(s, kubeapi.Slice(s, discoveryv1.AddressTypeIPv4, 8080, endpoints...)))
}

// wipe deletes all shared state of the cluster.
func (w *world) wipe() {
	keys, _, err := w.etcd.Keys(w.ctx, clusterdb.KSRPrefix, 0)
	w.must(err)
	var c cas.Change
	for _, k := range keys {
		c.Do = append(c.Do, cas.Write{Key: k.Key})
	}
	_, _, err = w.etcd.CommitFirst(w.ctx, c)
	w.must(err)
}

// dashboard checks that contiv-ksr has the metrics that the Grafana dashboard queries.
func (w *world) dashboard() {
	w.Helper()
	text, err := os.ReadFile("../../docs/observability/contiv-dashboard.json")
	w.must(err)
	metrics, err := w.get(remoteReplica, "/metrics")
	w.must(err)
	names := regexp.MustCompile(`contiv_ksr_[a-z_]+`).FindAllString(string(text), -1)
	if len(names) == 0 {
		w.Error("the dashboard asks nothing of contiv-ksr")
	}
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^` + name + `[ {]`).MatchString(metrics) {
			w.Errorf("the dashboard asks for %s, which contiv-ksr does not have", name)
		}
	}
}

// TestRelay: an agent without an API server has the services, receives changes after the leader is killed, and keeps the services when etcd is
// wiped, with and without a relay that fills it again, also across a restart.
func TestRelay(t *testing.T) {
	w := newWorld(t, "relay")
	w.putService(1, "10.1.1.2", "10.1.1.3")
	w.putService(2, "10.1.1.4")
	w.must(w.node.StartAgent(w.ctx))
	w.awaitServices("s1=2", "s2=1")
	w.eventually("readiness of both replicas", func() error {
		_, err0 := w.get(0, "/readiness")
		_, err1 := w.get(1, "/readiness")
		_, err2 := w.get(1, "/liveness")
		return errors.Join(err0, err1, err2)
	})

	for token, want := range map[string]string{"": "401", "a-token-of-somebody": "401"} {
		if _, err := w.query(remoteReplica, "https://"+certName+"/metrics", token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("metrics with the token %q: %v", token, err)
		}
	}

	w.dashboard()

	leader := w.leader()
	w.must(w.replicas[leader].Kill())
	w.putService(2, "10.1.1.4", "10.1.1.5", "10.1.1.6")
	w.awaitServices("s1=2", "s2=3")
	other := w.leader()
	if other == leader {
		t.Errorf("%d leads after its end", leader)
	}

	w.wipe()
	w.putService(3, "10.1.1.9")
	w.awaitServices("s1=2", "s2=3", "s3=1")
	w.must(w.replicas[other].Stop(30 * time.Second)) // the last replica
	before := w.operations()
	w.wipe()
	w.eventually("the agent sees that the state is missing", func() error {
		complete, err := w.node.Metric(w.ctx, "contiv_kube_relay_complete")
		if err == nil && complete != 0 {
			err = errors.New("not yet")
		}
		return err
	})
	w.awaitServices("s1=2", "s2=3", "s3=1")
	after, err := w.node.Metric(w.ctx, "contiv_scheduler_operations_total")
	if err != nil || after != before {
		t.Errorf("%v operations of the dataplane because etcd was wiped; %v", after-before, err)
	}
	w.must(w.node.Agent.Kill())
	w.must(w.node.StartAgent(w.ctx))
	w.awaitServices("s1=2", "s2=3", "s3=1")
}
