package client

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/diag"
)

// agent starts an agent that requires the token; its certificate is for example.com and 127.0.0.1.
func agent(t *testing.T, token string) (s *httptest.Server, caFile, tokenFile string) {
	t.Helper()
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": "missing or wrong bearer token"}`))
			return
		}
		_, _ = w.Write([]byte(`{"node": "n1"}`))
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	caFile, tokenFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := errors.Join(os.WriteFile(caFile, ca, 0o600), os.WriteFile(tokenFile, []byte(token+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return s, caFile, tokenFile
}

func TestRemoteAgentIsQueriedOnlyWhenItIsTheRightOne(t *testing.T) {
	s, ca, token := agent(t, "0123456789abcdef")
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("another-token-here"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := s.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	plainAgent := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plainAgent.Close)
	bare := plainAgent.Listener.Addr().String()
	for _, tc := range []struct {
		name, node, address string
		cred                Credentials
		want                string // part of the error; empty: it answers
	}{
		{"by address", "n1", address, Credentials{CAFile: ca, TokenFile: token}, ""},
		{"by node name", "example.com", "localhost:" + port, Credentials{CAFile: ca, TokenFile: token}, ""},
		{"by given name", "n1", address, Credentials{CAFile: ca, TokenFile: token, ServerName: "example.com"}, ""},
		{"of another name", "n1", address, Credentials{CAFile: ca, TokenFile: token, ServerName: "n7"}, "--tls-server-name"},
		{"without a matching name", "n1", "localhost:" + port, Credentials{CAFile: ca, TokenFile: token}, "certificate is valid for"},
		{"unknown CA", "n1", address, Credentials{TokenFile: token}, "unknown authority; --ca must be"},
		{"wrong token", "n1", address, Credentials{CAFile: ca, TokenFile: other}, "wrong bearer token; check the token in --token-file"},
		{"no token", "n1", address, Credentials{CAFile: ca}, "give a token by --token-file"},
		{"without TLS", "n1", address, Credentials{Plain: true, TokenFile: token}, "leave out --plain"},
		{"TLS to an agent without", "n1", bare, Credentials{CAFile: ca, TokenFile: token}, "it serves HTTP, not HTTPS"},
		{"no such CA file", "n1", address, Credentials{CAFile: "/nothing"}, "--ca: open"},
		{"plain to the network", "n1", "192.0.2.1:9999", Credentials{Plain: true}, "for loopback addresses only"},
		{"no port", "n1", "192.0.2.1", Credentials{}, "host:port"},
	} {
		a, err := Remote(tc.node, tc.address, tc.cred)
		var info diag.AgentInfo
		if err == nil {
			err = a.Get(t.Context(), diag.AgentPath, &info)
		}
		switch {
		case tc.want == "" && (err != nil || info.Node != "n1"):
			t.Errorf("%s: %+v %v", tc.name, info, err)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

// local starts an agent on a unix socket, with three nodes.
func local(t *testing.T, info diag.AgentInfo) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "rest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case diag.AgentPath:
			_ = json.NewEncoder(w).Encode(info)
		case NodesPath:
			_, _ = w.Write([]byte(`{"nodes": [{"id": 1, "name": "n1", "state": "claimed", "vppIPs": ["10.0.0.1/24"], "mgmtIPs": []},
				{"id": 2, "name": "n2", "state": "claimed", "vppIPs": ["10.0.0.2/24"], "mgmtIPs": ["10.9.0.2"]},
				{"id": 3, "name": "n3", "state": "released", "vppIPs": [], "mgmtIPs": []}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return socket
}

func TestOtherNodesAreFoundThroughTheLocalAgent(t *testing.T) {
	_, ca, token := agent(t, "0123456789abcdef")
	socket := local(t, diag.AgentInfo{Node: "n1", Access: diag.Access{Address: "0.0.0.0:9998", TLS: true, CAFile: ca,
		TokenFile: token}})
	c, err := Open(t.Context(), Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(c.Names(), " "); names != "n1 n2" {
		t.Errorf("nodes: %s", names)
	}
	for _, by := range []string{"n2", "10.9.0.2", "10.0.0.2"} {
		a, err := c.Agent(by)
		if err != nil || a.where != "10.9.0.2:9998" || a.token != "0123456789abcdef" || a.Name != "n2" {
			t.Errorf("%s: %+v %v", by, a, err)
		}
	}
	for _, by := range []string{"", "n1", "10.0.0.1"} {
		if a, err := c.Agent(by); err != nil || a.where != socket {
			t.Errorf("%q: %+v %v, want the local one", by, a, err)
		}
	}
	for _, by := range []string{"n3", "n4"} {
		if _, err := c.Agent(by); err == nil || !strings.Contains(err.Error(), "n1, n2") {
			t.Errorf("%s: %v", by, err)
		}
	}
	answers := Each(t.Context(), c, []string{"n1", "n4"}, func(_ context.Context, a *Agent) (string, error) { return a.Name, nil })
	if len(answers) != 2 || answers[0].Value != "n1" || answers[1].Err == nil || Failed(answers) == nil {
		t.Errorf("answers: %+v", answers)
	}
}

func TestLoopbackOnlyAgentsAreReported(t *testing.T) {
	c, err := Open(t.Context(), Options{Socket: local(t, diag.AgentInfo{Node: "n1",
		Access: diag.Access{Address: "127.0.0.1:9999"}})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Agent("n2"); err == nil || !strings.Contains(err.Error(), "--http-token-file") {
		t.Errorf("%v", err)
	}
	if _, err := Open(t.Context(), Options{Socket: "/nothing"}); err == nil || !strings.Contains(err.Error(),
		"is the agent running") {
		t.Errorf("%v", err)
	}
}

// TestReadOnly: an agent gets GET requests only, other nodes get the read token, and connections are kept.
func TestReadOnly(t *testing.T) {
	_, ca, token := agent(t, "0123456789abcdef")
	reading := filepath.Join(t.TempDir(), "read-token")
	if err := os.WriteFile(reading, []byte("reads-and-nothing-else"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := local(t, diag.AgentInfo{Node: "n1", Access: diag.Access{Address: "0.0.0.0:9998", TLS: true, CAFile: ca, TokenFile: token,
		ReadTokenFile: reading}})
	c, err := Open(t.Context(), Options{Socket: socket, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"n1", "n2"} {
		a, err := c.Agent(node)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Post(t.Context(), diag.ProbePath, diag.ProbeRequest{}, nil); err == nil || !strings.Contains(err.Error(), "only reads") {
			t.Errorf("%s: POST: %v", node, err)
		}
		if _, err := a.Trace(t.Context(), diag.TraceRequest{}); err == nil || !strings.Contains(err.Error(), "only reads") {
			t.Errorf("%s: trace: %v", node, err)
		}
	}
	a, _ := c.Agent("n2")
	if a.token != "reads-and-nothing-else" {
		t.Errorf("the token of n2 is %q", a.token)
	}
	again, err := c.Again(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := again.Agent("n2"); b != a {
		t.Error("the agent of n2, with its connections, is another one than before")
	}
	if err := os.Remove(reading); err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), Options{Socket: socket, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := other.Agent("n2"); a.token != "0123456789abcdef" {
		t.Errorf("without a file for reading the token is %q", a.token)
	}
}
