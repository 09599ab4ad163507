package wiring

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/txn"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
)

// failedKeys returns the keys of the values that an error is about.
func failedKeys(err error) (keys []string) {
	var failed *txn.Error
	if errors.As(err, &failed) {
		for _, f := range failed.Failed {
			keys = append(keys, f.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestOneOwnerPerFrontend: of two services with the same frontend, the second one has an error and keeps its other frontends, and takes over
// the frontend when the first service is removed.
func TestOneOwnerPerFrontend(t *testing.T) {
	r := newRig(t, hnsmem.New())
	a, b := service("a", 1, podAddr(1)), service("b", 1, podAddr(2))
	ports := b.Value.(*proto.BalancedServiceUpdate).Ports
	ports[0].Frontends = append(ports[0].Frontends, frontend("10.96.0.2", 80, proto.BalancedFrontend_CLUSTER))
	r.must(r.commit(txn.FullResync, bridge(), r.pod(1), r.pod(2), a))
	err := r.commit(txn.Update, b)
	if keys := failedKeys(err); len(keys) != 1 || keys[0] != b.Key || !strings.Contains(err.Error(), "TCP port 80 of 10.96.0.1 is the load balancer of service default/a") {
		t.Errorf("two services with one frontend: %v", err)
	}
	for range 2 {
		r.must(r.leads("10.96.0.1", podAddr(1)))
		r.must(r.leads("10.96.0.2", podAddr(2)))
		// Pods that change meanwhile are not affected; a resync has the same result.
		r.must(r.commit(txn.Update, r.pod(3)))
		if keys := failedKeys(r.commit(txn.FullResync, bridge(), r.pod(1), r.pod(2), a, b)); len(keys) != 1 || keys[0] != b.Key {
			t.Errorf("a resync: failed %v", keys)
		}
	}
	r.must(r.commit(txn.Update, removed(a)))
	r.must(r.leads("10.96.0.1", podAddr(2)))
	r.eventually("the error is over", func() error { return r.commit(txn.FullResync, bridge(), r.pod(1), r.pod(2), b) })
	r.must(r.commit(txn.Update, removed(b)))
	if strings.Contains(r.state(), "FrontendVIPs") {
		t.Errorf("no service, and HNS has\n%s", r.state())
	}
}

// TestOneOwnerOfANodePort: HNS has one load balancer for a port at all addresses of the node.
func TestOneOwnerOfANodePort(t *testing.T) {
	r := newRig(t, hnsmem.New())
	r.w.NodeAddresses = func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.101")}, nil
	}
	r.must(r.commit(txn.FullResync, bridge(), r.pod(1)))
	at := func(name, address string) txn.KV {
		s := service(name, 1, podAddr(1))
		s.Value.(*proto.BalancedServiceUpdate).Ports[0].Frontends[0] = frontend(address, 80, proto.BalancedFrontend_EXTERNAL)
		return s
	}
	r.must(r.commit(txn.Update, at("a", "192.0.2.1")))
	err := r.commit(txn.Update, at("b", "192.0.2.101"))
	if keys := failedKeys(err); len(keys) != 1 || !strings.Contains(err.Error(), "TCP port 80 of each address of the node is the load balancer of service default/a") {
		t.Errorf("%v", err)
	}
}

// TestFailedServiceGoes: the objects in HNS of a service that failed in part are removed with the service, and the missing ones are not
// created later.
func TestFailedServiceGoes(t *testing.T) {
	r := newRig(t, hnsmem.New())
	s := service("a", 1, podAddr(1))
	ports := s.Value.(*proto.BalancedServiceUpdate).Ports
	ports[0].Frontends = append(ports[0].Frontends, frontend("10.96.0.2", 80, proto.BalancedFrontend_CLUSTER))
	r.must(r.commit(txn.FullResync, bridge(), r.pod(1)))
	first := true
	r.host.Hook(func(c hnsmem.Call) error {
		if c.Op != "CreateLoadBalancer" || first {
			first = first && c.Op != "CreateLoadBalancer"
			return nil
		}
		return errors.New("no luck")
	})
	if err := r.commit(txn.Update, s); err == nil {
		t.Error("HNS takes one of two load balancers, and there is no error")
	}
	r.must(r.leads("10.96.0.1", podAddr(1)))
	r.must(r.commit(txn.Update, removed(s)))
	r.host.Hook(nil)
	r.must(r.commit(txn.Update, service("other", 9, podAddr(1))))
	if state := r.state(); strings.Contains(state, `"10.96.0.1"`) || strings.Contains(state, `"10.96.0.2"`) || strings.Count(state, "FrontendVIPs") != 1 {
		t.Errorf("the service has gone, and HNS has\n%s", state)
	}
	if _, is := r.w.desired[nb.DriverServicePrefix+"default/a"]; is {
		t.Error("the service has gone, and is still wanted")
	}
}
