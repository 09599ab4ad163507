package processor

import (
	"slices"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestKeptBackends checks which endpoints keep their connections without getting new ones: those of UDP and SCTP ports that still serve but
// are not chosen, because they terminate or hints prefer others.
func TestKeptBackends(t *testing.T) {
	endpoints := []ep{{addr: "10.1.0.1", cond: ready, zones: "a"}, {addr: "10.1.0.2", cond: ready, zones: "b", node: thisNode},
		{addr: "10.1.0.3", cond: terminating}, {addr: "10.1.0.4", cond: gone}, {addr: "10.1.0.5", cond: unready},
		{addr: "10.1.0.6", cond: model.CondServing}}
	for _, c := range []struct {
		name       string
		protocol   model.Protocol
		zone       string
		none       bool // no endpoint is ready
		local      bool // internalTrafficPolicy
		want, kept []string
	}{
		{name: "one terminates", protocol: model.Protocol_UDP, want: []string{"10.1.0.1:53", "10.1.0.2:53 local"},
			kept: []string{"10.1.0.3:53", "10.1.0.6:53"}},
		{name: "SCTP", protocol: model.Protocol_SCTP, want: []string{"10.1.0.1:53", "10.1.0.2:53 local"},
			kept: []string{"10.1.0.3:53", "10.1.0.6:53"}},
		{name: "TCP connections stay in any case", protocol: model.Protocol_TCP, want: []string{"10.1.0.1:53", "10.1.0.2:53 local"}},
		{name: "hints for another zone", protocol: model.Protocol_UDP, zone: "b", want: []string{"10.1.0.2:53 local"},
			kept: []string{"10.1.0.1:53", "10.1.0.3:53", "10.1.0.6:53"}},
		{name: "none is ready", protocol: model.Protocol_UDP, none: true, want: []string{"10.1.0.3:53"}, kept: []string{"10.1.0.6:53"}},
		{name: "endpoints of other nodes", protocol: model.Protocol_UDP, local: true, want: []string{"10.1.0.2:53 local"},
			kept: []string{"10.1.0.1:53", "10.1.0.3:53", "10.1.0.6:53"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, r, _ := newTest(t, Config{})
			must := must(t)
			p.zone = c.zone
			s := clusterIP("dns")
			s.InternalLocal = c.local
			s.Ports = []*model.ServicePort{{Name: "dns", Port: 53, Protocol: c.protocol}}
			must(p.UpdateService(s))
			eps := endpoints
			if c.none {
				eps = endpoints[2:]
			}
			must(p.UpdateSlice(nil, slice("a", "dns", false, []*model.EndpointPort{{Name: "dns", Port: 53, Protocol: c.protocol}}, eps...)))
			got := r.Services[id("dns")]
			if list := texts(got.Backends["dns"]); !slices.Equal(list, c.want) {
				t.Errorf("backends %v, want %v", list, c.want)
			}
			if list := texts(got.KeptBackends["dns"]); !slices.Equal(list, append([]string{}, c.kept...)) {
				t.Errorf("kept %v, want %v", list, c.kept)
			}
		})
	}
}

// TestKeptBeside checks which backends of a port keep connections beside those that get new ones under a policy.
func TestKeptBeside(t *testing.T) {
	p, r, _ := newTest(t, Config{})
	must := must(t)
	s := clusterIP("dns")
	s.Ports = []*model.ServicePort{{Name: "dns", Port: 53, Protocol: model.Protocol_UDP, NodePort: 30053}}
	s.ExternalLocal = true
	must(p.UpdateService(s))
	must(p.UpdateSlice(nil, slice("a", "dns", false, []*model.EndpointPort{{Name: "dns", Port: 53, Protocol: model.Protocol_UDP}},
		ep{addr: "10.1.0.1", cond: ready}, ep{addr: "10.1.0.2", cond: terminating, node: thisNode}, ep{addr: "10.1.0.3", cond: terminating})))
	got := r.Services[id("dns")]
	for policy, want := range map[renderer.TrafficPolicyType][]string{
		renderer.ClusterWide: {"10.1.0.2:53 local", "10.1.0.3:53"}, renderer.NodeLocal: {"10.1.0.1:53", "10.1.0.3:53"},
	} {
		selected, _ := got.Select("dns", policy, false)
		if list := texts(got.KeptBeside("dns", false, selected)); !slices.Equal(list, want) {
			t.Errorf("%s: beside %v: %v, want %v", policy, texts(selected), list, want)
		}
	}
	if list := got.KeptBeside("dns", true); len(list) > 0 {
		t.Errorf("IPv6: %v", texts(list))
	}
}
