package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// eventAPI is an API server that accepts the first Event of each name.
type eventAPI struct {
	mu      sync.Mutex
	has     map[string]*corev1.Event
	queries []string
	code    int // returned instead
}

func (a *eventAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queries = append(a.queries, r.Method+" "+r.URL.Path)
	status := func(code int, reason string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason})
	}
	body, _ := io.ReadAll(r.Body)
	ev := &corev1.Event{}
	switch err := json.Unmarshal(body, ev); {
	case a.code != 0:
		status(a.code, http.StatusText(a.code))
	case err != nil:
		status(http.StatusBadRequest, "BadRequest")
	case a.has[ev.Name] != nil:
		status(http.StatusConflict, "AlreadyExists")
	default:
		a.has[ev.Name] = ev
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

// TestWriteObjectEvent checks that a Warning about an object is in its namespace, that a repeated one stays one Event, and that a
// deleted namespace causes no error.
func TestWriteObjectEvent(t *testing.T) {
	api := &eventAPI{has: map[string]*corev1.Event{}}
	server := httptest.NewServer(api)
	defer server.Close()
	c, err := newClient(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		&http.Client{Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	e := ObjectEvent{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: strings.Repeat("a", 253), UID: "u", Component: "contiv",
		Node: "n1", Reason: "FrontendConflict", Message: strings.Repeat("ü", 900)}
	for range 2 {
		if err := c.WriteObjectEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	e.Node = "n2"
	if err := c.WriteObjectEvent(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if len(api.has) != 1 || api.queries[0] != "POST /api/v1/namespaces/ns/events" {
		t.Fatalf("%d Events, asked %s", len(api.has), api.queries)
	}
	for name, ev := range api.has {
		if len(name) > 253 || len(ev.Message) > 1024 || ev.Type != corev1.EventTypeWarning || ev.InvolvedObject.Name != e.Name ||
			ev.InvolvedObject.UID != "u" || ev.InvolvedObject.Kind != "Service" || ev.Source.Host != "n1" {
			t.Errorf("%s: %+v", name, ev)
		}
	}
	e.Message = "other"
	for code, fails := range map[int]bool{http.StatusNotFound: false, http.StatusServiceUnavailable: true, http.StatusForbidden: true} {
		api.code = code
		if err := c.WriteObjectEvent(t.Context(), e); (err != nil) != fails {
			t.Errorf("status %d: %v", code, err)
		}
	}
}
