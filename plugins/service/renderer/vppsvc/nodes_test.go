package vppsvc

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// countedNodes are nodes that count how often their next hops are requested, some of which may be others than the address gives.
type countedNodes struct {
	*world
	ways  int
	other map[netip.Addr]bool
}

func (a *countedNodes) NextHopTo(addr netip.Addr) nodeinfo.NextHop {
	a.ways++
	way := a.world.NextHopTo(addr)
	way.Masquerade = way.Masquerade != a.other[addr]
	return way
}

func crowd(t *testing.T, n int) (*countedNodes, *Renderer, *renderer.ResyncEventData) {
	t.Helper()
	ev := event()
	for i := range n {
		s := web()
		s.ID = renderer.ServiceID{Namespace: "default", Name: fmt.Sprint("web-", i)}
		s.ClusterIPs = renderer.FromAddrs(netip.AddrFrom4([4]byte{10, 97, byte(i >> 8), byte(i)}))
		at := backend(fmt.Sprintf("192.168.%d.%d", 16+i/200, i%200), false)
		at.HostNetwork = true
		s.Backends["http"] = append(s.Backends["http"], at)
		s.LoadBalancerIPs = addrs("203.0.113.7")
		s.LoadBalancerSourceRanges, s.SourceRangesSet = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}, true
		ev.Services = append(ev.Services, s)
	}
	w, _ := newWorld()
	a := &countedNodes{world: w, other: map[netip.Addr]bool{}}
	r := New(Deps{Network: a, Txn: w})
	if err := r.Resync(ev); err != nil {
		t.Fatal(err)
	}
	return a, r, ev
}

// TestCostOfOneNode: a node that joins, changes or leaves costs what is at its address, and not what services there are.
func TestCostOfOneNode(t *testing.T) {
	joins := func(n int) (best time.Duration) {
		a, r, ev := crowd(t, n)
		now := renderer.FromAddrs(append([]netip.Addr{netip.MustParseAddr("192.168.99.1")}, ev.NodeIPs.Addrs()...)...)
		best = time.Hour
		a.ways, a.writes = 0, 0
		for range 50 {
			start := time.Now()
			for _, ips := range []*renderer.IPAddresses{now, ev.NodeIPs} {
				if err := r.UpdateNodePortServices(ips, nil); err != nil {
					t.Fatal(err)
				}
				if err := r.UpdateNodes([]netip.Addr{netip.MustParseAddr("192.168.99.1")}); err != nil {
					t.Fatal(err)
				}
			}
			best = min(best, time.Since(start))
		}
		if a.ways > 0 || a.writes > 0 {
			t.Errorf("%d services: a node without backends asked for %d ways and wrote %d values", n, a.ways, a.writes)
		}
		at := netip.MustParseAddr("192.168.16.7")
		if err := r.UpdateNodes([]netip.Addr{at}); err != nil || a.ways != 3 || a.writes > 0 {
			t.Errorf("%d services: a node with the backend of one asked for %d ways, want those of its 3 backends, and wrote %d values, error %v",
				n, a.ways, a.writes, err)
		}
		a.other[at] = true
		if err := r.UpdateNodes([]netip.Addr{at}); err != nil || a.writes != 1 {
			t.Errorf("%d services: another way to the backend of one wrote %d values, error %v", n, a.writes, err)
		}
		return best
	}
	few, many := joins(20), joins(10000)
	t.Logf("20 services: %s; 10000 services: %s", few, many)
	if many > 5*few+50*time.Microsecond {
		t.Errorf("%s with 10000 services, %s with 20", many, few)
	}
}

// TestCostOfOwnAddresses: new addresses of this node render each service once that they may change.
func TestCostOfOwnAddresses(t *testing.T) {
	const n = 1000
	a, r, ev := crowd(t, n)
	a.ways, a.writes = 0, 0
	if err := r.UpdateLocalNodeIPs(addrs("192.168.16.1", "192.168.16.2"), ev.Services[:n/2]); err != nil {
		t.Fatal(err)
	}
	if a.ways != 3*n || a.writes > 0 {
		t.Errorf("asked for %d ways, want %d, and wrote %d values, want none", a.ways, 3*n, a.writes)
	}
}
