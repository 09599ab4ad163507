//go:build linux

package main

import (
	"strings"

	"contiv.dev/vswitch/internal/diag"
)

// diagnose implements mover: the kernel is asked for everything.
func (m *linuxMover) diagnose(*agent, *diag.Deps) {}

// devices implements mover: those of workload endpoints.
func (m *linuxMover) devices() map[string]string {
	out := map[string]string{}
	dump, err := m.driver.Dump()
	if err != nil {
		return out // stopped, or not started yet
	}
	for _, e := range dump.Endpoints {
		if parts := strings.SplitN(e.ID, "/", 4); len(parts) == 4 { // orchestrator/namespace/pod/sandbox
			out[parts[1]+"/"+parts[2]] = e.Interface
		}
	}
	return out
}
