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
	w.run("ip", "link", "add", docker, "type", "bridge")
	w.run("ip", "addr", "add", "198.18.78.1/32", "dev", docker)
	w.run("ip", "link", "add", dev, "mtu", "1300", "type", "bridge")
	all, err := m.Links(ctx)
	if i := slices.IndexFunc(all, func(l HostLink) bool { return l.Name == dev }); err != nil || i < 0 || all[i].MTU != 1300 || all[i].Kind != "bridge" {
		t.Errorf("Links = %+v, %v", all, err)
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
}
