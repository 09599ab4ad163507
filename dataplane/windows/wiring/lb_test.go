package wiring

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

func group(port uint32, addrs ...string) *proto.BalancedGroup {
	g := &proto.BalancedGroup{Ports: []uint32{port}}
	for _, a := range addrs {
		g.Addresses = append(g.Addresses, netip.MustParseAddr(a).AsSlice()...)
	}
	return g
}

func frontend(addr string, port uint32, source proto.BalancedFrontend_Source, change ...func(*proto.BalancedFrontend)) *proto.BalancedFrontend {
	f := &proto.BalancedFrontend{Address: netip.MustParseAddr(addr).AsSlice(), Port: port, Source: source}
	for _, c := range change {
		c(f)
	}
	return f
}

// balanced describes the load balancers that HNS gets for a service with local pod 10.1.1.11 (fd00:1::11) and one pod on another node.
func balanced(t *testing.T, features hcn.Features, s *proto.BalancedServiceUpdate) string {
	t.Helper()
	host := hnsmem.New()
	host.SetFeatures(hns.Features{AddressLists: true, PortRanges: true}, features)
	r := newRig(t, host)
	network := overlay()
	if r.noIPv6 = !s.GetPorts()[0].GetIpv6(); !r.noIPv6 {
		network = bridge()
	}
	r.must(r.commit(txn.FullResync, network, r.pod(1)))
	s.Namespace, s.Name = "default", "s"
	r.must(r.commit(txn.Update, kv(nb.DriverServicePrefix+"default/s", s)))
	names := map[string]string{}
	for _, e := range r.endpoints() {
		names[e.ID] = e.IPConfigurations[0].IPAddress
	}
	list, err := host.V2().ListLoadBalancers()
	r.must(err)
	var lines []string
	for _, lb := range list {
		at := "node"
		if len(lb.FrontendVIPs) > 0 {
			at = strings.Join(lb.FrontendVIPs, ",")
		}
		var to []string
		for _, id := range lb.HostComputeEndpoints {
			to = append(to, names[id])
		}
		slices.Sort(to)
		m := lb.PortMappings[0]
		line := fmt.Sprintf("%s proto %d port %d to %s:%d", at, m.Protocol, m.ExternalPort, strings.Join(to, ","), m.InternalPort)
		for _, flag := range []struct {
			is   bool
			text string
		}{{lb.Flags&hcn.LBFlagDSR != 0, "dsr"}, {lb.Flags&hcn.LBFlagIPv6 != 0, "ipv6"}, {m.Flags&hcn.LBPortPreserveDIP != 0, "preserve"},
			{m.Flags&hcn.LBPortLocalRoutedVIP != 0, "node-too"}, {m.DistributionType == hcn.LBDistributeSourceIP, "sticky"}} {
			if flag.is {
				line += " " + flag.text
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestLoadBalancers: HNS gets the right load balancers for each kind of service.
func TestLoadBalancers(t *testing.T) {
	newest, err := hnsmem.New().V2().Features()
	if err != nil {
		t.Fatal(err)
	}
	oldest := hcn.Features{RemoteSubnet: true, HostRoute: true, IPv6DualStack: true}
	const here, there, node = "10.1.1.11", "10.1.9.9", "192.0.2.1"
	port := func(protocol uint32, frontends ...*proto.BalancedFrontend) *proto.BalancedPort {
		return &proto.BalancedPort{Protocol: protocol, Frontends: frontends, Everywhere: group(8080, here, there), Here: group(8080, here)}
	}
	service := func(p ...*proto.BalancedPort) *proto.BalancedServiceUpdate {
		return &proto.BalancedServiceUpdate{Ports: p}
	}
	clusterIP := frontend("10.96.0.80", 80, proto.BalancedFrontend_CLUSTER)
	sticky := service(port(6, clusterIP))
	sticky.AffinitySeconds = 100
	mixed := port(6, clusterIP)
	mixed.Everywhere.Ports = []uint32{8080, 9090}
	nowhere := port(6, clusterIP)
	nowhere.Everywhere = &proto.BalancedGroup{Verdict: proto.BalancedGroup_REJECT}
	v6 := &proto.BalancedPort{Protocol: 6, Ipv6: true, Everywhere: group(8080, "fd00:1::11", "fd00:9::9"),
		Frontends: []*proto.BalancedFrontend{frontend("fd96::80", 80, proto.BalancedFrontend_CLUSTER)}}
	for name, tc := range map[string]struct {
		features hcn.Features
		service  *proto.BalancedServiceUpdate
		want     string
	}{
		"cluster IP": {newest, service(port(6, clusterIP)), "10.96.0.80 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too"},
		"UDP":        {newest, service(port(17, clusterIP)), "10.96.0.80 proto 17 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too"},
		"TCP and UDP": {newest, service(port(6, clusterIP), port(17, clusterIP)),
			"10.96.0.80 proto 17 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too\n10.96.0.80 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too"},
		"SCTP": {newest, service(port(132, clusterIP)), ""},
		"IPv6": {newest, service(v6), "fd96::80 proto 6 port 80 to 10.1.1.11,fd00:9::9:8080 dsr ipv6 node-too"},
		"internalTrafficPolicy Local": {newest, service(port(6, frontend("10.96.0.80", 80, proto.BalancedFrontend_CLUSTER,
			func(f *proto.BalancedFrontend) { f.HereOnly = true }))), "10.96.0.80 proto 6 port 80 to 10.1.1.11:8080 dsr preserve"},
		"node port": {newest, service(port(6, frontend(node, 30080, proto.BalancedFrontend_EXTERNAL))),
			"node proto 6 port 30080 to 10.1.1.11,10.1.9.9:8080 dsr"},
		"node port, externalTrafficPolicy Local": {newest, service(port(17, frontend(node, 30080, proto.BalancedFrontend_EXTERNAL_LOCAL))),
			"node proto 17 port 30080 to 10.1.1.11:8080 dsr preserve"},
		"external IP": {newest, service(port(6, frontend("203.0.113.5", 80, proto.BalancedFrontend_EXTERNAL))),
			"203.0.113.5 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too"},
		"external IP, externalTrafficPolicy Local": {newest, service(port(6, frontend("203.0.113.5", 80, proto.BalancedFrontend_EXTERNAL_LOCAL))),
			"203.0.113.5 proto 6 port 80 to 10.1.1.11:8080 dsr preserve"},
		"restricted": {newest, service(port(6, frontend("203.0.113.5", 80, proto.BalancedFrontend_EXTERNAL,
			func(f *proto.BalancedFrontend) { f.Restricted = true }))), ""},
		"session affinity":           {newest, sticky, "10.96.0.80 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too sticky"},
		"an old Windows":             {oldest, sticky, "10.96.0.80 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 node-too"},
		"backends of several ports":  {newest, service(mixed), ""},
		"no backend":                 {newest, service(nowhere), ""},
		"cluster IP and a node port": {newest, service(port(6, clusterIP, frontend(node, 30080, proto.BalancedFrontend_EXTERNAL))), "10.96.0.80 proto 6 port 80 to 10.1.1.11,10.1.9.9:8080 dsr node-too\nnode proto 6 port 30080 to 10.1.1.11,10.1.9.9:8080 dsr"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := balanced(t, tc.features, tc.service); got != tc.want {
				t.Errorf("HNS has\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestUnknownJSON: objects of another program with unknown settings do no harm, and a pod's unreadable settings are written again.
func TestUnknownJSON(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.noIPv6 = true
	r.must(r.commit(txn.FullResync, overlay(), r.pod(1), service("a", 1, podAddr(1))))
	r.w.HCN = wrongBackend{r.host.V2()}
	if err := r.commit(txn.FullResync, overlay(), r.pod(1), service("a", 1, podAddr(1))); err != nil {
		t.Errorf("resync beside objects of another program: %v", err)
	}
	r.must(r.leads("10.96.0.1", podAddr(1)))
	r.w.HCN = garbler{r.host.V2()}
	r.host.Calls()
	r.must(r.commit(txn.FullResync, overlay(), r.pod(1), service("a", 1, podAddr(1))))
	if !slices.ContainsFunc(r.host.Calls(), func(c hnsmem.Call) bool { return c.Op == "UpdateEndpointPolicies" }) {
		t.Error("settings of a pod's endpoint are unreadable, and nothing writes them")
	}
}

// garbler is an HNS whose endpoints' settings are unreadable.
type garbler struct{ hnsmem.V2 }

func (g garbler) ListEndpoints() ([]hcn.Endpoint, error) {
	list, err := g.V2.ListEndpoints()
	for _, e := range list {
		for i := range e.Policies {
			e.Policies[i].Settings = []byte(`[`)
		}
	}
	return list, err
}

// wrongBackend is an HNS that lists objects that were never made.
type wrongBackend struct{ hnsmem.V2 }

func (l wrongBackend) ListNetworks() ([]hcn.Network, error) {
	list, err := l.V2.ListNetworks()
	return append(list, hcn.Network{ID: "x", Name: "other", Type: "Quantum", Policies: []hcn.Policy{{Type: "New", Settings: []byte(`[1,{"a":null}]`)}}}), err
}

func (l wrongBackend) ListEndpoints() ([]hcn.Endpoint, error) {
	list, err := l.V2.ListEndpoints()
	return append(list, hcn.Endpoint{ID: "y", Name: PodPrefix + "of another network", HostComputeNetwork: "x"},
		hcn.Endpoint{ID: "z", HostComputeNetwork: list[0].HostComputeNetwork, IPConfigurations: []hcn.IPConfig{{IPAddress: "nonsense"}},
			Policies: []hcn.Policy{{Type: hcn.TypeOutBoundNAT, Settings: []byte(`"text"`)}}}), err
}

func (l wrongBackend) ListLoadBalancers() ([]hcn.LoadBalancer, error) {
	list, err := l.V2.ListLoadBalancers()
	return append(list, hcn.LoadBalancer{ID: "w"}, hcn.LoadBalancer{ID: "v", HostComputeEndpoints: []string{"y"}, PortMappings: []hcn.LBPortMapping{{}}}), err
}
