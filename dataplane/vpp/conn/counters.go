package conn

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"
)

// Direction is the direction of a traced message.
type Direction int

// The directions.
const (
	Sent Direction = iota
	Received
)

// Stats holds the connection's counters since New.
type Stats struct {
	Sent     map[string]uint64 // requests by message name
	Writes   uint64            // requests that may change VPP
	Timeouts uint64            // requests that were not answered in time
	Connects uint64            // sessions begun
	Dropped  uint64            // events that a slow subscriber missed
}

type counters struct {
	mu       sync.Mutex
	sent     map[string]*atomic.Uint64 // guarded by mu; the counters themselves are not
	writes   atomic.Uint64
	timeouts atomic.Uint64
	connects atomic.Uint64
	dropped  atomic.Uint64
}

// tally counts requests of one type.
type tally struct{ sent, writes *atomic.Uint64 }

func (t tally) count() {
	t.sent.Add(1)
	if t.writes != nil {
		t.writes.Add(1)
	}
}

// countInvoked counts one request. A CLI command may change anything, except that "show …" changes nothing.
func (c *counters) countInvoked(name string, req api.Message) {
	t := c.of(name)
	if cli, ok := req.(*vlib.CliInband); ok && strings.HasPrefix(cli.Cmd, "show ") {
		t.writes = nil
	}
	t.count()
}

func (c *counters) of(name string) tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.sent[name]
	if n == nil {
		if c.sent == nil {
			c.sent = map[string]*atomic.Uint64{}
		}
		n = new(atomic.Uint64)
		c.sent[name] = n
	}
	if !mutating(name) {
		return tally{sent: n}
	}
	return tally{sent: n, writes: &c.writes}
}

func (c *counters) stats() Stats {
	c.mu.Lock()
	sent := maps.Clone(c.sent)
	c.mu.Unlock()
	s := Stats{
		Sent: map[string]uint64{}, Writes: c.writes.Load(), Timeouts: c.timeouts.Load(),
		Connects: c.connects.Load(), Dropped: c.dropped.Load(),
	}
	for name, n := range sent {
		s.Sent[name] = n.Load()
	}
	return s
}
