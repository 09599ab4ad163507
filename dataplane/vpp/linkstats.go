package vpp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/binapi/memclnt"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// LinkCounters holds the counters that show whether an interface forwards packets.
type LinkCounters struct {
	// Offered counts the packets that VPP had for the interface: VPP counts them before it checks whether the device accepts them.
	Offered uint64
	// Refused counts those of them for which an af_packet interface had no free frame.
	Refused uint64
	// Taken counts the packets that were received on the interface.
	Taken uint64
}

// PathCounters holds the counters that show whether packets are forwarded.
type PathCounters struct {
	Links map[uint32]LinkCounters // by sw_if_index
	// NATRefused counts the packets for which NAT44 had no room for a session.
	NATRefused uint64
	// Connections has the counts of our plugin; nil if VPP does not have the plugin.
	Connections *Connections
}

// Connections holds the fill level of the plugin's tables.
type Connections struct {
	IPv4, IPv6, Max uint64 // Max is the limit of each family
	// TableRefused counts the packets for which a table had no room for a connection, EndpointRefused those whose sender has reached
	// its limit of connections.
	TableRefused, EndpointRefused uint64
}

// Statistics that ReadPathCounters reads. VPP names the errors of an interface by VPP's own name of the interface.
const (
	linkStats    = "^/if/(names|rx|tx)$"
	refusedStats = "^/err/host-[^/]+-tx/tx (frame not ready|ring overrun)$"
	natFullStats = "^/err/nat44-ed-[^/]+/maximum sessions exceeded$"
	contivGauges = "^/contiv/connections(4|6|-max)$"
	contivFull   = "^/err/contiv-ip[46]-input/(FULL|LIMIT)$"
)

// ReadPathCounters reads the counters of all interfaces and of NAT from VPP's statistics segment. It does not affect VPP.
func ReadPathCounters(socket string) (PathCounters, error) {
	if _, err := os.Stat(socket); err != nil {
		return PathCounters{}, fmt.Errorf("VPP statistics: %w; is there a statseg section in startup.conf?", err)
	}
	c := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryTimeout(ifStatsTimeout))
	if err := c.Connect(); err != nil {
		return PathCounters{}, fmt.Errorf("VPP statistics: %w", err)
	}
	entries, err := c.DumpStats(linkStats, refusedStats, natFullStats, contivGauges, contivFull)
	out := sumPathCounters(entries) // before Disconnect, which unmaps VPP's memory that holds the entries
	if err = errors.Join(err, c.Disconnect()); err != nil {
		return PathCounters{}, fmt.Errorf("VPP statistics: %w", err)
	}
	return out, nil
}

func sumPathCounters(entries []adapter.StatEntry) (sum PathCounters) {
	refused := map[string]uint64{} // by VPP's name of the interface
	sum.Connections = sumConnections(entries)
	for _, e := range entries {
		node, ok := strings.CutPrefix(string(e.Name), "/err/")
		if !ok || strings.HasPrefix(node, "contiv-") {
			continue
		}
		node, _, _ = strings.Cut(node, "/")
		if strings.HasPrefix(node, "nat44-ed-") {
			sum.NATRefused += total(e.Data)
			continue
		}
		refused[strings.TrimSuffix(node, "-tx")] += total(e.Data)
	}
	sum.Links = sumLinkCounters(entries, refused)
	return sum
}

// sumConnections returns the plugin's counts; nil without the plugin's gauges.
func sumConnections(entries []adapter.StatEntry) *Connections {
	var c Connections
	for _, e := range entries {
		switch name := string(e.Name); {
		case name == "/contiv/connections4":
			c.IPv4 = total(e.Data)
		case name == "/contiv/connections6":
			c.IPv6 = total(e.Data)
		case name == "/contiv/connections-max":
			c.Max = total(e.Data)
		case !strings.HasPrefix(name, "/err/contiv-"):
		case strings.HasSuffix(name, "/FULL"):
			c.TableRefused += total(e.Data)
		default:
			c.EndpointRefused += total(e.Data)
		}
	}
	if c.Max == 0 {
		return nil
	}
	return &c
}

func sumLinkCounters(entries []adapter.StatEntry, refused map[string]uint64) map[uint32]LinkCounters {
	out := map[uint32]LinkCounters{}
	for _, e := range entries {
		names, ok := e.Data.(adapter.NameStat)
		if !ok {
			continue
		}
		for i, name := range names {
			if len(name) > 0 {
				out[uint32(i)] = LinkCounters{Refused: refused[string(name)]}
			}
		}
	}
	for _, e := range entries {
		data, ok := e.Data.(adapter.CombinedCounterStat)
		if !ok {
			continue
		}
		for _, worker := range data {
			for i, n := range worker {
				c, ok := out[uint32(i)]
				switch {
				case !ok:
					continue
				case string(e.Name) == "/if/tx":
					c.Offered += n.Packets()
				default:
					c.Taken += n.Packets()
				}
				out[uint32(i)] = c
			}
		}
	}
	return out
}

// total adds up an error counter, in any of the forms in which VPP may report it.
func total(data adapter.Stat) (sum uint64) {
	switch data := data.(type) {
	case adapter.SimpleCounterStat:
		for _, worker := range data {
			for _, n := range worker {
				sum += uint64(n)
			}
		}
	case adapter.ErrorStat:
		for _, n := range data {
			sum += uint64(n)
		}
	case adapter.ScalarStat:
		sum = uint64(data)
	}
	return sum
}

// Ping waits for a reply of VPP's main thread, which serves the API.
func Ping(ctx context.Context, c *conn.Conn) error {
	return c.Invoke(ctx, new(memclnt.ControlPing), new(memclnt.ControlPingReply))
}
