package service

import (
	"net/netip"
	"slices"
	"testing"

	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync"
	"contiv.dev/vswitch/plugins/service/processor"
	"contiv.dev/vswitch/plugins/service/renderer"
)

// TestReservedNodePorts checks that ports are parsed, and that invalid ones are rejected.
func TestReservedNodePorts(t *testing.T) {
	if ports, err := ParseNodePorts(DefaultReservedNodePorts()); err != nil || len(ports) == 0 {
		t.Errorf("the default: %v, %v", ports, err)
	}
	got, err := ParseNodePorts([]string{"tcp:22", "udp:5000-5010"})
	want := []processor.NodePort{{Protocol: renderer.TCP, First: 22, Last: 22}, {Protocol: renderer.UDP, First: 5000, Last: 5010}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "22", "tcp:", "tcp:0", "tcp:65536", "tcp:9-8", "icmp:1", "tcp:1-", "tcp:1-2-3"} {
		if got, err := ParseNodePorts([]string{bad}); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// TestReservedAddresses checks that addresses and networks are parsed, and that invalid ones are rejected.
func TestReservedAddresses(t *testing.T) {
	got, err := ParseAddresses([]string{"192.0.2.1", "198.51.100.7/24", "2001:db8::1", "fd00::/8", "::ffff:192.0.2.2"})
	want := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::1/128"),
		netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.0.2.2/32")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "dns.example", "192.0.2.1/33", "fe80::1%eth0", "::ffff:192.0.2.0/120", "192.0.2.1:53"} {
		if got, err := ParseAddresses([]string{bad}); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

// TestReservedAreNotServed: services do not get the addresses of etcd, and those that the operator has reserved.
func TestReservedAreNotServed(t *testing.T) {
	p, r, _ := newPlugin(t, &fakeNode{nodes: nodesync.Nodes{"n1": {Name: "n1"}}})
	s := service("s")
	s.ExternalIps = []string{"203.0.113.79", "198.51.100.53", "203.0.113.80"}
	if err := p.Resync(api.NewDBResync(), data(kubeNode("n1", ""), s), 1, ops{}); err != nil {
		t.Fatal(err)
	}
	got := r.Services[renderer.ServiceID{Namespace: "ns", Name: "s"}].ExternalIPs.Addrs()
	if want := []netip.Addr{netip.MustParseAddr("203.0.113.80")}; !slices.Equal(got, want) {
		t.Errorf("the service has %v, want %v", got, want)
	}
}
