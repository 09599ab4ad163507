package kubeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// start starts a server at a port of this machine.
func start(t *testing.T) (s *Server, url string) {
	t.Helper()
	s = New()
	t.Cleanup(s.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Serve(l)
	return s, "http://" + l.Addr().String()
}

func get(t *testing.T, url, accept string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, resp.Status, err, data)
	}
	return data
}

func put(t *testing.T, s *Server, objs ...Object) {
	t.Helper()
	if err := s.Put(objs...); err != nil {
		t.Fatal(err)
	}
}

// TestChunkedList checks that pages are in order and complete; objects that are created in the meantime are in a watch
// from the first page.
func TestChunkedList(t *testing.T) {
	s, url := start(t)
	for i := range 25 {
		put(t, s, Pod("n1", fmt.Sprintf("p%02d", i), []netip.Addr{netip.MustParseAddr("10.1.1.2")}))
	}
	var names []string
	token, first := "", ""
	for pages := 1; ; pages++ {
		var list corev1.PodList
		if err := json.Unmarshal(get(t, url+"/api/v1/pods?limit=10&continue="+token, "application/json"), &list); err != nil {
			t.Fatal(err)
		}
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		if first == "" {
			first = list.ResourceVersion
		}
		if list.ResourceVersion != first {
			t.Errorf("page %d is of revision %s, not %s", pages, list.ResourceVersion, first)
		}
		if token = list.Continue; token == "" {
			break
		}
		put(t, s, Node(fmt.Sprint("other", pages), nil))
	}
	if len(names) != 25 || names[0] != "p00" || names[24] != "p24" {
		t.Errorf("pods %v", names)
	}
}

// TestWatch checks that a client with a selector receives objects as added and deleted when their labels change; a
// bookmark ends the initial events.
func TestWatch(t *testing.T) {
	s, url := start(t)
	put(t, s, Service("here", nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		url+"/api/v1/services?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&labelSelector=!hidden", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the watch has ended: %v", lines.Err())
		}
		var e struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		return e.Type + " " + e.Object.Name + e.Object.Annotations[metav1.InitialEventsAnnotationKey]
	}
	want := func(text string) {
		t.Helper()
		if got := next(); got != text {
			t.Errorf("event %q, want %q", got, text)
		}
	}
	want("ADDED here")
	want("BOOKMARK true")
	hidden := Service("changing", nil)
	hidden.Labels = map[string]string{"hidden": ""}
	put(t, s, hidden, Service("changing", nil))
	want("ADDED changing")
	put(t, s, hidden)
	want("DELETED changing")
	if err := s.Delete(Service("here", nil)); err != nil {
		t.Fatal(err)
	}
	want("DELETED here")
	s.Cut()
	lines.Scan() // a bookmark may be in transit
	if lines.Scan() {
		t.Errorf("the watch goes on: %s", lines.Text())
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("a server that is cut off answers")
	}
	s.Restore()
	get(t, url+"/healthz", "")
}

// TestMany checks that half a million endpoints are put and listed within seconds.
func TestMany(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, url := start(t)
	begin := time.Now()
	endpoints := make([]discoveryv1.Endpoint, 50)
	for i := range endpoints {
		endpoints[i] = Endpoint("n1", netip.AddrFrom4([4]byte{10, 2, 0, byte(i)}))
	}
	const services = 10_000
	for i := range services {
		ip := netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)})
		svc := Service(fmt.Sprint("s", i), []netip.Addr{ip}, Port(corev1.ProtocolTCP, 80))
		put(t, s, svc, Slice(svc, discoveryv1.AddressTypeIPv4, 8080, endpoints...))
	}
	filled := time.Since(begin)
	data := get(t, url+"/apis/discovery.k8s.io/v1/endpointslices", protobufType)
	listed := time.Since(begin) - filled
	t.Logf("put in %s, listed in %s (%d MB)", filled, listed, len(data)>>20)
	if filled > 20*time.Second || listed > 10*time.Second {
		t.Errorf("too slow: put in %s, listed in %s", filled, listed)
	}
	var list discoveryv1.EndpointSliceList
	if err := list.Unmarshal(unwrap(t, data)); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != services || len(list.Items[0].Endpoints) != len(endpoints) {
		t.Errorf("%d slices", len(list.Items))
	}
}

// unwrap returns the message in an encoded object.
func unwrap(t *testing.T, data []byte) []byte {
	t.Helper()
	if string(data[:4]) != protobufMagic {
		t.Fatalf("the answer begins with %q", data[:4])
	}
	var u runtime.Unknown
	if err := u.Unmarshal(data[4:]); err != nil {
		t.Fatal(err)
	}
	return u.Raw
}
