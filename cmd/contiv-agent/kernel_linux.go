package main

import (
	"log/slog"

	"contiv.dev/vswitch/dataplane/netlink"
)

// hostKernel programs the pods' and the host's links by netlink, beside VPP and beside the host's own stack.
type hostKernel struct {
	backend *netlink.Backend
	janitor *netlink.Janitor
}

func newHostKernel(log *slog.Logger) *hostKernel {
	return &hostKernel{backend: netlink.NewBackend(netlink.Config{Log: log}), janitor: netlink.NewJanitor(log)}
}
