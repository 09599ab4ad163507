//go:build linux

package main

import (
	"context"
	"net/netip"

	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/plugins/statscollector"
)

// translated sets the sources of VPP's counts of translated connections.
func (m *vppPlane) translated(s *statscollector.NATSource) {
	users := traffic.NewUsers(m.conn)
	s.Total = func() (int, error) { used, _ := m.natUsed.Counts(); return int(used), m.alive() }
	s.ByAddress = func(ctx context.Context) (map[netip.Addr]int, error) {
		list, err := users.Count(ctx)
		out := map[netip.Addr]int{}
		for _, u := range list {
			out[u.Addr] = u.Sessions
		}
		return out, err
	}
	s.ByFrontend = func(ctx context.Context) (map[statscollector.Frontend]statscollector.Flows, bool, error) {
		list, err := users.Frontends(ctx)
		out := map[statscollector.Frontend]statscollector.Flows{}
		for f, n := range list {
			out[statscollector.Frontend{AddrPort: f.AddrPort, Proto: f.Proto}] = statscollector.Flows{Connections: n}
		}
		return out, false, err
	}
}

// natCounters returns what NAT44 has translated, by interface index.
func natCounters(socket string) (map[uint32]traffic.NATCounters, error) {
	list, err := traffic.ReadNATCounters(socket)
	out := map[uint32]traffic.NATCounters{}
	for _, c := range list {
		out[c.Index] = c
	}
	return out, err
}
