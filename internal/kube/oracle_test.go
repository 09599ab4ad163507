package kube

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/rendertest"
)

// oracleCase is a line of testdata/services.json.gz: the result of kube-proxy's own code (v1.36.3) for a service.
// testdata/oracle has the program that made it.
type oracleCase struct {
	Node, Zone string
	Service    *corev1.Service
	Slices     []*discoveryv1.EndpointSlice
	Want       map[string]map[string]*oraclePort // by family and port

	HealthCheckPort, LocalEndpoints int
}

type oraclePort struct {
	Cluster, Local             []string
	HasAny                     bool
	UsesCluster, UsesLocal     bool
	ClusterIP                  string
	NodePort                   int
	ExternalIPs, LoadBalancers []string
	SourceRanges               []string
	Sticky                     int
	ExternalLocal              bool
	InternalLocal              bool
}

type oracleHealth struct{ port, local int }

func (h *oracleHealth) Set(_ svcmodel.ID, port uint16, local int) { h.port, h.local = int(port), local }
func (h *oracleHealth) Delete(svcmodel.ID)                        { *h = oracleHealth{} }

// TestAsKubeProxy checks that API objects, converted and processed, are served as kube-proxy serves them.
func TestAsKubeProxy(t *testing.T) {
	f, err := os.Open("testdata/services.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for in := json.NewDecoder(z); ; n++ {
		var c oracleCase
		if err := in.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		check(t, n, &c)
		if t.Failed() {
			text, _ := json.MarshalIndent(c, "", " ")
			t.Fatalf("case %d: %s", n, text)
		}
	}
	if n < 3000 {
		t.Errorf("only %d cases", n)
	}
}

func check(t *testing.T, n int, c *oracleCase) {
	health := &oracleHealth{}
	p, r := processor.New(processor.Config{NodeName: c.Node}, health), rendertest.New(t)
	p.RegisterRenderer(r)
	in := &interner{}
	_, err := p.SetZone(c.Zone)
	for _, s := range c.Slices {
		if m := in.convertSlice(s); m != nil {
			_, sliceErr := p.UpdateSlice(nil, m)
			err = errors.Join(err, sliceErr)
		}
	}
	_, serviceErr := p.UpdateService(convertService(c.Service))
	if err := errors.Join(err, serviceErr); err != nil {
		t.Fatal(err)
	}
	value := r.Services[svcmodel.ID{Namespace: "ns", Name: "svc"}]
	if (value == nil) != (len(c.Want) == 0) {
		t.Fatalf("case %d: rendered %v, kube-proxy has %d families", n, value, len(c.Want))
	}
	if value == nil {
		return
	}
	for _, ipv6 := range []bool{false, true} {
		family := map[bool]string{false: "IPv4", true: "IPv6"}[ipv6]
		for port, want := range c.Want[family] {
			checkPort(t, value, port, ipv6, want)
		}
	}
	if health.port != c.HealthCheckPort || health.local != c.LocalEndpoints {
		t.Errorf("health check %v, want port %d, %d local endpoints", *health, c.HealthCheckPort, c.LocalEndpoints)
	}
}

func checkPort(t *testing.T, value *renderer.ContivService, port string, ipv6 bool, want *oraclePort) {
	external := want.NodePort != 0 || len(want.ExternalIPs)+len(want.LoadBalancers) > 0
	compare := func(what string, policy renderer.TrafficPolicyType, wantEps []string) {
		backends, verdict := value.Select(port, policy, ipv6)
		got := []string{}
		for _, b := range backends {
			got = append(got, net.JoinHostPort(b.IP.String(), strconv.Itoa(int(b.Port))))
		}
		slices.Sort(got)
		wantVerdict := renderer.Balance
		switch {
		case len(wantEps) > 0:
		case want.HasAny:
			wantVerdict = renderer.Drop
		default:
			wantVerdict = renderer.Reject
		}
		if !slices.Equal(got, wantEps) || verdict != wantVerdict {
			t.Errorf("%s IPv6=%t %s: %q %s, kube-proxy has %q %s", port, ipv6, what, got, verdict, wantEps, wantVerdict)
		}
	}
	if want.InternalLocal {
		compare("internal", value.InternalTrafficPolicy, want.Local)
	} else {
		compare("internal", value.InternalTrafficPolicy, want.Cluster)
	}
	if external {
		compare("short circuit", renderer.ClusterWide, want.Cluster)
		if want.ExternalLocal {
			compare("external", value.TrafficPolicy, want.Local)
		} else {
			compare("external", value.TrafficPolicy, want.Cluster)
		}
	}
	if got := value.Ports[port]; got == nil || int(got.NodePort) != want.NodePort {
		t.Errorf("port %s is %v, want node port %d", port, got, want.NodePort)
	}
	if !value.ClusterIPs.Contains(netip.MustParseAddr(want.ClusterIP)) || int(value.SessionAffinityTimeout) != want.Sticky {
		t.Errorf("cluster IPs %s, sticky %d, want %s, %d", value.ClusterIPs, value.SessionAffinityTimeout, want.ClusterIP,
			want.Sticky)
	}
	checkAddrs(t, "load balancers", value.LoadBalancerIPs, ipv6, want.LoadBalancers)
	all := slices.Sorted(slices.Values(slices.Concat(want.ExternalIPs, want.LoadBalancers)))
	checkAddrs(t, "external IPs", value.ExternalIPs, ipv6, all)
	if len(want.LoadBalancers) == 0 {
		return
	}
	ranges, restricted := value.SourceRanges(ipv6)
	var got []string
	for _, p := range ranges {
		got = append(got, p.String())
	}
	// If source ranges exist only for another family, no source is allowed here; kube-proxy allows all
	// (renderer.SourceRanges).
	if !slices.Equal(got, want.SourceRanges) || (!restricted && len(want.SourceRanges) > 0) {
		t.Errorf("source ranges %q %t, want %q", got, restricted, want.SourceRanges)
	}
}

func checkAddrs(t *testing.T, what string, set *renderer.IPAddresses, ipv6 bool, want []string) {
	var got []string
	for _, addr := range set.Addrs() {
		if addr.Is6() == ipv6 {
			got = append(got, addr.String())
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s %q, want %q", what, got, want)
	}
}
