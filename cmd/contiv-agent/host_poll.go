package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet"
)

// polledHost looks at the host's interfaces every few seconds, by what Go's standard library supports on every system. It implements
// hostMonitor.
type polledHost struct {
	interfaces func() ([]hostInterface, error)
	every      time.Duration
}

// hostInterface is an interface that is up.
type hostInterface struct {
	Name      string
	MTU       int
	Addresses []netip.Prefix
	// Default: the host reaches the outside by it.
	Default bool
}

// hostPollInterval is how late a new address of the host may be noticed.
const hostPollInterval = 10 * time.Second

func newPolledHost() polledHost {
	return polledHost{interfaces: listInterfaces, every: hostPollInterval}
}

// listInterfaces lists those that are up, without loopback and without link-local addresses.
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
			continue // it has gone since
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

// sourceAddresses are those that the host would have towards the outside. A UDP socket that is connected sends nothing.
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

// IPs implements hostMonitor.
func (h polledHost) IPs(context.Context) ([]netip.Addr, error) {
	list, err := h.interfaces()
	var out []netip.Addr
	for _, i := range list {
		for _, p := range i.Addresses {
			out = append(out, p.Addr())
		}
	}
	return out, err
}

// Networks implements hostMonitor.
func (h polledHost) Networks(context.Context) ([]contivconf.HostNetwork, error) {
	list, err := h.interfaces()
	var out []contivconf.HostNetwork
	for _, i := range list {
		for _, p := range i.Addresses {
			out = append(out, contivconf.HostNetwork{Interface: i.Name, Address: p})
		}
	}
	return out, err
}

// NIC implements hostMonitor.
func (h polledHost) NIC(_ context.Context, name string) (ipnet.NIC, error) {
	list, err := h.interfaces()
	for _, i := range list {
		if i.Name == name || name == "" && i.Default {
			return ipnet.NIC{Name: i.Name, Addresses: i.Addresses, MTU: uint32(i.MTU)}, err
		}
	}
	return ipnet.NIC{}, err
}

// Watch implements hostMonitor.
func (h polledHost) Watch(ctx context.Context, report func()) error {
	last, first := "", true
	tick := time.NewTicker(h.every)
	defer tick.Stop()
	for {
		if list, err := h.interfaces(); err == nil { // else the next look reports it
			if now := describe(list); first || now != last {
				last, first = now, false
				report()
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// describe is the same text while nothing has changed.
func describe(list []hostInterface) string {
	lines := make([]string, len(list))
	for i, ifc := range list {
		lines[i] = fmt.Sprint(ifc)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
