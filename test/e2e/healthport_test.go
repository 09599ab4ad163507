package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"contiv.dev/vswitch/internal/nsdo"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

const (
	apiAddress = "127.0.0.1:6443"
	healthPort = "127.0.0.1:10256"
)

// TestHealthPort checks that cloud load balancers can send the same health checks as to kube-proxy,
// and receive the same answers.
func TestHealthPort(t *testing.T) {
	t.Parallel()
	each(t, []mode{fake, linux}, func(t *testing.T, m mode) {
		kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
		r := newNode(t, m, args("--kubernetes=on", "--kubeconfig="+kubeconfig))
		r.must(os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600))
		apiServer := kubeapi.New()
		t.Cleanup(apiServer.Close)
		apiServer.Serve(r.listen(apiAddress))
		own := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
		r.must(apiServer.Put(own))

		kubeProxy := r.listen(healthPort) // another process has the port
		r.start()
		if log := r.LogTail(1000); !strings.Contains(log, "kube-proxy may run on this node") ||
			!strings.Contains(log, "--healthz-bind-address") {
			t.Errorf("the log does not say why the health port is not served:\n%s", log)
		}
		r.must(kubeProxy.Close())
		r.answers("/healthz", 200, true)
		r.answers("/livez", 200, nil)
		if status, _ := r.health("/else"); status != 404 {
			t.Errorf("/else: %d", status)
		}

		leaving := own.DeepCopy()
		leaving.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
		r.must(apiServer.Put(leaving))
		r.answers("/healthz", 503, false)
		r.answers("/livez", 200, nil)
		r.must(apiServer.Put(own))
		r.answers("/healthz", 200, true)
		r.must(apiServer.Delete(own))
		r.answers("/healthz", 503, false)

		metrics, err := r.Get(r.ctx, "/metrics")
		r.must(err)
		if !strings.Contains(metrics, `kubeproxy_proxy_healthz_total{code="503"}`) {
			t.Error("answers are not counted")
		}
	})
}

// TestHealthPortIsOff checks that an empty address disables the port, and that an invalid one is
// rejected.
func TestHealthPortIsOff(t *testing.T) {
	needs(t, fake)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	r := newNode(t, fake, args("--kubernetes=on", "--kubeconfig="+kubeconfig, "--healthz-bind-address="))
	r.must(os.WriteFile(kubeconfig, kubeapi.Kubeconfig(apiAddress), 0o600))
	apiServer := kubeapi.New()
	t.Cleanup(apiServer.Close)
	apiServer.Serve(r.listen(apiAddress))
	r.must(apiServer.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}))
	r.start()
	if status, _ := r.health("/healthz"); status != 0 {
		t.Errorf("the port is served: %d", status)
	}
}

// listen listens in the node's namespace.
func (r *rig) listen(address string) (l net.Listener) {
	r.t.Helper()
	_, err := r.Run(r.ctx, "ip", "link", "set", "lo", "up")
	r.must(err)
	ns, err := nsdo.Open("/run/netns/" + r.Name)
	r.must(err)
	defer ns.Close()
	r.must(ns.Do(func() error {
		l, err = net.Listen("tcp", address)
		return err
	}))
	return l
}

// health sends a request to the health port; status is 0 when there is no answer.
func (r *rig) health(path string) (status int, body string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) { return r.dial(network, address) }}}
	resp, err := client.Get("http://" + healthPort + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r.must(err)
	return resp.StatusCode, string(text)
}

// answers waits for a status and the eligibility of the node (nil: not in the answer); the body
// must be kube-proxy's.
func (r *rig) answers(path string, status int, eligible any) {
	r.t.Helper()
	got, body := 0, ""
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if got, body = r.health(path); got == status {
			break
		}
		if time.Now().After(end) {
			r.t.Fatalf("%s: %d %s, want %d", path, got, body, status)
		}
	}
	var a struct {
		LastUpdated, CurrentTime time.Time
		NodeEligible             any
		Healthy                  bool
		Status                   map[string]struct {
			LastUpdated time.Time
			Healthy     bool
		}
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		r.t.Fatalf("%s: %v: %s", path, err, body)
	}
	if a.NodeEligible != eligible || !a.Healthy || a.LastUpdated.IsZero() || time.Since(a.CurrentTime) > time.Minute ||
		!a.Status["IPv4"].Healthy {
		r.t.Errorf("%s: %s, want nodeEligible %v", path, body, eligible)
	}
}
