package main

import (
	"context"
	"log/slog"
	"net/netip"

	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/contivconf/uplink"
	"contiv.dev/vswitch/plugins/ipnet"
)

// kernelHost reads the host's network from the kernel. It implements hostMonitor and nicMonitor.
type kernelHost struct{ monitor *links.HostMonitor }

func newKernelHost(log *slog.Logger) kernelHost { return kernelHost{links.NewHostMonitor(log)} }

// IPs implements hostMonitor.
func (k kernelHost) IPs(ctx context.Context) ([]netip.Addr, error) {
	list, err := k.monitor.Addresses(ctx)
	out := make([]netip.Addr, len(list))
	for i, a := range list {
		out[i] = a.Prefix.Addr()
	}
	return out, err
}

// Networks implements hostMonitor.
func (k kernelHost) Networks(ctx context.Context) ([]contivconf.HostNetwork, error) {
	list, err := k.monitor.Networks(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]contivconf.HostNetwork, 0, len(list))
	for _, n := range list {
		address := netip.PrefixFrom(n.Prefix.Addr().WithZone(""), n.Prefix.Bits())
		out = append(out, contivconf.HostNetwork{Interface: n.Link, Address: address, Dummy: n.Dummy})
	}
	return out, nil
}

// NIC implements hostMonitor.
func (k kernelHost) NIC(ctx context.Context, name string) (ipnet.NIC, error) {
	nic, err := k.monitor.NIC(ctx, name)
	return ipnet.NIC{Name: nic.Name, Addresses: nic.Addresses, Lesser: nic.Lesser, MTU: uint32(nic.MTU)}, err
}

// Watch implements hostMonitor.
func (k kernelHost) Watch(ctx context.Context, report func()) error {
	return k.monitor.Watch(ctx, func([]links.HostAddress) { report() })
}

// NICs implements nicMonitor.
func (k kernelHost) NICs(ctx context.Context) ([]uplink.NIC, error) {
	list, err := k.monitor.NICs(ctx)
	return uplinkNICs(list), err
}

// WatchNICs implements nicMonitor.
func (k kernelHost) WatchNICs(ctx context.Context, report func([]uplink.NIC)) error {
	return k.monitor.WatchNICs(ctx, func(list []links.HostNIC) { report(uplinkNICs(list)) })
}

func uplinkNICs(list []links.HostNIC) []uplink.NIC {
	out := make([]uplink.NIC, len(list))
	for i, n := range list {
		out[i] = uplink.NIC(n)
	}
	return out
}
