package vpp

import (
	"errors"
	"fmt"
	"os"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
)

// IfCounters holds the counters of one interface, summed over all of VPP's workers.
type IfCounters struct {
	Index                  uint32 // sw_if_index
	RxPackets, RxBytes     uint64
	TxPackets, TxBytes     uint64
	Drops, Punts           uint64
	RxNoBuffer, RxMiss     uint64
	RxErrors, TxErrors     uint64
	IP4Packets, IP6Packets uint64
}

// ifStatsTimeout is the timeout for VPP's statistics socket.
const ifStatsTimeout = 100 * time.Millisecond

// ReadIfCounters reads VPP's statistics segment, which does not affect VPP: the counters are in shared memory. It opens a
// connection for each reading, so a restart of VPP between readings does not matter.
func ReadIfCounters(socket string) ([]IfCounters, error) {
	if _, err := os.Stat(socket); err != nil {
		return nil, fmt.Errorf("VPP statistics: %w; is there a statseg section in startup.conf?", err)
	}
	c := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryTimeout(ifStatsTimeout))
	if err := c.Connect(); err != nil {
		return nil, fmt.Errorf("VPP statistics: %w", err)
	}
	entries, err := c.DumpStats("^/if/")
	out := sumIfCounters(entries) // before Disconnect, which unmaps VPP's memory that holds the entries
	if err = errors.Join(err, c.Disconnect()); err != nil {
		return nil, fmt.Errorf("VPP statistics: %w", err)
	}
	return out, nil
}

// sumIfCounters sums over the workers. Interfaces that have been deleted have no name.
func sumIfCounters(entries []adapter.StatEntry) []IfCounters {
	var out []IfCounters
	at := map[int]int{} // sw_if_index → place in out
	for _, e := range entries {
		names, ok := e.Data.(adapter.NameStat)
		if !ok || string(e.Name) != "/if/names" {
			continue
		}
		for i, name := range names {
			if len(name) > 0 {
				at[i] = len(out)
				out = append(out, IfCounters{Index: uint32(i)})
			}
		}
	}
	for _, e := range entries {
		switch data := e.Data.(type) {
		case adapter.SimpleCounterStat:
			for _, worker := range data {
				for i, n := range worker {
					if place, ok := at[i]; ok {
						out[place].addSimple(string(e.Name), uint64(n))
					}
				}
			}
		case adapter.CombinedCounterStat:
			for _, worker := range data {
				for i, n := range worker {
					if place, ok := at[i]; ok {
						out[place].addCombined(string(e.Name), n)
					}
				}
			}
		}
	}
	return out
}

func (c *IfCounters) addSimple(name string, n uint64) {
	switch name {
	case "/if/drops":
		c.Drops += n
	case "/if/punt":
		c.Punts += n
	case "/if/ip4":
		c.IP4Packets += n
	case "/if/ip6":
		c.IP6Packets += n
	case "/if/rx-no-buf":
		c.RxNoBuffer += n
	case "/if/rx-miss":
		c.RxMiss += n
	case "/if/rx-error":
		c.RxErrors += n
	case "/if/tx-error":
		c.TxErrors += n
	}
}

func (c *IfCounters) addCombined(name string, n adapter.CombinedCounter) {
	switch name {
	case "/if/rx":
		c.RxPackets, c.RxBytes = c.RxPackets+n.Packets(), c.RxBytes+n.Bytes()
	case "/if/tx":
		c.TxPackets, c.TxBytes = c.TxPackets+n.Packets(), c.TxBytes+n.Bytes()
	}
}
