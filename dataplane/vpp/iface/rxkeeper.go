package iface

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// RxModeKeeper sets the receive modes of memifs whenever their peer has connected: VPP makes the queues at that time, in its
// default mode (polling, which uses a full core), and ignores the mode that was set before.
type RxModeKeeper struct {
	conn *conn.Conn
	idx  *Index
	log  *slog.Logger
}

// rxKeeperRetry is the pause after VPP has refused to send events.
const rxKeeperRetry = 10 * time.Second

// NewRxModeKeeper returns a keeper of the memifs in idx; Run is its job.
func NewRxModeKeeper(c *conn.Conn, idx *Index, log *slog.Logger) *RxModeKeeper {
	return &RxModeKeeper{conn: c, idx: idx, log: log.With("component", "vpp-rx-modes")}
}

// Run listens for links that go up until ctx ends.
func (k *RxModeKeeper) Run(ctx context.Context) error {
	want := &interfaces.WantInterfaceEvents{EnableDisable: 1, PID: uint32(os.Getpid())}
	for ctx.Err() == nil {
		sub, err := k.conn.Subscribe(ctx, &interfaces.SwInterfaceEvent{}, want, 256)
		if err == nil {
			k.serve(ctx, sub)
			sub.Close()
			continue
		}
		if ctx.Err() == nil {
			k.log.Warn("VPP does not report link changes; memifs may be polled after their peer connects", "error", err)
			timer := time.NewTimer(rxKeeperRetry)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
	}
	return ctx.Err()
}

func (k *RxModeKeeper) serve(ctx context.Context, sub *conn.Subscription) {
	missed := sub.Dropped()
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-sub.C:
			e, ok := m.(*interfaces.SwInterfaceEvent)
			if now := sub.Dropped(); now != missed { // the dropped events are unknown
				missed = now
				k.setAll(ctx)
			} else if ok && !e.Deleted && e.Flags&interface_types.IF_STATUS_API_FLAG_LINK_UP != 0 {
				k.set(ctx, uint32(e.SwIfIndex))
			}
		}
	}
}

func (k *RxModeKeeper) setAll(ctx context.Context) {
	for _, index := range k.idx.Interfaces() {
		k.set(ctx, index)
	}
}

// set sends the desired modes of one interface, if it is a memif. The interface may have been deleted since.
func (k *RxModeKeeper) set(ctx context.Context, index uint32) {
	for _, req := range k.idx.RxModeRequests(index) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := k.conn.Invoke(ctx, req, &interfaces.SwInterfaceSetRxModeReply{})
		cancel()
		if err != nil && !errors.Is(err, conn.ErrDisconnected) && !kit.IsFine(err, kit.IfGone) {
			k.log.Warn("the receive mode of a memif whose peer has connected is not as configured; a resync sets it",
				"swIfIndex", index, "error", fmt.Errorf("set mode %s: %w", req.Mode, err))
		}
	}
}
