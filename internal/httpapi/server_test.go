package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// record returns the status of h's answer.
func record(h http.Handler, method, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code
}

func TestRefusesToListenBeyondLoopbackUnprotected(t *testing.T) {
	token := write(t, "token", "0123456789abcdef0123")
	for _, tc := range []struct {
		name string
		cfg  Config
		want string // "" = accepted
	}{
		{"loopback", Config{Address: "127.0.0.1:0"}, ""},
		{"loopback v6", Config{Address: "[::1]:0"}, ""},
		{"any", Config{Address: "0.0.0.0:9999"}, flagTLS},
		{"empty host is any", Config{Address: ":9999"}, flagToken},
		{"a name may be anything", Config{Address: "example:9999"}, flagTLS},
		{"token but no TLS", Config{Address: "0.0.0.0:1", TokenFile: token}, flagTLS},
		{"TLS but no token", Config{Address: "0.0.0.0:1", CertFile: "c", KeyFile: "k"}, flagToken},
		{"both", Config{Address: "0.0.0.0:1", CertFile: "c", KeyFile: "k", TokenFile: token}, ""},
		{"half a key pair", Config{Address: "127.0.0.1:1", CertFile: "c"}, flagTLS},
		{"no port", Config{Address: "127.0.0.1"}, flagAddress},
		{"a port too high", Config{Address: "127.0.0.1:65536"}, `port "65536" is not a number`},
		{"a port by name", Config{Address: "127.0.0.1:http"}, `port "http" is not a number`},
		{"short token", Config{TokenFile: write(t, "short", "abc")}, flagToken},
	} {
		_, err := New(tc.cfg, quiet())
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want one that names %s", tc.name, err, tc.want)
		}
	}
}

func TestRequests(t *testing.T) {
	s, err := New(Config{TokenFile: write(t, "token", "0123456789abcdef")}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	s.RegisterHTTPHandler("/thing", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	s.RegisterHTTPHandler("/panic", func(http.ResponseWriter, *http.Request) { panic("oops") }, http.MethodPost)
	h := s.authenticate(s.guard(s.mux))
	for _, tc := range []struct {
		method, path, token string
		status              int
		body                string
	}{
		{"GET", "/thing", "0123456789abcdef", 200, "ok"},
		{"GET", "/thing", "wrong", 401, "token"},
		{"GET", "/thing", "", 401, "token"},
		{"POST", "/thing", "0123456789abcdef", 405, "use GET"},
		{"POST", "/panic", "0123456789abcdef", 500, "internal error"},
		{"GET", "/nothing", "0123456789abcdef", 404, "/nothing"},
		{"GET", "/", "0123456789abcdef", 200, "/thing"},
	} {
		r := httptest.NewRequest(tc.method, tc.path, nil)
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.body) {
			t.Errorf("%s %s: %d %q, want %d with %q", tc.method, tc.path, w.Code, w.Body, tc.status, tc.body)
		}
	}
}

func TestSocketIsPrivateAndReplacesAStaleOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "rest.sock")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()

	s, err := New(Config{Socket: path, Address: "127.0.0.1:0"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	if err := s.Start(jobs); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v, want mode 0600", info.Mode(), err)
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	resp, err := client.Get("http://agent/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	second, _ := New(Config{Socket: path}, quiet())
	if err := second.Start(jobs); err == nil {
		t.Error("a second server took over the socket of a live one")
	}
	if err := jobs.Stop(time.Minute); err != nil {
		t.Error(err)
	}
}
