package k8s

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFewerMembers checks that an upgrade does not remove members of a managed etcd, which would leave the others without a quorum. More members
// are possible: contiv-init lets them join.
func TestFewerMembers(t *testing.T) {
	const resources = `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[
{"name":"statefulsets","singularName":"statefulset","namespaced":true,"kind":"StatefulSet","verbs":["get"]}]}`
	running := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/apps/v1":
			_, _ = io.WriteString(w, resources)
		case "/apis/apps/v1/namespaces/kube-system/statefulsets/contiv-etcd":
			_, _ = fmt.Fprintf(w, `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"contiv-etcd","namespace":"kube-system"},"spec":{"replicas":%d}}`, running)
		default:
			t.Errorf("the chart reads %s", r.URL.Path)
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"`+
		server.URL+`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		running, wanted int
		ok              bool
	}{{1, 1, true}, {1, 3, true}, {3, 3, true}, {3, 1, false}} {
		running = c.running
		_, err := render(t, renderRequest{Kubeconfig: kubeconfig, Values: fmt.Sprintf("etcd: {replicas: %d}", c.wanted)})
		if (err == nil) != c.ok || !c.ok && !strings.Contains(err.Error(), "docs/upgrade.md") {
			t.Errorf("from %d to %d members: %v", c.running, c.wanted, err)
		}
	}
}
