package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// Lookup returns the addresses of a host name, as net.Resolver.LookupNetIP does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// Addresses returns the addresses and ports of etcd, sorted. It calls lookup for host names only. The addresses are also returned with an
// error, without those of the endpoints that the error names.
func (c Config) Addresses(ctx context.Context, lookup Lookup) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	var errs []error
	for _, endpoint := range c.Endpoints {
		u, err := c.parseEndpoint(endpoint)
		if err != nil {
			errs = append(errs, fmt.Errorf("etcd at %s: %w", endpoint, err))
			continue
		}
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil {
			continue // a socket of this machine
		}
		addrs := []netip.Addr{{}}
		if addrs[0], err = netip.ParseAddr(u.Hostname()); err != nil {
			addrs, err = lookup(ctx, "ip", u.Hostname())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("etcd at %s: %w", endpoint, err))
		}
		for _, addr := range addrs {
			out = append(out, netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(port)))
		}
	}
	slices.SortFunc(out, netip.AddrPort.Compare)
	return slices.Compact(out), errors.Join(errs...)
}
