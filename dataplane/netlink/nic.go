package netlink

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NIC is a network interface of the host.
type NIC struct {
	Name      string
	MTU       int
	MAC       net.HardwareAddr
	Addresses []netip.Prefix // in the order of addresses
}

// NIC looks at the NIC called name; with "", at the one with the default route, else at the first that has an address. The zero
// NIC means that there is none.
func (m *HostMonitor) NIC(ctx context.Context, name string) (NIC, error) {
	links, err := m.Links(ctx)
	if err != nil {
		return NIC{}, err
	}
	addrs, err := m.Addresses(ctx)
	if err != nil {
		return NIC{}, err
	}
	if name == "" {
		if name, err = defaultRouteLink(links); err != nil {
			return NIC{}, err
		}
	}
	if name == "" && len(addrs) > 0 {
		name = addrs[0].Link
	}
	up := NIC{Name: name}
	for _, l := range links {
		if l.Name == name {
			up.MTU, up.MAC = l.MTU, l.MAC
		}
	}
	if name != "" && up.MTU == 0 {
		return NIC{}, fmt.Errorf("there is no NIC %s on this host; set mainVPPInterface.interfaceName to one of its NICs, "+
			"or leave it out to use the one with the default route", name)
	}
	for _, a := range addrs {
		if a.Link == name {
			up.Addresses = append(up.Addresses, a.Prefix)
		}
	}
	return up, nil
}

// defaultRouteLink is the name of the link of the default route with the lowest metric, IPv4 before IPv6; empty without one.
func defaultRouteLink(links []HostLink) (string, error) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return "", fmt.Errorf("list the host's routes: %w", err)
		}
		best, name := -1, ""
		for _, r := range routes {
			if (r.Dst != nil && !r.Dst.IP.IsUnspecified()) || (best >= 0 && r.Priority >= best) {
				continue
			}
			for _, l := range links {
				if l.Index == r.LinkIndex {
					best, name = r.Priority, l.Name
				}
			}
		}
		if name != "" {
			return name, nil
		}
	}
	return "", nil
}
