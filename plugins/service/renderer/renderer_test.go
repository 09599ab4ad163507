package renderer

import (
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube/svcmodel"
)

// TestDocumentedAPI uses the documented names as their users do: it does not compile, or fails, if the API has changed.
func TestDocumentedAPI(t *testing.T) {
	cs := NewContivService()
	cs.ID = svcmodel.ID{Name: "web", Namespace: "default"}
	cs.TrafficPolicy = NodeLocal
	cs.SessionAffinityTimeout = 60
	cs.ClusterIPs = NewIPAddresses(net.ParseIP("10.96.0.1"))
	cs.ExternalIPs = NewIPAddresses(net.ParseIP("fd00::1"), net.ParseIP("203.0.113.1"), net.IP{1, 2})
	cs.Ports["http"] = &ServicePort{Protocol: TCP, Port: 80, NodePort: 30080}
	cs.Backends["http"] = []*ServiceBackend{{IP: net.ParseIP("10.1.1.2"), Port: 8080, Local: true, HostNetwork: true}}
	if !cs.HasNodePort() || NewContivService().HasNodePort() {
		t.Error("HasNodePort")
	}
	if TCP != 6 || UDP != 17 || ClusterWide != 0 || NodeLocal != 1 {
		t.Error("constants")
	}
	for want, got := range map[string]string{
		"TCP": TCP.String(), "UDP": UDP.String(), "SCTP": SCTP.String(), "INVALID": ProtocolType(1).String(),
		"Cluster-wide": ClusterWide.String(), "Node-local": NodeLocal.String(),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, part := range []string{
		"default/web", "Node-local", "60", "{10.96.0.1}", "{203.0.113.1, fd00::1}", "TCP:80(node:30080)",
		"10.1.1.2:8080 local host-network",
	} {
		if !strings.Contains(cs.String(), part) {
			t.Errorf("%s has no %s", cs, part)
		}
	}
	set := cs.ExternalIPs.Copy()
	if len(set.List()) != 2 || !set.Has(net.ParseIP("203.0.113.1")) || set.Has(net.ParseIP("1.2.3.4")) || set.Has(nil) {
		t.Errorf("set %s", set)
	}
	ifs := NewInterfaces("b", "a")
	other := ifs.Copy()
	other["c"] = struct{}{}
	if !ifs.Has("a") || ifs.Has("c") || ifs.String() != "{a, b}" {
		t.Errorf("interfaces %s", ifs)
	}
	ev := NewResyncEventData()
	ev.Services = append(ev.Services, cs)
	if !strings.Contains(ev.String(), cs.String()) || !strings.Contains((&ResyncEventData{}).String(), "NodeIPs:{}") {
		t.Errorf("resync %s", ev)
	}
}

// TestSelectWithDocumentedFieldsOnly checks that a service without the additional fields has the same meaning as before.
func TestSelectWithDocumentedFieldsOnly(t *testing.T) {
	cs := NewContivService()
	local, remote := &ServiceBackend{IP: net.ParseIP("10.1.1.2"), Local: true}, &ServiceBackend{IP: net.ParseIP("10.1.2.2")}
	cs.Backends["a"] = []*ServiceBackend{local, remote}
	cs.Backends["b"] = []*ServiceBackend{remote}
	for _, c := range []struct {
		port    string
		policy  TrafficPolicyType
		ipv6    bool
		n       int
		verdict Verdict
	}{
		{"a", ClusterWide, false, 2, Balance}, {"a", NodeLocal, false, 1, Balance}, {"a", ClusterWide, true, 0, Reject},
		{"b", NodeLocal, false, 0, Drop}, {"c", NodeLocal, false, 0, Reject}, {"c", ClusterWide, false, 0, Reject},
	} {
		backends, verdict := cs.Select(c.port, c.policy, c.ipv6)
		if len(backends) != c.n || verdict != c.verdict {
			t.Errorf("%+v: %d backends, %s", c, len(backends), verdict)
		}
	}
}

// TestEqual checks that every field counts, including fields that are added later.
func TestEqual(t *testing.T) {
	full := func() *ContivService {
		return &ContivService{
			ID: svcmodel.ID{Name: "a", Namespace: "b"}, TrafficPolicy: NodeLocal, SessionAffinityTimeout: 1,
			ClusterIPs: FromAddrs(netip.MustParseAddr("10.0.0.1")), ExternalIPs: FromAddrs(netip.MustParseAddr("10.0.0.2")),
			Ports: map[string]*ServicePort{"p": {TCP, 1, 2}},
			Backends: map[string][]*ServiceBackend{"p": {{IP: net.IP{10, 0, 0, 3}, Port: 4, Local: true,
				HostNetwork: true}}},
			OtherBackends: OtherBackends{
				LocalPolicyBackends: map[string][]*ServiceBackend{"p": {{IP: net.IP{10, 0, 0, 8}, Port: 4, Local: true}}},
				KeptBackends:        map[string][]*ServiceBackend{"p": {{IP: net.IP{10, 0, 0, 9}, Port: 4}}},
			},
			InternalTrafficPolicy: NodeLocal, LoadBalancerIPs: FromAddrs(netip.MustParseAddr("10.0.0.4")),
			LoadBalancerSourceRanges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, SourceRangesSet: true,
			HealthCheckNodePort: 5, Reachable: map[string]Families{"p": FamilyIPv4},
			Lost: []Frontend{{netip.MustParseAddr("10.0.0.6"), 7, TCP}},
		}
	}
	if !full().Equal(full()) {
		t.Fatal("equal services are not")
	}
	differ := func(what string, field func(*ContivService) reflect.Value) {
		t.Helper()
		a, b := full(), full()
		f := field(b)
		if f.IsZero() {
			t.Errorf("%s is not set in this test: set it", what)
		}
		f.SetZero()
		if a.Equal(b) || b.Equal(a) {
			t.Errorf("%s does not count", what)
		}
	}
	for i := range reflect.TypeFor[ContivService]().NumField() {
		differ(reflect.TypeFor[ContivService]().Field(i).Name, func(cs *ContivService) reflect.Value {
			return reflect.ValueOf(cs).Elem().Field(i)
		})
	}
	for i := range reflect.TypeFor[OtherBackends]().NumField() {
		differ(reflect.TypeFor[OtherBackends]().Field(i).Name, func(cs *ContivService) reflect.Value {
			return reflect.ValueOf(&cs.OtherBackends).Elem().Field(i)
		})
	}
	for i := range reflect.TypeFor[ServiceBackend]().NumField() {
		differ(reflect.TypeFor[ServiceBackend]().Field(i).Name, func(cs *ContivService) reflect.Value {
			return reflect.ValueOf(cs.Backends["p"][0]).Elem().Field(i)
		})
	}
	for i := range reflect.TypeFor[ServicePort]().NumField() {
		differ(reflect.TypeFor[ServicePort]().Field(i).Name, func(cs *ContivService) reflect.Value {
			return reflect.ValueOf(cs.Ports["p"]).Elem().Field(i)
		})
	}
}
