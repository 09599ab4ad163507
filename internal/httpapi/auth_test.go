package httpapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/rest"
)

const (
	testToken = "0123456789abcdef"
	lookToken = "may-only-look-0123"
)

// writePair makes a self-signed certificate with the given serial number.
func writePair(t *testing.T, dir string, serial int64) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "contiv-agent"}, DNSNames: []string{"contiv-agent"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	replace(t, certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	replace(t, keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}))
	return certFile, keyFile
}

// replace writes a file and renames it, as a Secret's volume does.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// remote is a running server with TLS and a token.
type remote struct {
	address, certFile, keyFile, tokenFile, readTokenFile, socket string
}

func startRemote(t *testing.T) remote {
	t.Helper()
	dir := t.TempDir()
	r := remote{tokenFile: filepath.Join(dir, "token"), readTokenFile: filepath.Join(dir, "read-token"),
		socket: filepath.Join(dir, "rest.sock")}
	r.certFile, r.keyFile = writePair(t, dir, 1)
	replace(t, r.tokenFile, []byte(testToken+"\n"))
	replace(t, r.readTokenFile, []byte(lookToken+"\n"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = free.Addr().String()
	_ = free.Close()
	s, err := New(Config{
		Address: r.address, CertFile: r.certFile, KeyFile: r.keyFile, TokenFile: r.tokenFile,
		ReadTokenFile: r.readTokenFile, Socket: r.socket,
	}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret reason") }
	for _, path := range []string{rest.LivenessPath, rest.ReadinessPath, "/thing"} {
		s.RegisterHTTPHandler(path, answer)
	}
	s.RegisterHTTPHandler("/write", answer, http.MethodPost)
	s.RegisterHTTPHandler("/both", answer, http.MethodGet, http.MethodPut, http.MethodDelete)
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	if err := s.Start(jobs); err != nil {
		t.Fatal(err)
	}
	return r
}

// query returns status, body and the serial number of the server's certificate.
func query(t *testing.T, method, url, token, socket string) (status int, body string, serial int64) {
	t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // only the serial number is checked
	}
	if socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.TLS != nil {
		serial = resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	return resp.StatusCode, string(data), serial
}

func TestRemoteCallersNeedTheTokenAndProbesGetNoReason(t *testing.T) {
	r := startRemote(t)
	for _, tc := range []struct {
		method, path, token string
		status              int
		reason              bool // the answer has the handler's text
	}{
		{"GET", "/thing", testToken, 200, true},
		{"GET", "/thing", "", 401, false},
		{"GET", "/thing", testToken + "x", 401, false},
		{"POST", "/write", testToken, 200, true},
		{"POST", "/write", "", 401, false},
		{"GET", rest.ReadinessPath, "", 200, false},
		{"GET", rest.LivenessPath, "", 200, false},
		{"GET", rest.ReadinessPath, "wrong", 401, false},
		{"GET", rest.ReadinessPath, testToken, 200, true},
		{"GET", "/thing", lookToken, 200, true},
		{"GET", rest.ReadinessPath, lookToken, 200, true},
		{"POST", "/write", lookToken, 403, false},
		{"PUT", "/both", lookToken, 403, false},
		{"DELETE", "/both", lookToken, 403, false},
		{"PUT", "/both", testToken, 200, true},
	} {
		status, body, _ := query(t, tc.method, "https://"+r.address+tc.path, tc.token, "")
		if status != tc.status || (body == "secret reason") != tc.reason {
			t.Errorf("%s %s with token %q: %d %q, want %d", tc.method, tc.path, tc.token, status, body, tc.status)
		}
	}
	if status, _, _ := query(t, "POST", "http://agent/write", "", r.socket); status != 200 {
		t.Errorf("POST on the root-only socket: %d", status)
	}
}

func TestLoopbackWithoutTokenServesOnlyWhatIsPublic(t *testing.T) {
	s, err := New(Config{Address: "127.0.0.1:0", Socket: "/run/contiv/rest.sock"}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	called := 0
	handler := func(http.ResponseWriter, *http.Request) { called++ }
	public := []string{rest.LivenessPath, rest.ReadinessPath, rest.MetricsPath, rest.IPAMPath}
	for _, path := range append([]string{"/both"}, public...) {
		s.RegisterHTTPHandler(path, handler, http.MethodGet, http.MethodPost)
	}
	h := s.authenticate(s.guard(s.mux))
	for _, path := range []string{"/both", "/", "/nothing", rest.IPAMPath + "/", "/liveness/../both"} {
		if w := record(h, "GET", path); w != 403 || called > 0 {
			t.Errorf("GET %s without a token: %d, handler called: %d", path, w, called)
		}
	}
	for _, path := range public {
		if w := record(h, "POST", path); w != 403 || called > 0 {
			t.Errorf("POST %s without a token: %d, handler called: %d", path, w, called)
		}
		if w := record(h, "GET", path); w != 200 || called != 1 {
			t.Errorf("GET %s: %d", path, w)
		}
		called = 0
	}
	for _, method := range []string{"GET", "POST"} {
		if w := record(trust(s.guard(s.mux)), method, "/both"); w != 200 {
			t.Errorf("%s by a trusted caller: %d", method, w)
		}
	}
}

func TestCertificateAndTokenAreReplacedWithoutRestart(t *testing.T) {
	r := startRemote(t)
	url := "https://" + r.address + "/thing"
	dir := filepath.Dir(r.certFile)
	writePair(t, dir, 2)
	replace(t, r.tokenFile, []byte("another-token-of-24-chars"))
	if status, _, serial := query(t, "GET", url, "another-token-of-24-chars", ""); status != 200 || serial != 2 {
		t.Errorf("new token: %d, certificate %d", status, serial)
	}
	if status, _, _ := query(t, "GET", url, testToken, ""); status != 401 {
		t.Errorf("the old token still opens: %d", status)
	}
	// A file that cannot be used leaves the old value in force.
	replace(t, r.certFile, []byte("not a certificate"))
	replace(t, r.tokenFile, []byte("short"))
	if status, _, serial := query(t, "GET", url, "another-token-of-24-chars", ""); status != 200 || serial != 2 {
		t.Errorf("with broken files: %d, certificate %d, want the last good ones", status, serial)
	}
	if status, _, _ := query(t, "GET", url, "short", ""); status != 401 {
		t.Errorf("a token that is too short opens: %d", status)
	}
	writePair(t, dir, 3)
	if _, _, serial := query(t, "GET", url, "another-token-of-24-chars", ""); serial != 3 {
		t.Errorf("certificate %d after the repair, want 3", serial)
	}
}

func TestTokenThatOnlyReads(t *testing.T) {
	r := startRemote(t)
	url := "https://" + r.address
	// An operator writes the main token into the read-only file, too: it is then only a read-only token.
	replace(t, r.readTokenFile, []byte(testToken+"\n"))
	if status, _, _ := query(t, "POST", url+"/write", testToken, ""); status != 403 {
		t.Errorf("a token that only reads writes: %d", status)
	}
	if status, _, _ := query(t, "GET", url+"/thing", testToken, ""); status != 200 {
		t.Errorf("it does not read: %d", status)
	}
	if status, _, _ := query(t, "GET", url+"/thing", lookToken, ""); status != 401 {
		t.Errorf("the replaced token still opens: %d", status)
	}
	cfg := Config{Address: r.address, CertFile: r.certFile, KeyFile: r.keyFile, TokenFile: r.tokenFile,
		ReadTokenFile: r.readTokenFile}
	if _, err := New(cfg, quiet()); err == nil || !strings.Contains(err.Error(), "same token") {
		t.Errorf("both tokens are the same: %v", err)
	}
	cfg.TokenFile = ""
	if _, err := New(cfg, quiet()); err != nil {
		t.Errorf("only a token that reads, for metrics: %v", err)
	}
	cfg.Address, cfg.ReadTokenFile = "0.0.0.0:0", ""
	if _, err := New(cfg, quiet()); err == nil {
		t.Error("beyond loopback without any token")
	}
}

// TestMissingFilesAreLoggedOnce checks that a missing token and a missing certificate cause one line of the log each, not one
// for each request.
func TestMissingFilesAreLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := writePair(t, dir, 1)
	path := filepath.Join(dir, "token")
	replace(t, path, []byte(testToken))
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	token, err := openToken(path, log)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := openCertificate(certFile, keyFile, log)
	if err != nil {
		t.Fatal(err)
	}
	query := func() {
		t.Helper()
		for range 5 {
			if got := token.current(); got != testToken {
				t.Errorf("token %q", got)
			}
			if pair, err := cert.get(nil); err != nil || pair == nil {
				t.Errorf("%v %v", pair, err)
			}
		}
	}
	for round := 1; round <= 2; round++ {
		if err := errors.Join(os.Remove(path), os.Remove(keyFile)); err != nil {
			t.Fatal(err)
		}
		query()
		if n := strings.Count(text.String(), "the old one stays"); n != 2*round {
			t.Errorf("round %d: %d warnings, want %d:\n%s", round, n, 2*round, text.String())
		}
		replace(t, path, []byte(testToken))
		writePair(t, dir, 2)
		query()
	}
}
