package service_test

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/nb"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	driver "contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostnat"
	"contiv.dev/vswitch/plugins/service/renderer/hostsvc"
	"contiv.dev/vswitch/plugins/service/renderer/nat44"
	"contiv.dev/vswitch/plugins/service/renderer/vppsvc"
)

// values is a transaction that is applied at once.
type values map[string]proto.Message

func (v values) Update(string) api.UpdateOperations { return v }
func (v values) Resync() api.ResyncOperations       { clear(v); return v }
func (v values) Put(key string, m proto.Message)    { v[key] = m }
func (v values) Get(key string) proto.Message       { return v[key] }
func (v values) Delete(key string)                  { delete(v, key) }

// node is a node with VPP, with both families.
type node struct{}

func (node) NATNode() (nodeinfo.NAT, bool) {
	a := netip.MustParseAddr
	return nodeinfo.NAT{Uplink: "nic", Exit: "nic", Outside: true, Loopback: a("10.1.1.254"), PodVRF: 1, Node: nodeinfo.Node{
		Address: a("192.168.16.1"), HostLink: a("172.30.1.1"), HostOwn: a("172.30.1.2"), LinuxIf: "host",
		Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}}, true
}

func (node) NextHopTo(netip.Addr) nodeinfo.NextHop { return nodeinfo.NextHop{VRF: 1} }

func (node) ServiceNode(ipv6 bool) (nodeinfo.Node, bool) {
	a := netip.MustParseAddr
	return nodeinfo.Node{LinuxIf: "vpp1", Address: a("fd00:16::1"), HostLink: a("fd00:172::1"),
		HostOwn: a("fd00:172::2"), Services: []netip.Prefix{netip.MustParsePrefix("fd00:96::/108")}}, ipv6
}

// dataplanes holds the desired states of all renderers.
type dataplanes struct {
	linux, nat44, plugin, host values
	processor                  *processor.Processor
}

func newDataplanes() *dataplanes {
	d := &dataplanes{linux: values{}, nat44: values{}, plugin: values{}, host: values{}}
	log := slog.New(slog.DiscardHandler)
	d.processor = processor.New(processor.Config{NodeName: "n1", ReservedNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
		ReservedNodePorts: []processor.NodePort{{Protocol: renderer.TCP, First: 10250, Last: 10250}}}, nil)
	d.processor.RegisterRenderer(hostsvc.New(hostsvc.Deps{Txn: d.linux}))
	d.processor.RegisterRenderer(nat44.New(nat44.Deps{NodeName: "n1", Network: node{}, Txn: d.nat44, Log: log}))
	d.processor.RegisterRenderer(vppsvc.New(vppsvc.Deps{Network: node{}, Txn: d.plugin}))
	d.processor.RegisterRenderer(hostnat.New(hostnat.Deps{Network: node{}, Txn: d.host, Device: "vpp1",
		Families: renderer.FamilyIPv4 | renderer.FamilyIPv6}))
	return d
}

func nodes() map[string][]netip.Addr {
	a := netip.MustParseAddr
	return map[string][]netip.Addr{"n1": {a("192.168.16.1"), a("fd00:16::1")}, "n2": {a("192.168.16.2")}}
}

func (d *dataplanes) resync(t *testing.T, services []*model.Service, slicesOf []*model.EndpointSlice) {
	t.Helper()
	if err := d.processor.Resync(&processor.Snapshot{Services: slices.Values(services), Slices: slices.Values(slicesOf), Nodes: nodes(),
		NodeInterfaces: processor.NodeInterfaces{Frontends: []string{"nic", "host"}, Backends: []string{"host"}}}); err != nil {
		t.Fatal(err)
	}
}

// check checks that the values for dataplanes are valid, and that no frontend is in two services.
func (d *dataplanes) check(t *testing.T) {
	t.Helper()
	taken := map[lb.Key]string{}
	for key, m := range d.linux {
		s, err := lb.Parse(m.(*driver.BalancedServiceUpdate))
		if err != nil {
			t.Fatalf("%s: the driver refuses it: %v\n%v", key, err, m)
		}
		for _, p := range s.Ports {
			for _, f := range p.Frontends {
				if other, is := taken[f.Key]; is {
					t.Fatalf("%v is served for %s and for %s", f.Key, other, s.Name)
				}
				taken[f.Key] = s.Name
			}
		}
	}
	places := map[string]string{}
	for key, m := range d.nat44 {
		dnat, is := m.(*vpp_nat.DNat44)
		for _, st := range dnat.GetStMappings() {
			at := netip.AddrPortFrom(netip.MustParseAddr(st.ExternalIp), uint16(st.ExternalPort)).String() + st.Protocol.String()
			if other, taken := places[at]; is && taken {
				t.Fatalf("%s is served for %s and for %s", at, other, dnat.Label)
			}
			places[at] = dnat.Label
			for _, l := range st.LocalIps {
				if a, err := netip.ParseAddr(l.LocalIp); err != nil || !a.Is4() || l.LocalPort == 0 {
					t.Fatalf("%s leads to %v", at, l)
				}
			}
		}
		if got, err := nb.Key(m); err != nil || got != key {
			t.Fatalf("%s is a value of %s: %v", key, got, err)
		}
	}
	for _, wanted := range []values{d.plugin, d.host} {
		for key, m := range wanted {
			if got, err := nb.Key(m); err != nil || got != key {
				t.Fatalf("%s is a value of %s: %v", key, got, err)
			}
		}
	}
}

// input reads choices from bytes.
type input struct{ data []byte }

func (in *input) next() int {
	if len(in.data) == 0 {
		return 0
	}
	b := in.data[0]
	in.data = in.data[1:]
	return int(b)
}

// text returns one of the texts, or an arbitrary one.
func (in *input) text(list ...string) string {
	i := in.next()
	if i < len(list)*8 {
		return list[i%len(list)]
	}
	n := min(in.next()%40, len(in.data))
	text := string(in.data[:n])
	in.data = in.data[n:]
	return text
}

func (in *input) number(list ...uint32) uint32 {
	i := in.next()
	if i < len(list)*8 {
		return list[i%len(list)]
	}
	return uint32(in.next())<<24 | uint32(in.next())<<8 | uint32(i)
}

func (in *input) addr() string {
	return in.text("10.96.0.1", "10.96.0.10", "fd00:96::1", "192.168.16.1", "192.168.16.2", "203.0.113.1", "2001:db8::1", "10.1.1.2",
		"fd00:16::1", "172.30.1.1", "254.203.61.54", "::ffff:10.96.0.1", "0.0.0.0", "127.0.0.1", "::", "fe80::1%eth0")
}

func (in *input) addrs() (out []string) {
	for range in.next() % 4 {
		out = append(out, in.addr())
	}
	return out
}

func (in *input) name() string { return in.text("a", "b", "c", "kubernetes") }

func (in *input) service() *model.Service {
	flags := in.next()
	s := &model.Service{
		Name: in.name(), Namespace: in.text("ns", "default"), Type: model.Service_Type(in.next() % 5), Created: int64(in.number(0, 1, 2)),
		ClusterIps: in.addrs(), ExternalIps: in.addrs(), SessionAffinityTimeout: in.number(0, 10), HealthCheckNodePort: in.number(0, 32000),
		ExternalLocal: flags&1 != 0, InternalLocal: flags&2 != 0, SourceRangesSet: flags&4 != 0, Headless: flags&0xf8 == 8,
	}
	for range in.next() % 3 {
		s.Ingress = append(s.Ingress, &model.Ingress{Ip: in.addr(), Proxy: in.next() == 9})
	}
	for range in.next() % 3 {
		s.SourceRanges = append(s.SourceRanges, in.text("192.0.2.0/24", "::/0", "0.0.0.0/0", "fd00::/8", "10.96.0.1/33", "::ffff:1.2.3.4/100"))
	}
	for range in.next() % 4 {
		s.Ports = append(s.Ports, &model.ServicePort{Name: in.text("", "http", "dns"), Protocol: model.Protocol(in.next() % 5),
			Port: in.number(80, 53, 30080, 10250, 65535), NodePort: in.number(0, 30080, 30081)})
	}
	return s
}

// slice returns an endpoint slice with columns of any length.
func (in *input) slice() *model.EndpointSlice {
	s := &model.EndpointSlice{Name: in.text("x", "y"), Namespace: in.text("ns", "default"), Service: in.name(), Ipv6: in.next()%2 == 1}
	for range in.next() % 3 {
		s.Ports = append(s.Ports, &model.EndpointPort{Name: in.text("", "http", "dns"), Protocol: model.Protocol(in.next() % 4),
			Port: in.number(8080, 53, 0, 70000)})
	}
	for range in.next() % 5 {
		if a, err := netip.ParseAddr(in.addr()); err == nil {
			if b := a.As16(); s.Ipv6 {
				s.Addresses = append(s.Addresses, b[:]...)
			} else {
				s.Addresses = append(s.Addresses, b[12:]...)
			}
		}
		s.Conditions = append(s.Conditions, byte(in.next()))
		s.Place = append(s.Place, uint32(in.next()%3))
	}
	// Columns of different lengths occur in a damaged file.
	s.Addresses = s.Addresses[:max(0, len(s.Addresses)-in.next()%3)]
	s.Conditions = s.Conditions[:max(0, len(s.Conditions)-in.next()%9/8)]
	s.Place = s.Place[:max(0, len(s.Place)-in.next()%9/8)]
	s.Places = []*model.Place{{Node: in.text("n1", "n2"), Zone: "z"}, nil}
	return s
}

// FuzzServices: for any objects, added and removed in any order, nothing panics, the values of renderers are valid and free of conflicts,
// and updates give the same result as one resync.
func FuzzServices(f *testing.F) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 50+r.IntN(600))
		for i := range data {
			if data[i] = byte(r.IntN(40)); r.IntN(60) == 0 { // else there are few numbers and names that are as they should be
				data[i] = byte(r.IntN(256))
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &input{data[:min(len(data), 4096)]}
		services, slicesOf := map[svcmodel.ID]*model.Service{}, map[string]*model.EndpointSlice{}
		d := newDataplanes()
		d.resync(t, nil, nil)
		step := func(_ string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for len(in.data) > 0 {
			switch in.next() % 5 {
			case 0, 1:
				s := in.service()
				services[svcmodel.ID{Namespace: s.Namespace, Name: s.Name}] = s
				step(d.processor.UpdateService(s))
			case 2, 3:
				s := in.slice()
				key := s.Namespace + "/" + s.Name
				prev := slicesOf[key]
				slicesOf[key] = s
				step(d.processor.UpdateSlice(prev, s))
			case 4:
				id := svcmodel.ID{Namespace: in.text("ns", "default"), Name: in.name()}
				delete(services, id)
				step(d.processor.DeleteService(id))
			}
			d.check(t)
		}
		fresh := newDataplanes()
		var all []*model.Service
		var parts []*model.EndpointSlice
		for _, s := range services {
			all = append(all, s)
		}
		for _, s := range slicesOf {
			parts = append(parts, s)
		}
		fresh.resync(t, all, parts)
		if got, want := d.processor.String(), fresh.processor.String(); got != want {
			t.Fatalf("after updates\n%s\nafter a resync\n%s", got, want)
		}
		same(t, "Linux", d.linux, fresh.linux)
		same(t, "VPP by NAT44", d.nat44, fresh.nat44)
		same(t, "VPP by the plugin", d.plugin, fresh.plugin)
		same(t, "the host", d.host, fresh.host)
	})
}

func same(t *testing.T, what string, got, want values) {
	t.Helper()
	for key, m := range got {
		if want[key] == nil || !proto.Equal(m, want[key]) {
			t.Fatalf("%s: %s is\n%v\nafter a resync\n%v", what, key, m, want[key])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, after a resync %d", what, len(got), len(want))
	}
}
