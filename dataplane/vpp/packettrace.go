package vpp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// PacketTrace makes each VPP to which the agent connects trace the first packets of each kind of interface, for
// debugging: the CLI command "show trace" prints them. It implements contiv's setting enablePacketTrace.
type PacketTrace struct {
	cli  func(ctx context.Context, command string) (string, error)
	log  *slog.Logger
	wake chan struct{}
}

const (
	// tracePackets is the number of packets to trace of each kind: they stay in VPP's memory, about 2 kB each.
	tracePackets = 1000
	traceTimeout = 10 * time.Second
)

// traceNodes returns the graph nodes in which packets enter VPP; which of them exist depends on the plugins.
func traceNodes() []string {
	return []string{"virtio-input", "af-packet-input", "contiv-uplink-input", "memif-input", "dpdk-input"}
}

// NewPacketTrace returns a PacketTrace that is inactive before Run.
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

// Run starts a trace after each connection until ctx ends.
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

// begin clears the packets that were traced for a previous agent, since they would accumulate in VPP's memory, and starts
// a trace.
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
	t.log.Info("VPP traces packets; vppctl show trace has them", "packetsOfEachType", tracePackets)
	return nil
}
