package links

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
)

func TestMonitor(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m := NewHostMonitor(nil)
	dev, docker := w.dev("m"), w.dev("docker")
	mine := HostAddress{dev, netip.MustParsePrefix("198.18.77.1/32")}

	seen := make(chan []HostAddress, 16)
	jobs := lifecycle.NewGroup(ctx, NewBackend(Config{}).log)
	jobs.Go("watch", func(ctx context.Context) error {
		return m.Watch(ctx, func(a []HostAddress) { seen <- a })
	})
	if first := <-seen; slices.Contains(first, mine) {
		t.Fatal("the address is there already")
	}
	found := make(chan HostLink, 1)
	jobs.Go("wait", func(ctx context.Context) error {
		l, err := m.WaitLink(ctx, dev)
		found <- l
		return err
	})
	w.run("ip", "link", "add", docker, "type", "bridge")
	w.run("ip", "addr", "add", "198.18.78.1/32", "dev", docker)
	w.run("ip", "link", "add", dev, "mtu", "1300", "type", "bridge")
	if l := <-found; l.Name != dev || l.MTU != 1300 || l.Kind != "bridge" {
		t.Errorf("WaitLink = %+v", l)
	}
	w.run("ip", "addr", "add", mine.Prefix.String(), "dev", dev)
	wait := func(want bool) {
		for {
			select {
			case a := <-seen:
				if slices.ContainsFunc(a, func(a HostAddress) bool { return strings.HasPrefix(a.Link, "docker") || a.Link == "lo" }) {
					t.Errorf("foreign addresses: %v", a)
				}
				if slices.Contains(a, mine) == want {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no report with the address present=%t", want)
			}
		}
	}
	wait(true)
	w.run("ip", "link", "set", dev, "mtu", "1400")
	wait(true) // it is reported again: the MTU has changed
	w.run("ip", "addr", "del", mine.Prefix.String(), "dev", dev)
	wait(false)
	if err := jobs.Stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	if _, err := m.WaitLink(short, "no-such-link"); err == nil {
		t.Error("a link that does not exist was found")
	}
}
