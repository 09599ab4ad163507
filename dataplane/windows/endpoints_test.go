package windataplane

import (
	"errors"
	"testing"

	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

func TestWorkloadComesAndGoes(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", 1))
	b.expectStatus("a", "up", "")
	for _, c := range [][2]string{{"1.1.1.1", "10.65.0.1"}, {"2001:db8::1", "fd00:65::1"}} {
		b.expect("in", "a", packet(c[0], c[1], 80), true)
		if !b.allowed("a", hns.Out, packet(c[0], c[1], 80)) {
			t.Error("out")
		}
	}
	b.writes()
	b.must(gone("a"))
	if w := b.writes(); len(w) > 0 || len(b.status) > 0 {
		t.Errorf("after the workload and its endpoint went: calls %v, status %v", w, b.status)
	}
	b.must(gone("a"), gone("never heard of"))
}

// TestEndpointWithoutWorkloadIsClosed: an endpoint that a container uses is closed before its workload is announced, and after the workload is
// removed.
func TestEndpointWithoutWorkloadIsClosed(t *testing.T) {
	b := newBench(t, both)
	b.noPods = true
	id, err := b.host.Pod("contiv", "a", addr("10.65.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	b.pods["a"] = id
	b.must(openProfile())
	b.expect("not announced", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
	b.must(endpoint("a", 1))
	b.expect("announced", "a", packet("1.1.1.1", "10.65.0.1", 80), true)
	b.must(gone("a"))
	b.expect("gone", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
	if b.allowed("a", hns.Out, packet("1.1.1.1", "10.65.0.1", 80)) {
		t.Error("gone, and it may still send")
	}
	closed := closedRules(b.host.V1().SupportedFeatures())
	if signature(closed) != b.rules("a") {
		t.Errorf("closedRules are not what the driver writes:\n%s", b.rules("a"))
	}
}

func TestUnknownEndpointDoesNotStarveOthers(t *testing.T) {
	b := newBench(t, both)
	b.noPods = true
	id, err := b.host.Pod("contiv", "b", addr("10.65.0.2"), addr("fd00:65::2"))
	if err != nil {
		t.Fatal(err)
	}
	b.pods["b"] = id
	if err := b.step(openProfile(), endpoint("a", 1), endpoint("b", 2)); !errors.Is(err, ErrorUnknownEndpoint) {
		t.Errorf("%v, want ErrorUnknownEndpoint", err)
	}
	b.expectStatus("a", "down", "no endpoint")
	b.expectStatus("b", "up", "")
	b.expect("the other", "b", packet("1.1.1.1", "10.65.0.2", 80), true)
	if b.pods["a"], err = b.host.Pod("contiv", "a", addr("10.65.0.1")); err != nil {
		t.Fatal(err)
	}
	b.must() // no error is returned: it is retried
	b.expectStatus("a", "up", "")
}

func TestFailedUpdateDoesNotStarveOthers(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", 1), endpoint("b", 2))
	b.host.Hook(func(c hnsmem.Call) error {
		if c.Op == "ApplyACLs" && c.ID == b.pods["a"] {
			return errors.New("no luck")
		}
		return nil
	})
	if err := b.step(policy("p", tcpPort("allow", 80)), endpoint("a", 1, withTiers(ingress("p"))),
		endpoint("b", 2, withTiers(ingress("p")))); !errors.Is(err, ErrorUpdateFailed) || errors.Is(err, ErrorUnknownEndpoint) {
		t.Errorf("%v, want ErrorUpdateFailed", err)
	}
	b.expectStatus("a", "error", "no luck")
	b.expectStatus("b", "up", "")
	b.expect("the other", "b", packet("1.1.1.1", "10.65.0.2", 81), false)
	b.host.Hook(nil)
	b.must()
	b.expectStatus("a", "up", "")
	b.expect("tried again", "a", packet("1.1.1.1", "10.65.0.1", 81), false)
}

func TestEndpointThatVanishes(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", 1), policy("p", tcpPort("allow", 80)))
	b.host.Vanish(b.pods["a"])
	if err := b.step(&proto.ActiveProfileUpdate{Id: &proto.ProfileID{Name: "open"}, Profile: &proto.Profile{}}); !errors.Is(err,
		ErrorUnknownEndpoint) {
		t.Errorf("%v, want ErrorUnknownEndpoint", err)
	}
	b.expectStatus("a", "error", "does not have")
	id, err := b.host.Pod("contiv", "a", addr("10.65.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	b.pods["a"] = id // another container with the same address
	b.must()
	b.expectStatus("a", "up", "")
	b.expect("the new endpoint", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
}

func TestAdminStateAndFaults(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("a", 1, func(ep *proto.WorkloadEndpoint) { ep.State = "inactive" }))
	b.expectStatus("a", "down", "admin state")
	b.expect("down", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
	b.expect("down, from the node", "a", packet("192.0.2.1", "10.65.0.1", 80), false)
	b.must(endpoint("a", 1))
	b.expectStatus("a", "up", "")
	b.expect("from the node", "a", packet("192.0.2.1", "10.65.0.1", 80), true)
	b.must(endpoint("a", 1, func(ep *proto.WorkloadEndpoint) { ep.Ipv6Nets = append(ep.Ipv6Nets, "nonsense") }))
	b.expectStatus("a", "error", "nonsense")
	b.expect("fault", "a", packet("1.1.1.1", "10.65.0.1", 80), false)
	b.must(endpoint("n", 3, func(ep *proto.WorkloadEndpoint) { ep.Ipv4Nets, ep.Ipv6Nets = nil, nil }))
	b.expectStatus("n", "error", "no address")
}

// TestNodeReachesItsPods: kubelet's probes pass whatever policies say, also after the node's addresses change.
func TestNodeReachesItsPods(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), policy("p"), endpoint("a", 1, withTiers(ingress("p"))))
	b.expect("node", "a", packet("192.0.2.1", "10.65.0.1", 80), true)
	b.expect("another", "a", packet("192.0.2.2", "10.65.0.1", 80), false)
	b.must(&hostAddresses{})
	b.expect("address that the node has lost", "a", packet("192.0.2.1", "10.65.0.1", 80), false)
}

// TestTwoWorkloadsOfOneAddress: the workload with the lower ID has the endpoint, and the other one after the first is removed.
func TestTwoWorkloadsOfOneAddress(t *testing.T) {
	b := newBench(t, both)
	b.must(openProfile(), endpoint("b", 1), endpoint("a", 1, func(ep *proto.WorkloadEndpoint) { ep.ProfileIds = nil }))
	b.expectStatus("b", "down", "k8s/a/eth0")
	b.expect("the lower one's policy", "b", packet("1.1.1.1", "10.65.0.1", 80), false)
	b.must(gone("a"))
	b.expectStatus("b", "up", "")
	b.expect("then its own", "b", packet("1.1.1.1", "10.65.0.1", 80), true)
}

func TestHostEndpointsAreNotAvailable(t *testing.T) {
	b := newBench(t, both)
	b.must(&proto.HostEndpointUpdate{Id: &proto.HostEndpointID{EndpointId: "h"}, Endpoint: &proto.HostEndpoint{Name: "eth0"}})
	if b.status[epstate.HostID("h")] != "error" {
		t.Errorf("status %q", b.status[epstate.HostID("h")])
	}
	b.must(&proto.HostEndpointRemove{Id: &proto.HostEndpointID{EndpointId: "h"}})
	if len(b.status) > 0 {
		t.Errorf("%v", b.status)
	}
}
