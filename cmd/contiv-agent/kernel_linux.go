package main

import (
	"log/slog"

	"contiv.dev/vswitch/dataplane/links"
)

// hostKernel programs the pods' and the host's links by netlink. VPP and the host's own stack both need it.
type hostKernel struct {
	backend *links.Backend
	janitor *links.Janitor
}

func newHostKernel(log *slog.Logger) *hostKernel {
	return &hostKernel{backend: links.NewBackend(links.Config{Log: log}), janitor: links.NewJanitor(log)}
}
