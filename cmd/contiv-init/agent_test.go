package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/atomicfile"
	"contiv.dev/vswitch/internal/kube"
)

const maxWait = 2 * time.Second

// apiServer lists the given number of etcd's members, or does not respond.
type apiServer struct {
	members atomic.Int32 // -1: no answer
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := a.members.Load()
	if n < 0 {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	endpoints := []string{
		`{"addresses":["10.99.0.1"],"targetRef":{"name":"etcd-0"}}`, `{"addresses":["10.99.0.2"],"targetRef":{"name":"etcd-1"}}`,
	}
	text := ""
	for i, e := range endpoints[:n] {
		if i > 0 {
			text += ","
		}
		text += e
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{},`+
		`"items":[{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[`+text+`]}]}`)
}

func TestEtcdsAddresses(t *testing.T) {
	const one, two = "https://10.99.0.1:12379", "https://10.99.0.1:12379,https://10.99.0.2:12379"
	for _, tc := range []struct {
		name    string
		members int32
		last    string // addresses from the last start
		want    string
		// The call must take at least least, and less than most. Where it must not wait for all members, maxWait is longer than most.
		least, most, maxWait time.Duration
	}{
		{"all", 2, "", two, 0, time.Minute, time.Hour},
		{"all, after another start", 2, one, two, 0, time.Minute, time.Hour},
		{"one is missing: waited for", 1, "", one, maxWait, time.Minute, maxWait},
		{"one is missing, after another start: waited for", 1, two, two, maxWait, time.Minute, maxWait},
		{"API server away: not waited for", -1, two, two, away, time.Minute, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := &apiServer{}
			a.members.Store(tc.members)
			s := newStarter(t, a)
			s.maxWait = tc.maxWait
			if tc.last != "" {
				if err := atomicfile.Write(s.cache, []byte(tc.last), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			got, err := s.endpoints(t.Context())
			if took := time.Since(start); err != nil || got != tc.want || took < tc.least || took >= tc.most {
				t.Errorf("after %s %q, %v; want %q", took, got, err, tc.want)
			}
			last, err := os.ReadFile(s.cache)
			if err != nil || string(last) != tc.want {
				t.Errorf("remembered %q, %v; want %q", last, err, tc.want)
			}
		})
	}
}

// TestEtcdsAddressesOfTheFirstStart: the very first start waits until a member answers.
func TestEtcdsAddressesOfTheFirstStart(t *testing.T) {
	t.Parallel()
	a := &apiServer{}
	a.members.Store(-1)
	s := newStarter(t, a)
	time.AfterFunc(maxWait+time.Second, func() { a.members.Store(2) })
	start := time.Now()
	if got, err := s.endpoints(t.Context()); err != nil || time.Since(start) <= maxWait {
		t.Errorf("after %s %q, %v", time.Since(start), got, err)
	}
}

// TestServiceOfMembers checks that the agent can read the service that it gets.
func TestServiceOfMembers(t *testing.T) {
	env := newStarter(t, &apiServer{}).environment("https://10.99.0.1:12379")
	service, ok := strings.CutPrefix(env[1], "CONTIV_ETCD_SERVICE=")
	namespace, name, port, err := kube.ParseService(service)
	if !ok || err != nil || namespace != "kube-system" || name != "contiv-etcd" || port != etcdClientPort {
		t.Errorf("%v: %v", env, err)
	}
}

func newStarter(t *testing.T, a http.Handler) *starter {
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + srv.URL + `"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &common{kubeconfig: config, namespace: "kube-system", log: slog.New(slog.DiscardHandler)}
	return &starter{common: c, service: "contiv-etcd", members: 2, maxWait: maxWait, cache: filepath.Join(dir, "var/etcd")}
}
