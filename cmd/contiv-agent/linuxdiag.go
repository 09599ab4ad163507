//go:build linux

package main

import (
	"strings"
)

// devices returns the devices of workload endpoints.
func (m *linuxPlane) devices() map[string]string {
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
