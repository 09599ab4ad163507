package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// fakeAPI is an API server of which tests control everything: the objects, the history that watches can go back to, whether
// lists are streamed, and how the connection fails.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	rv       int
	compact  int // changes up to this revision are forgotten
	objects  map[string]map[string]runtime.Object
	history  []change
	changed  chan struct{} // closed and replaced when something changes
	breakers chan struct{} // closed and replaced to break all watches
	streams  bool          // watch lists are supported
	status   int           // answer every request with this instead
	absent   map[string]bool
	lists    map[string]int
	watches  map[string]int
	queries  map[string]string // the last query by resource
}

type change struct {
	rv       int
	resource string
	event    string
	obj      runtime.Object
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{
		t: t, rv: 10, objects: map[string]map[string]runtime.Object{}, changed: make(chan struct{}),
		breakers: make(chan struct{}), streams: true, absent: map[string]bool{}, lists: map[string]int{},
		watches: map[string]int{}, queries: map[string]string{},
	}
	f.server = httptest.NewServer(f)
	t.Cleanup(func() {
		f.breakWatches()
		f.server.CloseClientConnections()
		f.server.Close()
	})
	return f
}

func (f *fakeAPI) client() *Client {
	f.t.Helper()
	c, err := newClient(&rest.Config{Host: f.server.URL, QPS: -1}, f.server.Client())
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func resourceOf(obj runtime.Object) (resource, apiVersion, kind string) {
	switch obj.(type) {
	case *corev1.Pod:
		return "pods", "v1", "Pod"
	case *corev1.Node:
		return "nodes", "v1", "Node"
	case *corev1.Namespace:
		return "namespaces", "v1", "Namespace"
	case *corev1.Service:
		return "services", "v1", "Service"
	case *discoveryv1.EndpointSlice:
		return "endpointslices", "discovery.k8s.io/v1", "EndpointSlice"
	case *networkingv1.NetworkPolicy:
		return "networkpolicies", "networking.k8s.io/v1", "NetworkPolicy"
	case *networkingv1.ServiceCIDR:
		return "servicecidrs", "networking.k8s.io/v1", "ServiceCIDR"
	}
	panic(fmt.Sprintf("%T", obj))
}

// put creates or updates an object.
func (f *fakeAPI) put(obj runtime.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resource, version, kind := resourceOf(obj)
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(schemaOf(version, kind))
	meta := obj.(metav1.Object)
	f.rv++
	meta.SetResourceVersion(strconv.Itoa(f.rv))
	key := meta.GetNamespace() + "/" + meta.GetName()
	if f.objects[resource] == nil {
		f.objects[resource] = map[string]runtime.Object{}
	}
	event := "ADDED"
	if f.objects[resource][key] != nil {
		event = "MODIFIED"
	}
	f.objects[resource][key] = obj
	f.recordLocked(change{f.rv, resource, event, obj})
}

// remove deletes an object.
func (f *fakeAPI) remove(obj runtime.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resource, _, _ := resourceOf(obj)
	meta := obj.(metav1.Object)
	key := meta.GetNamespace() + "/" + meta.GetName()
	old := f.objects[resource][key].DeepCopyObject()
	delete(f.objects[resource], key)
	f.rv++
	old.(metav1.Object).SetResourceVersion(strconv.Itoa(f.rv))
	f.recordLocked(change{f.rv, resource, "DELETED", old})
}

// removeIfThere deletes an object unless it is gone already.
func (f *fakeAPI) removeIfThere(meta metav1.Object) {
	resource, _, _ := resourceOf(meta.(runtime.Object))
	f.mu.Lock()
	there := f.objects[resource][meta.GetNamespace()+"/"+meta.GetName()] != nil
	f.mu.Unlock()
	if there {
		f.remove(meta.(runtime.Object))
	}
}

func (f *fakeAPI) recordLocked(c change) {
	f.history = append(f.history, c)
	close(f.changed)
	f.changed = make(chan struct{})
}

// breakWatches ends all watches.
func (f *fakeAPI) breakWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.breakers)
	f.breakers = make(chan struct{})
}

// forget compacts the history: watches from before get 410.
func (f *fakeAPI) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.compact = f.rv
}

// set changes the fake under its lock.
func (f *fakeAPI) set(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[len(parts)-1]
	f.mu.Lock()
	status := f.status
	if f.absent[resource] {
		status = http.StatusNotFound
	}
	f.queries[resource] = r.URL.RawQuery
	f.mu.Unlock()
	q := r.URL.Query()
	switch {
	case status != 0:
		f.fail(w, status, "")
	case q.Get("watch") == "":
		f.list(w, resource)
	default:
		f.watch(w, r, resource)
	}
}

func (f *fakeAPI) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	if reason == "" {
		reason = map[int]metav1.StatusReason{
			404: metav1.StatusReasonNotFound, 403: metav1.StatusReasonForbidden, 422: metav1.StatusReasonInvalid,
			410: metav1.StatusReasonExpired, 503: metav1.StatusReasonServiceUnavailable,
		}[code]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(statusOf(code, reason))
}

func statusOf(code int, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code),
		Message: "the test says " + strconv.Itoa(code),
	}
}

func (f *fakeAPI) list(w http.ResponseWriter, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[resource]++
	_, version, kind := resourceOf(exampleOf(resource))
	items := []runtime.Object{}
	for _, obj := range f.objects[resource] {
		items = append(items, obj)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": kind + "List", "apiVersion": version, "metadata": map[string]string{"resourceVersion": strconv.Itoa(f.rv)},
		"items": items,
	})
}

func exampleOf(resource string) runtime.Object {
	for _, obj := range []runtime.Object{
		&corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{}, &corev1.Service{}, &discoveryv1.EndpointSlice{},
		&networkingv1.NetworkPolicy{}, &networkingv1.ServiceCIDR{},
	} {
		if name, _, _ := resourceOf(obj); name == resource {
			return obj
		}
	}
	panic(resource)
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request, resource string) {
	q := r.URL.Query()
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	initial := q.Get("sendInitialEvents") == "true"
	f.mu.Lock()
	f.watches[resource]++
	streams, compact, breakers := f.streams, f.compact, f.breakers
	f.mu.Unlock()
	if initial && !streams {
		f.fail(w, http.StatusUnprocessableEntity, "")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	flush := w.(http.Flusher).Flush
	send := func(event string, obj any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": event, "object": obj})
	}
	if !initial && from < compact {
		send("ERROR", statusOf(http.StatusGone, metav1.StatusReasonExpired))
		return
	}
	f.mu.Lock()
	if initial {
		for _, obj := range f.objects[resource] {
			send("ADDED", obj)
		}
		from = f.rv
		send("BOOKMARK", bookmark(resource, f.rv, true))
	}
	f.mu.Unlock()
	for {
		f.mu.Lock()
		for _, c := range f.history {
			if c.rv > from && c.resource == resource {
				send(c.event, c.obj)
			}
		}
		if from < f.rv {
			send("BOOKMARK", bookmark(resource, f.rv, false))
		}
		from = f.rv
		changed := f.changed
		f.mu.Unlock()
		flush()
		select {
		case <-changed:
		case <-breakers:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func bookmark(resource string, rv int, end bool) any {
	_, version, kind := resourceOf(exampleOf(resource))
	meta := map[string]any{"resourceVersion": strconv.Itoa(rv)}
	if end {
		meta["annotations"] = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return map[string]any{"kind": kind, "apiVersion": version, "metadata": meta}
}
