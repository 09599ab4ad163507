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
	// eventBuffer is the size in bytes of a buffer for some thousand notifications while the receiver of our updates is busy.
	eventBuffer = 8 << 20
	// retryPause is the delay before the monitor restarts after a failure.
	retryPause = time.Second
)

// Monitor watches the links and addresses of a network namespace.
type Monitor struct {
	watch   netlink.Watch
	updates chan any
	listed  atomic.Bool
	view    *view
}

// New returns a monitor of a namespace; nil means that of the process. log may be nil.
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

// Updates returns the channel of *IfaceStateUpdate, *IfaceMTUUpdate and *IfaceAddrsUpdate. It is never closed.
func (m *Monitor) Updates() <-chan any { return m.updates }

// Listed reports whether all initial links and addresses have been sent to Updates. It may be called from any goroutine.
func (m *Monitor) Listed() bool { return m.listed.Load() }

// Run watches until ctx ends; it runs as a job. Failures are logged and retried. It blocks while Updates is not read.
func (m *Monitor) Run(ctx context.Context) error { return m.watch.Run(ctx) }

// list reports the differences that a listing shows.
func (m *Monitor) list(ctx context.Context, all netlink.LinkListing) error {
	if err := m.report(ctx, m.view.listed(all.Links, all.Addrs, all.Lost)); err != nil {
		return err
	}
	m.listed.Store(true)
	return nil
}

// change reports the differences that notifications show.
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
