package cnat

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

	linux_l3 "contiv.dev/vswitch/dataplane/nb/linux/l3"
	vpp_acl "contiv.dev/vswitch/dataplane/nb/vpp/acl"
	vpp_cnat "contiv.dev/vswitch/dataplane/nb/vpp/cnat"
	vpp_l3 "contiv.dev/vswitch/dataplane/nb/vpp/l3"
	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// store is a transaction that is applied at once, and counts; and what the host has been told.
type store struct {
	values map[string]proto.Message
	writes int
	host   [2]hostend.Places
	told   int
}

func (s *store) setPlaces(ipv6 bool, p hostend.Places) {
	s.host[familyOf(ipv6)] = p
	s.told++
}

// places are those that the host has, a line each.
func (s *store) places() string {
	var lines []string
	for _, f := range s.host {
		for _, p := range f.List {
			lines = append(lines, fmt.Sprintf("%s udp %t -> %s from %s own %t, answers to %s", p.At, p.UDP, p.To, p.From, p.Own, f.Via))
		}
	}
	return strings.Join(lines, "\n")
}

func (s *store) Update(string) api.UpdateOperations { return s }
func (s *store) Resync() api.ResyncOperations       { return s }
func (s *store) Get(key string) proto.Message       { return s.values[key] }
func (s *store) Put(key string, v proto.Message)    { s.values[key] = v; s.writes++ }
func (s *store) Delete(key string)                  { delete(s.values, key); s.writes++ }

// text is what is there, a line each, without what begins with any of the prefixes.
func (s *store) text(without ...string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if !slices.ContainsFunc(without, func(p string) bool { return strings.HasPrefix(key, p) }) {
			lines = append(lines, short(s.values[key]))
		}
	}
	return strings.Join(lines, "\n")
}

func short(m proto.Message) string {
	switch m := m.(type) {
	case *vpp_cnat.Translation:
		var to []string
		for _, b := range m.Backends {
			to = append(to, net.JoinHostPort(b.Ip, fmt.Sprint(b.Port)))
		}
		s := fmt.Sprintf("%s %s -> %s", m.Protocol, net.JoinHostPort(m.Vip, fmt.Sprint(m.Port)), strings.Join(to, " "))
		if m.Sticky {
			s += " sticky"
		}
		return s
	case *vpp_acl.ACL:
		var rules []string
		for _, r := range m.Rules {
			rules = append(rules, fmt.Sprintf("%s from %s to %s", r.Action, r.IpRule.Ip.SourceNetwork, r.IpRule.Ip.DestinationNetwork))
		}
		return strings.Join(rules, "; ") + " on " + strings.Join(m.Interfaces.Ingress, " ")
	case *vpp_cnat.Interface:
		return fmt.Sprintf("interface %s %s v4 %t v6 %t", m.Name, m.Role, m.Ipv4, m.Ipv6)
	case *vpp_cnat.SourceNAT:
		return strings.Join(strings.Fields("source "+m.Ipv4Address+" "+m.Ipv6Address), " ")
	case *linux_l3.Route:
		return fmt.Sprintf("host %s via %s dev %s", m.DstNetwork, m.GwAddr, m.OutgoingInterface)
	case *vpp_l3.Route:
		return strings.TrimSpace(fmt.Sprintf("route %s %s %s %s", m.DstNetwork, m.Type, m.NextHopAddr, m.OutgoingInterface))
	}
	return fmt.Sprint(m)
}

// node is a node of both families.
type node struct{ vrf uint32 }

func (n node) CnatNode(ipv6 bool) (ipnet.CnatNode, bool) {
	out := ipnet.CnatNode{HostIf: "tap", LinuxIf: "vpp1", Outside: []string{"nic", "bvi"}, MainVRF: n.vrf}
	if ipv6 {
		out.Address, out.HostLink = netip.MustParseAddr("fd00:16::1"), netip.MustParseAddr("fd00:17::1")
		out.HostOwn = netip.MustParseAddr("fd00:17::2")
		out.Services = []netip.Prefix{netip.MustParsePrefix("fd00:96::/112")}
	} else {
		out.Address, out.HostLink = netip.MustParseAddr("192.168.16.1"), netip.MustParseAddr("172.30.1.1")
		out.HostOwn = netip.MustParseAddr("172.30.1.2")
		out.Services = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}
	}
	return out, true
}

func newRenderer(families renderer.Families) (*Renderer, *store) {
	s := &store{values: map[string]proto.Message{}}
	return New(Deps{
		NodeName: "n1", Network: node{}, Txn: s, Families: families, SetPlaces: s.setPlaces, Log: slog.New(slog.DiscardHandler),
	}), s
}

func ips(texts ...string) *renderer.IPAddresses {
	var out []net.IP
	for _, t := range texts {
		out = append(out, net.ParseIP(t))
	}
	return renderer.NewIPAddresses(out...)
}

func svc(name string, change ...func(*renderer.ContivService)) *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = svcmodel.ID{Namespace: "ns", Name: name}
	s.ClusterIPs = ips("fd00:96::1", "10.96.0.1")
	s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.TCP, Port: 80}
	s.Backends["http"] = []*renderer.ServiceBackend{
		backend("fd00:1::3", true), backend("fd00:2::3", false), backend("10.1.1.3", true),
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func backend(ip string, local bool) *renderer.ServiceBackend {
	return &renderer.ServiceBackend{IP: net.ParseIP(ip), Port: 8080, Local: local}
}

func resyncOf(services ...*renderer.ContivService) *renderer.ResyncEventData {
	ev := renderer.NewResyncEventData()
	ev.Services = services
	ev.NodeIPs = ips("192.168.16.1", "fd00:16::1", "192.168.16.2", "fd00:16::2")
	ev.LocalNodeIPs = ips("192.168.16.1", "fd00:16::1")
	ev.FrontendIfs = renderer.NewInterfaces("pod1", "tap", "bvi")
	return ev
}

const nodeOnly = `interface bvi OUTSIDE v4 false v6 true
interface nic OUTSIDE v4 false v6 true
interface pod1 POD v4 false v6 true
interface tap HOST v4 false v6 true
source fd00:16::1`

// both is the translation of an address to both backends of svc.
func both(vip string) string { return "TCP [" + vip + "]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080" }

func TestRendering(t *testing.T) {
	const rejects = "route 100::1/128 REJECT\nroute fd00:96::/112 INTRA_VRF 100::1"
	for _, c := range []struct {
		name    string
		service *renderer.ContivService
		want    string
	}{
		{"cluster IP: backends of the family", svc("a"), "TCP [fd00:96::1]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080"},
		{"internal policy Local", svc("a", func(s *renderer.ContivService) { s.InternalTrafficPolicy = renderer.NodeLocal }),
			"TCP [fd00:96::1]:80 -> [fd00:1::3]:8080"},
		{"affinity", svc("a", func(s *renderer.ContivService) { s.SessionAffinityTimeout = 1 }),
			"TCP [fd00:96::1]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080 sticky"},
		{"no backends", svc("a", func(s *renderer.ContivService) { s.Backends["http"] = nil }), ""},
		{"SCTP", svc("a", func(s *renderer.ContivService) { s.Ports["http"].Protocol = renderer.SCTP }), ""},
		{"UDP, node port: at the node's addresses, external policy", svc("a", func(s *renderer.ContivService) {
			s.Ports["http"] = &renderer.ServicePort{Protocol: renderer.UDP, Port: 80, NodePort: 30080}
			s.TrafficPolicy = renderer.NodeLocal
		}), "UDP [fd00:16::1]:30080 -> [fd00:1::3]:8080\nUDP [fd00:17::1]:30080 -> [fd00:1::3]:8080\n" +
			"UDP [fd00:96::1]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080"},
		{"external address: fenced", svc("a", func(s *renderer.ContivService) {
			s.ClusterIPs, s.ExternalIPs = ips(), ips("fd00:99::1", "203.0.113.1")
		}), "host fd00:99::1/128 via fd00:17::1 dev vpp1\n" +
			both("fd00:99::1") + "\nroute fd00:99::1/128 INTRA_VRF 100::1"},
		{"external address of a node: not fenced", svc("a", func(s *renderer.ContivService) {
			s.ClusterIPs, s.ExternalIPs = ips(), ips("fd00:16::2")
		}), "TCP [fd00:16::2]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080"},
		{"cluster IP from elsewhere: fenced", svc("a", func(s *renderer.ContivService) {
			s.ClusterIPs = ips("fd00:97::1")
		}), "host fd00:97::1/128 via fd00:17::1 dev vpp1\n" + both("fd00:97::1") + "\nroute fd00:97::1/128 INTRA_VRF 100::1"},
		{"only other nodes have backends: dropped", svc("a", func(s *renderer.ContivService) {
			s.InternalTrafficPolicy = renderer.NodeLocal
			s.Backends["http"] = []*renderer.ServiceBackend{backend("fd00:2::3", false)}
		}), "DENY from ::/0 to fd00:96::1/128 on bvi nic pod1 tap"},
		{"source ranges, policy Local: not served", svc("a", func(s *renderer.ContivService) {
			s.ExternalIPs, s.LoadBalancerIPs, s.SourceRangesSet = ips("fd00:99::1"), ips("fd00:99::1"), true
			s.TrafficPolicy = renderer.NodeLocal
		}), "host fd00:99::1/128 via fd00:17::1 dev vpp1\nDENY from ::/0 to fd00:99::1/128 on bvi nic pod1 tap\n" +
			"TCP [fd00:96::1]:80 -> [fd00:1::3]:8080 [fd00:2::3]:8080\nroute fd00:99::1/128 INTRA_VRF 100::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, s := newRenderer(0)
			if err := r.Resync(resyncOf(c.service)); err != nil {
				t.Fatal(err)
			}
			got := s.text("config/vpp/cnat/v1/interface", "config/vpp/cnat/v1/source-nat")
			got = strings.ReplaceAll(strings.TrimSpace(strings.Replace(got, rejects, "", 1)), "\n\n", "\n")
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if err := r.DeleteService(c.service, nil); err != nil {
				t.Fatal(err)
			}
			if got, want := s.text(), nodeOnly+"\n"+rejects; got != want {
				t.Errorf("left:\n%s", got)
			}
		})
	}
}

func TestIPv4(t *testing.T) {
	r, s := newRenderer(renderer.FamilyIPv4 | renderer.FamilyIPv6)
	sctp := svc("a", func(s *renderer.ContivService) { s.Ports["http"].Protocol = renderer.SCTP })
	if err := r.Resync(resyncOf(sctp)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"SCTP 10.96.0.1:80 -> 10.1.1.3:8080", "interface pod1 POD v4 true v6 true",
		"source 192.168.16.1 fd00:16::1", "route 192.0.0.8/32 REJECT", "route 10.96.0.0/12 INTRA_VRF 192.0.0.8"} {
		if !strings.Contains(s.text(), line) {
			t.Errorf("no %q in\n%s", line, s.text())
		}
	}
}

// Of two services that want one place the first by name has it, and when it goes the other.
func TestClash(t *testing.T) {
	plain, s := newRenderer(0)
	r := rendertest.Resolve(plain)
	other := svc("b", func(s *renderer.ContivService) {
		s.Backends["http"] = []*renderer.ServiceBackend{backend("fd00:1::4", true)}
	})
	if err := r.Resync(resyncOf(other)); err != nil {
		t.Fatal(err)
	}
	served := func(want string) {
		t.Helper()
		if got := s.text(); !strings.Contains(got, "[fd00:96::1]:80 -> "+want+"\n") {
			t.Errorf("want %s:\n%s", want, got)
		}
	}
	served("[fd00:1::4]:8080")
	if err := r.AddService(svc("a")); err != nil {
		t.Fatal(err)
	}
	served("[fd00:1::3]:8080 [fd00:2::3]:8080")
	if err := r.DeleteService(svc("a"), nil); err != nil {
		t.Fatal(err)
	}
	served("[fd00:1::4]:8080")
}

// One endpoint more is one value, however many services there are; nothing new is nothing.
func TestDelta(t *testing.T) {
	r, s := newRenderer(0)
	var all []*renderer.ContivService
	for n := range 500 {
		all = append(all, svc(fmt.Sprint(n), func(s *renderer.ContivService) { s.ClusterIPs = ips(fmt.Sprintf("fd00:96::%x", n+1)) }))
	}
	if err := r.Resync(resyncOf(all...)); err != nil {
		t.Fatal(err)
	}
	s.writes = 0
	more := svc("7", func(s *renderer.ContivService) {
		s.ClusterIPs = ips("fd00:96::8")
		s.Backends["http"] = append(s.Backends["http"], backend("fd00:1::9", true))
	})
	for range 2 {
		if err := r.UpdateService(all[7], more, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.writes != 1 {
		t.Errorf("%d writes", s.writes)
	}
}

func TestManyBackends(t *testing.T) {
	r, s := newRenderer(0)
	big := svc("a", func(s *renderer.ContivService) {
		for n := range 2 * mostBackends {
			s.Backends["http"] = append(s.Backends["http"], backend(fmt.Sprintf("fd00:3::%x", n+1), false))
		}
	})
	if err := r.Resync(resyncOf(big)); err != nil {
		t.Fatal(err)
	}
	v := s.values["config/vpp/cnat/v1/translation/vip/fd00:96::1/proto/TCP/port/80"].(*vpp_cnat.Translation)
	if len(v.Backends) != mostBackends {
		t.Errorf("%d backends", len(v.Backends))
	}
}

func TestMainVRF(t *testing.T) {
	r, s := newRenderer(0)
	r.Network = node{vrf: 5}
	if err := r.Resync(resyncOf(svc("a"))); err == nil || !strings.Contains(err.Error(), "mainVRFID") || len(s.values) > 0 {
		t.Errorf("%v, %d values", err, len(s.values))
	}
	if err := r.AddService(svc("b")); err != nil || len(s.values) > 0 {
		t.Errorf("%v, %d values", err, len(s.values))
	}
}

// Any order of events ends where a resync would.
func TestRandomUpdates(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		plain, s := newRenderer(renderer.Families(1 + rng.IntN(3)))
		r := rendertest.Resolve(plain)
		now := resyncOf()
		services := map[string]*renderer.ContivService{}
		if err := r.Resync(now); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			if err := randomEvent(rng, r, now, services); err != nil {
				t.Fatal(err)
			}
		}
		now.Services = slices.Collect(maps.Values(services))
		fresh, want := newRenderer(plain.Families)
		if err := rendertest.Resolve(fresh).Resync(now); err != nil {
			t.Fatal(err)
		}
		if s.text() != want.text() || s.places() != want.places() || !maps.Equal(plain.aliases, fresh.aliases) {
			t.Fatalf("seed %d: updates\n%s\n%s\n\nresync\n%s\n%s", seed, s.text(), s.places(), want.text(), want.places())
		}
	}
}

func randomEvent(
	rng *rand.Rand, r *rendertest.Resolver, now *renderer.ResyncEventData, services map[string]*renderer.ContivService,
) error {
	name := fmt.Sprint(rng.IntN(4))
	old := services[name]
	switch rng.IntN(6) {
	case 0:
		before := now.FrontendIfs
		now.FrontendIfs = pick(rng, "pod1", "pod2", "pod3", "tap", "bvi")
		return r.UpdateLocalFrontendIfs(before, now.FrontendIfs)
	case 1:
		now.LocalNodeIPs = ips(slices.Collect(maps.Keys(pick(rng, "fd00:16::1", "fd00:16::5", "192.168.16.1")))...)
		return r.UpdateLocalNodeIPs(now.LocalNodeIPs, slices.Collect(maps.Values(services)))
	case 2:
		now.NodeIPs = ips(slices.Collect(maps.Keys(pick(rng, "fd00:99::1", "fd00:16::1", "203.0.113.1")))...)
		return r.UpdateNodePortServices(now.NodeIPs, slices.Collect(maps.Values(services)))
	case 3:
		if old == nil {
			return nil
		}
		delete(services, name)
		return r.DeleteService(old, nil)
	}
	s := randomService(rng, name)
	services[name] = s
	if old == nil {
		return r.AddService(s)
	}
	return r.UpdateService(old, s, nil)
}

func pick(rng *rand.Rand, all ...string) renderer.Interfaces {
	out := renderer.NewInterfaces()
	for _, s := range all {
		if rng.IntN(2) == 0 {
			out[s] = struct{}{}
		}
	}
	return out
}

func randomService(rng *rand.Rand, name string) *renderer.ContivService {
	return svc(name, func(s *renderer.ContivService) {
		addrs := func(all ...string) *renderer.IPAddresses { return ips(slices.Collect(maps.Keys(pick(rng, all...)))...) }
		s.ClusterIPs = addrs("fd00:96::1", "fd00:97::1", "10.96.0.1")
		s.ExternalIPs = addrs("fd00:99::1", "fd00:99::2", "203.0.113.1")
		s.LoadBalancerIPs = addrs("fd00:99::1")
		if s.SourceRangesSet = rng.IntN(3) == 0; s.SourceRangesSet {
			s.LoadBalancerSourceRanges = nets([]string{"fd00:16::/126", "fd00:1::/64", "10.1.0.0/16"}[rng.IntN(3)])
		}
		s.TrafficPolicy = renderer.TrafficPolicyType(rng.IntN(2))
		s.InternalTrafficPolicy = renderer.TrafficPolicyType(rng.IntN(2))
		s.SessionAffinityTimeout = uint32(rng.IntN(2))
		s.Ports["http"].NodePort = uint16(30080 + rng.IntN(2))
		s.Ports["dns"] = &renderer.ServicePort{Protocol: renderer.UDP, Port: 53}
		s.Backends["dns"] = nil
		for b := range pick(rng, "fd00:1::3", "fd00:1::4", "10.1.1.3", "10.1.1.4") {
			s.Backends["dns"] = append(s.Backends["dns"], backend(b, rng.IntN(2) == 0))
		}
	})
}
