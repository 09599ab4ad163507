package processor

import (
	"fmt"
	"testing"

	"contiv.dev/vswitch/internal/kube/model"
)

// TestObjectsThatCannotBe: objects that the API server rejects may come from a relay, a file or the status that a load balancer writes.
// Addresses with another meaning are not used, numbers are not truncated, and of two ports with the same name the first one counts.
func TestObjectsThatCannotBe(t *testing.T) {
	p, r, health := newTest(t, Config{})
	must := must(t)
	s := clusterIP("s")
	s.Type, s.ExternalLocal, s.HealthCheckNodePort = model.Service_LOAD_BALANCER, true, 65536+31000
	s.ClusterIps = []string{"10.96.0.1", "::", "nonsense"}
	s.ExternalIps = []string{"127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "fe80::1", "192.0.2.1"}
	for _, ip := range []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "::1", "192.0.2.2"} {
		s.Ingress = append(s.Ingress, &model.Ingress{Ip: ip})
	}
	s.Ports = []*model.ServicePort{
		{Name: "a", Port: 80, NodePort: 30000}, {Name: "a", Port: 81, Protocol: model.Protocol_UDP}, {Name: "b", Port: 65536 + 22},
		{Name: "c", Port: 82, NodePort: 65536 + 22},
	}
	must(p.UpdateService(s))
	must(p.UpdateSlice(nil, slice("e", "s", false, []*model.EndpointPort{
		{Name: "a", Port: 8080}, {Name: "a"}, {Name: "a", Port: 65536 + 22}, {Name: "a", Port: 8081, Protocol: model.Protocol_UDP},
	}, ep{addr: "10.1.1.2", cond: ready, node: thisNode}, ep{addr: "127.0.0.1", cond: ready}, ep{addr: "0.0.0.0", cond: ready},
		ep{addr: "169.254.1.1", cond: ready}, ep{addr: "255.255.255.255", cond: ready})))
	got := r.Services[id("s")]
	if text := fmt.Sprint(got.ClusterIPs, got.ExternalIPs, got.LoadBalancerIPs); text != "{10.96.0.1} {192.0.2.1, 192.0.2.2} {192.0.2.2}" {
		t.Errorf("addresses %s", text)
	}
	if len(got.Ports) != 1 || got.Ports["a"].Port != 80 {
		t.Errorf("ports %v", got.Ports)
	}
	if b := texts(got.Backends["a"]); len(got.Backends) != 1 || len(b) != 1 || b[0] != "10.1.1.2:8080 local" {
		t.Errorf("backends %v", b)
	}
	if len(health) > 0 {
		t.Errorf("health checks at %v", health)
	}
}
