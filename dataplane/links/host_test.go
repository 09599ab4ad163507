package links

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/lifecycle"
)

// TestListingLosesNothing tests that links that exist all the time are in each listing, however many other links change.
func TestListingLosesNothing(t *testing.T) {
	w := newWorld(t)
	dev := w.dev("m")
	const all, moving = 1500, 40
	address := func(i int) (string, string) {
		return fmt.Sprintf("10.99.%d.%d/32", i/250, i%250+1), fmt.Sprintf("fd99::%x/128", i+1)
	}
	batch := func(first, end int, verb, flags string) string {
		var b strings.Builder
		for i := first; i < end; i++ {
			four, six := address(i)
			fmt.Fprintf(&b, "addr %s %s dev %s\naddr %s %s dev %s %s\n", verb, four, dev, verb, six, dev, flags)
		}
		return b.String()
	}
	ip := func(script string) error {
		cmd := exec.Command("ip", "-batch", "-")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ip: %w: %s", err, out)
		}
		return nil
	}
	w.run("ip", "link", "add", dev, "type", "bridge")
	if err := ip(batch(0, all, "add", "nodad")); err != nil {
		t.Fatal(err)
	}
	churned := make(chan error, 1)
	w.jobs.Go("churn", func(context.Context) error {
		churned <- ip(strings.Repeat(batch(0, moving, "del", "")+batch(0, moving, "add", "nodad"), 60))
		return nil
	})
	s, err := newSock(nil, 5*time.Second, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for n := 0; ; n++ {
		select {
		case err := <-churned:
			if t.Logf("%d listings", n); err != nil {
				t.Error(err)
			}
			return
		default:
		}
		list, err := s.addrs(0)
		if errors.Is(err, errTorn) {
			continue // no other goroutine has time to run: that is reported, too
		}
		if err != nil {
			t.Fatal(err)
		}
		have := map[string]bool{}
		for _, a := range list {
			have[a.prefix.String()] = true
		}
		for i := moving; i < all; i++ {
			if four, six := address(i); !have[four] || !have[six] {
				t.Fatalf("listing %d lacks %s or %s, which were there all the time", n, four, six)
			}
		}
	}
}

// TestDefaultRoute tests that the NIC is that of the default route, also of one through two NICs, and not that of a VPN with routes for both
// halves of the address space.
func TestDefaultRoute(t *testing.T) {
	w := newWorld(t)
	nic, other, vpn := w.dev("n"), w.dev("o"), w.dev("v")
	for i, dev := range []string{vpn, other, nic} {
		w.run("ip", "link", "add", dev, "type", "bridge")
		w.run("ip", "addr", "add", fmt.Sprintf("198.18.%d.2/24", i), "dev", dev)
		w.run("ip", "addr", "add", fmt.Sprintf("fd18:%d::2/64", i), "dev", dev, "nodad")
		w.run("ip", "link", "set", dev, "up")
	}
	m := NewHostMonitor(nil)
	expect := func(what, want string) {
		t.Helper()
		if n, err := m.NIC(context.Background(), ""); err != nil || n.Name != want {
			t.Errorf("%s: %q %v, want %s", what, n.Name, err, want)
		}
	}
	for _, f := range []struct{ flag, net, halves string }{{"-6", "fd18:%d::1", "::/1 8000::/1"}, {"-4", "198.18.%d.1",
		"0.0.0.0/1 128.0.0.0/1"}} {
		gw := func(i int) string { return fmt.Sprintf(f.net, i) }
		w.run("ip", f.flag, "route", "add", "default", "via", gw(2), "metric", "600", "onlink", "dev", nic)
		for _, half := range strings.Fields(f.halves) {
			w.run("ip", f.flag, "route", "add", half, "via", gw(0), "metric", "50", "onlink", "dev", vpn)
		}
		expect(f.flag+" with a VPN", nic)
		w.run("ip", f.flag, "route", "add", "default", "metric", "100", "nexthop", "via", gw(1), "dev", other, "onlink",
			"nexthop", "via", gw(2), "dev", nic, "onlink")
		expect(f.flag+" by two NICs", other)
		w.run("ip", f.flag, "route", "del", "default", "metric", "100")
	}
}

// TestHalfPooledPairs tests that a pair that an agent did not mark on both ends is removed.
func TestHalfPooledPairs(t *testing.T) {
	w := newWorld(t)
	pairs := NewPairs(1450)
	whole, err := pairs.Make()
	if err != nil {
		t.Fatal(err)
	}
	half, err := pairs.Make()
	if err != nil {
		t.Fatal(err)
	}
	w.run("ip", "link", "set", half.Pod, "alias", "")
	if list, err := pairs.List(); err != nil || !slices.Equal(list, []Pair{whole}) {
		t.Errorf("%v %v, want %v", list, err, whole)
	}
	if err := exec.Command("ip", "link", "show", half.Host).Run(); err == nil {
		t.Error("half a pair stays, although no caller will ever take it")
	}
	if err := pairs.Delete(whole); err != nil {
		t.Error(err)
	}
}

// TestWatchAfterAFailure tests that a change that could not be looked up when it was reported is looked up later.
func TestWatchAfterAFailure(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dev := w.dev("m")
	w.run("ip", "link", "add", dev, "type", "bridge")
	m := NewHostMonitor(nil)
	failing := &failingLists{}
	m.open = func(groups ...int) (source netlink.LinkSource, err error) {
		failing.LinkSource, err = netlink.OpenLinks(nil, eventBuffer, groups...)
		return failing, err
	}
	seen := make(chan []HostAddress, 16)
	jobs := lifecycle.NewGroup(ctx, w.b.log)
	jobs.Go("watch", func(ctx context.Context) error { return m.Watch(ctx, func(a []HostAddress) { seen <- a }) })
	<-seen
	failing.next.Store(true)
	w.run("ip", "addr", "add", "198.18.79.1/32", "dev", dev)
	mine := HostAddress{dev, netip.MustParsePrefix("198.18.79.1/32"), 1}
	for {
		select {
		case a := <-seen:
			if slices.Contains(a, mine) {
				if failing.next.Load() {
					t.Error("nothing failed")
				}
				if err := jobs.Stop(20 * time.Second); err != nil {
					t.Error(err)
				}
				return
			}
		case <-ctx.Done():
			t.Fatal("the address was never reported")
		}
	}
}

// failingLists fails to list once.
type failingLists struct {
	netlink.LinkSource
	next atomic.Bool
}

func (f *failingLists) List() (netlink.LinkListing, error) {
	if f.next.Swap(false) {
		return netlink.LinkListing{}, errors.New("injected")
	}
	return f.LinkSource.List()
}
