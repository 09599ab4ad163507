package main

import (
	"context"
	"fmt"
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
