package vpp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// PacketTrace makes each VPP that the agent connects to trace the first packets of each kind of interface, for debugging:
// "show trace" of VPP's command line has them. contiv's enablePacketTrace.
type PacketTrace struct {
	cli  func(ctx context.Context, command string) (string, error)
	log  *slog.Logger
	wake chan struct{}
}

const (
	// tracePackets is how many packets are traced of each kind: they stay in VPP's memory, about 2 kB each.
	tracePackets = 1000
	traceTimeout = 10 * time.Second
)

// traceNodes are where packets come into VPP; which of them there are depends on the plugins.
func traceNodes() []string {
	return []string{"virtio-input", "af-packet-input", "contiv-uplink-input", "memif-input", "dpdk-input"}
}

// NewPacketTrace traces nothing before Run.
func NewPacketTrace(c *conn.Conn, log *slog.Logger) *PacketTrace {
	t := &PacketTrace{
		cli: func(ctx context.Context, command string) (string, error) { return CLI(ctx, c, command) },
		log: log.With("component", "vpp-packet-trace"), wake: make(chan struct{}, 1),
	}
	c.OnChange(func(s conn.State) {
		if s.Connected() {
			select {
			case t.wake <- struct{}{}:
			default:
			}
		}
	})
	return t
}

// Run begins a trace after each connection until ctx ends.
func (t *PacketTrace) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.wake:
		}
		if err := t.begin(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, conn.ErrDisconnected) {
			t.log.Warn("VPP does not trace packets, although enablePacketTrace is set", "error", err)
		}
	}
}

// begin forgets what was traced for an agent before: the packets would add up in VPP's memory.
func (t *PacketTrace) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, traceTimeout)
	defer cancel()
	if _, err := t.cli(ctx, "clear trace"); err != nil {
		return err
	}
	var errs []error
	for _, node := range traceNodes() {
		if _, err := t.cli(ctx, fmt.Sprintf("trace add %s %d", node, tracePackets)); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == len(traceNodes()) {
		return errors.Join(errs...)
	}
	t.log.Info("VPP traces packets; vppctl show trace has them", "of-each-kind", tracePackets)
	return nil
}
