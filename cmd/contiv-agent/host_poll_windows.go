package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// hostPollInterval is the longest time until a new address of the host is noticed.
const hostPollInterval = 10 * time.Second

func newPolledHost() polledHost {
	return polledHost{interfaces: listInterfaces, every: hostPollInterval}
}

// listInterfaces lists the interfaces that are up, without loopback and without link-local addresses.
func listInterfaces() ([]hostInterface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces of the host: %w", err)
	}
	outside := sourceAddresses()
	var out []hostInterface
	for _, i := range list {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it was removed since
		}
		h := hostInterface{Name: i.Name, MTU: i.MTU}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLinkLocalUnicast() || p.Addr().IsLoopback() {
				continue
			}
			h.Addresses = append(h.Addresses, p)
			h.Default = h.Default || slices.Contains(outside, p.Addr())
		}
		if len(h.Addresses) > 0 {
			out = append(out, h)
		}
	}
	return out, nil
}

// sourceAddresses returns the source addresses, one per family, that the host uses towards the outside. Connecting a UDP socket sends no
// packet.
func sourceAddresses() []netip.Addr {
	var out []netip.Addr
	for _, to := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} { // RFC 5737, RFC 3849: addresses for documentation
		c, err := net.Dial("udp", to)
		if err != nil {
			continue // no route of this family
		}
		if local, ok := c.LocalAddr().(*net.UDPAddr); ok {
			out = append(out, local.AddrPort().Addr().Unmap())
		}
		_ = c.Close() // nothing was sent
	}
	return out
}
