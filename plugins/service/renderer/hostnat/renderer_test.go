package hostnat

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// node is a node of both families, and what is wanted of its host.
type node struct {
	values map[string]proto.Message
	ops    int
}

func (n *node) ServiceNode(ipv6 bool) (nodeinfo.Node, bool) {
	a := netip.MustParseAddr
	if !ipv6 {
		return nodeinfo.Node{HostLink: a("172.30.1.1"), HostOwn: a("172.30.1.2"), Address: a("192.0.2.1")}, true
	}
	return nodeinfo.Node{HostLink: a("fd00:172::1"), HostOwn: a("fd00:172::2"), Address: a("fd00:16::1")}, true
}

func (n *node) Put(key string, v proto.Message)    { n.ops++; n.values[key] = v }
func (n *node) Get(key string) proto.Message       { return n.values[key] }
func (n *node) Delete(key string)                  { n.ops++; delete(n.values, key) }
func (n *node) Update(string) api.UpdateOperations { return n }
func (n *node) Resync() api.ResyncOperations       { return n }

func svc(name, ip string, nodePorts ...uint16) *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = renderer.ServiceID{Namespace: "ns", Name: name}
	s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP(ip))
	for i, p := range nodePorts {
		proto := []renderer.ProtocolType{renderer.TCP, renderer.UDP, renderer.SCTP}[i]
		s.Ports[string(rune('a'+i))] = &renderer.ServicePort{Protocol: proto, Port: 80, NodePort: p}
	}
	return s
}

// TestValues: the host is wanted to know node ports at its own addresses; nothing is put when nothing is new, and nothing is left when
// there is no node port any more.
func TestValues(t *testing.T) {
	n := &node{values: map[string]proto.Message{}}
	r := New(Deps{Network: n, Txn: n, Families: renderer.FamilyIPv6, Device: "vpp1"})
	a := netip.MustParseAddr
	key := nb.NodePortsKey(linux_nodeports.Family_IPV6)
	step := func(what string, do func() error, ops int, want *linux_nodeports.NodePorts) {
		t.Helper()
		n.ops = 0
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if n.ops != ops {
			t.Errorf("%s: %d operations, want %d", what, n.ops, ops)
		}
		got, _ := n.values[key].(*linux_nodeports.NodePorts)
		if (got == nil) != (want == nil) || want != nil && !proto.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
		if len(n.values) > 1 {
			t.Errorf("%s: values of a family that VPP does not serve: %v", what, n.values)
		}
	}
	ports := func(at []string, tcp []uint32, udp ...uint32) *linux_nodeports.NodePorts {
		v := &linux_nodeports.NodePorts{Family: linux_nodeports.Family_IPV6, Addresses: at, To: "fd00:172::1", Device: "vpp1"}
		for _, p := range tcp {
			v.Ports = append(v.Ports, &linux_nodeports.NodePorts_Port{Port: p})
		}
		for _, p := range udp {
			v.Ports = append(v.Ports, &linux_nodeports.NodePorts_Port{Protocol: linux_nodeports.NodePorts_UDP, Port: p})
		}
		return v
	}
	mgmt, both := []string{"fd00:99::1"}, []string{"fd00:99::1", "fd00:99::2"}
	ev := renderer.NewResyncEventData()
	ev.LocalNodeIPs = renderer.FromAddrs(a("192.0.2.1"), a("fd00:16::1"), a("fd00:172::1"), a("fd00:99::1"))
	ev.Services = []*renderer.ContivService{svc("one", "fd96::1", 30001), svc("four", "10.96.0.1", 30004), svc("none", "fd96::2")}
	step("resync", func() error { return r.Resync(ev) }, 1, ports(mgmt, []uint32{30001}))
	two := svc("two", "fd96::3", 30003, 30002, 30009)
	step("added", func() error { return r.AddService(two) }, 1, ports(mgmt, []uint32{30001, 30003}, 30002))
	step("the same port again", func() error { return r.AddService(svc("three", "fd96::4", 30003)) }, 0,
		ports(mgmt, []uint32{30001, 30003}, 30002))
	step("no node port", func() error { return r.AddService(svc("five", "fd96::5")) }, 0, ports(mgmt, []uint32{30001, 30003}, 30002))
	step("deleted, but another has the port", func() error { return r.DeleteService(two, nil) }, 1, ports(mgmt, []uint32{30001, 30003}))
	step("changed", func() error { return r.UpdateService(nil, svc("three", "fd96::4"), nil) }, 1, ports(mgmt, []uint32{30001}))
	step("another address", func() error {
		return r.UpdateLocalNodeIPs(renderer.FromAddrs(a("fd00:99::1"), a("fd00:99::2")), nil)
	}, 1, ports(both, []uint32{30001}))
	step("the same addresses", func() error {
		return r.UpdateLocalNodeIPs(renderer.FromAddrs(a("fd00:99::2"), a("fd00:99::1")), nil)
	}, 0, ports(both, []uint32{30001}))
	step("the last one", func() error { return r.DeleteService(svc("one", "fd96::1"), nil) }, 1, nil)
	step("a first one", func() error { return r.AddService(svc("one", "fd96::1", 30001)) }, 1, ports(both, []uint32{30001}))
}

// TestKeepsClients: the host leaves clients their addresses where a service asks for that, and where VPP can answer them.
func TestKeepsClients(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		n := &node{values: map[string]proto.Message{}}
		r := New(Deps{Network: n, Txn: n, Families: renderer.FamilyIPv4 | renderer.FamilyIPv6, Device: "vpp1", KeepsClients: keeps})
		ev := renderer.NewResyncEventData()
		ev.LocalNodeIPs = renderer.FromAddrs(netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("fd00:99::1"))
		for _, ip := range []string{"10.96.0.1", "fd96::1"} {
			local := svc("local"+ip, ip, 30001)
			local.TrafficPolicy = renderer.NodeLocal
			ev.Services = append(ev.Services, local, svc("all"+ip, ip, 30002), svc("sctp"+ip, ip, 0, 0, 30003))
		}
		if err := r.Resync(ev); err != nil {
			t.Fatal(err)
		}
		for _, f := range []linux_nodeports.Family{linux_nodeports.Family_IPV4, linux_nodeports.Family_IPV6} {
			want := []*linux_nodeports.NodePorts_Port{{Port: 30001, KeepClient: keeps}, {Port: 30002}}
			if keeps { // our plugin serves SCTP, NAT44 does not
				want = append(want, &linux_nodeports.NodePorts_Port{Protocol: linux_nodeports.NodePorts_SCTP, Port: 30003})
			}
			got := n.values[nb.NodePortsKey(f)].(*linux_nodeports.NodePorts).Ports
			if !proto.Equal(&linux_nodeports.NodePorts{Ports: got}, &linux_nodeports.NodePorts{Ports: want}) {
				t.Errorf("VPP keeps clients %v, %s: %v, want %v", keeps, f, got, want)
			}
		}
		policy := svc("local10.96.0.1", "10.96.0.1", 30001)
		if err := r.UpdateService(nil, policy, nil); err != nil {
			t.Fatal(err)
		}
		if got := n.values[nb.NodePortsKey(linux_nodeports.Family_IPV4)].(*linux_nodeports.NodePorts).Ports[0]; got.KeepClient {
			t.Errorf("VPP keeps clients %v: the service has policy Cluster now, and the host has %v", keeps, got)
		}
	}
}

// TestCost: a change of a node port costs one pass over the ports of its family, and none if another service has the port.
func TestCost(t *testing.T) {
	n := &node{values: map[string]proto.Message{}}
	r := New(Deps{Network: n, Txn: n, Families: renderer.FamilyIPv4 | renderer.FamilyIPv6, Device: "vpp1"})
	ev := renderer.NewResyncEventData()
	ev.LocalNodeIPs = renderer.FromAddrs(netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("fd00:99::1"))
	const services = 1000
	for i := range uint16(services) {
		ev.Services = append(ev.Services, svc(fmt.Sprint("4-", i), "10.96.0.1", 30000+i), svc(fmt.Sprint("6-", i), "fd96::1", 30000+i))
	}
	if err := r.Resync(ev); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		port uint16
		most float64
		ops  int // of an add and a delete
	}{{"a port of another service", 30007, 100, 0}, {"a new port", 32000, 3 * services, 2}} {
		s, runs := svc("one", "10.96.0.2", c.port), 0
		n.ops = 0
		allocs := testing.AllocsPerRun(5, func() {
			runs++
			if err := errors.Join(r.AddService(s), r.DeleteService(s, nil)); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > c.most || n.ops != runs*c.ops {
			t.Errorf("%s: %.0f allocations, at most %.0f; %d operations in %d runs", c.what, allocs, c.most, n.ops, runs)
		}
	}
}
