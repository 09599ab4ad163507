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

// HostNIC is an interface of the host that may connect it to other machines.
type HostNIC struct {
	Name         string
	Up           bool // enabled by the administrator
	Part         bool // of a bridge or a bond, which holds the addresses and routes
	DefaultRoute bool // it has the default route, that of IPv4 if there is one, else that of IPv6
	MTU          int
	Addresses    []netip.Prefix
}

// HostNetwork is a network to which the host is connected.
type HostNetwork struct {
	Link   string
	Prefix netip.Prefix // the host's address there, with the network's length
	Dummy  bool         // the link leads to no other machine
}

// NICs lists the host's own interfaces, by index. It omits interfaces of ours, of containers and of virtual machines.
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

// Networks lists the networks to which the host is connected by interfaces that are up, including bridges of containers. It omits networks that
// do not leave a link, and those of our own links.
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
		addrs, err := s.addrs(0)
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

// nicsPause limits the rate of watching NICs: the link of each pod causes notifications, too.
const nicsPause = 500 * time.Millisecond

// WatchNICs calls report with NICs at the start and whenever they have changed, until ctx ends. Run it as a job.
func (m *HostMonitor) WatchNICs(ctx context.Context, report func([]HostNIC)) error {
	var last []HostNIC
	first := true
	w := netlink.Watch{
		Log: m.log, Pause: watchRetry, Settle: nicsPause,
		Open: func() (netlink.LinkSource, error) { return m.open(unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE) },
		Listed: func(ctx context.Context, _ netlink.LinkListing) error { // NICs needs more data than the listing contains
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
