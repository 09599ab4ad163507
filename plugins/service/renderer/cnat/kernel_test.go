package cnat

import (
	"net/netip"
	"strings"
	"testing"

	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
)

func nets(texts ...string) (out []netip.Prefix) {
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// balancer gives a service a load balancer's address that may be used from some networks.
func balancer(ip string, from ...string) func(*renderer.ContivService) {
	return func(s *renderer.ContivService) {
		s.ExternalIPs, s.LoadBalancerIPs, s.SourceRangesSet = ips(ip), ips(ip), true
		s.LoadBalancerSourceRanges = nets(from...)
	}
}

// TestByTheHost: what becomes of an address with source ranges, and that it comes and goes with them.
func TestByTheHost(t *testing.T) {
	np := func(s *renderer.ContivService) { s.Ports["http"].NodePort = 30080 }
	const (
		toHost  = "route fd00:99::1/128 INTRA_VRF fd00:17::2 tap\n"
		notBack = "DENY from ::/0 to fd00:99::1/128 on tap\n"
		drop    = "DENY from ::/0 to fd00:99::1/128 on bvi nic pod1 tap\n"
		rest    = "from [2001:db8::/32] own false, answers to fd00:17::1"
	)
	for _, c := range []struct {
		name   string
		change func(*renderer.ContivService)
		vpp    []string
		host   string
	}{
		{"by the cluster IP", func(*renderer.ContivService) {}, []string{toHost, notBack},
			"[fd00:99::1]:80 udp false -> [fd00:96::1]:80 " + rest},
		{"by the node port", np, []string{toHost, notBack}, "[fd00:99::1]:80 udp false -> [fd00:17::1]:30080 " + rest},
		{"internal policy Local, node port", func(s *renderer.ContivService) {
			np(s)
			s.InternalTrafficPolicy = renderer.NodeLocal
		}, []string{toHost, notBack}, "[fd00:99::1]:80 udp false -> [fd00:17::1]:30080 " + rest},
		{"internal policy Local, none", func(s *renderer.ContivService) { s.InternalTrafficPolicy = renderer.NodeLocal },
			[]string{drop}, ""},
		{"external policy Local", func(s *renderer.ContivService) {
			np(s)
			s.TrafficPolicy = renderer.NodeLocal
		}, []string{drop}, ""},
		{"no cluster IP of the family", func(s *renderer.ContivService) { s.ClusterIPs = ips("10.96.0.1") }, []string{drop}, ""},
		{"a node's own address", balancer("fd00:16::2", "2001:db8::/32"),
			[]string{"DENY from ::/0 to fd00:16::2/128 on bvi nic pod1 tap"}, ""},
		{"the node may", balancer("fd00:99::1", "fd00:16::/64"), []string{toHost, notBack},
			"[fd00:99::1]:80 udp false -> [fd00:96::1]:80 from [fd00:16::/64] own true, answers to fd00:17::1"},
		{"no endpoints", func(s *renderer.ContivService) { s.Backends = nil }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, s := newRenderer(0)
			if err := r.Resync(resyncOf()); err != nil {
				t.Fatal(err)
			}
			before := s.text()
			one := svc("a", balancer("fd00:99::1", "2001:db8::/32"), c.change)
			for range 2 {
				if err := r.UpdateService(nil, one, nil); err != nil {
					t.Fatal(err)
				}
				s.writes, s.told = 0, 0
			}
			if err := r.UpdateService(nil, one, nil); err != nil || s.writes+s.told > 0 {
				t.Errorf("%v; for nothing: %d writes, the host told %d times", err, s.writes, s.told)
			}
			for _, line := range c.vpp {
				if !strings.Contains(s.text()+"\n", line) {
					t.Errorf("no %q in\n%s", line, s.text())
				}
			}
			if s.places() != c.host {
				t.Errorf("the host has\n%s\nwant\n%s", s.places(), c.host)
			}
			open := svc("a", balancer("fd00:99::1"), func(s *renderer.ContivService) { s.SourceRangesSet = false })
			if err := r.UpdateService(nil, open, nil); err != nil {
				t.Fatal(err)
			}
			if text := s.text(); s.places() != "" || !strings.Contains(text, both("fd00:99::1")) || strings.Contains(text, "DENY") ||
				strings.Contains(text+"\n", toHost) {
				t.Errorf("without ranges:\n%s\n%s", text, s.places())
			}
			if err := r.DeleteService(open, nil); err != nil || s.text() != before {
				t.Errorf("left: %v\n%s\nwant\n%s", err, s.text(), before)
			}
		})
	}
}

// A place that is a node's address is not the host's any longer, and the other way round.
func TestPlaceOfANode(t *testing.T) {
	r, s := newRenderer(0)
	if err := r.Resync(resyncOf(svc("a", balancer("fd00:99::1", "2001:db8::/32")))); err != nil {
		t.Fatal(err)
	}
	served := s.text()
	for _, c := range []struct {
		nodes *renderer.IPAddresses
		want  bool
	}{{ips("fd00:16::1", "fd00:99::1"), false}, {ips("fd00:16::1"), true}} {
		if err := r.UpdateNodePortServices(c.nodes, nil); err != nil {
			t.Fatal(err)
		}
		if (s.places() != "") != c.want || (s.text() == served) != c.want {
			t.Errorf("nodes %s: the host has %q;\n%s", c.nodes, s.places(), s.text())
		}
	}
}

// Without a host that would do it, nobody is served.
func TestNoHost(t *testing.T) {
	r, s := newRenderer(0)
	r.SetPlaces = nil
	if err := r.Resync(resyncOf(svc("a", balancer("fd00:99::1", "::/1")))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.text(), "DENY from ::/0 to fd00:99::1/128 on bvi nic pod1 tap") {
		t.Error(s.text())
	}
}

// The host's own processes do not get by another address to a place that not everybody may use, whoever has endpoints.
func TestNoAliasOfAPlace(t *testing.T) {
	for _, local := range []bool{true, false} {
		r, s := newRenderer(0)
		r.SetAliases = func(_ bool, aliases []hostend.Alias) {
			for _, a := range aliases {
				if a.At.Addr() == netip.MustParseAddr("fd00:99::1") {
					t.Errorf("an endpoint here: %t; it goes by %s", local, a.To)
				}
			}
		}
		if err := r.Resync(resyncOf(svc("a", balancer("fd00:99::1", "2001:db8::/32"), func(s *renderer.ContivService) {
			s.TrafficPolicy = renderer.NodeLocal
			s.Backends["http"] = []*renderer.ServiceBackend{backend("fd00:1::3", local)}
		}))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.text(), "DENY from ::/0 to fd00:99::1/128 on bvi nic pod1 tap") || s.places() != "" {
			t.Errorf("an endpoint here: %t: %s\n%s", local, s.text(), s.places())
		}
	}
}
