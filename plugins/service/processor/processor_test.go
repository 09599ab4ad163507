package processor

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

const (
	ready       = model.CondReady | model.CondServing
	terminating = model.CondServing | model.CondTerminating // still serves traffic
	gone        = model.CondTerminating
	unready     = byte(0)
	thisNode    = "n1"
)

// ep is an endpoint for tests.
type ep struct {
	addr  string
	cond  byte
	node  string
	zones string // hints, separated by commas
	nodes string
}

func slice(name, service string, ipv6 bool, ports []*model.EndpointPort, eps ...ep) *model.EndpointSlice {
	s := &model.EndpointSlice{Name: name, Namespace: "ns", Service: service, Ipv6: ipv6, Ports: ports}
	b := model.NewSliceBuilder(s, len(eps))
	for _, e := range eps {
		place := &model.Place{Node: e.node}
		if e.zones != "" {
			place.ForZones = strings.Split(e.zones, ",")
		}
		if e.nodes != "" {
			place.ForNodes = strings.Split(e.nodes, ",")
		}
		if !b.Add(netip.MustParseAddr(e.addr), e.cond, place) {
			panic(e.addr)
		}
	}
	return s
}

func tcp(name string, port uint32) []*model.EndpointPort {
	return []*model.EndpointPort{{Name: name, Port: port}}
}

func clusterIP(name string) *model.Service {
	return &model.Service{
		Name: name, Namespace: "ns", ClusterIps: []string{"10.96.0.1"}, Ports: []*model.ServicePort{{Name: "http", Port: 80}},
	}
}

func id(name string) svcmodel.ID { return svcmodel.ID{Namespace: "ns", Name: name} }

type fakeHealth map[svcmodel.ID]answer

func (f fakeHealth) Set(id svcmodel.ID, port uint16, local int) { f[id] = answer{port, local} }
func (f fakeHealth) Delete(id svcmodel.ID)                      { delete(f, id) }

func newTest(t testing.TB, cfg Config) (*Processor, *rendertest.Recorder, fakeHealth) {
	cfg.NodeName = thisNode
	health := fakeHealth{}
	p, r := New(cfg, health), rendertest.New(t)
	p.RegisterRenderer(r)
	if err := p.Resync(&Snapshot{Services: slices.Values[[]*model.Service](nil),
		Slices: slices.Values[[]*model.EndpointSlice](nil)}); err != nil {
		t.Fatal(err)
	}
	r.Take()
	return p, r, health
}

// must fails the test on an error.
func must(t testing.TB) func(string, error) string {
	return func(change string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
}

func texts(backends []*renderer.ServiceBackend) []string {
	out := []string{}
	for _, b := range backends {
		out = append(out, b.String())
	}
	return out
}

// TestSemantics checks the rendered result of one service: for each policy and family the backends or the verdict.
func TestSemantics(t *testing.T) {
	type want struct {
		policy renderer.TrafficPolicyType
		ipv6   bool
		text   string
	}
	cluster := func(s string) want { return want{renderer.ClusterWide, false, s} }
	local := func(s string) want { return want{renderer.NodeLocal, false, s} }
	cluster6 := func(s string) want { return want{renderer.ClusterWide, true, s} }
	for _, c := range []struct {
		name   string
		change func(s *model.Service)
		slices []*model.EndpointSlice
		zone   string
		want   []want
	}{
		{name: "no endpoints: reject", want: []want{cluster("reject")}},
		{
			name: "only ready endpoints serve",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready}, ep{addr: "10.1.0.2", cond: unready}, ep{addr: "10.1.0.3", cond: terminating})},
			want: []want{cluster("10.1.0.1:8080")},
		},
		{
			name: "none ready: those that terminate and still serve",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: gone}, ep{addr: "10.1.0.2", cond: unready}, ep{addr: "10.1.0.3", cond: terminating})},
			want: []want{cluster("10.1.0.3:8080")},
		},
		{
			name: "not ready and not terminating never serves, whatever serving says",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: model.CondServing})},
			want: []want{cluster("reject")},
		},
		{
			name: "one endpoint in two slices is one backend, in its better state",
			slices: []*model.EndpointSlice{
				slice("a", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: unready}, ep{addr: "10.1.0.2", cond: ready}),
				slice("b", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready, node: thisNode}),
			},
			want: []want{cluster("10.1.0.1:8080 local, 10.1.0.2:8080")},
		},
		{
			name: "an address given to a new pod belongs to the new pod, ready or not",
			slices: []*model.EndpointSlice{
				slice("a", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: terminating}),
				slice("b", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: unready}),
			},
			want: []want{cluster("reject")},
		},
		{
			name: "a named target port has its number per slice",
			slices: []*model.EndpointSlice{
				slice("a", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready}),
				slice("b", "s", false, tcp("http", 9090), ep{addr: "10.1.0.2", cond: ready}),
				slice("c", "s", false, tcp("other", 1), ep{addr: "10.1.0.3", cond: ready}),
				slice("d", "s", false, []*model.EndpointPort{{Name: "http", Port: 53, Protocol: model.Protocol_UDP}},
					ep{addr: "10.1.0.4", cond: ready}),
			},
			want: []want{cluster("10.1.0.1:8080, 10.1.0.2:9090")},
		},
		{
			name:   "families do not mix",
			change: func(s *model.Service) { s.ClusterIps = append(s.ClusterIps, "fd00::1") },
			slices: []*model.EndpointSlice{
				slice("a", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready}),
				slice("b", "s", true, tcp("http", 8080), ep{addr: "fd01::1", cond: terminating}),
			},
			want: []want{cluster("10.1.0.1:8080"), cluster6("[fd01::1]:8080")},
		},
		{
			name: "endpoints of a family in which the service has no address are of no use",
			slices: []*model.EndpointSlice{
				slice("b", "s", true, tcp("http", 8080), ep{addr: "fd01::1", cond: ready}),
			},
			want: []want{cluster("reject"), cluster6("reject")},
		},
		{
			name:   "internalTrafficPolicy Local: local ones, or drop",
			change: func(s *model.Service) { s.InternalLocal = true },
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, node: "n2"}, ep{addr: "10.1.0.2", cond: ready, node: thisNode})},
			want: []want{local("10.1.0.2:8080 local")},
		},
		{
			name:   "internalTrafficPolicy Local without local endpoints",
			change: func(s *model.Service) { s.InternalLocal = true },
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready, node: "n2"})},
			want:   []want{local("drop")},
		},
		{
			name:   "internalTrafficPolicy Local without any endpoints",
			change: func(s *model.Service) { s.InternalLocal = true },
			want:   []want{local("reject")},
		},
		{
			name:   "externalTrafficPolicy Local: clients in the cluster are served cluster-wide",
			change: func(s *model.Service) { s.ExternalLocal = true; s.Ports[0].NodePort = 30000 },
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, node: "n2"}, ep{addr: "10.1.0.2", cond: ready, node: thisNode})},
			want: []want{cluster("10.1.0.1:8080, 10.1.0.2:8080 local"), local("10.1.0.2:8080 local")},
		},
		{
			name:   "the last local endpoint serves outside clients until it is gone, and no other clients",
			change: func(s *model.Service) { s.ExternalLocal = true; s.Ports[0].NodePort = 30000 },
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, node: "n2"}, ep{addr: "10.1.0.2", cond: terminating, node: thisNode})},
			want: []want{cluster("10.1.0.1:8080"), local("10.1.0.2:8080 local")},
		},
		{
			name: "zone hints",
			zone: "z1",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, zones: "z1"}, ep{addr: "10.1.0.2", cond: ready, zones: "z2"})},
			want: []want{cluster("10.1.0.1:8080")},
		},
		{
			name: "zone hints, one missing",
			zone: "z1",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, zones: "z1"}, ep{addr: "10.1.0.2", cond: ready})},
			want: []want{cluster("10.1.0.1:8080, 10.1.0.2:8080")},
		},
		{
			name: "zone hints, none for here",
			zone: "z3",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, zones: "z1"}, ep{addr: "10.1.0.2", cond: ready, zones: "z2"})},
			want: []want{cluster("10.1.0.1:8080, 10.1.0.2:8080")},
		},
		{
			name: "node hints go before zone hints",
			zone: "z1",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, zones: "z1", nodes: "n2"}, ep{addr: "10.1.0.2", cond: ready, zones: "z1", nodes: "n1"})},
			want: []want{cluster("10.1.0.2:8080")},
		},
		{
			name: "node hints, none for here: zone hints",
			zone: "z1",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: ready, zones: "z1", nodes: "n2"}, ep{addr: "10.1.0.2", cond: ready, zones: "z2", nodes: "n3"})},
			want: []want{cluster("10.1.0.1:8080")},
		},
		{
			name: "terminating endpoints know no hints",
			zone: "z1",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "10.1.0.1", cond: terminating, zones: "z1"}, ep{addr: "10.1.0.2", cond: terminating, zones: "z2"})},
			want: []want{cluster("10.1.0.1:8080, 10.1.0.2:8080")},
		},
		{
			name: "SCTP",
			change: func(s *model.Service) {
				s.Ports[0].Protocol = model.Protocol_SCTP
			},
			slices: []*model.EndpointSlice{slice("a", "s", false, []*model.EndpointPort{{Name: "http", Port: 5,
				Protocol: model.Protocol_SCTP}},
				ep{addr: "10.1.0.1", cond: ready})},
			want: []want{cluster("10.1.0.1:5")},
		},
		{
			name: "a backend at a node's address uses the host's network",
			slices: []*model.EndpointSlice{slice("a", "s", false, tcp("http", 8080),
				ep{addr: "192.168.0.1", cond: ready, node: thisNode})},
			want: []want{cluster("192.168.0.1:8080 local host-network")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, r, _ := newTest(t, Config{})
			must := must(t)
			must(p.SetZone(c.zone))
			must(p.SetNode("n2", []netip.Addr{netip.MustParseAddr("192.168.0.1")}))
			s := clusterIP("s")
			if c.change != nil {
				c.change(s)
			}
			must(p.UpdateService(s))
			for _, slice := range c.slices {
				must(p.UpdateSlice(nil, slice))
			}
			value := r.Services[id("s")]
			if value == nil {
				t.Fatal("no service")
			}
			for _, w := range c.want {
				backends, verdict := value.Select("http", w.policy, w.ipv6)
				got := strings.Join(texts(backends), ", ")
				if verdict != renderer.Balance {
					got = verdict.String()
				}
				if got != w.text {
					t.Errorf("policy %s, IPv6 %t: %q, want %q\n%s", w.policy, w.ipv6, got, w.text, value)
				}
			}
		})
	}
}

// TestAddresses checks the addresses at which a service is exposed.
func TestAddresses(t *testing.T) {
	full := func() *model.Service {
		s := clusterIP("s")
		s.Type = model.Service_LOAD_BALANCER
		s.ClusterIps = []string{"10.96.0.1", "fd00::1"}
		s.ExternalIps = []string{"203.0.113.1", "2001:db8::1"}
		s.Ingress = []*model.Ingress{{Ip: "198.51.100.1"}, {Ip: "198.51.100.2", Proxy: true}}
		s.SourceRanges, s.SourceRangesSet = []string{"192.0.2.0/24"}, true
		s.SessionAffinityTimeout = 10800
		return s
	}
	for _, c := range []struct {
		name   string
		cfg    Config
		change func(s *model.Service)
		want   string // empty: not rendered
	}{
		{
			name: "all there is",
			want: "ClusterIPs:{10.96.0.1, fd00::1} ExternalIPs:{198.51.100.1, 203.0.113.1, 2001:db8::1} " +
				"LoadBalancerIPs:{198.51.100.1} SourceRanges:[192.0.2.0/24]",
		},
		{
			name: "external IPs are off", cfg: Config{IgnoreExternalIPs: true},
			want: "ExternalIPs:{198.51.100.1} LoadBalancerIPs:{198.51.100.1}",
		},
		{
			name:   "external addresses of a family that the service does not have",
			change: func(s *model.Service) { s.ClusterIps = []string{"10.96.0.1"} },
			want:   "ExternalIPs:{198.51.100.1, 203.0.113.1} LoadBalancerIPs",
		},
		{
			name:   "all clients may",
			change: func(s *model.Service) { s.SourceRanges = []string{"192.0.2.0/24", "0.0.0.0/0"} },
			want:   "LoadBalancerIPs:{198.51.100.1} Ports",
		},
		{
			name:   "invalid ranges permit no client",
			change: func(s *model.Service) { s.SourceRanges = nil },
			want:   "SourceRanges:[]",
		},
		{name: "affinity", want: "Affinity-Timeout:10800s"},
		{name: "headless", change: func(s *model.Service) { s.Headless = true }},
		{name: "foreign", change: func(s *model.Service) { s.ProxyName = "other" }},
		{name: "external name", change: func(s *model.Service) { s.Type = model.Service_EXTERNAL_NAME }},
		{name: "no address yet", change: func(s *model.Service) { s.ClusterIps = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, r, _ := newTest(t, c.cfg)
			s := full()
			if c.change != nil {
				c.change(s)
			}
			must(t)(p.UpdateService(s))
			value := r.Services[id("s")]
			switch {
			case value == nil && c.want != "":
				t.Error("no service")
			case value != nil && c.want == "":
				t.Errorf("is rendered: %s", value)
			case value != nil && !strings.Contains(value.String(), c.want):
				t.Errorf("%s\nhas no %s", value, c.want)
			}
		})
	}
}

// TestOpenFamily checks that a range of length 0 permits all clients of its own family, and of the other one only if that has no ranges.
func TestOpenFamily(t *testing.T) {
	for _, c := range []struct{ ranges, want4, want6 string }{
		{"0.0.0.0/0 fd00::/8", "[] false", "[fd00::/8] true"},
		{"::/0 192.0.2.0/24 192.0.2.0/24", "[192.0.2.0/24] true", "[] false"},
		{"0.0.0.0/0", "[] false", "[] false"},
		{"0.0.0.0/0 192.0.2.0/24", "[] false", "[] false"},
		{"0.0.0.0/0 ::/0", "[] false", "[] false"},
		{"192.0.2.0/24", "[192.0.2.0/24] true", "[] true"},
	} {
		p, r, _ := newTest(t, Config{})
		s := clusterIP("s")
		s.Type, s.ClusterIps = model.Service_LOAD_BALANCER, []string{"10.96.0.1", "fd00::1"}
		s.Ingress = []*model.Ingress{{Ip: "198.51.100.1"}, {Ip: "2001:db8::1"}}
		s.SourceRanges, s.SourceRangesSet = strings.Fields(c.ranges), true
		must(t)(p.UpdateService(s))
		value := r.Services[id("s")]
		four, restricted4 := value.SourceRanges(false)
		six, restricted6 := value.SourceRanges(true)
		if got := fmt.Sprint(four, restricted4); got != c.want4 {
			t.Errorf("%s: IPv4 %s, want %s", c.ranges, got, c.want4)
		}
		if got := fmt.Sprint(six, restricted6); got != c.want6 {
			t.Errorf("%s: IPv6 %s, want %s", c.ranges, got, c.want6)
		}
	}
}

// TestSourceRangesByFamily checks that a service that restricts its clients does not permit others by another family.
func TestSourceRangesByFamily(t *testing.T) {
	cs := &renderer.ContivService{SourceRangesSet: true,
		LoadBalancerSourceRanges: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	if ranges, restricted := cs.SourceRanges(false); !restricted || len(ranges) != 1 {
		t.Errorf("IPv4: %v %t", ranges, restricted)
	}
	if ranges, restricted := cs.SourceRanges(true); !restricted || len(ranges) != 0 {
		t.Errorf("IPv6: %v %t", ranges, restricted)
	}
	if _, restricted := (&renderer.ContivService{}).SourceRanges(true); restricted {
		t.Error("restricted without ranges")
	}
}

// TestNoNeedlessWork checks that a change without effect on a service sends nothing, and that a change of one service sends only that one.
func TestNoNeedlessWork(t *testing.T) {
	p, r, _ := newTest(t, Config{})
	must := must(t)
	a, b := clusterIP("a"), clusterIP("b")
	b.ClusterIps = []string{"10.96.0.2"}
	must(p.UpdateService(a))
	must(p.UpdateService(b))
	s1 := slice("a-1", "a", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready})
	must(p.UpdateSlice(nil, s1))
	if got := r.Take(); !slices.Equal(got, []string{"add ns/a", "add ns/b", "update ns/a"}) {
		t.Errorf("calls %q", got)
	}
	s2 := slice("a-1", "a", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready}, ep{addr: "10.1.0.2", cond: unready})
	s2.TriggerMs = 5
	if change := must(p.UpdateSlice(s1, s2)); change != "" {
		t.Errorf("change %q", change)
	}
	must(p.UpdateService(clusterIP("a")))
	s3 := slice("x", "headless", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready})
	must(p.UpdateSlice(nil, s3))
	must(p.UpdateSlice(s3, nil))
	must(p.SetZone("z9"))
	if got := r.Take(); len(got) != 0 {
		t.Errorf("calls %q", got)
	}
	must(p.UpdateSlice(s2, slice("a-1", "b", false, tcp("http", 8080), ep{addr: "10.1.0.1", cond: ready}))) // changes its owner
	must(p.DeleteService(id("a")))
	must(p.DeleteService(id("a")))
	if got := r.Take(); !slices.Equal(got, []string{"update ns/a", "update ns/b", "delete ns/a"}) {
		t.Errorf("calls %q", got)
	}
}

// TestInterfaces checks that frontends are all pods, and backends are those that serve, only while they serve.
func TestInterfaces(t *testing.T) {
	p, r, _ := newTest(t, Config{})
	must := must(t)
	node := NodeInterfaces{Frontends: []string{"nic", "bvi"}, Backends: []string{"bvi"}}
	pods := []LocalPod{
		{Interface: "tap1", Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.1"), netip.MustParseAddr("fd01::1")}},
		{Interface: "tap2", Addresses: []netip.Addr{netip.MustParseAddr("10.1.0.2")}},
	}
	must(p.SetInterfaces(node, pods))
	must(p.SetInterfaces(node, pods))
	a, b := clusterIP("a"), clusterIP("b")
	must(p.UpdateService(a))
	must(p.UpdateService(b))
	e1, e2 := ep{addr: "10.1.0.1", cond: ready, node: thisNode}, ep{addr: "10.1.0.2", cond: ready, node: "n2"}
	sa := slice("a", "a", false, tcp("http", 8080), e1, e2)
	sb := slice("b", "b", false, tcp("http", 8081), e1)
	must(p.UpdateSlice(nil, sa))
	must(p.UpdateSlice(nil, sb))
	must(p.UpdateSlice(sa, nil))
	must(p.UpdateSlice(sb, nil))
	must(p.UpdateSlice(nil, sb))
	must(p.SetInterfaces(node, pods[1:])) // the pod is deleted, the endpoint not yet
	must(p.SetInterfaces(node, pods))
	must(p.DeleteService(id("b")))
	want := []string{
		"frontends {bvi, nic, tap1, tap2}", "backends {bvi}", "add ns/a", "add ns/b",
		"backends {bvi, tap1}", "update ns/a", "update ns/b",
		"update ns/a", "backends {bvi}", "update ns/b",
		"backends {bvi, tap1}", "update ns/b",
		"frontends {bvi, nic, tap2}", "backends {bvi}",
		"frontends {bvi, nic, tap1, tap2}", "backends {bvi, tap1}",
		"delete ns/b", "backends {bvi}",
	}
	if got := r.Take(); !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("calls %q\nwant  %q", got, want)
	}
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}

// TestNodes checks the addresses of nodes, those of this node that accept traffic for node ports (a renderer needs the others, too, to
// leave them to their nodes), and backends that are detected to be in a host's network.
func TestNodes(t *testing.T) {
	p, r, _ := newTest(t, Config{NodePortAddresses: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}})
	must := must(t)
	s := clusterIP("s")
	s.Ports[0].NodePort = 30000
	must(p.UpdateService(s))
	must(p.UpdateService(clusterIP("other")))
	must(p.UpdateSlice(nil, slice("s", "s", false, tcp("http", 80), ep{addr: "10.9.0.1", cond: ready})))
	r.Take()
	addr := func(texts ...string) (out []netip.Addr) {
		for _, text := range texts {
			out = append(out, netip.MustParseAddr(text))
		}
		return out
	}
	must(p.SetNode(thisNode, addr("192.168.0.1", "127.0.0.1", "10.9.0.9")))
	must(p.SetNode("n2", addr("10.9.0.1", "fe80::1", "192.168.0.2")))
	must(p.SetNode("n2", addr("192.168.0.2", "10.9.0.1")))
	must(p.SetNode("n3", addr("192.168.0.2"))) // two nodes with one address, as when one is renamed
	must(p.SetNode("n2", addr("10.9.0.1")))
	want := []string{
		"local node IPs {192.168.0.1}", "node IPs {10.9.0.9, 192.168.0.1}",
		"node IPs {10.9.0.1, 10.9.0.9, 192.168.0.1, 192.168.0.2}", "update ns/s",
	}
	if got := r.Take(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if got := texts(r.Services[id("s")].Backends["http"]); !slices.Equal(got, []string{"10.9.0.1:80 host-network"}) {
		t.Errorf("backends %q", got)
	}
	must(p.SetNode("n2", nil))
	must(p.SetNode("n3", nil))
	want = []string{"node IPs {10.9.0.9, 192.168.0.1, 192.168.0.2}", "update ns/s", "node IPs {10.9.0.9, 192.168.0.1}"}
	if got := r.Take(); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
}

// TestHealthChecks checks that health checks report local endpoints that are ready, even if nothing else changes.
func TestHealthChecks(t *testing.T) {
	p, _, health := newTest(t, Config{})
	must := must(t)
	s := clusterIP("s")
	s.Type, s.ExternalLocal, s.HealthCheckNodePort = model.Service_LOAD_BALANCER, true, 32000
	s.ClusterIps = append(s.ClusterIps, "fd00::1")
	s.Ports[0].NodePort = 30000
	s.Ports = append(s.Ports, &model.ServicePort{Name: "two", Port: 81})
	must(p.UpdateService(s))
	two := append(tcp("http", 80), tcp("two", 81)...)
	s4 := slice("s4", "s", false, two, ep{addr: "10.1.0.1", cond: ready, node: thisNode}, ep{addr: "10.1.0.2", cond: ready,
		node: "n2"})
	must(p.UpdateSlice(nil, s4))
	s6 := slice("s6", "s", true, two, ep{addr: "fd01::1", cond: ready, node: thisNode})
	must(p.UpdateSlice(nil, s6))
	if got := health[id("s")]; got != (answer{32000, 1}) {
		t.Errorf("answer %v", got)
	}
	must(p.UpdateSlice(s6, nil))
	must(p.UpdateSlice(s4, slice("s4", "s", false, two, ep{addr: "10.1.0.1", cond: terminating, node: thisNode})))
	if got := health[id("s")]; got != (answer{32000, 0}) {
		t.Errorf("answer %v", got)
	}
	none := &Snapshot{Services: slices.Values([]*model.Service{}), Slices: slices.Values([]*model.EndpointSlice{})}
	if err := p.Resync(none); err != nil || len(health) != 0 {
		t.Errorf("after a resync without the service: %v %v", health, err)
	}
}

// TestFailingRenderer checks that the failure of one renderer does not affect the others, and is reported.
func TestFailingRenderer(t *testing.T) {
	p, r, _ := newTest(t, Config{})
	bad := rendertest.New(t)
	bad.Err = errors.New("disk on fire")
	p.RegisterRenderer(bad)
	_, err := p.UpdateService(clusterIP("s"))
	if !errors.Is(err, bad.Err) || len(r.Services) != 1 || len(bad.Services) != 1 {
		t.Errorf("%v, %d, %d services", err, len(r.Services), len(bad.Services))
	}
}

// world is a random cluster.
type world struct {
	r        *rand.Rand
	services map[string]*model.Service
	slices   map[string]*model.EndpointSlice
	snap     Snapshot
}

func newWorld(seed uint64) *world {
	return &world{
		r: rand.New(rand.NewPCG(seed, 1)), services: map[string]*model.Service{}, slices: map[string]*model.EndpointSlice{},
		snap: Snapshot{Nodes: map[string][]netip.Addr{}},
	}
}

func (w *world) pick(texts ...string) string { return texts[w.r.IntN(len(texts))] }

func (w *world) service(name string) *model.Service {
	s := &model.Service{
		Name: name, Namespace: "ns", Type: model.Service_Type(w.r.IntN(4)), Headless: w.r.IntN(10) == 0,
		ClusterIps:    [][]string{{"10.96.0.1"}, {"fd00::1"}, {"10.96.0.1", "fd00::1"}}[w.r.IntN(3)],
		ExternalLocal: w.r.IntN(2) == 0, InternalLocal: w.r.IntN(3) == 0, SessionAffinityTimeout: uint32(w.r.IntN(2)),
		HealthCheckNodePort: uint32(w.r.IntN(2) * 32000),
	}
	for i := range 1 + w.r.IntN(2) {
		s.Ports = append(s.Ports, &model.ServicePort{Name: fmt.Sprint("p", i), Port: uint32(80 + i),
			NodePort: uint32(w.r.IntN(2) * (30000 + i))})
	}
	if w.r.IntN(3) == 0 {
		s.ExternalIps = []string{"203.0.113.1", "2001:db8::1"}
	}
	if w.r.IntN(3) == 0 {
		s.Ingress = []*model.Ingress{{Ip: "198.51.100.1", Proxy: w.r.IntN(2) == 0}}
	}
	return s
}

func (w *world) slice(name string) *model.EndpointSlice {
	ipv6 := strings.HasSuffix(name, "6")
	var eps []ep
	for range w.r.IntN(5) {
		addr := fmt.Sprintf("10.1.0.%d", w.r.IntN(6))
		if ipv6 {
			addr = fmt.Sprintf("fd01::%d", w.r.IntN(6))
		}
		eps = append(eps, ep{
			addr: addr, cond: byte(w.r.IntN(8)), node: w.pick(thisNode, "n2", ""), zones: w.pick("", "z1", "z2"), nodes: w.pick("",
				"", "n1"),
		})
	}
	ports := append(tcp("p0", uint32(8000+w.r.IntN(2))), tcp("p1", 8100)...)
	return slice(name, w.pick("a", "b", "c"), ipv6, ports[:1+w.r.IntN(2)], eps...)
}

func (w *world) addrs() []netip.Addr {
	var out []netip.Addr
	for i := range 6 {
		if w.r.IntN(4) == 0 {
			out = append(out, netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}))
		}
	}
	return out
}

// step makes one change and passes it to the processor.
func (w *world) step(p *Processor) error {
	switch w.r.IntN(12) {
	case 0, 1, 2:
		name := w.pick("a", "b", "c")
		w.services[name] = w.service(name)
		_, err := p.UpdateService(w.services[name])
		return err
	case 3:
		name := w.pick("a", "b", "c")
		delete(w.services, name)
		_, err := p.DeleteService(id(name))
		return err
	case 4, 5, 6, 7:
		name := w.pick("x4", "y4", "z6")
		prev := w.slices[name]
		w.slices[name] = w.slice(name)
		_, err := p.UpdateSlice(prev, w.slices[name])
		return err
	case 8:
		name := w.pick("x4", "y4", "z6")
		prev := w.slices[name]
		delete(w.slices, name)
		_, err := p.UpdateSlice(prev, nil)
		return err
	case 9:
		w.snap.Zone = w.pick("", "z1", "z2")
		_, err := p.SetZone(w.snap.Zone)
		return err
	case 10:
		name := w.pick(thisNode, "n2", "n3")
		w.snap.Nodes[name] = w.addrs()
		_, err := p.SetNode(name, w.snap.Nodes[name])
		return err
	}
	w.snap.LocalPods = nil
	for i, addr := range w.addrs() {
		w.snap.LocalPods = append(w.snap.LocalPods, LocalPod{Interface: fmt.Sprint("tap", i), Addresses: []netip.Addr{addr}})
	}
	w.snap.NodeInterfaces = NodeInterfaces{Frontends: []string{w.pick("nic1", "nic2")}, Backends: []string{w.pick("bvi", "")}}
	_, err := p.SetInterfaces(w.snap.NodeInterfaces, w.snap.LocalPods)
	return err
}

func (w *world) snapshot() *Snapshot {
	snap := w.snap
	snap.Services = func(yield func(*model.Service) bool) {
		for _, s := range w.services {
			if !yield(s) {
				return
			}
		}
	}
	snap.Slices = func(yield func(*model.EndpointSlice) bool) {
		for _, s := range w.slices {
			if !yield(s) {
				return
			}
		}
	}
	return &snap
}

// TestUpdatesEqualResync checks that any sequence of changes gives the same result as one resync of the final state, in the processor, in
// renderers and in health checks, and that a resync of the known state changes nothing.
func TestUpdatesEqualResync(t *testing.T) {
	for seed := range uint64(300) {
		w := newWorld(seed)
		p, r, health := newTest(t, Config{})
		for range 40 {
			if err := w.step(p); err != nil {
				t.Fatal(err)
			}
		}
		fresh, fr, freshHealth := newTest(t, Config{})
		if err := fresh.Resync(w.snapshot()); err != nil {
			t.Fatal(err)
		}
		if got, want := r.String(), fr.String(); got != want {
			t.Fatalf("seed %d: after updates\n%safter a resync\n%s", seed, got, want)
		}
		if got, want := p.String(), fresh.String(); got != want {
			t.Fatalf("seed %d: processor after updates\n%safter a resync\n%s", seed, got, want)
		}
		if fmt.Sprint(health) != fmt.Sprint(freshHealth) {
			t.Fatalf("seed %d: health checks %v, after a resync %v", seed, health, freshHealth)
		}
		before := r.Services
		if err := p.Resync(w.snapshot()); err != nil {
			t.Fatal(err)
		}
		for id, value := range r.Services {
			if before[id] != value {
				t.Fatalf("seed %d: a resync made %s again", seed, id)
			}
		}
		for range 20 { // and further changes
			if err := w.step(p); err != nil {
				t.Fatal(err)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
