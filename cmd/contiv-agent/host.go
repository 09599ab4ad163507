package main

import (
	"context"
	"log/slog"
	"net"
	"sync"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet"
)

// hostLinks implements ipnet.HostLinks on the host monitor.
type hostLinks struct {
	monitor *netlink.HostMonitor
	log     *slog.Logger
	// onNetworks judges the networks that the host is in when they may have changed; nil before the configuration is known.
	onNetworks func([]contivconf.HostNetwork) error

	mu       sync.Mutex
	callback func() // guarded by mu
}

func newHostLinks(log *slog.Logger) *hostLinks {
	return &hostLinks{monitor: netlink.NewHostMonitor(log), log: log}
}

// HostIPs implements ipnet.HostLinks.
func (h *hostLinks) HostIPs() ([]net.IP, error) {
	addrs, err := h.monitor.Addresses(context.Background()) // bounded by the monitor's own timeout
	if err != nil {
		return nil, err
	}
	ips := make([]net.IP, len(addrs))
	for i, a := range addrs {
		ips[i] = a.Prefix.Addr().AsSlice()
	}
	return ips, nil
}

// NIC implements ipnet.HostLinks.
func (h *hostLinks) NIC(name string) (ipnet.NIC, error) {
	nic, err := h.monitor.NIC(context.Background(), name) // bounded by the monitor's own timeout
	return ipnet.NIC{Name: nic.Name, Addresses: nic.Addresses, MTU: uint32(nic.MTU)}, err
}

// WatchHostIPs implements ipnet.HostLinks.
func (h *hostLinks) WatchHostIPs(callback func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callback = callback
}

// watch is the job that calls back. A network that comes while the agent runs does not end it, but is told.
func (h *hostLinks) watch(ctx context.Context) error {
	first, told := true, ""
	return h.monitor.Watch(ctx, func([]netlink.HostAddress) {
		h.mu.Lock()
		callback := h.callback
		h.mu.Unlock()
		if !first && callback != nil {
			callback()
		}
		first = false
		told = h.judge(ctx, told)
	})
}

// judge warns when the host has come into a network that contiv.conf has given to others; told is the last such warning.
func (h *hostLinks) judge(ctx context.Context, told string) string {
	if h.onNetworks == nil {
		return told
	}
	list, err := h.networks(ctx)
	if err == nil {
		err = h.onNetworks(list)
	}
	if err == nil {
		return ""
	}
	if text := err.Error(); text != told {
		h.log.Warn("the node has a new address in a network of contiv.conf; an agent that starts now would reject it", "error", err)
		return text
	}
	return told
}
