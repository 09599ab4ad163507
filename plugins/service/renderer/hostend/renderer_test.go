package hostend

import (
	"net"
	"net/netip"
	"reflect"
	"testing"

	"contiv.dev/vswitch/internal/kube/svcmodel"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/service/renderer"
)

type network struct{}

func (network) CnatNode(ipv6 bool) (ipnet.CnatNode, bool) {
	a := netip.MustParseAddr
	return ipnet.CnatNode{
		HostLink: a("fd00:172::1"), HostOwn: a("fd00:172::2"), Alias: a("fd10:1::fe"), Address: a("fd00:16::1"),
	}, ipv6
}

func svc(name, ip string, nodePorts ...uint16) *renderer.ContivService {
	s := renderer.NewContivService()
	s.ID = svcmodel.ID{Namespace: "ns", Name: name}
	s.ClusterIPs = renderer.NewIPAddresses(net.ParseIP(ip))
	for i, p := range nodePorts {
		proto := []renderer.ProtocolType{renderer.TCP, renderer.UDP, renderer.SCTP}[i]
		s.Ports[string(rune('a'+i))] = &renderer.ServicePort{Protocol: proto, Port: 80, NodePort: p}
	}
	return s
}

// TestTheHostIsTold: of node ports, of its addresses and of itself as a client; and not when nothing is new.
func TestTheHostIsTold(t *testing.T) {
	var got []End
	r := New(Deps{Network: network{}, Families: renderer.FamilyIPv6, Set: func(ipv6 bool, end End) {
		if !ipv6 {
			t.Error("IPv4, which cnat does not serve")
		}
		got = append(got, end)
	}})
	a := netip.MustParseAddr
	step := func(what string, do func() error, want *End) {
		t.Helper()
		got = nil
		if err := do(); err != nil {
			t.Fatal(err)
		}
		switch {
		case want == nil && len(got) > 0:
			t.Errorf("%s: told for nothing: %+v", what, got)
		case want != nil && (len(got) != 1 || !reflect.DeepEqual(got[0], *want)):
			t.Errorf("%s: %+v, want %+v", what, got, *want)
		}
	}
	end := func(at []netip.Addr, tcp, udp []uint16) *End {
		return &End{At: at, TCP: tcp, UDP: udp, To: a("fd00:172::1"), Own: a("fd00:172::2"), Alias: a("fd10:1::fe")}
	}
	mgmt, other := a("fd00:99::1"), a("fd00:99::2")
	ev := renderer.NewResyncEventData()
	ev.LocalNodeIPs = renderer.FromAddrs(a("192.0.2.1"), a("fd00:16::1"), a("fd00:172::1"), mgmt)
	ev.Services = []*renderer.ContivService{svc("one", "fd96::1", 30001), svc("four", "10.96.0.1", 30004), svc("none", "fd96::2")}
	step("resync", func() error { return r.Resync(ev) }, end([]netip.Addr{mgmt}, []uint16{30001}, nil))
	two := svc("two", "fd96::3", 30003, 30002, 30009)
	step("added", func() error { return r.AddService(two) },
		end([]netip.Addr{mgmt}, []uint16{30001, 30003}, []uint16{30002}))
	step("the same port again", func() error { return r.AddService(svc("three", "fd96::4", 30003)) }, nil)
	step("no node port", func() error { return r.AddService(svc("five", "fd96::5")) }, nil)
	step("deleted, but another has the port", func() error { return r.DeleteService(two, nil) },
		end([]netip.Addr{mgmt}, []uint16{30001, 30003}, nil))
	step("changed", func() error { return r.UpdateService(nil, svc("three", "fd96::4"), nil) },
		end([]netip.Addr{mgmt}, []uint16{30001}, nil))
	step("another address", func() error { return r.UpdateLocalNodeIPs(renderer.FromAddrs(mgmt, other), nil) },
		end([]netip.Addr{mgmt, other}, []uint16{30001}, nil))
	step("the same addresses", func() error { return r.UpdateLocalNodeIPs(renderer.FromAddrs(other, mgmt), nil) }, nil)
}
