package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/nfttest"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

// The handling of packets is tested in package intdataplane, with this backend and with iptables.

func openServices(t testing.TB, ns *nettest.NS) *Services {
	t.Helper()
	s, err := Open(Options{NS: ns.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.SetPods(table.IPv4, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.0/16")})
	s.SetPods(table.IPv6, []netip.Prefix{netip.MustParsePrefix("fd00::/16")})
	s.Set(nfttest.Service(t, "a", "10.96.0.1", 0, "10.1.0.1", "10.1.0.2"))
	s.Set(nfttest.Service(t, "b", "fd01::1", 100, "fd00::1", "fd00::2"))
	s.Set(nfttest.Service(t, "c", "10.96.0.3", 0))
	s.Set(nfttest.Service(t, "d", "10.96.0.4", 10800, "10.1.0.1"))
	s.Set(nfttest.Service(t, "e", "10.96.0.5", 10800, "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "10.1.0.5"))
	s.Set(nfttest.Service(t, "f", "fd01::2", 100, "fd00::1", "fd00::2", "fd00::3"))
	return s
}

func (s *Services) mustApply(t testing.TB) int {
	t.Helper()
	writes := 0
	for end := time.Now().Add(10 * time.Second); ; s.view.Grace.Wait() {
		res := s.Apply(context.Background())
		if res.Err != nil || len(res.Broken) > 0 || time.Now().After(end) {
			t.Fatalf("%+v", res)
		}
		if writes += res.Writes; res.Again != wire.GraceLook { // otherwise there are still chains to remove
			return writes
		}
	}
}

// TestServicesListing: the nft tool can list the table, although it cannot express everything in its rules.
func TestServicesListing(t *testing.T) {
	ns := nettest.New(t)
	if openServices(t, ns).mustApply(t) == 0 {
		t.Fatal("nothing was written")
	}
	listing := ns.Run("nft list ruleset")
	for _, want := range []string{"10.96.0.1 . tcp . 80", "fd00::2 . 80", "10.1.0.0-10.2.255.255", "map @backends-"} {
		if !strings.Contains(listing, want) {
			t.Errorf("%q is not in the listing:\n%s", want, listing)
		}
	}
}

// TestServicesSettle: objects in place are not written again, by this process or the next, and damaged ones are.
func TestServicesSettle(t *testing.T) {
	ns := nettest.New(t)
	s := openServices(t, ns)
	s.mustApply(t)
	if n := s.mustApply(t); n != 0 || s.Pending() {
		t.Errorf("the second apply wrote %d objects, pending %v", n, s.Pending())
	}
	s.Set(nfttest.Service(t, "a", "10.96.0.1", 0, "10.1.0.1", "10.1.0.2"))
	if n := s.mustApply(t); n != 0 {
		t.Errorf("the same service again made %d writes", n)
	}
	if n := openServices(t, ns).mustApply(t); n != 0 {
		t.Errorf("a restart wrote %d objects", n)
	}
	before := ns.Run("nft list ruleset")
	for _, damage := range []string{
		"flush chain ip contiv-services nat-output",
		"flush set ip contiv-services cluster-ips",
		"flush set ip6 contiv-services pods",
		"delete element ip contiv-services frontends { 10.96.0.1 . tcp . 80 }",
		"add element ip contiv-services dropped { 10.96.0.1 . tcp . 80 }",
		"add set ip contiv-services other { type ipv4_addr; }",
		"delete table ip6 contiv-services",
		"flush ruleset",
	} {
		ns.Run("nft " + damage)
		if !s.Pending() {
			t.Errorf("%s: not noticed", damage)
		}
		if s.mustApply(t) == 0 {
			t.Errorf("%s: nothing was written", damage)
		}
		if after := ns.Run("nft list ruleset"); sortedLines(after) != sortedLines(before) {
			t.Errorf("%s: not repaired:\n%s", damage, after)
		}
	}
	for _, name := range []string{"ns/a", "ns/b", "ns/c", "ns/d", "ns/e", "ns/f"} {
		s.Delete(name)
	}
	s.mustApply(t)
	if left := ns.Run("nft list ruleset"); strings.TrimSpace(left) != "" {
		t.Errorf("no service, but\n%s", left)
	}
}

// TestServicesChainsFirst: chains exist before an element refers to them. Otherwise a packet that uses the rules of one generation and
// finds an element of the next would find an empty chain. Without new chains there is one transaction.
func TestServicesChainsFirst(t *testing.T) {
	ns := nettest.New(t)
	s := openServices(t, ns)
	s.mustApply(t)
	for _, c := range []struct {
		what         string
		svc          *lb.Service
		transactions uint32
	}{
		{"other backends", nfttest.Service(t, "a", "10.96.0.1", 0, "10.1.0.7", "10.1.0.8", "10.1.0.9"), 1},
		{"another time of affinity: chains come and go", nfttest.Service(t, "d", "10.96.0.4", 77, "10.1.0.1"), 3},
		{"the same again", nfttest.Service(t, "d", "10.96.0.4", 77, "10.1.0.1"), 0},
		{"no affinity: chains only go", nfttest.Service(t, "d", "10.96.0.4", 0, "10.1.0.1"), 2},
	} {
		before := s.view.Gen
		s.Set(c.svc)
		s.mustApply(t)
		if n := s.view.Gen - before; n != c.transactions {
			t.Errorf("%s: %d transactions, want %d", c.what, n, c.transactions)
		}
	}
}

// TestServicesChainsLast: a chain is removed after a grace period, when no packet is being sent to it any more. Changes meanwhile do not
// wait, and a chain that is used again is kept.
func TestServicesChainsLast(t *testing.T) {
	ns := nettest.New(t)
	s := openServices(t, ns)
	s.mustApply(t)
	waiting := make(chan struct{})
	s.view.Grace.Hold(waiting)
	set := func(seconds uint32) {
		t.Helper()
		s.Set(nfttest.Service(t, "d", "10.96.0.4", seconds, "10.1.0.1"))
		if res := s.Apply(context.Background()); res.Err != nil {
			t.Fatalf("%+v", res)
		}
	}
	chains := func(seconds uint32) (n int) {
		for line := range strings.Lines(ns.Run("nft list chains ip")) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "chain" && strings.HasSuffix(f[1], fmt.Sprint("-", seconds)) {
				n++
			}
		}
		return n
	}
	set(77) // there is another service with 10800
	set(33)
	if chains(77) == 0 || chains(33) == 0 {
		t.Errorf("there are %d chains of before, and %d of now", chains(77), chains(33))
	}
	set(55)
	set(33)
	close(waiting)
	s.mustApply(t)
	if chains(77) != 0 || chains(55) != 0 || chains(33) == 0 {
		t.Errorf("after the grace period there are %d and %d chains of before, and %d of now", chains(77), chains(55), chains(33))
	}
}

func sortedLines(text string) string {
	var out []string
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, ",", " ")) {
		out = append(out, word)
	}
	return strings.Join(slices.Sorted(slices.Values(out)), " ")
}

// TestServicesRefused: a service that the kernel rejects is left out and retried later; others are served.
func TestServicesRefused(t *testing.T) {
	ns := nettest.New(t)
	s := openServices(t, ns)
	if !s.handleFailure(&wire.Refusal{Objects: map[wire.Object]error{s.services["ns/a"]: errors.New("no")}}) {
		t.Fatal("there was something to learn")
	}
	res := s.Apply(context.Background())
	listing := ns.Run("nft list ruleset")
	if res.Err != nil || len(res.Broken) != 1 || res.Broken["service ns/a"] == nil ||
		strings.Contains(listing, "10.96.0.1 ") || !strings.Contains(listing, "10.96.0.4 . tcp") {
		t.Errorf("%+v\n%s", res, listing)
	}
	s.retried = time.Now().Add(-wire.RetryAfter)
	s.mustApply(t)
	if listing := ns.Run("nft list ruleset"); !strings.Contains(listing, "10.96.0.1 . tcp") {
		t.Errorf("not tried again:\n%s", listing)
	}
	if s.handleFailure(&wire.Refusal{Objects: map[wire.Object]error{}, Other: errors.New("no")}) {
		t.Error("a retry after an error that names no service")
	}
}

// TestServicesOtherIDs: a process that gives groups other IDs than the one before it, as after an upgrade, replaces all of its groups.
func TestServicesOtherIDs(t *testing.T) {
	ns, fresh := nettest.New(t), nettest.New(t)
	before := openServices(t, ns)
	for _, svc := range []*lb.Service{
		nfttest.Service(t, "a", "10.96.0.1", 0, "10.1.0.1", "10.1.0.2"),
		nfttest.Service(t, "f", "fd01::2", 100, "fd00::1", "fd00::2", "fd00::3"),
	} {
		svc.Ports[0].Frontends[0].Inside.ID += 1 << 20
		before.Set(svc)
	}
	before.mustApply(t)
	openServices(t, fresh).mustApply(t)
	want := sortedLines(fresh.Run("nft list ruleset"))
	if sortedLines(ns.Run("nft list ruleset")) == want {
		t.Fatal("the other IDs are not in the kernel")
	}
	s := openServices(t, ns)
	s.mustApply(t)
	if got := sortedLines(ns.Run("nft list ruleset")); got != want || s.Pending() {
		t.Errorf("pending %v, got\n%s\nwant\n%s", s.Pending(), got, want)
	}
}

// TestSourcesChain: the name has a cryptographic hash. With FNV, a user could compute prefixes that share another service's chain.
func TestSourcesChain(t *testing.T) {
	if got, want := sourcesChain("10.0.0.0/8,192.0.2.0/24"), "from-21ca4f994c63b54b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
