package vpp

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/binapi/vlib"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// buffersReserve is the number of buffers that must be free for one more TAP: its receive ring holds 256 buffers, and traffic
// needs some.
const (
	buffersReserve = 1024
	buffersEvery   = 5 * time.Second
)

// Buffers monitors VPP's packet buffers. Every TAP keeps a ring full of them; when they are exhausted, new interfaces come up
// and receive nothing, and VPP does not report that.
type Buffers struct {
	conn        *conn.Conn
	log         *slog.Logger
	total, free atomic.Int64 // total is 0 while there is no data
	warned      bool
}

// NewBuffers returns a monitor that has no data before Run.
func NewBuffers(c *conn.Conn, log *slog.Logger) *Buffers {
	return &Buffers{conn: c, log: log.With("component", "vpp-buffers")}
}

// Counts returns the number of VPP's buffers and of the free ones; zero while there is no data.
func (b *Buffers) Counts() (total, free int64) { return b.total.Load(), b.free.Load() }

// Low returns an error if there are not enough free buffers for another pod.
func (b *Buffers) Low() error {
	total, free := b.Counts()
	if total == 0 || free >= buffersReserve {
		return nil
	}
	return fmt.Errorf("VPP has %d of %d packet buffers left: raise buffers-per-numa in VPP's startup.conf (a TAP holds about 256)",
		free, total)
}

// Run polls the buffers every few seconds until ctx ends.
func (b *Buffers) Run(ctx context.Context) error {
	tick := time.NewTicker(buffersEvery)
	defer tick.Stop()
	for {
		if b.conn.State().Connected() {
			b.readUsage(ctx)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (b *Buffers) readUsage(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, buffersEvery)
	defer cancel()
	var reply vlib.CliInbandReply
	if err := b.conn.Invoke(ctx, &vlib.CliInband{Cmd: "show buffers"}, &reply); err != nil {
		b.log.Debug("show buffers failed", "error", err)
		return
	}
	total, free := parseBuffers(reply.Reply)
	b.total.Store(total)
	b.free.Store(free)
	err := b.Low()
	if err != nil && !b.warned {
		b.log.Warn("new pods may get no packets", "error", err)
	}
	b.warned = err != nil
}

// parseBuffers parses the table of "show buffers": one line per pool, with the columns Total, Avail and Cached. It returns
// the pool with the fewest free buffers, since interfaces use the pool of their NUMA node; a text without a pool yields
// zeros.
func parseBuffers(text string) (total, free int64) {
	columns := map[string]int{}
	for line := range strings.Lines(text) {
		line = strings.ReplaceAll(line, "Data Size", "Data")
		line = strings.ReplaceAll(line, "Pool Name", "Pool")
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "Pool" {
			for i, name := range fields {
				columns[name] = i
			}
			continue
		}
		n := func(column string) int64 {
			i, ok := columns[column]
			if !ok || i >= len(fields) {
				return -1
			}
			v, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return -1
			}
			return v
		}
		t, avail, cached := n("Total"), n("Avail"), n("Cached")
		if t <= 0 || avail < 0 || cached < 0 {
			continue
		}
		if total == 0 || avail+cached < free {
			total, free = t, avail+cached
		}
	}
	return total, free
}
