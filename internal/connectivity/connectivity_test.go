package connectivity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/internal/lifecycle"
)

// mux serves as httpapi does, without authentication.
type mux struct{ *http.ServeMux }

func (m mux) RegisterHTTPHandler(path string, h http.HandlerFunc, _ ...string) { m.HandleFunc(path, h) }

// fakeCNI gives every pod the address of the loopback, which its namespace has.
type fakeCNI struct {
	mu    sync.Mutex
	wired map[string]bool
	fails error
}

func (f *fakeCNI) handle(_ context.Context, req *cniapi.Request) (*cniapi.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Command == cniapi.Del {
		delete(f.wired, req.ContainerID)
		return nil, nil
	}
	if f.fails != nil {
		return nil, f.fails
	}
	f.wired[req.ContainerID] = true
	return &cniapi.Result{Interfaces: []cniapi.Interface{{Name: "eth0", MTU: 1450, Sandbox: req.Netns}},
		IPs: []cniapi.IP{{Address: netip.MustParsePrefix("127.0.0.1/32")}}}, nil
}

func (f *fakeCNI) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.wired)
}

type rig struct {
	t   *testing.T
	cni *fakeCNI
	s   *Service
	url string
	dir string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("test pods: network namespaces need root")
	}
	r := &rig{t: t, cni: &fakeCNI{wired: map[string]bool{}}, dir: t.TempDir()}
	jobs := lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	m := mux{http.NewServeMux()}
	r.s = New(Deps{Log: slog.New(slog.DiscardHandler), HTTP: m, Jobs: jobs, CNI: r.cni.handle, Dir: r.dir})
	server := httptest.NewServer(m)
	r.url = server.URL
	t.Cleanup(func() {
		server.Close()
		r.s.expire(context.Background(), time.Now().Add(2*lifetime))
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
		r.empty()
	})
	return r
}

func (r *rig) post(path string, body any) (int, string) {
	r.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.Post(r.url+path, "application/json", bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// empty checks that no namespace and no attachment is left.
func (r *rig) empty() {
	r.t.Helper()
	files, err := os.ReadDir(r.dir)
	if err != nil || len(files) != 0 || r.cni.count() != 0 {
		r.t.Errorf("left: %v, %d attachments (%v)", files, r.cni.count(), err)
	}
}

// TestPod checks that a pod is made, answers by TCP and UDP from inside, and is removed.
func TestPod(t *testing.T) {
	r := newRig(t)
	status, text := r.post(Path, map[string]string{"name": "a"})
	if status != 200 || !strings.Contains(text, `"contiv-test-a"`) || !strings.Contains(text, "127.0.0.1") || !strings.Contains(text, "1450") {
		t.Fatalf("%d %s", status, text)
	}
	status, text = r.post(TransferPath, TransferRequest{Name: "contiv-test-a", To: netip.MustParseAddr("127.0.0.1"), Port: Port, Bytes: 300_001})
	if status != 200 || !strings.Contains(text, `"bytes": 300001`) {
		t.Errorf("transfer: %d %s", status, text)
	}
	if status, text := r.post(Path, map[string]string{"name": "a"}); status != 503 || !strings.Contains(text, "it exists") {
		t.Errorf("the same again: %d %s", status, text)
	}
	for range 2 { // the second time it does not exist
		if status, text := r.post(DeletePath, map[string]string{"name": "contiv-test-a"}); status != 200 {
			t.Errorf("delete: %d %s", status, text)
		}
	}
	r.empty()
}

// TestPodsAreBounded checks the maximum number of pods, and that pods are removed after their
// lifetime.
func TestPodsAreBounded(t *testing.T) {
	r := newRig(t)
	for i := range maxPods + 1 {
		status, text := r.post(Path, map[string]string{"name": fmt.Sprint("p", i)})
		if want := 200; i < maxPods && status != want || i == maxPods && status != 503 {
			t.Errorf("pod %d: %d %s", i, status, text)
		}
	}
	r.s.expire(t.Context(), time.Now())
	if r.cni.count() != maxPods {
		t.Error("pods go before their time")
	}
	r.s.expire(t.Context(), time.Now().Add(lifetime+time.Second))
	r.empty()
}

// TestPodThatCannotBeConnected checks that such a pod leaves nothing behind.
func TestPodThatCannotBeConnected(t *testing.T) {
	r := newRig(t)
	r.cni.fails = errors.New("no free address")
	if status, text := r.post(Path, map[string]string{"name": "a"}); status != 503 || !strings.Contains(text, "no free address") {
		t.Errorf("%d %s", status, text)
	}
	r.empty()
}

func TestRequestsAreChecked(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		path string
		body any
	}{
		{Path, map[string]string{"name": "../x"}}, {Path, map[string]string{}}, {Path, "x"}, {TransferPath, TransferRequest{Name: "x"}},
		{TransferPath, TransferRequest{Name: "x", To: netip.MustParseAddr("10.0.0.1"), Port: 1, Bytes: maxBytes + 1}},
	} {
		if status, text := r.post(tc.path, tc.body); status != 400 {
			t.Errorf("%s %v: %d %s", tc.path, tc.body, status, text)
		}
	}
	ok := TransferRequest{Name: "x", To: netip.MustParseAddr("10.0.0.1"), Port: 1, Bytes: 1}
	if status, text := r.post(TransferPath, ok); status != 502 || !strings.Contains(text, "no test pod") {
		t.Errorf("from a pod that does not exist: %d %s", status, text)
	}
}

// flipping changes one byte in transit.
type flipping struct {
	net.Conn
	at, seen int
}

func (f *flipping) Write(p []byte) (int, error) {
	p = bytes.Clone(p)
	if f.seen <= f.at && f.at < f.seen+len(p) {
		p[f.at-f.seen] ^= 1
	}
	f.seen += len(p)
	return f.Conn.Write(p)
}

// TestCorruptDataIsNoticed checks that one changed bit fails a transfer.
func TestCorruptDataIsNoticed(t *testing.T) {
	for _, at := range []int{-1, 8, 100_000} {
		a, b := net.Pipe()
		done := make(chan error, 1)
		go func() { done <- receive(b) }()
		err := send(&flipping{Conn: a, at: at}, 200_000)
		if (err == nil) != (at < 0) {
			t.Errorf("byte %d changed: %v", at, err)
		}
		_, _ = a.Close(), b.Close()
		<-done
	}
}
