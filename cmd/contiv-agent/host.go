package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"contiv.dev/vswitch/plugins/contivconf"
	"contiv.dev/vswitch/plugins/ipnet"
)

// hostMonitor reads and watches the node's own network. It may be used from any goroutine.
type hostMonitor interface {
	// IPs returns the addresses of the host's own interfaces, without those of loopback, container bridges and our own links.
	IPs(ctx context.Context) ([]netip.Addr, error)
	// Networks returns the networks that the host is in.
	Networks(ctx context.Context) ([]contivconf.HostNetwork, error)
	// NIC describes a NIC; with "", the one that has the default route. It returns the zero NIC if there is none.
	NIC(ctx context.Context, name string) (ipnet.NIC, error)
	// Watch calls report at once, and whenever the results above may have changed, until ctx ends.
	Watch(ctx context.Context, report func()) error
}

// hostLinks implements ipnet.HostLinks on a host monitor.
type hostLinks struct {
	monitor hostMonitor
	log     *slog.Logger
	// onNetworks checks the networks that the host is in when they may have changed; nil before the configuration is loaded.
	onNetworks func([]contivconf.HostNetwork) error

	mu       sync.Mutex
	callback func() // guarded by mu
}

func newHostLinks(monitor hostMonitor, log *slog.Logger) *hostLinks {
	return &hostLinks{monitor: monitor, log: log}
}

// HostIPs implements ipnet.HostLinks.
func (h *hostLinks) HostIPs() ([]net.IP, error) {
	addrs, err := h.monitor.IPs(context.Background()) // bounded by the monitor's own timeout
	if err != nil {
		return nil, err
	}
	ips := make([]net.IP, len(addrs))
	for i, a := range addrs {
		ips[i] = a.AsSlice()
	}
	return ips, nil
}

// NIC implements ipnet.HostLinks.
func (h *hostLinks) NIC(name string) (ipnet.NIC, error) {
	return h.monitor.NIC(context.Background(), name) // bounded by the monitor's own timeout
}

// WatchHostIPs implements ipnet.HostLinks.
func (h *hostLinks) WatchHostIPs(callback func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.callback = callback
}

// watch is the job that runs the callback. A network that appears while the agent runs does not end the agent, but is logged.
func (h *hostLinks) watch(ctx context.Context) error {
	first, logged := true, ""
	return h.monitor.Watch(ctx, func() {
		h.mu.Lock()
		callback := h.callback
		h.mu.Unlock()
		if !first && callback != nil {
			callback()
		}
		first = false
		logged = h.checkNetworks(ctx, logged)
	})
}

// checkNetworks checks the host's networks and logs a new warning. logged is the last warning; checkNetworks returns the current one.
func (h *hostLinks) checkNetworks(ctx context.Context, logged string) string {
	if h.onNetworks == nil {
		return logged
	}
	list, err := h.monitor.Networks(ctx)
	if err == nil {
		err = h.onNetworks(list)
	}
	if err == nil {
		return ""
	}
	if text := err.Error(); text != logged {
		h.log.Warn("the node has a new address in a network of contiv.conf; an agent that starts now would reject it", "error", err)
		return text
	}
	return logged
}
