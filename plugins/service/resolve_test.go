package service

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
	"contiv.dev/vswitch/plugins/controller/api"
)

// TestResolve checks the treatment of a packet to a service, and the reason.
func TestResolve(t *testing.T) {
	p, _, h := newPlugin(t, &fakeNode{})
	with := func(name, ip string, change func(*model.Service)) *model.Service {
		s := service(name)
		s.ClusterIps, s.Ports[0].NodePort = []string{ip}, 0
		change(s)
		return s
	}
	nodePort := with("web", "10.96.0.1", func(s *model.Service) { s.Ports[0].NodePort = 30000 })
	local := with("local", "10.96.0.2", func(s *model.Service) { s.InternalLocal = true })
	none := with("none", "10.96.0.3", func(*model.Service) {})
	lb := with("lb", "10.96.0.4", func(s *model.Service) {
		s.Type, s.SourceRanges, s.SourceRangesSet = model.Service_LOAD_BALANCER, []string{"198.51.100.0/24"}, true
		s.Ingress = []*model.Ingress{{Ip: "203.0.113.9"}}
	})
	if err := p.Resync(api.NewDBResync(), data(nodePort, local, none, lb, kubeNode("n1", "z"), slice("w", "web", "10.1.1.2@n1",
		"10.1.2.2@n2"), slice("l", "local", "10.1.2.2@n2"), slice("b", "lb", "10.1.2.2@n2")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ query, status, want string }{
		{"address=10.96.0.1&port=80", "200", `"service":"ns/web","portName":"http","as":"cluster IP"`},
		{"address=10.96.0.1&port=80", "200", `"backends":[{"address":"10.1.1.2:8080","local":true},{"address":"10.1.2.2:8080"}]`},
		{"address=192.0.2.1&port=30000&source=10.1.1.9", "200", `"as":"node port","policy":"Cluster-wide","verdict":"balance"`},
		{"address=10.96.0.2&port=80", "200", `"why":"its internalTrafficPolicy is Local, and node n1 has no endpoint of it"`},
		{"address=10.96.0.3&port=80", "200", `"verdict":"reject","why":"it has no ready endpoint for IPv4"`},
		{"address=203.0.113.9&port=80&source=10.1.1.9", "200", `10.1.1.9 is in none of its loadBalancerSourceRanges`},
		{"address=203.0.113.9&port=80&source=198.51.100.7", "200", `"verdict":"balance"`},
		{"address=10.96.0.1&port=81", "404", `no service has port 81/TCP at 10.96.0.1; there are 80/TCP (ns/web)`},
		{"address=10.96.9.9&port=81", "404", `no service has port 81/TCP at 10.96.9.9"`},
		{"address=10.96.0.1&port=0", "400", `port \"0\"`},
		{"address=web&port=80", "400", "address"},
		{"address=10.96.0.1&port=80&protocol=icmp", "400", "use tcp"},
	} {
		if !strings.Contains(tc.query, "protocol") {
			tc.query += "&protocol=tcp"
		}
		w := httptest.NewRecorder()
		h[ResolvePath](w, httptest.NewRequest(http.MethodGet, ResolvePath+"?"+tc.query, nil))
		var body bytes.Buffer
		if err := json.Compact(&body, w.Body.Bytes()); err != nil {
			t.Errorf("%s: %v", tc.query, err)
		}
		if got := w.Result().Status; !strings.HasPrefix(got, tc.status) || !strings.Contains(body.String(), tc.want) {
			t.Errorf("%s: %s %s; want %s", tc.query, got, &body, tc.want)
		}
	}
}

// TestResolveNodePort checks that a node port is served at the configured addresses, in the families of the service.
func TestResolveNodePort(t *testing.T) {
	p, _, h := newPlugin(t, &fakeNode{})
	p.NodePortAddresses = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/64")}
	node, web := kubeNode("n1", "z"), service("web")
	node.Addresses, web.ClusterIps, web.Ports[0].NodePort = []string{"192.0.2.1", "198.51.100.1", "2001:db8::1"},
		[]string{"10.96.0.1"}, 30000
	if err := p.Resync(api.NewDBResync(), data(node, web, slice("w", "web", "10.1.1.2@n1")), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]int{"192.0.2.1": 200, "198.51.100.1": 404, "2001:db8::1": 404} {
		w := httptest.NewRecorder()
		h[ResolvePath](w, httptest.NewRequest(http.MethodGet, ResolvePath+"?port=30000&protocol=tcp&address="+address, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s, want %d", address, w.Code, w.Body, want)
		}
	}
}
