package main

import (
	"net"
	"testing"

	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestTable checks that updates give the same table as a resync.
func TestTable(t *testing.T) {
	service := func(backends ...string) *renderer.ContivService {
		s := renderer.NewContivService()
		s.ID = renderer.ServiceID{Namespace: "ns", Name: "s"}
		s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP("10.96.0.1"))
		s.Ports["p"] = &renderer.ServicePort{Protocol: renderer.UDP, Port: 53, NodePort: 30053}
		for _, b := range backends {
			s.Backends["p"] = append(s.Backends["p"], &renderer.ServiceBackend{IP: net.ParseIP(b), Port: 5353})
		}
		return s
	}
	nodes := renderer.NewIPAddresses(net.ParseIP("192.0.2.1"))
	r, fresh := newTable(), newTable()
	for _, err := range []error{
		r.AddService(service("10.1.1.1")), r.UpdateNodePortServices(nodes, nil),
		r.UpdateService(service("10.1.1.1"), service("10.1.1.2", "10.1.2.3"), nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ev := renderer.NewResyncEventData()
	ev.Services, ev.NodeIPs = []*renderer.ContivService{service("10.1.1.2", "10.1.2.3")}, nodes
	if err := fresh.Resync(ev); err != nil {
		t.Fatal(err)
	}
	want := "ns/s 10.96.0.1:53: [10.1.1.2:5353 10.1.2.3:5353]\nns/s 192.0.2.1:30053: [10.1.1.2:5353 10.1.2.3:5353]\n"
	if r.String() != want || fresh.String() != want {
		t.Errorf("by updates\n%sby a resync\n%swant\n%s", r, fresh, want)
	}
	if err := r.UpdateService(service(), service(), nil); err != nil || r.String() != "ns/s 10.96.0.1:53: reject\nns/s 192.0.2.1:30053: reject\n" {
		t.Errorf("%v\n%s", err, r)
	}
}
