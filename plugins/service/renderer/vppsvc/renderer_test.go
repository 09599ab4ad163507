package vppsvc

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// world is a node, and the values that the renderer has put.
type world struct {
	values map[string]proto.Message
	writes int
	near   netip.Addr // of a node, and reached by the overlay
}

func (w *world) Put(key string, msg proto.Message) {
	if w.values[key] == nil || !proto.Equal(w.values[key], msg) {
		w.writes++
	}
	w.values[key] = msg
}

func (w *world) Delete(key string) {
	w.writes++
	delete(w.values, key)
}

func (w *world) Get(key string) proto.Message { return w.values[key] }

func (w *world) Update(string) api.UpdateOperations { return w }

func (w *world) Resync() api.ResyncOperations { return w }

func (w *world) ServiceNode(v6 bool) (nodeinfo.Node, bool) {
	if v6 {
		return nodeinfo.Node{
			HostLink: netip.MustParseAddr("fd30::1"), HostOwn: netip.MustParseAddr("fd30::2"), LinuxIf: "linux-vpp2",
			Services: []netip.Prefix{netip.MustParsePrefix("fd96::/108")},
		}, true
	}
	return nodeinfo.Node{
		HostLink: netip.MustParseAddr("172.30.1.1"), HostOwn: netip.MustParseAddr("172.30.1.2"), LinuxIf: "linux-vpp2",
		Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
	}, true
}

func (w *world) NextHopTo(addr netip.Addr) nodeinfo.NextHop {
	return nodeinfo.NextHop{Masquerade: strings.HasPrefix(addr.String(), "192.168.") && addr != w.near}
}

func newWorld() (*world, *Renderer) {
	w := &world{values: map[string]proto.Message{}}
	return w, New(Deps{Network: w, Txn: w})
}

func addrs(texts ...string) *renderer.IPAddresses {
	var list []netip.Addr
	for _, t := range texts {
		list = append(list, netip.MustParseAddr(t))
	}
	return renderer.FromAddrs(list...)
}

func event(services ...*renderer.ContivService) *renderer.ResyncEventData {
	ev := renderer.NewResyncEventData()
	ev.Services = services
	ev.NodeIPs = addrs("192.168.16.1", "192.168.16.2")
	ev.LocalNodeIPs = addrs("192.168.16.1")
	return ev
}

func backend(ip string, local bool) *renderer.ServiceBackend {
	return &renderer.ServiceBackend{IP: net.ParseIP(ip), Port: 8080, Local: local}
}

func web() *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = renderer.ServiceID{Namespace: "default", Name: "web"}
	s.ClusterIPs = addrs("10.96.0.10")
	s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80}
	s.Backends["http"] = []*renderer.ServiceBackend{backend("10.1.1.2", true), backend("10.1.2.2", false)}
	return s
}

// frontend describes what clients get: in the cluster | outside, each as an action with its backends.
func (w *world) frontend(t *testing.T, at string) string {
	t.Helper()
	ap := netip.MustParseAddrPort(at)
	p := vpp_contiv.Frontend_TCP
	if ap.Port() == 0 {
		p = vpp_contiv.Frontend_ANY
	}
	f, ok := w.values[nb.ContivFrontendKey(ap.Addr().String(), p, uint32(ap.Port()))].(*vpp_contiv.Frontend)
	if !ok {
		return "none"
	}
	side := func(to *target) string {
		out := strings.ToLower(to.Action.String())
		if to.Service != 0 {
			s, ok := w.values[nb.ContivServiceKey(to.Service)].(*vpp_contiv.Service)
			if !ok {
				t.Fatalf("%s names a service that is not there", at)
			}
			var ends []string
			for _, b := range s.Backends {
				end := netip.AddrPortFrom(netip.MustParseAddr(b.Ip), uint16(b.Port)).String()
				if b.Masquerade {
					end += "!"
				}
				ends = append(ends, end)
			}
			out += " " + strings.Join(ends, ",")
		}
		if to.Masquerade {
			out += " masquerade"
		}
		return out
	}
	out := side(f.InCluster) + " | " + side(f.Outside)
	if f.Ranges != 0 {
		out += " from " + strings.Join(w.values[nb.ContivRangeSetKey(f.Ranges)].(*vpp_contiv.RangeSet).Prefixes, ",")
	}
	if f.AffinityTimeout != 0 {
		out += fmt.Sprintf(" affinity %d", f.AffinityTimeout)
	}
	return out
}

// TestKept: a UDP backend that gets no new connections stays in the sets of its port, and so does the set of a port that rejects or drops
// all new packets.
func TestKept(t *testing.T) {
	dns := func(protocol renderer.ProtocolType, change func(s *renderer.ContivService)) (*vpp_contiv.Frontend, string) {
		s := web()
		s.Ports["http"].Protocol = protocol
		s.KeptBackends = map[string][]*renderer.ServiceBackend{"http": {backend("10.1.1.9", true)}}
		change(s)
		w, r := newWorld()
		if err := r.Resync(event(s)); err != nil {
			t.Fatal(err)
		}
		f, ok := w.values[nb.ContivFrontendKey("10.96.0.10", vpp_contiv.Frontend_Protocol(protocol), 80)].(*vpp_contiv.Frontend)
		if !ok {
			t.Fatal("no frontend")
		}
		var ends []string
		if set, ok := w.values[nb.ContivServiceKey(f.InCluster.Service)].(*vpp_contiv.Service); ok {
			for _, b := range set.Backends {
				ends = append(ends, b.Ip+map[bool]string{true: " kept"}[b.Kept])
			}
		}
		return f, f.InCluster.Action.String() + " " + strings.Join(ends, ", ")
	}
	none := func(s *renderer.ContivService) { s.Backends = map[string][]*renderer.ServiceBackend{} }
	for _, c := range []struct {
		name     string
		protocol renderer.ProtocolType
		change   func(s *renderer.ContivService)
		want     string
	}{
		{"UDP", renderer.UDP, func(*renderer.ContivService) {}, "BALANCE 10.1.1.2, 10.1.1.9 kept, 10.1.2.2"},
		{"TCP", renderer.TCP, func(*renderer.ContivService) {}, "BALANCE 10.1.1.2, 10.1.2.2"},
		{"UDP, only local backends", renderer.UDP, func(s *renderer.ContivService) { s.InternalTrafficPolicy = renderer.NodeLocal },
			"BALANCE 10.1.1.2, 10.1.1.9 kept, 10.1.2.2 kept"},
		{"UDP, rejected", renderer.UDP, none, "REJECT 10.1.1.9 kept"},
		{"TCP, rejected", renderer.TCP, none, "REJECT "},
		{"UDP, dropped", renderer.UDP, func(s *renderer.ContivService) {
			s.InternalTrafficPolicy = renderer.NodeLocal
			s.Backends["http"] = s.Backends["http"][1:]
		}, "DROP 10.1.1.9 kept, 10.1.2.2 kept"},
	} {
		if f, got := dns(c.protocol, c.change); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, f)
		}
	}
}

func TestFrontends(t *testing.T) {
	const both, here = "10.1.1.2:8080,10.1.2.2:8080", "10.1.1.2:8080"
	for name, c := range map[string]struct {
		change func(s *renderer.ContivService)
		want   map[string]string
	}{
		"cluster IP": {func(*renderer.ContivService) {}, map[string]string{
			"10.96.0.10:80": "balance " + both + " | balance " + both, "10.96.0.10:0": "reject | reject", "192.168.16.1:80": "none",
		}},
		"internal policy Local": {func(s *renderer.ContivService) { s.InternalTrafficPolicy = renderer.NodeLocal }, map[string]string{
			"10.96.0.10:80": "balance " + here + " | balance " + here,
		}},
		"internal policy Local, nothing here": {func(s *renderer.ContivService) {
			s.InternalTrafficPolicy = renderer.NodeLocal
			s.Backends["http"] = s.Backends["http"][1:]
		}, map[string]string{"10.96.0.10:80": "drop | drop"}},
		"no endpoints": {func(s *renderer.ContivService) { s.Backends = nil }, map[string]string{"10.96.0.10:80": "reject | reject"}},
		"node port": {func(s *renderer.ContivService) { s.Ports["http"].NodePort = 30080 }, map[string]string{
			"192.168.16.1:30080": "balance " + both + " masquerade | balance " + both + " masquerade",
			"172.30.1.1:30080":   "balance " + both + " masquerade | balance " + both + " masquerade",
			"192.168.16.1:0":     "none",
		}},
		"node port Local": {func(s *renderer.ContivService) {
			s.Ports["http"].NodePort, s.TrafficPolicy = 30080, renderer.NodeLocal
		}, map[string]string{
			"192.168.16.1:30080": "balance " + both + " | balance " + here,
		}},
		"node port Local, nothing here": {func(s *renderer.ContivService) {
			s.Ports["http"].NodePort, s.TrafficPolicy = 30080, renderer.NodeLocal
			s.Backends["http"] = s.Backends["http"][1:]
		}, map[string]string{"192.168.16.1:30080": "balance 10.1.2.2:8080 | drop"}},
		"backend of the host": {func(s *renderer.ContivService) {
			s.Backends["http"] = []*renderer.ServiceBackend{backend("192.168.16.1", true), backend("10.1.2.2", false)}
		}, map[string]string{"10.96.0.10:80": "balance 10.1.2.2:8080,192.168.16.1:8080! | balance 10.1.2.2:8080,192.168.16.1:8080!"}},
		"load balancer with ranges": {func(s *renderer.ContivService) {
			s.ExternalIPs, s.LoadBalancerIPs = addrs("203.0.113.1", "203.0.113.2"), addrs("203.0.113.1")
			s.LoadBalancerSourceRanges, s.SourceRangesSet = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}, true
		}, map[string]string{
			"203.0.113.1:80": "balance " + both + " masquerade | balance " + both + " masquerade from 172.30.1.2/32,192.168.0.0/16",
			"203.0.113.2:80": "balance " + both + " masquerade | balance " + both + " masquerade",
			"203.0.113.1:0":  "reject | reject",
		}},
		"external address of a node": {func(s *renderer.ContivService) { s.ExternalIPs = addrs("192.168.16.2") }, map[string]string{
			"192.168.16.2:80": "balance " + both + " masquerade | balance " + both + " masquerade", "192.168.16.2:0": "none",
		}},
		"affinity": {func(s *renderer.ContivService) { s.SessionAffinityTimeout = 60 }, map[string]string{
			"10.96.0.10:80": "balance " + both + " | balance " + both + " affinity 60",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := newWorld()
			s := web()
			c.change(s)
			if err := r.Resync(event(s)); err != nil {
				t.Fatal(err)
			}
			for at, want := range c.want {
				if got := w.frontend(t, at); got != want {
					t.Errorf("%s: %s, want %s", at, got, want)
				}
			}
		})
	}
}

// random is some service: its name, addresses and backends are few, so that services share addresses.
func random(rng *rand.Rand, n int) *renderer.ContivService {
	s := web()
	s.ID.Name = fmt.Sprint("web", n)
	s.ClusterIPs = addrs(fmt.Sprintf("10.96.0.%d", n+1), fmt.Sprintf("fd96::%d", n+1))
	if rng.IntN(2) == 0 {
		s.ExternalIPs = addrs([]string{"203.0.113.1", "203.0.113.2", "192.168.16.2", "192.168.16.3"}[rng.IntN(4)])
		s.LoadBalancerIPs = s.ExternalIPs
	}
	s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: uint16(80 + n)}
	if rng.IntN(2) == 0 {
		s.Ports["http"].NodePort = uint16(30080 + n)
	}
	s.TrafficPolicy = renderer.TrafficPolicyType(rng.IntN(2))
	s.InternalTrafficPolicy = renderer.TrafficPolicyType(rng.IntN(2))
	s.SourceRangesSet = rng.IntN(3) == 0
	s.SessionAffinityTimeout = uint32(rng.IntN(2) * 60)
	s.Backends["http"] = nil
	for i := range rng.IntN(4) {
		s.Backends["http"] = append(s.Backends["http"], backend(fmt.Sprintf("10.1.%d.2", i), i == 0), backend(fmt.Sprintf("fd01::%d", i+1), i == 1))
	}
	if rng.IntN(2) == 0 {
		at := backend(fmt.Sprintf("192.168.16.%d", 2+rng.IntN(3)), false)
		at.HostNetwork = true
		s.Backends["http"] = append(s.Backends["http"], at)
	}
	return s
}

// TestRandom: whatever the order of events, the values are those of one resync; and a resync writes nothing new.
func TestRandom(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w, r := newWorld()
		have := map[int]*renderer.ContivService{}
		ev := event()
		if err := r.Resync(ev); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			var err error
			n := rng.IntN(5)
			switch old := have[n]; {
			case rng.IntN(12) == 0:
				ev.NodeIPs = addrs("192.168.16.1", fmt.Sprintf("192.168.16.%d", 2+rng.IntN(2)))
				err = r.UpdateNodePortServices(ev.NodeIPs, nil)
			case rng.IntN(12) == 0:
				ev.LocalNodeIPs = addrs("192.168.16.1", fmt.Sprintf("192.168.16.%d", 2+rng.IntN(3)))
				err = r.UpdateLocalNodeIPs(ev.LocalNodeIPs, slices.Collect(maps.Values(have)))
			case rng.IntN(12) == 0:
				before := w.near
				w.near = netip.MustParseAddr(fmt.Sprintf("192.168.16.%d", 2+rng.IntN(3)))
				err = r.UpdateNodes([]netip.Addr{before, w.near})
			case old == nil:
				have[n] = random(rng, n)
				err = r.AddService(have[n])
			case rng.IntN(3) == 0:
				delete(have, n)
				err = r.DeleteService(old, nil)
			default:
				have[n] = random(rng, n)
				err = r.UpdateService(old, have[n], nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		ev.Services = slices.Collect(maps.Values(have))
		fresh, r2 := newWorld()
		fresh.near = w.near
		if err := r2.Resync(ev); err != nil {
			t.Fatal(err)
		}
		if !maps.EqualFunc(w.values, fresh.values, proto.Equal) {
			t.Fatalf("seed %d:\nupdates %v\nresync  %v", seed, slices.Sorted(maps.Keys(w.values)), slices.Sorted(maps.Keys(fresh.values)))
		}
		writes := w.writes
		if err := r.Resync(ev); err != nil || w.writes != writes {
			t.Fatalf("seed %d: %d writes by a resync of what is there, error %v", seed, w.writes-writes, err)
		}
	}
}

// TestOneBackend: one backend more is a new value of its sets and of nothing else.
func TestOneBackend(t *testing.T) {
	w, r := newWorld()
	s := web()
	s.Ports["http"].NodePort = 30080
	if err := r.Resync(event(s)); err != nil {
		t.Fatal(err)
	}
	now := web()
	now.Ports["http"].NodePort = 30080
	now.Backends["http"] = append(now.Backends["http"], backend("10.1.3.3", false))
	before := w.writes
	if err := r.UpdateService(s, now, nil); err != nil || w.writes != before+1 {
		t.Errorf("%d writes, error %v", w.writes-before, err)
	}
}

// TestIDs: the ID of a set is of a cryptographic hash. With FNV, a user could compute names of a service and a port whose set replaces that
// of another service.
func TestIDs(t *testing.T) {
	w, r := newWorld()
	if err := r.Resync(event(web())); err != nil {
		t.Fatal(err)
	}
	f := w.values[nb.ContivFrontendKey("10.96.0.10", vpp_contiv.Frontend_TCP, 80)].(*vpp_contiv.Frontend)
	sum := sha256.Sum256([]byte("service\x00default/web:http\x00ipv4\x00" + renderer.ClusterWide.String() + "\x00"))
	if want := binary.BigEndian.Uint64(sum[:8]); f.InCluster.Service != want {
		t.Errorf("the ID of the set is %x and not %x", f.InCluster.Service, want)
	}
	if long := strings.Repeat("long", 100); id(long, "a") == id(long, "b") || id("a", "b") == id("ab") {
		t.Error("different names have one ID")
	}
}
