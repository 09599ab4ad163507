package vppfake_test

import (
	"testing"

	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// TestLocalFragments tests that with the plugin, IPv6 fragments to VPP's own addresses are dropped; whole packets, and all IPv4 packets,
// arrive.
func TestLocalFragments(t *testing.T) {
	f := startFake(t, vppfake.Config{Seed: 1, Plugin: true})
	ps := newPacketScript(newScript(t, f.Socket(), nil))
	contivNode(ps)
	for _, c := range []struct {
		src, dst string
		fragment bool
		arrives  bool
	}{
		{at6(podA), "fd00::1", true, false},
		{at6(podA), "fd00:0:0:3::1", true, false},
		{at6(podA), "fd00::1", false, true},
		{at4(podA), "10.1.0.1", true, true},
	} {
		p := from(podA, vppfake.ProtoUDP, end2(c.src, 1000), end2(c.dst, 2000))
		if p.TTL = 64; c.fragment {
			p.Frag, p.Size = &vppfake.Fragment{ID: 1, More: true}, 16
		}
		r, err := f.Send("pg0", p)
		if err != nil {
			t.Fatal(err)
		}
		if arrives := len(r.Out) == 1 && r.Out[0].Local; arrives != c.arrives {
			t.Errorf("%s to %s, fragment: %t: arrives: %t\n%s", c.src, c.dst, c.fragment, arrives, r)
		}
	}
}
