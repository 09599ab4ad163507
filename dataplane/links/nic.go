package links

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// NIC is a network interface of the host.
type NIC struct {
	Name      string
	MTU       int
	MAC       net.HardwareAddr
	Addresses []netip.Prefix // IPv4 before IPv6; in each family, the one that identifies the host comes first
	Lesser    []netip.Addr   // those of Addresses that are less suitable than the first one of their family; see HostAddress.Rank
}

// NIC returns the NIC called name. If name is "", it returns the NIC with the default route, or else the first one that has an address. The
// zero NIC means that there is none.
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
		if name, err = m.defaultRouteLink(ctx, links); err != nil {
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
	first := map[bool]int{} // the rank of the first address, by Is4
	for _, a := range addrs {
		if a.Link != name {
			continue
		}
		up.Addresses = append(up.Addresses, a.Prefix)
		if best, is := first[a.Prefix.Addr().Is4()]; !is {
			first[a.Prefix.Addr().Is4()] = a.Rank
		} else if a.Rank > best {
			up.Lesser = append(up.Lesser, a.Prefix.Addr())
		}
	}
	return up, nil
}

// defaultRouteLink returns the name of the link of the default route with the lowest metric, IPv4 before IPv6; empty if there is none.
func (m *HostMonitor) defaultRouteLink(ctx context.Context, links []HostLink) (string, error) {
	var routes []routeInfo
	err := m.query(ctx, func(s *sock) (err error) { routes, err = s.routes(0, 0); return err })
	if err != nil {
		return "", fmt.Errorf("list the host's routes: %w", err)
	}
	slices.SortStableFunc(routes, func(x, y routeInfo) int { // IPv4 comes first
		return firstOf(x.spec.dst.Addr().BitLen()-y.spec.dst.Addr().BitLen(), cmp.Compare(x.spec.metric, y.spec.metric))
	})
	for _, r := range routes {
		if r.spec.dst.Bits() > 0 {
			continue
		}
		for _, l := range links {
			if index := int32(l.Index); index == r.index || r.index == 0 && index == r.hop {
				return l.Name, nil
			}
		}
	}
	return "", nil
}
