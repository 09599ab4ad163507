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

// polledHost polls the host's interfaces every few seconds with functions of Go's standard library, which work on every system. It implements
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
	// Default: the host's default route leaves by this interface.
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
		if list, err := h.interfaces(); err == nil { // after an error, the next poll reports the change
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

// describe returns a text that stays the same as long as the interfaces do.
func describe(list []hostInterface) string {
	lines := make([]string, len(list))
	for i, ifc := range list {
		lines[i] = fmt.Sprint(ifc)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
