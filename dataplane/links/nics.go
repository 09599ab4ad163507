package links

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// HostNIC is an interface of the host that may connect it with other machines.
type HostNIC struct {
	Name         string
	Up           bool // by the administrator
	Part         bool // of a bridge or a bond, which has the addresses and routes
	DefaultRoute bool // it has the default route, of IPv4 if there is one, else of IPv6
	MTU          int
	Addresses    []netip.Prefix
}

// HostNetwork is a network that the host is in.
type HostNetwork struct {
	Link   string
	Prefix netip.Prefix // the host's address there, with the network's length
	Dummy  bool         // the link leads nowhere
}

// NICs lists the interfaces that are the host's own, by index: none of ours, of containers or of virtual machines.
func (m *HostMonitor) NICs(ctx context.Context) ([]HostNIC, error) {
	var infos []linkInfo
	if err := m.query(ctx, func(s *sock) (err error) { infos, err = s.links(); return err }); err != nil {
		return nil, fmt.Errorf("list the host's links: %w", err)
	}
	slices.SortFunc(infos, func(a, b linkInfo) int { return cmp.Compare(a.index, b.index) })
	addrs, err := m.Addresses(ctx)
	if err != nil {
		return nil, err
	}
	links := make([]HostLink, 0, len(infos))
	for _, l := range infos {
		if isHosts(l) {
			links = append(links, HostLink{Index: int(l.index), Name: l.name})
		}
	}
	routed, err := m.defaultRouteLink(ctx, links)
	if err != nil {
		return nil, err
	}
	var out []HostNIC
	for _, l := range infos {
		if !isHosts(l) {
			continue
		}
		nic := HostNIC{Name: l.name, Up: l.flags&unix.IFF_UP != 0, Part: l.master != 0, DefaultRoute: l.name == routed,
			MTU: int(l.mtu)}
		for _, a := range addrs {
			if a.Link == l.name {
				nic.Addresses = append(nic.Addresses, a.Prefix)
			}
		}
		out = append(out, nic)
	}
	return out, nil
}

// Networks lists the networks that the host is in by interfaces that are up, bridges of containers among them; not those that
// do not leave a link, nor those of our own links.
func (m *HostMonitor) Networks(ctx context.Context) ([]HostNetwork, error) {
	var out []HostNetwork
	err := m.query(ctx, func(s *sock) error {
		links, err := s.links()
		if err != nil {
			return err
		}
		byIndex := map[int32]linkInfo{}
		for _, l := range links {
			if l.flags&unix.IFF_LOOPBACK == 0 && l.flags&unix.IFF_UP != 0 && !isOurs(l) {
				byIndex[l.index] = l
			}
		}
		addrs, err := s.addrs()
		for _, a := range addrs {
			l, ok := byIndex[a.index]
			if ip := a.prefix.Addr(); ok && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
				out = append(out, HostNetwork{Link: l.name, Prefix: a.prefix, Dummy: l.kind == "dummy"})
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the host's networks: %w", err)
	}
	slices.SortFunc(out, func(x, y HostNetwork) int {
		return cmp.Or(cmp.Compare(x.Link, y.Link), x.Prefix.Addr().Compare(y.Prefix.Addr()), x.Prefix.Bits()-y.Prefix.Bits())
	})
	return out, nil
}

// nicsPause paces watching NICs: each pod's link makes a few notifications, too.
const nicsPause = 500 * time.Millisecond

// WatchNICs calls report with NICs at first and whenever they have changed, until ctx ends. Run it as a job.
func (m *HostMonitor) WatchNICs(ctx context.Context, report func([]HostNIC)) error {
	var last []HostNIC
	first := true
	w := netlink.Watch{
		Log: m.log, Pause: watchRetry, Settle: nicsPause,
		Open: func() (netlink.LinkSource, error) { return m.open(unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE) },
		Listed: func(ctx context.Context, _ netlink.LinkListing) error { // of which NICs needs more
			now, err := m.NICs(ctx)
			if err == nil && (first || !reflect.DeepEqual(now, last)) {
				first, last = false, now
				report(slices.Clone(now))
			}
			return err
		},
	}
	return w.Run(ctx)
}
