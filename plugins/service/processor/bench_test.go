package processor

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// cluster returns n services with perService endpoints each, on 1000 nodes.
func cluster(n, perService int) (services []*model.Service, slicesOf []*model.EndpointSlice) {
	places := make([]*model.Place, 1000)
	for i := range places {
		places[i] = &model.Place{Node: fmt.Sprint("n", i), Zone: fmt.Sprint("z", i%3)}
	}
	ep := 0
	for i := range n {
		name := fmt.Sprint("service-", i)
		services = append(services, &model.Service{
			Name: name, Namespace: "ns", ClusterIps: []string{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}).String()},
			Ports: []*model.ServicePort{{Name: "http", Port: 80}},
		})
		for part := 0; part < perService; part += 100 {
			m := min(100, perService-part)
			s := &model.EndpointSlice{Name: fmt.Sprint(name, "-", part), Namespace: "ns", Service: name, Ports: tcp("http", 8080)}
			b := model.NewSliceBuilder(s, m)
			for range m {
				b.Add(netip.AddrFrom4([4]byte{10, byte(ep >> 16), byte(ep >> 8), byte(ep)}), ready, places[ep%len(places)])
				ep++
			}
			slicesOf = append(slicesOf, s)
		}
	}
	return services, slicesOf
}

// benchConfig has the networks of pods, as in the agent.
func benchConfig() Config {
	return Config{NodeName: thisNode, PodNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
}

// nothing is a renderer that does nothing.
type nothing struct{}

func (nothing) AddService(*renderer.ContivService) error { return nil }
func (nothing) UpdateService(_, _ *renderer.ContivService, _ []*renderer.ContivService) error {
	return nil
}
func (nothing) DeleteService(*renderer.ContivService, []*renderer.ContivService) error { return nil }
func (nothing) UpdateNodePortServices(*renderer.IPAddresses, []*renderer.ContivService) error {
	return nil
}
func (nothing) UpdateLocalFrontendIfs(_, _ renderer.Interfaces) error { return nil }
func (nothing) UpdateLocalBackendIfs(_, _ renderer.Interfaces) error  { return nil }
func (nothing) Resync(*renderer.ResyncEventData) error                { return nil }

func filled(tb testing.TB, n, perService int) (*Processor, []*model.EndpointSlice) {
	p := New(benchConfig(), nil)
	p.RegisterRenderer(nothing{})
	services, slicesOf := cluster(n, perService)
	if err := p.Resync(&Snapshot{Services: slices.Values(services), Slices: slices.Values(slicesOf)}); err != nil {
		tb.Fatal(err)
	}
	return p, slicesOf
}

// BenchmarkOneEndpoint measures one endpoint that becomes unready and ready again, among many services.
func BenchmarkOneEndpoint(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint("services=", n), func(b *testing.B) {
			p, all := filled(b, n, 50)
			prev := all[len(all)/2]
			next := proto.CloneOf(prev)
			next.Conditions = slices.Clone(prev.Conditions)
			next.Conditions[7] = unready
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.UpdateSlice(prev, next); err != nil {
					b.Fatal(err)
				}
				prev, next = next, prev
			}
		})
	}
}

// BenchmarkColdStart measures a first resync of 5,000 services with 250,000 endpoints.
func BenchmarkColdStart(b *testing.B) {
	services, slicesOf := cluster(5000, 50)
	b.ReportAllocs()
	for b.Loop() {
		p := New(benchConfig(), nil)
		p.RegisterRenderer(nothing{})
		if err := p.Resync(&Snapshot{Services: slices.Values(services), Slices: slices.Values(slicesOf)}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCostOfOneChange checks that the cost of an endpoint does not depend on the number of services.
func TestCostOfOneChange(t *testing.T) {
	cost := func(n int) (allocs float64, best time.Duration) {
		p, all := filled(t, n, 50)
		prev := all[0]
		next := proto.CloneOf(prev)
		next.Conditions = slices.Clone(prev.Conditions)
		next.Conditions[7] = unready
		best = time.Hour
		allocs = testing.AllocsPerRun(50, func() {
			start := time.Now()
			if _, err := p.UpdateSlice(prev, next); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(start))
			prev, next = next, prev
		})
		return allocs, best
	}
	few, fewTime := cost(5)
	many, manyTime := cost(5000)
	t.Logf("5 services: %.0f allocations, %s; 5000 services: %.0f allocations, %s", few, fewTime, many, manyTime)
	if many > few {
		t.Errorf("%.0f allocations with 5000 services, %.0f with 5", many, few)
	}
	if manyTime > 20*fewTime+time.Millisecond {
		t.Errorf("%s with 5000 services, %s with 5", manyTime, fewTime)
	}
}

// TestMemoryPerEndpoint checks a budget for the stored data: the slices, and the services for renderers.
func TestMemoryPerEndpoint(t *testing.T) {
	const endpoints = 250000
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	services, slicesOf := cluster(5000, 50)
	objects := heap()
	p := New(benchConfig(), nil)
	start := time.Now()
	if err := p.Resync(&Snapshot{Services: slices.Values(services), Slices: slices.Values(slicesOf)}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	after := heap()
	perObject, perService := (objects-before)/endpoints, (after-objects)/endpoints
	t.Logf("%d endpoints: %d bytes each in slices, %d bytes each in ContivServices; resync %s", endpoints, perObject,
		perService, took)
	if perObject > 60 || perService > 100 {
		t.Errorf("%d + %d bytes per endpoint, the budget is 60 + 100", perObject, perService)
	}
	runtime.KeepAlive(services)
	runtime.KeepAlive(slicesOf)
	runtime.KeepAlive(p)
}

// TestManyServicesRecorder checks that the list of other services is correct while many services are added and removed.
func TestManyServicesRecorder(t *testing.T) {
	p, r := New(Config{}, nil), rendertest.New(t)
	p.RegisterRenderer(r)
	services, _ := cluster(100, 0)
	for _, s := range services {
		must(t)(p.UpdateService(s))
	}
	for i := 0; i < len(services); i += 3 {
		changed := proto.CloneOf(services[i])
		changed.SessionAffinityTimeout = 5
		must(t)(p.UpdateService(changed))
	}
	for i := 0; i < len(services); i += 2 {
		must(t)(p.DeleteService(svcmodel.ID{Namespace: "ns", Name: services[i].Name}))
	}
	if len(r.Services) != 50 || len(p.Services()) != 50 {
		t.Errorf("%d services, %d in the processor", len(r.Services), len(p.Services()))
	}
}
