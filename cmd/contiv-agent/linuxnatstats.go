//go:build linux

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
	"contiv.dev/vswitch/plugins/statscollector"
)

// trackedBy sets the sources of the kernel's counts of translated connections.
func trackedBy(s *statscollector.NATSource) {
	s.Total, s.ByAddress, s.ByFrontend = trackedConnections, translatedConnections, connectionsByService
}

// connectionCount is the file with the number of connections that the kernel tracks.
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

// accounting is the file that shows whether the kernel counts the packets of each connection.
const accounting = "/proc/sys/net/netfilter/nf_conntrack_acct"

func connectionsByService(ctx context.Context) (map[statscollector.Frontend]statscollector.Flows, bool, error) {
	text, err := os.ReadFile(accounting)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	list, err := conntrack.Frontends(ctx, nil) // of the agent's own network namespace
	out := map[statscollector.Frontend]statscollector.Flows{}
	for f, flows := range list {
		out[statscollector.Frontend{AddrPort: f.AddrPort, Proto: f.Proto}] = statscollector.Flows(flows)
	}
	return out, strings.TrimSpace(string(text)) == "1", err
}

func translatedConnections(ctx context.Context) (map[netip.Addr]int, error) {
	return conntrack.Translated(ctx, nil) // of the agent's own network namespace
}
