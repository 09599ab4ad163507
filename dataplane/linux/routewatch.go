package intdataplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/routetable"
	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

// Programs that configure the host's NICs, such as systemd-networkd, remove routes over them that they have not made. Without an overlay these
// are our routes to other nodes, so their removal is watched; the periodic comparison would restore them more than a minute later.

// routesRemoved is the message that routes with our protocol number and a next hop were removed, by another program or by this driver.
type routesRemoved struct {
	dsts []netip.Prefix
	lost bool // notifications were lost: any route may have been removed
}

const (
	routeEventBuffer = 1 << 20
	// routeSettle is the time for which removals are collected.
	routeSettle = 100 * time.Millisecond
	// routeRetry is the pause after a failure.
	routeRetry = time.Second
)

// routeWatch watches the removal of routes in a namespace.
type routeWatch struct {
	ns       *nsdo.Namespace
	protocol uint8 // of our routes
	log      *slog.Logger
	updates  chan any
}

func newRouteWatch(ns *nsdo.Namespace, protocol int, log *slog.Logger) *routeWatch {
	return &routeWatch{ns: ns, protocol: uint8(protocol), log: log, updates: make(chan any, 16)}
}

// run watches until ctx ends; it runs as a job.
func (w *routeWatch) run(ctx context.Context) error {
	for {
		err := w.once(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.log.Warn("the removal of routes is not watched; retrying", "error", err, "retryIn", routeRetry)
		timer := time.NewTimer(routeRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		if err := w.send(ctx, &routesRemoved{lost: true}); err != nil {
			return err
		}
	}
}

// once follows one subscription until it fails or ctx ends.
func (w *routeWatch) once(ctx context.Context) error {
	events, err := netlink.Subscribe(w.ns, routeEventBuffer, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE)
	if err != nil {
		return err
	}
	defer events.Close()
	defer context.AfterFunc(ctx, func() { _ = events.SetDeadline(time.Unix(1, 0)) })()
	for {
		news, err := w.collect(ctx, events)
		if err != nil {
			return err
		}
		if err := w.send(ctx, news); err != nil {
			return err
		}
	}
}

// collect waits for removals, and returns those that follow each other closely together.
func (w *routeWatch) collect(ctx context.Context, events *netlink.Events) (*routesRemoved, error) {
	news, deadline := &routesRemoved{}, time.Time{} // no deadline before the first removal
	for {
		if err := events.SetDeadline(deadline); err != nil {
			return nil, fmt.Errorf("set the deadline of notifications: %w", err)
		}
		if err := ctx.Err(); err != nil { // after SetDeadline, which may have replaced that of the end
			return nil, err
		}
		err := events.Receive(func(typ uint16, payload []byte) {
			if typ != unix.RTM_DELROUTE {
				return
			}
			if dst, ok := routetable.ParseNextHop(payload, w.protocol); ok {
				news.dsts = append(news.dsts, dst)
			}
		})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return news, ctx.Err()
		case errors.Is(err, netlink.ErrLost):
			news.lost = true
			err = events.Drain()
		}
		if err != nil {
			return nil, err
		}
		if deadline.IsZero() && (news.lost || len(news.dsts) > 0) {
			deadline = time.Now().Add(routeSettle)
		}
	}
}

func (w *routeWatch) send(ctx context.Context, news *routesRemoved) error {
	select {
	case w.updates <- news:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
