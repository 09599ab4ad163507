package kube

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

// TestPodURLs checks that each pod of a service has one URL, whether it is ready or not.
func TestPodURLs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices" {
			t.Errorf("read %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{},"items":[
{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["192.0.2.2"],"targetRef":{"name":"etcd-1"},"conditions":{"ready":false}},
{"addresses":["192.0.2.1"],"targetRef":{"name":"etcd-0"}}]},
{"metadata":{"name":"b"},"addressType":"IPv6","endpoints":[{"addresses":["2001:db8::1"],"targetRef":{"name":"etcd-0"}},{"addresses":["2001:db8::3"],"targetRef":{"name":"etcd-2"}}]}]}`)
	}))
	defer server.Close()
	c, err := newClient(&rest.Config{Host: server.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		&http.Client{Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.PodURLs(t.Context(), "kube-system/contiv-etcd:12379")
	if want := []string{"https://192.0.2.1:12379", "https://192.0.2.2:12379", "https://[2001:db8::3]:12379"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, bad := range []string{"", "contiv-etcd", "kube-system/contiv-etcd", "kube-system/contiv-etcd:", "/contiv-etcd:1", "kube-system/:1", "a/b:0", "a/b:65536"} {
		if _, err := c.PodURLs(t.Context(), bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
