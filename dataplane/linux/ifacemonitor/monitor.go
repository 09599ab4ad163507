package ifacemonitor

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

const (
	// eventBuffer holds some thousand notifications while the receiver of ours is busy.
	eventBuffer = 8 << 20
	// retryPause is how long after a failure the monitor starts again.
	retryPause = time.Second
)

// Monitor watches the links and addresses of a network namespace.
type Monitor struct {
	watch   netlink.Watch
	updates chan any
	listed  atomic.Bool
	view    *view
}

// New is a monitor of a namespace, nil for the process's own. log may be nil.
func New(cfg Config, ns *nsdo.Namespace, log *slog.Logger) *Monitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	m := &Monitor{updates: make(chan any, 256), view: newView(cfg.InterfaceExcludes)}
	m.watch = netlink.Watch{
		Log: log, Resync: cfg.ResyncInterval, Pause: retryPause, Listed: m.list, Changed: m.change,
		Open: func() (netlink.LinkSource, error) { return netlink.OpenLinks(ns, eventBuffer) },
	}
	return m
}

// Updates delivers *IfaceStateUpdate, *IfaceMTUUpdate and *IfaceAddrsUpdate. It is never closed.
func (m *Monitor) Updates() <-chan any { return m.updates }

// Listed is true once all that was there at first has been put into Updates. It may be called from any goroutine.
func (m *Monitor) Listed() bool { return m.listed.Load() }

// Run watches until ctx ends: a job. What fails is logged and tried again. While Updates is not read, it waits.
func (m *Monitor) Run(ctx context.Context) error { return m.watch.Run(ctx) }

// list reports what is new in a listing.
func (m *Monitor) list(ctx context.Context, all netlink.LinkListing) error {
	if err := m.report(ctx, m.view.listed(all.Links, all.Addrs, all.Lost)); err != nil {
		return err
	}
	m.listed.Store(true)
	return nil
}

// change reports what notifications say.
func (m *Monitor) change(ctx context.Context, news []netlink.LinkChange) error {
	var updates []any
	for _, n := range news {
		switch {
		case n.Link == nil:
			updates = append(updates, m.view.addrChanged(n.Addr, !n.Gone)...)
		case n.Gone:
			updates = append(updates, m.view.linkGone(n.Link.Index)...)
		default:
			updates = append(updates, m.view.linkChanged(*n.Link)...)
		}
	}
	return m.report(ctx, updates)
}

func (m *Monitor) report(ctx context.Context, news []any) error {
	for _, u := range news {
		select {
		case m.updates <- u:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
