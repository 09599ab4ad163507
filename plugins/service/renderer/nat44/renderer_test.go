package nat44

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_nat "contiv.dev/vswitch/dataplane/nb/vpp/nat"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet/nodeinfo"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// values are a transaction that becomes the desired state at once.
type values struct {
	state map[string]proto.Message
	ops   int
}

func (v *values) Put(key string, msg proto.Message) {
	v.ops++
	v.state[key] = msg
}
func (v *values) Get(key string) proto.Message { return v.state[key] }
func (v *values) Delete(key string) {
	v.ops++
	delete(v.state, key)
}
func (v *values) Update(string) api.UpdateOperations { return v }
func (v *values) Resync() api.ResyncOperations {
	v.state = map[string]proto.Message{}
	return v
}

// network is a node in the overlay: pods in 10.1.0.0/16, of which 10.1.1.0/24 are here.
type network struct {
	node nodeinfo.NAT
	off  bool
	ipv6 bool                // pods have addresses of it
	far  map[netip.Addr]bool // other nodes' addresses that the overlay leads to
}

func (n *network) NATNode() (nodeinfo.NAT, bool) { return n.node, !n.off }

func (n *network) ServiceNode(ipv6 bool) (nodeinfo.Node, bool) {
	return nodeinfo.Node{Services: []netip.Prefix{netip.MustParsePrefix("fd00:96::/108")}}, ipv6 && n.ipv6
}

func (n *network) NextHopTo(addr netip.Addr) nodeinfo.NextHop {
	if n.far[addr] || netip.MustParsePrefix("10.1.0.0/16").Contains(addr) {
		return nodeinfo.NextHop{VRF: 1}
	}
	return nodeinfo.NextHop{Masquerade: true}
}

// world is a renderer with its input, in the order of the processor.
type world struct {
	t        testing.TB
	r        *Renderer
	resolved *rendertest.Resolver // before r
	net      *network
	out      *values
	services map[renderer.ServiceID]*renderer.ContivService
	ev       *renderer.ResyncEventData
	log      strings.Builder
}

func newWorld(t testing.TB) *world {
	t.Helper()
	addr := netip.MustParseAddr
	w := &world{t: t, out: &values{}, services: map[renderer.ServiceID]*renderer.ContivService{}, ev: renderer.NewResyncEventData()}
	w.net = &network{far: map[netip.Addr]bool{}, node: nodeinfo.NAT{
		Uplink: "nic", Exit: "nic", Outside: true, Loopback: addr("10.1.1.254"), PodVRF: 1, Node: nodeinfo.Node{
			Address: addr("192.168.16.1"), HostLink: addr("172.30.1.1"), HostOwn: addr("172.30.1.2"), LinuxIf: "host",
			Services: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")},
		},
	}}
	w.r = w.renderer(w.out)
	w.resolved = rendertest.Resolve(w.r)
	w.ev.LocalNodeIPs = renderer.FromAddrs(addr("192.168.16.1"), addr("10.99.0.1"), addr("fd00::1"))
	w.ev.NodeIPs = renderer.FromAddrs(addr("192.168.16.1"), addr("10.99.0.1"), addr("192.168.16.2"))
	w.ev.FrontendIfs = renderer.NewInterfaces("nic", "bvi", "pod1")
	w.resync()
	return w
}

func (w *world) renderer(out *values) *Renderer {
	return New(Deps{NodeName: "n1", Network: w.net, Txn: out, Log: slog.New(slog.NewTextHandler(&w.log, nil))})
}

func (w *world) snapshot() *renderer.ResyncEventData {
	ev := *w.ev
	ev.Services = slices.Collect(maps.Values(w.services))
	return &ev
}

func (w *world) resync() {
	w.t.Helper()
	w.must(w.resolved.Resync(w.snapshot()))
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// set adds or changes a service; it says how many operations that took.
func (w *world) set(s *renderer.ContivService) int {
	w.t.Helper()
	before := w.out.ops
	old := w.services[s.ID]
	w.services[s.ID] = s
	if old == nil {
		w.must(w.resolved.AddService(s))
	} else {
		w.must(w.resolved.UpdateService(old, s, nil))
	}
	return w.out.ops - before
}

func (w *world) remove(name string) {
	w.t.Helper()
	id := renderer.ServiceID{Namespace: "ns", Name: name}
	old := w.services[id]
	delete(w.services, id)
	w.must(w.resolved.DeleteService(old, nil))
}

// dnat are the mappings of a service as text: "10.96.0.1:80 TCP SELF 10.1.1.2:8080@1".
func (w *world) dnat(name string) []string {
	v, _ := w.out.state[nb.DNat44Key("ns/"+name)].(*vpp_nat.DNat44)
	var out []string
	for _, m := range v.GetStMappings() {
		text := fmt.Sprintf("%s:%d %s %s", m.ExternalIp, m.ExternalPort, m.Protocol, m.TwiceNat)
		if m.SessionAffinity > 0 {
			text += fmt.Sprintf(" %ds", m.SessionAffinity)
		}
		for _, l := range m.LocalIps {
			text += fmt.Sprintf(" %s:%d@%d", l.LocalIp, l.LocalPort, l.VrfId)
		}
		out = append(out, text)
	}
	return out
}

func (w *world) wantDNAT(name string, want ...string) {
	w.t.Helper()
	if got := w.dnat(name); !slices.Equal(got, want) {
		w.t.Errorf("%s:\n  %s\nwant\n  %s", name, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// asResynced: a renderer that starts now makes the same of it all.
func (w *world) asResynced() {
	w.t.Helper()
	fresh := &values{}
	w.must(rendertest.Resolve(w.renderer(fresh)).Resync(w.snapshot()))
	for key := range w.out.state {
		if fresh.state[key] == nil {
			w.t.Errorf("%s is left", key)
		}
	}
	for key, want := range fresh.state {
		if got := w.out.state[key]; got == nil || !proto.Equal(got, want) {
			w.t.Errorf("%s is\n%v\nwant\n%v", key, got, want)
		}
	}
}

// svc has port 80 of TCP, and backends by address; "L" in front: local, "H": of a host.
func svc(name, ip string, backends ...string) *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = renderer.ServiceID{Namespace: "ns", Name: name}
	s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP(ip))
	s.Ports["web"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80}
	s.Reachable = map[string]renderer.Families{}
	for _, b := range backends {
		bare := strings.TrimLeft(b, "LH")
		s.Backends["web"] = append(s.Backends["web"], &renderer.ServiceBackend{
			IP: net.ParseIP(bare), Port: 8080, Local: b[0] == 'L', HostNetwork: strings.HasPrefix(strings.TrimLeft(b, "L"), "H"),
		})
	}
	return s
}

func withExternal(s *renderer.ContivService, ips ...string) *renderer.ContivService {
	var list []net.IP
	for _, ip := range ips {
		list = append(list, net.ParseIP(ip))
	}
	s.ExternalIPs = renderer.NewIPAddresses(list...)
	return s
}

func TestMappings(t *testing.T) {
	w := newWorld(t)
	w.set(svc("plain", "10.96.0.1", "10.1.1.2", "10.1.2.2"))
	w.wantDNAT("plain", "10.96.0.1:80 TCP SELF 10.1.1.2:8080@1 10.1.2.2:8080@1")

	np := svc("np", "10.96.0.2", "L10.1.1.2", "10.1.2.2")
	np.Ports["web"].NodePort, np.SessionAffinityTimeout = 30080, 60
	w.set(np)
	both := " 10.1.1.2:8080@1 10.1.2.2:8080@1"
	w.wantDNAT("np", "10.96.0.2:80 TCP SELF 60s"+both, "10.99.0.1:30080 TCP ENABLED 60s"+both,
		"192.168.16.1:30080 TCP ENABLED 60s"+both, "172.30.1.1:30080 TCP ENABLED 60s"+both)

	local := withExternal(svc("local", "10.96.0.3", "L10.1.1.2", "10.1.2.2"), "203.0.113.1")
	local.TrafficPolicy = renderer.NodeLocal
	w.set(local)
	w.wantDNAT("local", "10.96.0.3:80 TCP SELF"+both, "203.0.113.1:80 TCP SELF 10.1.1.2:8080@1")

	w.set(svc("hosts", "10.96.0.4", "LH10.99.0.1", "H10.99.0.2"))
	w.wantDNAT("hosts", "10.96.0.4:80 TCP ENABLED 10.99.0.1:8080@0 10.99.0.2:8080@0")
	w.net.far[netip.MustParseAddr("10.99.0.2")] = true
	w.must(w.r.UpdateNodes([]netip.Addr{netip.MustParseAddr("10.99.0.2")}))
	w.wantDNAT("hosts", "10.96.0.4:80 TCP ENABLED 10.99.0.1:8080@0 10.99.0.2:8080@1")

	w.set(svc("none", "10.96.0.5"))
	w.wantDNAT("none")
	v6 := svc("v6", "fd00::1", "fd10::1")
	w.set(v6)
	w.wantDNAT("v6")
	sctp := svc("sctp", "10.96.0.6", "10.1.1.2")
	sctp.Ports["web"].Protocol = renderer.SCTP
	w.set(sctp)
	w.wantDNAT("sctp")
	w.asResynced()
}

// acl is the ACL as text: "192.0.2.0/24 > 203.0.113.1/32 TCP 80", "!" in front of what is denied.
func (w *world) acl() (rules []string, on []string) {
	v, _ := w.out.state[nb.ACLKey(aclName)].(*vpp_acl.ACL)
	for _, r := range v.GetRules() {
		ip := r.IpRule
		text := fmt.Sprintf("%s > %s ", ip.Ip.SourceNetwork, ip.Ip.DestinationNetwork)
		if ip.Udp != nil {
			text += fmt.Sprint("UDP ", ip.Udp.DestinationPortRange.LowerPort)
		} else {
			text += fmt.Sprint("TCP ", ip.Tcp.DestinationPortRange.LowerPort)
		}
		if r.Action == vpp_acl.ACL_Rule_DENY {
			text = "!" + text
		}
		rules = append(rules, text)
	}
	return rules, v.GetInterfaces().GetIngress()
}

func (w *world) wantACL(want ...string) {
	w.t.Helper()
	if got, _ := w.acl(); !slices.Equal(got, want) {
		w.t.Errorf("the ACL is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func withRanges(s *renderer.ContivService, ranges ...string) *renderer.ContivService {
	s.LoadBalancerIPs, s.SourceRangesSet = s.ExternalIPs, true
	for _, r := range ranges {
		s.LoadBalancerSourceRanges = append(s.LoadBalancerSourceRanges, netip.MustParsePrefix(r))
	}
	return s
}

// A load balancer's address with source ranges is guarded; other addresses are not.
func TestSourceRanges(t *testing.T) {
	w := newWorld(t)
	const plain = "10.96.0.1:80 TCP SELF 10.1.1.2:8080@1"
	lb := func(ranges ...string) *renderer.ContivService {
		s := withRanges(withExternal(svc("lb", "10.96.0.1", "10.1.1.2"), "203.0.113.1", "203.0.113.2"), ranges...)
		s.LoadBalancerIPs = renderer.NewIPAddresses(net.ParseIP("203.0.113.1"))
		return s
	}
	guarded := func() (out []string) {
		v := w.out.state[nb.DNat44Key("ns/lb")].(*vpp_nat.DNat44)
		for _, m := range v.StMappings {
			if m.Guard == aclName {
				out = append(out, m.ExternalIp)
			} else if m.Guard != "" {
				t.Errorf("guarded by %s", m.Guard)
			}
		}
		return out
	}
	w.set(lb("198.51.100.0/24", "fd00::/8"))
	w.wantDNAT("lb", plain, "203.0.113.1:80 TCP ENABLED 10.1.1.2:8080@1", "203.0.113.2:80 TCP ENABLED 10.1.1.2:8080@1")
	w.wantACL("198.51.100.0/24 > 203.0.113.1/32 TCP 80", "!0.0.0.0/0 > 203.0.113.1/32 TCP 80")
	if got := guarded(); !slices.Equal(got, []string{"203.0.113.1"}) {
		t.Errorf("guarded: %s", got)
	}
	if _, on := w.acl(); !slices.Equal(on, []string{"bvi", "nic", "pod1"}) {
		t.Errorf("the ACL is on %s", on)
	}
	w.asResynced()
	if n := w.set(lb("198.51.100.0/25", "192.168.16.0/24")); n != 1 {
		t.Errorf("%d operations for other ranges", n)
	}
	// The host sends with its address on the link to VPP.
	w.wantACL("198.51.100.0/25 > 203.0.113.1/32 TCP 80", "192.168.16.0/24 > 203.0.113.1/32 TCP 80",
		"172.30.1.2/32 > 203.0.113.1/32 TCP 80", "!0.0.0.0/0 > 203.0.113.1/32 TCP 80")
	w.asResynced()
	w.set(lb("fd00::/8")) // none of this family
	w.wantDNAT("lb", plain, "203.0.113.2:80 TCP ENABLED 10.1.1.2:8080@1")
	w.wantACL("!0.0.0.0/0 > 203.0.113.1/32 TCP 80")
	open := lb()
	open.SourceRangesSet = false
	w.set(open)
	if w.out.state[nb.ACLKey(aclName)] != nil || len(guarded()) > 0 {
		t.Error("something is guarded still")
	}
	w.asResynced()
}

// What only other nodes serve is dropped; what nothing serves is rejected.
func TestDrops(t *testing.T) {
	w := newWorld(t)
	s := svc("s", "10.96.0.1", "10.1.2.2")
	s.InternalTrafficPolicy, s.TrafficPolicy = renderer.NodeLocal, renderer.NodeLocal
	s.Ports["web"].NodePort = 30080
	w.set(withExternal(s, "203.0.113.1"))
	w.wantDNAT("s")
	w.wantACL("!0.0.0.0/0 > 10.96.0.1/32 TCP 80", "!0.0.0.0/0 > 10.99.0.1/32 TCP 30080", "!0.0.0.0/0 > 172.30.1.1/32 TCP 30080",
		"!0.0.0.0/0 > 192.168.16.1/32 TCP 30080", "!0.0.0.0/0 > 203.0.113.1/32 TCP 80")
	w.asResynced()
	w.set(withRanges(withExternal(svc("none", "10.96.0.2"), "203.0.113.2"), "198.51.100.0/24"))
	if got, _ := w.acl(); len(got) != 5 {
		t.Errorf("no backend serves it: %s", got)
	}
	w.remove("s")
	w.wantACL()
	var many []*renderer.ContivService
	for n := range 200 {
		s := svc(fmt.Sprint("m", n), fmt.Sprintf("10.96.1.%d", n), "10.1.2.2")
		s.InternalTrafficPolicy = renderer.NodeLocal
		many = append(many, s)
		w.set(s)
	}
	if got, _ := w.acl(); len(got) >= len(many) {
		t.Errorf("%d rules", len(got))
	}
	w.asResynced()
}

// Of two services that want an address and port one has it, whichever came first, and the other one when that has gone.
func TestConflict(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		w := newWorld(t)
		for _, name := range order {
			w.set(withExternal(svc(name, map[string]string{"a": "10.96.0.1", "b": "10.96.0.2"}[name],
				map[string]string{"a": "10.1.1.2", "b": "10.1.1.3"}[name]), "203.0.113.1"))
		}
		if a, b := len(w.dnat("a")), len(w.dnat("b")); a != 2 || b != 1 {
			t.Errorf("%v: %d and %d mappings", order, a, b)
		}
		w.asResynced()
		w.remove("a")
		if b := len(w.dnat("b")); b != 2 {
			t.Errorf("%v: %d mappings of the heir", order, b)
		}
		w.asResynced()
	}
}

// What is put is what has changed.
func TestDeltas(t *testing.T) {
	w := newWorld(t)
	for n := range 100 {
		w.set(svc(fmt.Sprintf("s%d", n), fmt.Sprintf("10.96.1.%d", n), "10.1.1.2"))
	}
	if n := w.set(svc("s7", "10.96.1.7", "10.1.1.2", "10.1.1.3")); n != 1 {
		t.Errorf("%d operations for one more endpoint", n)
	}
	if n := w.set(svc("s7", "10.96.1.7", "10.1.1.2", "10.1.1.3")); n != 0 {
		t.Errorf("%d operations for nothing", n)
	}
	before := w.out.ops
	now := renderer.NewInterfaces("nic", "bvi", "pod1", "pod2")
	w.must(w.r.UpdateLocalFrontendIfs(w.ev.FrontendIfs, now))
	w.ev.FrontendIfs = now
	w.must(w.r.UpdateLocalBackendIfs(renderer.NewInterfaces(), now))
	w.must(w.r.UpdateNodes(w.r.nodeIPs.Addrs()))
	if n := w.out.ops - before; n != 1 {
		t.Errorf("%d operations for one more pod", n)
	}
	w.asResynced()
}

// A node that has no IPv4, or that is not known yet, has no NAT.
func TestOff(t *testing.T) {
	w := newWorld(t)
	w.net.off = true
	w.out.Resync()
	w.resync()
	w.set(svc("s", "10.96.0.1", "10.1.1.2"))
	w.must(w.r.UpdateNodes(nil))
	w.must(w.r.UpdateLocalFrontendIfs(nil, w.ev.FrontendIfs))
	if len(w.out.state) > 0 {
		t.Error(w.out.state)
	}
}

// Without SNAT there is no output feature, and what must not leave is stopped by routes.
func TestNotOutside(t *testing.T) {
	w := newWorld(t)
	w.net.node.Outside = false
	w.resync()
	w.set(withExternal(svc("s", "10.96.0.1", "10.1.1.2"), "203.0.113.1", "192.168.16.2"))
	for key, v := range w.out.state {
		if i, ok := v.(*vpp_nat.Nat44Interface); ok && i.OutputFeature || strings.Contains(key, "203.0.113.1") &&
			!strings.Contains(key, "route") {
			t.Errorf("%s: %v", key, v)
		}
		if strings.Contains(key, "192.168.16.2") {
			t.Errorf("a node's address is taken: %s", key)
		}
	}
	w.asResynced()
}

// With a pipe before the uplink the pipe has the output feature, and the uplink is an interface like others.
func TestThroughAPipe(t *testing.T) {
	w := newWorld(t)
	w.net.node.Exit = "pipe"
	w.resync()
	w.set(withExternal(svc("s", "10.96.0.1", "10.1.1.2"), "203.0.113.1"))
	for name, output := range map[string]bool{"pipe": true, "nic": false} {
		i, _ := w.out.state[nb.Nat44InterfaceKey(name)].(*vpp_nat.Nat44Interface)
		if i.GetOutputFeature() != output || i.GetNatInside() == output || i.GetNatOutside() == output {
			t.Errorf("%s: %v", name, i)
		}
	}
	past := nb.RouteKeyFor("", 1, netip.MustParsePrefix("203.0.113.1/32"), netip.Addr{})
	if w.out.state[past] == nil {
		t.Error("the external address is not led past the pipe")
	}
	w.asResynced()
}

// A service with more backends than VPP can take has as many as it can, and one more or less changes one of them.
func TestManyBackends(t *testing.T) {
	w := newWorld(t)
	var all []string
	for n := range 400 {
		all = append(all, fmt.Sprintf("10.1.%d.%d", 1+n/200, 2+n%200))
	}
	list := func() map[string]bool {
		out := map[string]bool{}
		for _, f := range strings.Fields(w.dnat("s")[0])[3:] {
			out[f] = true
		}
		return out
	}
	w.set(svc("s", "10.96.0.1", all...))
	before := list()
	w.set(svc("s", "10.96.0.1", all[1:]...))
	after, lost := list(), 0
	for b := range before {
		if !after[b] {
			lost++
		}
	}
	if len(before) != 255 || len(after) != 255 || lost > 1 {
		t.Errorf("%d, then %d, %d others", len(before), len(after), lost)
	}
	other := New(Deps{NodeName: "n2", Network: w.net, Txn: w.out, Log: w.r.Log})
	w.must(rendertest.Resolve(other).Resync(w.snapshot()))
	if maps.Equal(list(), after) {
		t.Error("another node uses the same backends")
	}
}

// Random changes end as one resync does.
func TestRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t)
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	for step := range 2000 {
		switch random.IntN(12) {
		case 0:
			for id := range w.services {
				w.remove(id.Name)
				break
			}
		case 1:
			now := renderer.NewInterfaces("nic", "bvi", pick("pod1", "pod2"), pick("pod3", "pod4"))
			w.must(w.r.UpdateLocalFrontendIfs(w.ev.FrontendIfs, now))
			w.ev.FrontendIfs = now
		case 2:
			w.nodes(pick("10.99.0.1", "10.99.0.7", "203.0.113.2"), pick("192.168.16.2", "203.0.113.1"))
		case 3:
			addr := netip.MustParseAddr(pick("10.99.0.2", "10.99.0.3"))
			w.net.far[addr] = !w.net.far[addr]
			w.must(w.r.UpdateNodes([]netip.Addr{addr}))
		default:
			s := svc(pick("a", "b", "c", "d", "e"), pick("10.96.0.1", "10.96.0.2", "198.51.100.1"))
			for _, b := range []string{"L10.1.1.2", "10.1.2.2", "H10.99.0.2", "LH10.99.0.1", "H10.99.0.3"} {
				if random.IntN(2) == 0 {
					s.Backends["web"] = append(s.Backends["web"], svc("", "", b).Backends["web"]...)
				}
			}
			if random.IntN(2) == 0 {
				withExternal(s, pick("203.0.113.1", "203.0.113.2", "10.99.0.1"), pick("203.0.113.1", "fd00::7"))
			}
			s.Ports["web"].NodePort = uint16(random.IntN(2) * (30000 + random.IntN(3)))
			s.TrafficPolicy = renderer.TrafficPolicyType(random.IntN(2))
			s.InternalTrafficPolicy = renderer.TrafficPolicyType(random.IntN(2))
			if random.IntN(2) == 0 {
				withRanges(s, pick("198.51.100.0/24", "10.99.0.0/29", "fd00::/8"))
			}
			w.set(s)
		}
		if step%20 == 0 {
			w.asResynced()
		}
		if t.Failed() {
			t.Fatal("step", step)
		}
	}
}

// nodes changes the addresses of this node and of another one, as the processor does.
func (w *world) nodes(own, other string) {
	w.t.Helper()
	addr := netip.MustParseAddr
	w.ev.LocalNodeIPs = renderer.FromAddrs(addr("192.168.16.1"), addr(own))
	w.ev.NodeIPs = renderer.FromAddrs(addr("192.168.16.1"), addr(own), addr(other))
	w.must(w.resolved.UpdateLocalNodeIPs(w.ev.LocalNodeIPs, nil))
	w.must(w.resolved.UpdateNodePortServices(w.ev.NodeIPs, nil))
}

// BenchmarkResync renders 5 000 services of 50 endpoints.
func BenchmarkResync(b *testing.B) {
	w, _ := bigWorld(b)
	for b.Loop() {
		w.resync()
	}
}

// BenchmarkEndpoint is one endpoint more or less among them.
func BenchmarkEndpoint(b *testing.B) {
	w, all := bigWorld(b)
	w.resync()
	n := 0
	for b.Loop() {
		n++
		w.set(svc("s7", "10.96.0.7", all[:49+n%2]...))
	}
}

func bigWorld(tb testing.TB) (*world, []string) {
	tb.Helper()
	w := newWorld(tb)
	var all []string
	for n := range 50 {
		all = append(all, fmt.Sprintf("10.1.%d.%d", 1+n%2, 2+n))
	}
	for n := range 5000 {
		s := svc(fmt.Sprintf("s%d", n), fmt.Sprintf("10.96.%d.%d", n/250, n%250), all...)
		w.services[s.ID] = s
	}
	return w, all
}
