package kube

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// liveServices makes n services with 50 endpoints each in their own namespace.
func liveServices(t *testing.T, c *Client, ns string, n int) {
	t.Helper()
	create := func(group, resource, ns string, obj apiruntime.Object) {
		for gv, client := range c.groups {
			if gv.Group != group {
				continue
			}
			req := client.Post().Resource(resource).Body(obj)
			if ns != "" {
				req = req.Namespace(ns)
			}
			if err := req.Do(context.Background()).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s: %v", resource, err)
			}
		}
	}
	create("", "namespaces", "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
	var workers sync.WaitGroup
	todo := make(chan int)
	for range 16 {
		workers.Go(func() {
			for i := range todo {
				name := fmt.Sprint("live-", i)
				create("", "services", ns, &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Name: name},
					Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
				})
				create("discovery.k8s.io", "endpointslices", ns, liveSlice(name, i))
			}
		})
	}
	for i := range n {
		todo <- i
	}
	close(todo)
	workers.Wait()
}

func liveSlice(service string, i int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-x", Labels: map[string]string{
				discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "live-test",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(8080)),
			Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for e := range 50 {
		n := 50*i + e
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()},
			NodeName:  ptr.To(fmt.Sprint("node-", n%500)), Zone: ptr.To(fmt.Sprint("zone-", n%3)),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: "live", Name: fmt.Sprint("pod-with-a-name-", n)},
		})
	}
	return s
}

// TestLive runs against a real API server: CONTIV_LIVE_KUBECONFIG=… CONTIV_LIVE_SERVICES=5000 go test -run Live -v .
func TestLive(t *testing.T) {
	kubeconfig := os.Getenv("CONTIV_LIVE_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("set CONTIV_LIVE_KUBECONFIG to test against a real API server")
	}
	n, err := strconv.Atoi(os.Getenv("CONTIV_LIVE_SERVICES"))
	if err != nil {
		n = 100
	}
	client, err := NewClient(Config{Kubeconfig: kubeconfig, QPS: 2000, Burst: 4000})
	if err != nil {
		t.Fatal(err)
	}
	const ns = "contiv-live"
	start := time.Now()
	liveServices(t, client, ns, n)
	t.Logf("making %d services: %s", n, time.Since(start))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	l := newLoop(t)
	s, err := NewSource(Deps{Client: client, Events: l, Log: slog.New(slog.DiscardHandler), LocalDelay: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(context.Background(), s.Log)
	defer func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	}()
	start = time.Now()
	s.Start(jobs)
	key := model.Key(model.EndpointSliceKeyword, ns, "live-0-x")
	l.awaitKey(key)
	snapshot := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	state := l.resyncs[0].KubeState
	t.Logf("snapshot of %d services, %d slices: %s; the heap grew by %d KiB", len(state["service"]), len(state["endpointslice"]),
		snapshot, (int64(after.HeapAlloc)-int64(before.HeapAlloc))/1024)
	if err := s.Connected(); err != nil {
		t.Error(err)
	}

	p := processor.New(processor.Config{NodeName: "node-1"}, nil)
	r := rendertest.New(t)
	r.CheckOthers = false
	p.RegisterRenderer(r)
	start = time.Now()
	if err := p.Resync(&processor.Snapshot{
		Services: maps.Values(model.Values[*model.Service](state, model.ServiceKeyword)),
		Slices:   maps.Values(model.Values[*model.EndpointSlice](state, model.EndpointSliceKeyword)),
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("processing: %s", time.Since(start))
	l.take()

	changed := liveSlice("live-0", 0)
	var took []time.Duration
	for i := range 20 {
		changed.Endpoints[3].Conditions.Ready = ptr.To(i%2 == 1)
		start = time.Now()
		if err := client.groups[discoveryv1.SchemeGroupVersion].Put().Namespace(ns).Resource("endpointslices").Name(changed.Name).
			Body(changed).Do(context.Background()).Error(); err != nil {
			t.Fatal(err)
		}
		l.await("the change", func(_ []string, state map[string]proto.Message) bool {
			return state[key].(*model.EndpointSlice).At(3).Ready() == (i%2 == 1)
		})
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("one endpoint change, from the request to the API server to the event: p50 %s, max %s", took[10], took[19])

	liveRestart(t, kubeconfig)
}

// liveRestart fills a local copy, and starts from it without a server.
func liveRestart(t *testing.T, kubeconfig string) {
	path := filepath.Join(t.TempDir(), "kube.db")
	start := func(server string, delay time.Duration, use func(*loop)) {
		t.Helper()
		local, err := clusterdb.OpenLocalCopy(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		client, err := NewClient(Config{Kubeconfig: kubeconfig, Server: server})
		if err != nil {
			t.Fatal(err)
		}
		l := newLoop(t)
		s, err := NewSource(Deps{
			Client: client, Events: l, Local: local, Log: slog.New(slog.DiscardHandler), LocalDelay: delay, SaveInterval: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		jobs := lifecycle.NewGroup(context.Background(), s.Log)
		s.Start(jobs)
		use(l)
		began := time.Now()
		if err := jobs.Stop(20 * time.Second); err != nil {
			t.Error(err)
		}
		t.Logf("stopping and saving: %s", time.Since(began))
		if err := local.Close(); err != nil {
			t.Error(err)
		}
	}
	key := model.Key(model.EndpointSliceKeyword, "contiv-live", "live-0-x")
	start("", time.Minute, func(l *loop) { l.awaitKey(key) })
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the local copy has %d KiB", info.Size()/1024)
	began := time.Now()
	start("https://127.0.0.1:1", time.Millisecond, func(l *loop) {
		l.awaitKey(key)
		t.Logf("started from the local copy in %s: %d services", time.Since(began), len(l.resyncs[0].KubeState["service"]))
		if !l.resyncs[0].Local {
			t.Error("the snapshot is not a local one")
		}
	})
	start("", time.Minute, func(l *loop) { l.awaitKey(key) })
}
