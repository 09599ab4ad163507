package processor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/internal/problem"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// exclusive is a renderer that fails the test if two services have one frontend between any two calls.
type exclusive struct {
	*rendertest.Recorder
	owner map[renderer.Frontend]svcmodel.ID
	has   map[svcmodel.ID][]renderer.PortFrontend
}

func newExclusive(t testing.TB) *exclusive {
	return &exclusive{rendertest.New(t), map[renderer.Frontend]svcmodel.ID{}, map[svcmodel.ID][]renderer.PortFrontend{}}
}

func (e *exclusive) drop(id svcmodel.ID) {
	for _, f := range e.has[id] {
		delete(e.owner, f.Frontend)
	}
	delete(e.has, id)
}

func (e *exclusive) take(s *renderer.ContivService) {
	e.T.Helper()
	e.drop(s.ID)
	e.has[s.ID] = s.Frontends(e.LocalIPs.Addrs())
	for _, f := range e.has[s.ID] {
		if other, taken := e.owner[f.Frontend]; taken {
			e.T.Errorf("%s is served for %s and for %s", f, other, s.ID)
		}
		e.owner[f.Frontend] = s.ID
	}
}

func (e *exclusive) AddService(s *renderer.ContivService) error {
	e.take(s)
	return e.Recorder.AddService(s)
}

func (e *exclusive) UpdateService(old, s *renderer.ContivService, others []*renderer.ContivService) error {
	e.take(s)
	return e.Recorder.UpdateService(old, s, others)
}

func (e *exclusive) DeleteService(s *renderer.ContivService, others []*renderer.ContivService) error {
	e.drop(s.ID)
	return e.Recorder.DeleteService(s, others)
}

func (e *exclusive) UpdateLocalNodeIPs(local *renderer.IPAddresses, services []*renderer.ContivService) error {
	err := e.Recorder.UpdateLocalNodeIPs(local, services)
	e.again()
	return err
}

// again processes all services again, with the current addresses of the node.
func (e *exclusive) again() {
	clear(e.owner)
	clear(e.has)
	for _, s := range e.Services {
		e.take(s)
	}
}

func (e *exclusive) Resync(ev *renderer.ResyncEventData) error {
	err := e.Recorder.Resync(ev)
	e.again()
	return err
}

// problems records the reported problems.
type problems map[svcmodel.ID][]problem.Problem

func (p problems) Set(object *model.Service, list []problem.Problem) {
	if delete(p, serviceID(object)); len(list) > 0 {
		p[serviceID(object)] = list
	}
}
func (p problems) Delete(id svcmodel.ID) { delete(p, id) }

// frontends returns a cluster with a node at 192.168.0.1 and another one at 192.168.0.2.
func frontends(t *testing.T, cfg Config) (*Processor, *exclusive, problems) {
	reported := problems{}
	cfg.NodeName, cfg.Problems = thisNode, reported
	p, e := New(cfg, nil), newExclusive(t)
	p.RegisterRenderer(e)
	if err := p.Resync(&Snapshot{
		Services: slices.Values[[]*model.Service](nil), Slices: slices.Values[[]*model.EndpointSlice](nil),
		Nodes: map[string][]netip.Addr{thisNode: {netip.MustParseAddr("192.168.0.1")}, "n2": {netip.MustParseAddr("192.168.0.2")}},
	}); err != nil {
		t.Fatal(err)
	}
	return p, e, reported
}

// made returns a service with a creation time, a cluster IP and ports.
func made(name string, created int64, clusterIP string, ports ...uint32) *model.Service {
	s := &model.Service{Name: name, Namespace: "ns", Created: created, Uid: "uid-" + name, ClusterIps: strings.Fields(clusterIP)}
	for _, port := range ports {
		s.Ports = append(s.Ports, &model.ServicePort{Name: fmt.Sprint("p", port), Port: port})
	}
	return s
}

func external(s *model.Service, addrs ...string) *model.Service {
	s.ExternalIps = addrs
	return s
}

func nodePort(s *model.Service, port uint32) *model.Service {
	s.Ports[0].NodePort = port
	return s
}

// ownerCase says which service owns each frontend; an empty name means that none does.
type ownerCase struct {
	name     string
	services []*model.Service
	want     map[string]string
}

// check adds the services, the endpoints of the API server and the node's address in several orders.
func (c ownerCase) check(t *testing.T) {
	for seed := range uint64(6) {
		p, e, reported := frontends(t, Config{
			ReservedNetworks:  []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd01::/16")},
			ReservedNodePorts: []NodePort{{renderer.TCP, 10248, 10250}},
			ReservedAddresses: []netip.Prefix{netip.MustParsePrefix("198.51.100.53/32")},
			Etcd:              []netip.AddrPort{netip.MustParseAddrPort("203.0.113.79:2379"), netip.MustParseAddrPort("192.168.0.1:2379")},
		})
		api := slice("kubernetes", "kubernetes", false, tcp("https", 6443), ep{addr: "172.16.0.1", cond: ready})
		api.Namespace = "default"
		api2 := slice("k2", "kubernetes", false, tcp("https", 6444), ep{addr: "192.168.0.2", cond: ready})
		api2.Namespace = "default"
		steps := []func(){
			func() { must(t)(p.UpdateSlice(nil, api)) }, func() { must(t)(p.UpdateSlice(nil, api2)) },
			func() { must(t)(p.SetNode(thisNode, []netip.Addr{netip.MustParseAddr("192.168.0.1")})) },
		}
		for _, s := range c.services {
			steps = append(steps, func() { must(t)(p.UpdateService(s)) })
		}
		r := rand.New(rand.NewPCG(seed, 7))
		r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			step()
		}
		got := map[string]string{}
		for f, owner := range e.owner {
			got[f.String()] = owner.Name
		}
		for f, owner := range c.want {
			if got[f] != owner {
				t.Errorf("%s is served for %q, want %q\n%s", f, got[f], owner, e)
			}
		}
		if lost := p.Lost(); (lost > 0) != (len(reported) > 0) {
			t.Errorf("%d frontends lost, problems %v", lost, reported)
		}
	}
}

// TestOwner checks which service owns a frontend that several services name, in any order of arrival.
func TestOwner(t *testing.T) {
	for _, c := range []ownerCase{
		{
			name: "an external address does not take over a cluster IP, however old",
			services: []*model.Service{external(made("attacker", 1, "10.96.0.99", 53), "10.96.0.10"),
				made("dns", 100, "10.96.0.10", 53)},
			want: map[string]string{"10.96.0.10:53/TCP": "dns", "10.96.0.99:53/TCP": "attacker"},
		},
		{
			name: "nor a port that the service with the cluster IP does not have",
			services: []*model.Service{external(made("attacker", 1, "10.96.0.99", 8080), "10.96.0.10"),
				made("dns", 100, "10.96.0.10", 53)},
			want: map[string]string{"10.96.0.10:53/TCP": "dns", "10.96.0.10:8080/TCP": ""},
		},
		{
			name: "the older one of two external addresses",
			services: []*model.Service{external(made("a", 5, "10.96.0.1", 80), "203.0.113.1"),
				external(made("b", 4, "10.96.0.2", 80), "203.0.113.1")},
			want: map[string]string{"203.0.113.1:80/TCP": "b"},
		},
		{
			name: "what is not the same port is no conflict",
			services: []*model.Service{external(made("a", 5, "10.96.0.1", 80, 81), "203.0.113.1"),
				external(made("b", 4, "10.96.0.2", 80), "203.0.113.1")},
			want: map[string]string{"203.0.113.1:80/TCP": "b", "203.0.113.1:81/TCP": "a"},
		},
		{
			name: "of one age: by UID",
			services: []*model.Service{external(made("y", 5, "10.96.0.1", 80), "203.0.113.1"),
				external(made("x", 5, "10.96.0.2", 80), "203.0.113.1")},
			want: map[string]string{"203.0.113.1:80/TCP": "x"},
		},
		{
			name: "of unknown age: the last one",
			services: []*model.Service{external(made("a", 0, "10.96.0.1", 80), "203.0.113.1"),
				external(made("b", 9, "10.96.0.2", 80), "203.0.113.1")},
			want: map[string]string{"203.0.113.1:80/TCP": "b"},
		},
		{
			name: "a node port is the service's that it was given to, at this node and at others",
			services: []*model.Service{external(made("attacker", 1, "10.96.0.1", 30080), "192.168.0.1", "192.168.0.2"),
				nodePort(made("victim", 9, "10.96.0.2", 80), 30080)},
			want: map[string]string{"192.168.0.1:30080/TCP": "victim", "192.168.0.2:30080/TCP": ""},
		},
		{
			name: "a node port of IPv4 is not one of IPv6",
			services: []*model.Service{external(made("a", 1, "fd96::1", 30080), "fd07::1"),
				nodePort(made("b", 9, "10.96.0.2", 80), 30080)},
			want: map[string]string{"192.168.0.1:30080/TCP": "b", "[fd07::1]:30080/TCP": "a"},
		},
		{
			name: "its own external address beside its own node port",
			services: []*model.Service{external(nodePort(made("a", 1, "10.96.0.1", 80, 30080), 30080), "192.168.0.1",
				"192.168.0.2", "10.96.0.1")},
			want: map[string]string{"192.168.0.1:30080/TCP": "a", "192.168.0.2:30080/TCP": "a", "192.168.0.1:80/TCP": "a", "10.96.0.1:80/TCP": "a"},
		},
		{
			name: "load balancers' addresses are external ones",
			services: []*model.Service{{Name: "lb", Namespace: "ns", Type: model.Service_LOAD_BALANCER, Created: 3,
				ClusterIps: []string{"10.96.0.1"}, Ports: []*model.ServicePort{{Name: "p", Port: 80}},
				Ingress: []*model.Ingress{{Ip: "203.0.113.1"}, {Ip: "10.96.0.2"}}},
				made("b", 9, "10.96.0.2", 80), external(made("c", 4, "10.96.0.3", 80), "203.0.113.1")},
			want: map[string]string{"203.0.113.1:80/TCP": "lb", "10.96.0.2:80/TCP": "b"},
		},
	} {
		t.Run(c.name, c.check)
	}
}

// TestReserved checks which external addresses and ports no service may have.
func TestReserved(t *testing.T) {
	for _, c := range []ownerCase{
		{
			name: "a node's address may be an external one, but not for ports that nodes need",
			services: []*model.Service{external(made("ingress", 1, "10.96.0.1", 80, 10250, 6444), "192.168.0.1", "192.168.0.2",
				"203.0.113.1")},
			want: map[string]string{"192.168.0.1:80/TCP": "ingress", "192.168.0.2:80/TCP": "ingress", "192.168.0.1:10250/TCP": "",
				"192.168.0.2:10250/TCP": "", "203.0.113.1:10250/TCP": "ingress", "192.168.0.2:6444/TCP": "", "192.168.0.1:6444/TCP": "ingress"},
		},
		{
			name:     "an API server that is no node: not at any port",
			services: []*model.Service{external(made("a", 1, "10.96.0.1", 80, 6443), "172.16.0.1", "172.16.0.2")},
			want:     map[string]string{"172.16.0.1:80/TCP": "", "172.16.0.1:6443/TCP": "", "172.16.0.2:80/TCP": "a"},
		},
		{
			name:     "etcd: at another machine not at any port, at a node not at etcd's port",
			services: []*model.Service{external(made("a", 1, "10.96.0.1", 80, 2379), "203.0.113.79", "192.168.0.1", "203.0.113.80")},
			want: map[string]string{"203.0.113.79:80/TCP": "", "203.0.113.79:2379/TCP": "", "203.0.113.80:2379/TCP": "a",
				"192.168.0.1:80/TCP": "a", "192.168.0.1:2379/TCP": ""},
		},
		{
			name:     "addresses that the operator has reserved",
			services: []*model.Service{external(made("a", 1, "10.96.0.1", 53), "198.51.100.53", "198.51.100.54")},
			want:     map[string]string{"198.51.100.53:53/TCP": "", "198.51.100.54:53/TCP": "a"},
		},
		{
			name:     "networks of pods",
			services: []*model.Service{external(made("a", 1, "10.96.0.1", 80), "10.1.7.7", "fd01::7")},
			want:     map[string]string{"10.1.7.7:80/TCP": ""},
		},
	} {
		t.Run(c.name, c.check)
	}
}

// TestProblems checks that the service that loses is reported with its lost frontends, their new owner, and the end of the conflict.
func TestProblems(t *testing.T) {
	p, e, reported := frontends(t, Config{})
	dns := made("dns", 1, "10.96.0.10", 53)
	must(t)(p.UpdateService(external(made("attacker", 2, "10.96.0.99", 53), "10.96.0.10")))
	if len(reported) > 0 {
		t.Errorf("problems without a conflict: %v", reported)
	}
	must(t)(p.UpdateService(dns))
	want := problem.Problem{Reason: reasonConflict, Message: "This service is not served at 10.96.0.10:53/TCP, which service ns/dns has: the address is its " +
		"cluster IP"}
	if got := reported[id("attacker")]; !slices.Equal(got, []problem.Problem{want}) || len(reported) != 1 {
		t.Errorf("problems %v", reported)
	}
	// A renderer that ignores Lost serves the address for one service, too.
	if s := e.Services[id("attacker")]; len(s.ExternalIPs.Addrs()) > 0 {
		t.Errorf("the attacker still has %s", s.ExternalIPs)
	}
	if got := p.Lost(); got != 1 {
		t.Errorf("%d lost", got)
	}
	must(t)(p.DeleteService(id("dns")))
	if len(reported) > 0 || p.Lost() > 0 {
		t.Errorf("problems after the conflict: %v", reported)
	}
	must(t)(p.UpdateService(dns))
	must(t)(p.DeleteService(id("attacker")))
	if len(reported) > 0 {
		t.Errorf("problems of a service that has gone: %v", reported)
	}
}

// TestTooManyFrontends checks that a small object that names millions of frontends is left out, and that the others are served.
func TestTooManyFrontends(t *testing.T) {
	p, e, reported := frontends(t, Config{})
	huge := made("huge", 1, "10.96.0.1")
	for i := range uint32(2000) {
		huge.Ports = append(huge.Ports, &model.ServicePort{Name: fmt.Sprint(i), Port: 1 + i})
		huge.ExternalIps = append(huge.ExternalIps, netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}).String())
	}
	must(t)(p.UpdateService(huge))
	must(t)(p.UpdateService(made("small", 1, "10.96.0.2", 80)))
	if e.Services[id("huge")] != nil || e.Services[id("small")] == nil || len(reported[id("huge")]) != 1 {
		t.Errorf("services %v, problems %v", slices.Collect(maps.Keys(e.Services)), reported)
	}
	huge = made("huge", 1, "10.96.0.1", 80)
	must(t)(p.UpdateService(huge))
	if e.Services[id("huge")] == nil || len(reported) > 0 {
		t.Errorf("problems of what has become small: %v", reported)
	}
}

// TestTooManyBackends checks that a service of thousands of ports and a few pods is left out, also by a resync.
func TestTooManyBackends(t *testing.T) {
	p, e, reported := frontends(t, Config{})
	huge, slice := made("huge", 1, "10.96.0.1"), &model.EndpointSlice{Name: "huge", Namespace: "ns", Service: "huge"}
	const ports, endpoints = 4096, 33
	for i := range uint32(ports) {
		huge.Ports = append(huge.Ports, &model.ServicePort{Name: fmt.Sprint(i), Port: 1 + i})
		slice.Ports = append(slice.Ports, &model.EndpointPort{Name: fmt.Sprint(i), Port: 1 + i})
	}
	b := model.NewSliceBuilder(slice, endpoints)
	for i := range endpoints {
		b.Add(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}), ready, nil)
	}
	must(t)(p.UpdateService(made("small", 1, "10.96.0.2", 80)))
	must(t)(p.UpdateService(huge))
	if e.Services[id("huge")] == nil || len(reported) > 0 {
		t.Fatalf("the service without endpoints is not served: %v", reported)
	}
	must(t)(p.UpdateSlice(nil, slice))
	check := func(what string) {
		t.Helper()
		got := reported[id("huge")]
		if len(got) != 1 || got[0].Reason != reasonTooManyBackends || !strings.Contains(got[0].Message, "has 135168 backends") || len(reported) != 1 {
			t.Errorf("%s: problems %v", what, reported)
		}
		if e.Services[id("huge")] != nil || e.Services[id("small")] == nil {
			t.Errorf("%s: services %v", what, slices.Collect(maps.Keys(e.Services)))
		}
	}
	check("an update")
	if err := p.Resync(&Snapshot{Slices: slices.Values([]*model.EndpointSlice{slice}),
		Services: slices.Values([]*model.Service{huge, made("small", 1, "10.96.0.2", 80)})}); err != nil {
		t.Fatal(err)
	}
	check("a resync")
	huge.Ports = huge.Ports[:ports/2]
	must(t)(p.UpdateService(huge))
	if s := e.Services[id("huge")]; s == nil || len(s.Backends) != ports/2 || len(s.Backends["7"]) != endpoints || len(reported) > 0 {
		t.Errorf("problems of what has become small: %v", reported)
	}
}

// contest is a random cluster in which services compete for a few addresses and ports.
type contest struct {
	*world
	age int64
}

func (w *contest) service(name string) *model.Service {
	w.age++
	s := made(name, 1+w.r.Int64N(4), []string{"10.96.0.1", "10.96.0.2 fd96::2", "fd96::3", "192.168.0.1"}[w.r.IntN(4)])
	for i := range uint32(1 + w.r.IntN(2)) {
		port := &model.ServicePort{Name: fmt.Sprint("p", i), Port: []uint32{80, 30080, 6443, 10250}[w.r.IntN(4)] + i,
			Protocol: model.Protocol(w.r.IntN(2))}
		if w.r.IntN(3) == 0 {
			port.NodePort = uint32(30080 + w.r.IntN(2))
		}
		s.Ports = append(s.Ports, port)
	}
	for _, addr := range []string{"203.0.113.1", "10.96.0.1", "192.168.0.1", "192.168.0.2", "fd96::2", "172.16.0.1", "10.1.0.1"} {
		switch w.r.IntN(6) {
		case 0:
			s.ExternalIps = append(s.ExternalIps, addr)
		case 1:
			s.Type, s.Ingress = model.Service_LOAD_BALANCER, append(s.Ingress, &model.Ingress{Ip: addr})
		}
	}
	return s
}

func (w *contest) step(p *Processor) (err error) {
	names := []string{"a", "b", "c", "d", "e"}
	switch w.r.IntN(10) {
	case 0, 1, 2, 3:
		name := w.pick(names...)
		w.services[name] = w.service(name)
		_, err = p.UpdateService(w.services[name])
	case 4:
		name := w.pick(names...)
		delete(w.services, name)
		_, err = p.DeleteService(id(name))
	case 5: // two services swap their addresses
		x, y := w.services[w.pick(names...)], w.services[w.pick(names...)]
		if x == nil || y == nil {
			return nil
		}
		x, y = proto2(x), proto2(y)
		x.ExternalIps, y.ExternalIps = y.ExternalIps, x.ExternalIps
		w.services[x.Name], w.services[y.Name] = x, y
		if _, err = p.UpdateService(x); err == nil {
			_, err = p.UpdateService(y)
		}
	case 6:
		name := w.pick(thisNode, "n2")
		w.snap.Nodes[name] = nil
		for _, addr := range []string{"192.168.0.1", "192.168.0.2", "203.0.113.1"} {
			if w.r.IntN(2) == 0 {
				w.snap.Nodes[name] = append(w.snap.Nodes[name], netip.MustParseAddr(addr))
			}
		}
		_, err = p.SetNode(name, w.snap.Nodes[name])
	case 7:
		prev := w.slices["api"]
		w.slices["api"] = slice("api", "kubernetes", false, tcp("https", 6443),
			ep{addr: w.pick("172.16.0.1", "192.168.0.1", "192.168.0.2"), cond: ready})
		w.slices["api"].Namespace = "default"
		_, err = p.UpdateSlice(prev, w.slices["api"])
	default:
		return w.world.stepSlice(p)
	}
	return err
}

func proto2(s *model.Service) *model.Service {
	out := made(s.Name, s.Created, strings.Join(s.ClusterIps, " "))
	out.Type, out.Ports, out.ExternalIps, out.Ingress = s.Type, s.Ports, s.ExternalIps, s.Ingress
	return out
}

// stepSlice changes backends.
func (w *world) stepSlice(p *Processor) error {
	name := w.pick("x4", "y4", "z6")
	prev := w.slices[name]
	w.slices[name] = w.slice(name)
	_, err := p.UpdateSlice(prev, w.slices[name])
	return err
}

// TestContest checks that, for any changes in any order, no frontend is served for two services at any moment, and the final state is that
// of one resync; a resync does not send unchanged services again.
func TestContest(t *testing.T) {
	cfg := Config{ReservedNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		ReservedNodePorts: []NodePort{{renderer.TCP, 10248, 10250}}}
	conflicts := 0
	for seed := range uint64(400) {
		w := &contest{world: newWorld(seed)}
		p, e, reported := frontends(t, cfg)
		w.snap.Nodes = map[string][]netip.Addr{thisNode: {netip.MustParseAddr("192.168.0.1")}, "n2": {netip.MustParseAddr("192.168.0.2")}}
		for i := range 60 {
			if err := w.step(p); err != nil || t.Failed() {
				t.Fatalf("seed %d step %d: %v", seed, i, err)
			}
		}
		conflicts += p.Lost()
		fresh, fe, freshReported := frontends(t, cfg)
		if err := fresh.Resync(w.snapshot()); err != nil {
			t.Fatal(err)
		}
		if got, want := p.String(), fresh.String(); got != want {
			t.Fatalf("seed %d: after updates\n%safter a resync\n%s", seed, got, want)
		}
		if got, want := e.String(), fe.String(); got != want {
			t.Fatalf("seed %d: renderer after updates\n%safter a resync\n%s", seed, got, want)
		}
		if !maps.Equal(e.owner, fe.owner) {
			t.Fatalf("seed %d: owners %v, after a resync %v", seed, e.owner, fe.owner)
		}
		if len(reported) != len(freshReported) {
			t.Fatalf("seed %d: problems %v, after a resync %v", seed, reported, freshReported)
		}
		before := maps.Clone(e.Services)
		if err := p.Resync(w.snapshot()); err != nil {
			t.Fatal(err)
		}
		for id, value := range e.Services {
			if before[id] != value {
				t.Fatalf("seed %d: a resync made %s again", seed, id)
			}
		}
	}
	if conflicts < 400 {
		t.Errorf("only %d conflicts: the contest is none", conflicts)
	}
}

// BenchmarkConflict measures a service that takes an address from another one and releases it, among many services.
func BenchmarkConflict(b *testing.B) {
	for _, n := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint("services=", n), func(b *testing.B) {
			p, _ := filled(b, n, 1)
			must(b)(p.UpdateService(external(made("young", 9, "10.97.0.1", 80), "203.0.113.1")))
			old := external(made("old", 1, "10.97.0.2", 80), "203.0.113.1")
			b.ReportAllocs()
			for b.Loop() {
				must(b)(p.UpdateService(old))
				must(b)(p.DeleteService(id("old")))
			}
		})
	}
}
