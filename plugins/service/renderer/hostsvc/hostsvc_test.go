package hostsvc

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
)

var _ Txn = (*service.Txn)(nil)

// store is a transaction that is applied at once.
type store struct {
	values map[string]pb.Message
	writes int
}

func (s *store) Update(string) api.UpdateOperations { return s }
func (s *store) Resync() api.ResyncOperations       { clear(s.values); return s }
func (s *store) Put(key string, m pb.Message)       { s.values[key] = m; s.writes++ }
func (s *store) Get(key string) pb.Message          { return s.values[key] }
func (s *store) Delete(key string)                  { delete(s.values, key) }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// everything returns a service with all features.
func everything() *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = svcmodel.ID{Namespace: "default", Name: "web"}
	s.TrafficPolicy = renderer.NodeLocal
	s.SessionAffinityTimeout = 60
	s.ClusterIPs = renderer.FromAddrs(addr("10.96.0.1"), addr("fd96::1"))
	s.ExternalIPs = renderer.FromAddrs(addr("198.51.100.1"), addr("203.0.113.1"))
	s.LoadBalancerIPs = renderer.FromAddrs(addr("203.0.113.1"))
	s.SourceRangesSet = true
	s.LoadBalancerSourceRanges = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80, NodePort: 30080}
	s.Backends["http"] = []*renderer.ServiceBackend{
		{IP: net.ParseIP("10.1.2.2"), Port: 8080},
		{IP: net.ParseIP("10.1.1.2"), Port: 8080, Local: true},
		{IP: net.ParseIP("192.168.7.1"), Port: 8080, Local: true, HostNetwork: true},
		{IP: net.ParseIP("fd01::2"), Port: 8081},
	}
	return s
}

func newRenderer(nodeIPs ...netip.Addr) (*Renderer, *store) {
	s := &store{values: map[string]pb.Message{}}
	r := New(Deps{Txn: s})
	_ = r.Resync(&renderer.ResyncEventData{LocalNodeIPs: renderer.FromAddrs(nodeIPs...)})
	return r, s
}

const key = "config/contiv/driver/v1/service/default/web"

func (s *store) service(t *testing.T) *proto.BalancedServiceUpdate {
	t.Helper()
	m, is := s.values[key].(*proto.BalancedServiceUpdate)
	if !is {
		t.Fatalf("no service under %s, but %v", key, s.values)
	}
	return m
}

func groupOf(verdict proto.BalancedGroup_Verdict, port uint32, own []string, backends ...string) *proto.BalancedGroup {
	g := &proto.BalancedGroup{Verdict: verdict}
	if port != 0 {
		g.Ports = []uint32{port}
	}
	for _, b := range backends {
		g.Addresses = append(g.Addresses, addr(b).AsSlice()...)
	}
	for _, b := range own {
		g.Own = append(g.Own, addr(b).AsSlice()...)
	}
	return g
}

// TestRenderKept checks that backends of a UDP port that get no new connections are listed as those whose connections stay.
func TestRenderKept(t *testing.T) {
	kept := func(change func(s *renderer.ContivService)) []*proto.BalancedGroup {
		v := everything()
		v.Ports["http"].Protocol = renderer.UDP
		v.KeptBackends = map[string][]*renderer.ServiceBackend{"http": {{IP: net.ParseIP("10.1.2.9"), Port: 8080}}}
		change(v)
		r, s := newRenderer()
		if err := r.AddService(v); err != nil {
			t.Fatal(err)
		}
		var out []*proto.BalancedGroup
		for _, p := range s.service(t).Ports {
			out = append(out, p.Kept)
		}
		return out
	}
	for name, c := range map[string]struct {
		change func(s *renderer.ContivService)
		want   *proto.BalancedGroup
	}{
		"a terminating endpoint": {func(*renderer.ContivService) {}, groupOf(0, 8080, nil, "10.1.2.9")},
		"endpoints of other nodes": {func(s *renderer.ContivService) {
			s.InternalTrafficPolicy, s.ExternalIPs, s.LoadBalancerIPs = renderer.NodeLocal, renderer.NewIPAddresses(), nil
		}, groupOf(0, 8080, nil, "10.1.2.2", "10.1.2.9")},
		"TCP": {func(s *renderer.ContivService) { s.Ports["http"].Protocol = renderer.TCP }, nil},
	} {
		if got := kept(c.change); !pb.Equal(got[0], c.want) {
			t.Errorf("%s: %v, want %v", name, got[0], c.want)
		}
	}
	if got := kept(func(*renderer.ContivService) {}); got[1] != nil {
		t.Errorf("IPv6: %v, want none", got[1])
	}
}

// TestRender checks that each address of a service gets the backends and the treatment of its kind.
func TestRender(t *testing.T) {
	r, s := newRenderer(addr("192.168.7.1"), addr("127.0.0.1"), addr("fd07::1"))
	if err := r.AddService(everything()); err != nil {
		t.Fatal(err)
	}
	local := proto.BalancedFrontend_EXTERNAL_LOCAL
	want := &proto.BalancedServiceUpdate{Namespace: "default", Name: "web", AffinitySeconds: 60, Ports: []*proto.BalancedPort{
		{Name: "http", Protocol: 6, Frontends: []*proto.BalancedFrontend{
			{Address: addr("10.96.0.1").AsSlice(), Port: 80},
			{Address: addr("198.51.100.1").AsSlice(), Port: 80, Source: local},
			{Address: addr("203.0.113.1").AsSlice(), Port: 80, Source: local, Restricted: true,
				SourceRanges: []string{"192.0.2.0/24", "203.0.113.1/32"}},
			{Address: addr("192.168.7.1").AsSlice(), Port: 30080, Source: local},
		},
			Everywhere: groupOf(0, 8080, []string{"10.1.1.2"}, "10.1.1.2", "10.1.2.2", "192.168.7.1"),
			Here:       groupOf(0, 8080, []string{"10.1.1.2"}, "10.1.1.2", "192.168.7.1")},
		{Name: "http", Protocol: 6, Ipv6: true, Frontends: []*proto.BalancedFrontend{
			{Address: addr("fd96::1").AsSlice(), Port: 80},
			{Address: addr("fd07::1").AsSlice(), Port: 30080, Source: local},
		}, Everywhere: groupOf(0, 8081, nil, "fd01::2"), Here: groupOf(proto.BalancedGroup_DROP, 0, nil)},
	}}
	if got := s.service(t); !pb.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestPolicies checks that internalTrafficPolicy Local keeps cluster IPs on the node, and that traffic is rejected if there are no
// backends.
func TestPolicies(t *testing.T) {
	r, s := newRenderer(addr("192.168.7.1"))
	svc := everything()
	svc.InternalTrafficPolicy, svc.TrafficPolicy = renderer.NodeLocal, renderer.ClusterWide
	if err := r.AddService(svc); err != nil {
		t.Fatal(err)
	}
	v4 := s.service(t).Ports[0]
	if !v4.Frontends[0].HereOnly || v4.Frontends[1].HereOnly || v4.Frontends[1].Source != proto.BalancedFrontend_EXTERNAL {
		t.Errorf("frontends %v", v4.Frontends)
	}
	empty := everything()
	empty.Backends = nil
	if err := r.UpdateService(svc, empty, nil); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.service(t).Ports {
		if p.Everywhere.GetVerdict() != proto.BalancedGroup_REJECT ||
			p.Here != nil && p.Here.GetVerdict() != proto.BalancedGroup_REJECT {
			t.Errorf("no backends at all: %v", p)
		}
	}
	if err := r.DeleteService(empty, nil); err != nil || len(s.values) > 0 {
		t.Errorf("deleted, but there are %v, error %v", s.values, err)
	}
}

// TestNodeIPs checks that node ports follow this node's addresses.
func TestNodeIPs(t *testing.T) {
	r, s := newRenderer()
	svc := everything()
	if err := r.AddService(svc); err != nil {
		t.Fatal(err)
	}
	at := func() (list []string) {
		for _, p := range s.service(t).Ports {
			for _, f := range p.Frontends {
				if a, _ := netip.AddrFromSlice(f.Address); f.Port == 30080 {
					list = append(list, a.String())
				}
			}
		}
		return list
	}
	if got := at(); len(got) > 0 {
		t.Errorf("the node has no address, yet its port is at %s", got)
	}
	for _, now := range [][]string{{"192.168.7.1", "192.168.7.9"}, {"192.168.7.9", "fd07::1"}} {
		var ips []netip.Addr
		for _, text := range now {
			ips = append(ips, addr(text))
		}
		if err := r.UpdateLocalNodeIPs(renderer.FromAddrs(ips...), []*renderer.ContivService{svc}); err != nil {
			t.Fatal(err)
		}
		if got := at(); !slices.Equal(got, now) {
			t.Errorf("node port at %s, want %s", got, now)
		}
	}
}

// TestOrderDoesNotMatter checks that the same backends in another order give an equal message, so that nothing is written.
func TestOrderDoesNotMatter(t *testing.T) {
	a, b := everything(), everything()
	slices.Reverse(b.Backends["http"])
	if !pb.Equal(render(a, nil), render(b, nil)) {
		t.Error("the order of backends shows")
	}
	b.Backends["http"][0].Port = 9
	g := render(b, nil).Ports[1].Everywhere
	if !slices.Equal(g.Ports, []uint32{9}) {
		t.Errorf("ports %v", g.Ports)
	}
	b.Backends["http"][1].Port = 10
	if g := render(b, nil).Ports[0].Everywhere; !slices.Equal(g.Ports, []uint32{8080, 8080, 10}) {
		t.Errorf("ports %v", g.Ports)
	}
}
