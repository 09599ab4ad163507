package lb

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/proto"
)

func message(change func(s *proto.BalancedServiceUpdate, p *proto.BalancedPort)) *proto.BalancedServiceUpdate {
	p := &proto.BalancedPort{Name: "http", Protocol: 6,
		Frontends: []*proto.BalancedFrontend{{Address: []byte{10, 96, 0, 1}, Port: 80}},
		Everywhere: &proto.BalancedGroup{Addresses: []byte{10, 1, 0, 1, 10, 1, 0, 2}, Ports: []uint32{8080, 8081},
			Own: []byte{10, 1, 0, 2}}}
	s := &proto.BalancedServiceUpdate{Namespace: "default", Name: "web", Ports: []*proto.BalancedPort{p}}
	if change != nil {
		change(s, p)
	}
	return s
}

func TestParse(t *testing.T) {
	s, err := Parse(message(nil))
	if err != nil {
		t.Fatal(err)
	}
	f := s.Ports[0].Frontends[0]
	if s.Name != "default/web" || !f.Cluster || f.Masquerade != NotPods || f.Inside != f.Outside || f.Inside.Len() != 2 {
		t.Fatalf("%+v", s)
	}
	if f.Inside.At(1) != netip.MustParseAddrPort("10.1.0.2:8081") || f.Inside.Own()[0] != netip.MustParseAddr("10.1.0.2") {
		t.Errorf("backend %v, own %v", f.Inside.At(1), f.Inside.Own())
	}
	other, err := Parse(message(func(s *proto.BalancedServiceUpdate, p *proto.BalancedPort) {
		p.Everywhere.Addresses, p.Everywhere.Ports = []byte{10, 1, 0, 1, 10, 1, 0, 3}, []uint32{8080}
	}))
	if err != nil {
		t.Fatal(err)
	}
	g := other.Ports[0].Frontends[0].Inside
	if g.ID != f.Inside.ID || !g.Same(f.Inside, 0) || g.Same(f.Inside, 1) || g.Same(f.Inside, 2) {
		t.Errorf("the same group with another second backend: %+v and %+v", g, f.Inside)
	}
}

// TestParseErrors: invalid parts cause an error that names them, and never a panic.
func TestParseErrors(t *testing.T) {
	for want, change := range map[string]func(s *proto.BalancedServiceUpdate, p *proto.BalancedPort){
		"protocol 1":          func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Protocol = 1 },
		"affinity":            func(s *proto.BalancedServiceUpdate, _ *proto.BalancedPort) { s.AffinitySeconds = 1 << 30 },
		"not an address":      func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Ipv6, p.Everywhere = true, nil },
		"not addresses":       func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Everywhere.Addresses = []byte{1} },
		"3 ports":             func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Everywhere.Ports = []uint32{1, 2, 3} },
		"port 0 of a backend": func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Everywhere.Ports = []uint32{0} },
		"port 70000 of front": func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Frontends[0].Port = 70000 },
		"no group":            func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Frontends[0].HereOnly = true },
		"unknown source":      func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Frontends[0].Source = 9 },
		"backends to REJECT":  func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Everywhere.Verdict = Reject },
		"source range": func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) {
			p.Frontends[0].SourceRanges = []string{"::/0"}
		},
		"that a service can":   func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Frontends[0].Address[0] = 127 },
		"0 backends to BALANC": func(_ *proto.BalancedServiceUpdate, p *proto.BalancedPort) { p.Everywhere.Reset() },
	} {
		if _, err := Parse(message(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestGroupIDs: the ID of a group is of a cryptographic hash. With FNV, a user could compute names of a service and a port whose group
// replaces that of another service.
func TestGroupIDs(t *testing.T) {
	s, err := Parse(message(nil))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("default/web/4/6/http/everywhere"))
	if got, want := s.Ports[0].Frontends[0].Inside.ID, binary.BigEndian.Uint64(sum[:8]); got != want {
		t.Errorf("the ID of the group is %x and not %x", got, want)
	}
}
