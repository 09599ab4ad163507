package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/conntrack"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/plugins/statscollector"
)

// countNAT makes the metrics of NAT by pod.
func (a *agent) countNAT() error {
	source := statscollector.NATSource{Pods: a.podsByAddress}
	switch m := a.dataplane.mover.(type) {
	case *linuxMover:
		source.Total, source.ByAddress = trackedConnections, translatedConnections
	case *vppMover:
		if m.fake != nil {
			return nil // no packet moves
		}
		users := vpp.NewNATUsers(m.conn)
		source.Total = func() (int, error) { used, _ := m.natUsed.Counts(); return int(used), m.alive() }
		source.ByAddress = func(ctx context.Context) (map[netip.Addr]int, error) {
			list, err := users.Count(ctx)
			out := map[netip.Addr]int{}
			for _, u := range list {
				out[u.Addr] = u.Sessions
			}
			return out, err
		}
	}
	n := statscollector.NewNAT(source, a.readCounters, a.opts.nat.byPod, a.http, a.logger("statscollector"))
	if a.opts.nat.byPod <= 0 {
		return nil
	}
	return a.registry.Register(n)
}

// podsByAddress are the pods of this node.
func (a *agent) podsByAddress() map[netip.Addr]statscollector.PodName {
	out := map[netip.Addr]statscollector.PodName{}
	for _, at := range a.pods.LocalAttachments() {
		for _, prefix := range at.Addresses {
			out[prefix.Addr()] = statscollector.PodName{Namespace: at.Pod.Namespace, Name: at.Pod.Name}
		}
	}
	return out
}

// connectionCount is how many connections the kernel tracks.
const connectionCount = "/proc/sys/net/netfilter/nf_conntrack_count"

func trackedConnections() (int, error) {
	text, err := os.ReadFile(connectionCount)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // nothing is tracked
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", connectionCount, err)
	}
	return n, nil
}

func translatedConnections(ctx context.Context) (map[netip.Addr]int, error) {
	return conntrack.Translated(ctx, nil) // of the agent's own network namespace
}

// natCounters are what NAT44 has translated, by the number of the interface.
func natCounters(socket string) (map[uint32]vpp.NATCounters, error) {
	list, err := vpp.ReadNATCounters(socket)
	out := map[uint32]vpp.NATCounters{}
	for _, c := range list {
		out[c.Index] = c
	}
	return out, err
}
