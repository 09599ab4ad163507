package links

import (
	"context"
	"fmt"
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
	mine := HostAddress{dev, netip.MustParsePrefix("198.18.77.1/32"), 1}

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

// TestAddressOrder tests that the address by which other nodes know this one comes first, although other programs add lower ones.
func TestAddressOrder(t *testing.T) {
	w := newWorld(t)
	dev := w.dev("m")
	w.run("ip", "link", "add", dev, "type", "bridge")
	w.run("ip", "link", "set", dev, "up")
	for _, args := range []string{
		"198.18.77.9/24",
		"198.18.77.5/24",  // secondary
		"198.18.77.1/32",  // a VIP
		"198.18.76.20/24", // of another network
		"2001:db8:77::9/64 nodad",
		"2001:db8:77::8/64 nodad",
		"2001:db8:77::1/128 nodad", // a VIP
		"2001:db8:77::2/64 nodad preferred_lft 0 valid_lft 1000",      // deprecated
		"2001:db8:77::3/64 nodad preferred_lft 1000 valid_lft 100000", // preferred
	} {
		w.run(append([]string{"ip", "addr", "add", "dev", dev}, strings.Fields(args)...)...)
	}
	all, err := NewHostMonitor(nil).Addresses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range all {
		if a.Link == dev {
			got = append(got, a.Prefix.String())
		}
	}
	want := []string{"198.18.77.9/24", "198.18.76.20/24", "198.18.77.1/32", "198.18.77.5/24",
		"2001:db8:77::9/64", "2001:db8:77::8/64", "2001:db8:77::3/64", "2001:db8:77::1/128", "2001:db8:77::2/64"}
	if !slices.Equal(got, want) {
		t.Errorf("addresses %q, want %q", got, want)
	}
	nic, err := NewHostMonitor(nil).NIC(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	if lesser := fmt.Sprint(nic.Lesser); lesser != "[198.18.77.1 198.18.77.5 2001:db8:77::1 2001:db8:77::2]" {
		t.Errorf("less suitable addresses: %s", lesser)
	}
	for _, a := range []string{"198.18.77.5/24", "198.18.77.9/24", "198.18.76.20/24"} {
		w.run("ip", "addr", "del", a, "dev", dev)
	}
	if nic, err = NewHostMonitor(nil).NIC(t.Context(), dev); err != nil || fmt.Sprint(nic.Lesser) != "[2001:db8:77::1 2001:db8:77::2]" {
		t.Errorf("the NIC has only a VIP: %+v, %v", nic, err)
	}
}
