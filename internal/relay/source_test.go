package relay

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/test/testbed/kubeapi"
)

// apiServer returns a test double of an API server, and a client of it.
func apiServer(t testing.TB) (*kubeapi.Server, *kube.Client) {
	t.Helper()
	server := kubeapi.New()
	front := httptest.NewServer(server)
	t.Cleanup(func() {
		server.BreakWatches()
		front.CloseClientConnections()
		front.Close()
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeapi.Kubeconfig(front.Listener.Addr().String()), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(kube.Config{Kubeconfig: path, QPS: 1000, Burst: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

// source runs a Source that sends events.
func source(t testing.TB, client *kube.Client, events kube.EventSink) *kube.Source {
	t.Helper()
	s, err := kube.NewSource(kube.Deps{Client: client, Events: events, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	jobs := lifecycle.NewGroup(t.Context(), quiet())
	s.Start(jobs)
	t.Cleanup(func() {
		if err := jobs.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	return s
}

// directNode returns an agent that watches the API server.
func directNode(t testing.TB, client *kube.Client) *node {
	t.Helper()
	n := &node{t: t, news: make(chan struct{}, 1)}
	source(t, client, n)
	return n
}

func put(t testing.TB, server *kubeapi.Server, objs ...kubeapi.Object) {
	t.Helper()
	if err := server.Put(objs...); err != nil {
		t.Fatal(err)
	}
}

// slice returns the slice of the i-th service, with n endpoints.
func slice(i, n int) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	s.Namespace, s.Name = "default", fmt.Sprintf("s%d-x", i)
	s.Labels = map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("s%d", i)}
	name, protocol, port := "http", corev1.ProtocolTCP, int32(8080)
	s.Ports = []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}}
	for j := range n {
		s.Endpoints = append(s.Endpoints, kubeapi.Endpoint(fmt.Sprintf("node-%d", j%50), netip.AddrFrom4([4]byte{
			10, byte(i >> 8), byte(i), byte(j),
		})))
	}
	return s
}

func apiService(i int) *corev1.Service {
	return kubeapi.Service(fmt.Sprintf("s%d", i), []netip.Addr{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)})},
		kubeapi.Port(corev1.ProtocolTCP, 80))
}

func sliceKey(i int) string {
	return model.Key(model.EndpointSliceKeyword, "default", fmt.Sprintf("s%d-x", i))
}

// TestSameAsDirect checks that an agent has the same data through the relay as from the API server, also after an outage of
// the API server.
func TestSameAsDirect(t *testing.T) {
	server, client := apiServer(t)
	for i := range 120 {
		put(t, server, apiService(i), slice(i, 3))
	}
	put(t, server, kubeapi.Node("n1", []netip.Addr{netip.MustParseAddr("192.0.2.1")}, "10.1.0.0/24"))
	e := newEtcd(t)
	r := newReplica(t, e, "a")
	source(t, client, r)
	db, _ := e.client()
	relayed, direct := newNode(t, db, nil), directNode(t, client)
	same := func() bool {
		direct.mu.Lock()
		defer direct.mu.Unlock()
		return direct.state != nil && relayed.has(direct.state)
	}
	size := func() int {
		direct.mu.Lock()
		defer direct.mu.Unlock()
		return len(direct.state)
	}
	until(t, "both know all", func() bool { return size() == 242 && same() })
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		i := rnd.IntN(130)
		switch rnd.IntN(4) {
		case 0:
			if err := server.Delete(slice(i, 1)); err != nil {
				t.Fatal(err)
			}
		case 1:
			put(t, server, apiService(i))
		default:
			put(t, server, slice(i, 1+rnd.IntN(20)))
		}
	}
	server.Cut()
	put(t, server, slice(500, 2))
	if err := server.Delete(apiService(3)); err != nil {
		t.Fatal(err)
	}
	server.Restore()
	until(t, "both know the last changes", func() bool {
		return direct.value(sliceKey(500)) != nil && direct.value(serviceKey(3)) == nil && same()
	})
}

// BenchmarkOneEndpoint measures the time from a change at the API server to the event loop of an agent, among 1000 services
// of 100 endpoints, and the writes of the relay for the change.
func BenchmarkOneEndpoint(b *testing.B) {
	const n = 1000
	fill := func(b *testing.B) (*kubeapi.Server, *kube.Client) {
		server, client := apiServer(b)
		for i := range n {
			put(b, server, apiService(i), slice(i, 100))
		}
		return server, client
	}
	change := func(b *testing.B, server *kubeapi.Server, agent *node) {
		until(b, "the agent has all", func() bool { agent.mu.Lock(); defer agent.mu.Unlock(); return len(agent.state) == 2*n })
		key := sliceKey(7)
		count := func() int { return agent.value(key).(*model.EndpointSlice).Len() }
		b.ResetTimer()
		for i := range b.N {
			want := 99 + i%2
			put(b, server, slice(7, want))
			for count() != want {
				<-agent.news
			}
		}
		b.StopTimer()
	}
	b.Run("direct", func(b *testing.B) {
		server, client := fill(b)
		change(b, server, directNode(b, client))
	})
	b.Run("relay", func(b *testing.B) {
		server, client := fill(b)
		e := newEtcd(b)
		r := newReplica(b, e, "a")
		source(b, client, r)
		db, _ := e.client()
		agent := newNode(b, db, nil)
		r.awaitSettled(b)
		before := r.counts()
		change(b, server, agent)
		after := r.counts()
		b.ReportMetric(float64(after[0]-before[0])/float64(b.N), "puts/op")
		b.ReportMetric(float64(after[2]-before[2])/float64(b.N), "txns/op")
	})
}

// BenchmarkAgentStart measures the time until an agent has 10 000 services with 25 endpoints each.
func BenchmarkAgentStart(b *testing.B) {
	const n = 10_000
	server, client := apiServer(b)
	for i := range n {
		put(b, server, apiService(i), slice(i, 25))
	}
	e := newEtcd(b)
	r := newReplica(b, e, "a")
	source(b, client, r)
	r.awaitSettled(b)
	full := func(agent *node) func() bool {
		return func() bool { agent.mu.Lock(); defer agent.mu.Unlock(); return len(agent.state) == 2*n }
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			until(b, "the agent has all", full(directNode(b, client)))
		}
	})
	b.Run("relay", func(b *testing.B) {
		db, _ := e.client()
		until(b, "etcd is connected", db.Connected)
		for b.Loop() {
			agent := newNode(b, db, nil)
			until(b, "the agent has all", full(agent))
			agent.stop()
		}
	})
}

// BenchmarkFill measures the time to fill an empty etcd with 10 000 services with 25 endpoints each.
func BenchmarkFill(b *testing.B) {
	state := map[string]proto.Message{}
	template := sliceMessage(25)
	for i := range 10_000 {
		state[serviceKey(i)] = service(i, 1)
		state[sliceKey(i)] = template
	}
	for b.Loop() {
		b.StopTimer()
		r := newReplica(b, newEtcd(b), "a")
		b.StartTimer()
		r.report(b, state)
		r.awaitSettled(b)
		b.StopTimer()
		r.stop()
		b.StartTimer()
	}
}

func sliceMessage(n int) *model.EndpointSlice {
	s := &model.EndpointSlice{Name: "s-x", Namespace: "default", Service: "s"}
	builder := model.NewSliceBuilder(s, n)
	for i := range n {
		builder.Add(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), model.CondReady|model.CondServing,
			&model.Place{Node: fmt.Sprintf("node-%d", i%50)})
	}
	return s
}

// BenchmarkDecode shows why values are not stored as JSON like the rest of the cluster's state: it decodes a slice of 100
// endpoints in both formats.
func BenchmarkDecode(b *testing.B) {
	s := sliceMessage(100)
	binary, err := kube.Encode(s)
	if err != nil {
		b.Fatal(err)
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("binary", func(b *testing.B) {
		var d kube.Decoder
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.Decode(model.EndpointSliceKeyword, binary); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(binary)), "bytes")
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := protojson.Unmarshal(text, &model.EndpointSlice{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(text)), "bytes")
	})
}
