package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnyPolicy: pre-flight queries network policies on VPP only, and never behind a relay, where the node's account may not list them.
func TestAnyPolicy(t *testing.T) {
	queried := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/networkpolicies") {
			t.Errorf("unexpected request %s", r.URL)
		}
		queried++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"NetworkPolicyList","apiVersion":"networking.k8s.io/v1","items":[{"metadata":{"name":"a"}}]}`)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],`+
		`"clusters":[{"name":"a","cluster":{"server":%q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ report, relay, vpp, want bool }{
		{report: true, vpp: true, want: true}, {report: true}, {vpp: true}, {report: true, relay: true, vpp: true},
	} {
		queried = 0
		o := &preflightOptions{common: &common{kubeconfig: kubeconfig, log: slog.New(slog.DiscardHandler)}, report: tc.report, relay: tc.relay}
		o.wants.VPP = tc.vpp
		if any := o.anyPolicy(t.Context()); any != tc.want || (queried > 0) != tc.want {
			t.Errorf("%+v: policies %t, %d requests", tc, any, queried)
		}
	}
}
