package processor

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// counter counts the calls of renderers.
type counter struct {
	nothing
	services, nodes int
}

func (c *counter) UpdateService(_, _ *renderer.ContivService, _ []*renderer.ContivService) error {
	c.services++
	return nil
}

func (c *counter) UpdateNodePortServices(*renderer.IPAddresses, []*renderer.ContivService) error {
	c.nodes++
	return nil
}

// TestCostOfOneNode checks that the cost of a node that joins and leaves depends on the services that have a backend at its address, and
// not on the number of services.
func TestCostOfOneNode(t *testing.T) {
	type cost struct {
		allocs float64
		best   time.Duration
	}
	joins := func(n int) cost {
		p := New(benchConfig(), nil)
		services, slicesOf := cluster(n, 1)
		for i, s := range services {
			s.Ports[0].NodePort = uint32(30000 + i%2*(i+1)) // every second service
		}
		c := &counter{}
		p.RegisterRenderer(c)
		for i, s := range slicesOf[:10] { // some backends are at nodes
			b := model.NewSliceBuilder(s, 1)
			b.Add(netip.AddrFrom4([4]byte{192, 168, 0, byte(i)}), ready, &model.Place{Node: fmt.Sprint("n", i)})
		}
		for i := range services {
			must(t)(p.UpdateSlice(nil, slicesOf[i]))
			must(t)(p.UpdateService(services[i]))
		}
		*c = counter{}
		out := cost{best: time.Hour}
		const runs = 50
		out.allocs = testing.AllocsPerRun(runs, func() {
			start := time.Now()
			must(t)(p.SetNode("n5", []netip.Addr{netip.AddrFrom4([4]byte{192, 168, 0, 5})}))
			must(t)(p.SetNode("n5", nil))
			if err := p.NodeChanged(nil); err != nil {
				t.Fatal(err)
			}
			out.best = min(out.best, time.Since(start))
		})
		if want := 2 * (runs + 1); c.services != want || c.nodes != want {
			t.Errorf("%d services: renderers received %d changed services and %d sets of nodes, want %d of each: one service has a backend "+
				"at the node", n, c.services, c.nodes, want)
		}
		return out
	}
	few, many := joins(20), joins(20000)
	t.Logf("20 services: %.0f allocations, %s; 20000 services: %.0f allocations, %s", few.allocs, few.best, many.allocs, many.best)
	if many.allocs > few.allocs {
		t.Errorf("%.0f allocations with 20000 services, %.0f with 20", many.allocs, few.allocs)
	}
	if many.best > 5*few.best+100*time.Microsecond {
		t.Errorf("%s with 20000 services, %s with 20", many.best, few.best)
	}
}

// TestNodePortServices checks that the list that node events pass contains the services with node ports, after any additions and removals.
func TestNodePortServices(t *testing.T) {
	for seed := range uint64(20) {
		w, p := newWorld(seed), New(Config{NodeName: thisNode}, nil)
		for range 300 {
			if err := w.step(p); err != nil {
				t.Fatal(err)
			}
			want := map[*renderer.ContivService]bool{}
			for _, s := range p.all {
				if s.HasNodePort() {
					want[s] = true
				}
			}
			got := p.withNodePorts.list()
			for _, s := range got {
				if !want[s] {
					t.Fatalf("seed %d: %s is not a service with node ports like this", seed, s.ID)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d services, want %d", seed, len(got), len(want))
			}
		}
	}
}
