package ifacemonitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
	"contiv.dev/vswitch/internal/nsdo"
)

const (
	// eventBuffer holds some thousand notifications while the receiver of ours is busy.
	eventBuffer = 8 << 20
	// retryPause is how long after a failure the monitor starts again.
	retryPause = time.Second
	// lossPause is how far apart listings are while notifications keep being lost.
	lossPause   = 100 * time.Millisecond
	listTimeout = 10 * time.Second
)

// kernel is where the monitor looks.
type kernel interface {
	// Receive waits for notifications. netlink.ErrLost: some did not come. os.ErrDeadlineExceeded: see SetDeadline.
	Receive(each func(typ uint16, payload []byte)) error
	SetDeadline(time.Time) error
	// Drain throws away what waits to be received: after ErrLost, before List.
	Drain() error
	List() ([]netlink.Link, []netlink.Address, error)
	Close() error
}

// Monitor watches the links and addresses of a network namespace.
type Monitor struct {
	resync  time.Duration
	log     *slog.Logger
	open    func() (kernel, error) // subscribes
	pause   time.Duration
	updates chan any
	listed  atomic.Bool
	view    *view
}

// New is a monitor of a namespace, nil for the process's own. log may be nil.
func New(cfg Config, ns *nsdo.Namespace, log *slog.Logger) *Monitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Monitor{
		resync:  cfg.ResyncInterval,
		log:     log,
		open:    func() (kernel, error) { return openSocket(ns, eventBuffer) },
		pause:   retryPause,
		updates: make(chan any, 256),
		view:    newView(cfg.InterfaceExcludes),
	}
}

// Updates delivers *IfaceStateUpdate, *IfaceMTUUpdate and *IfaceAddrsUpdate. It is never closed.
func (m *Monitor) Updates() <-chan any { return m.updates }

// Listed is true once all that was there at first has been put into Updates. It may be called from any goroutine.
func (m *Monitor) Listed() bool { return m.listed.Load() }

// Run watches until ctx ends: a job. What fails is logged and tried again. While Updates is not read, it waits.
func (m *Monitor) Run(ctx context.Context) error {
	for lost := false; ; lost = true {
		err := m.watch(ctx, lost)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m.log.Warn("links and addresses are not watched; retrying", "error", err, "after", m.pause)
		if err := wait(ctx, m.pause); err != nil {
			return err
		}
	}
}

// watch follows one subscription until it fails or ctx ends. lost says that there was one before.
func (m *Monitor) watch(ctx context.Context, lost bool) error {
	k, err := m.open()
	if err != nil {
		return err
	}
	defer k.Close()
	defer context.AfterFunc(ctx, func() { _ = k.SetDeadline(time.Unix(1, 0)) })()
	for {
		if err := m.list(ctx, k, lost); err != nil {
			return err
		}
		if lost, err = m.follow(ctx, k); err != nil {
			return err
		}
	}
}

// list lists everything and reports what is new.
func (m *Monitor) list(ctx context.Context, k kernel, lost bool) error {
	links, addrs, err := k.List()
	if err != nil {
		return err
	}
	if err := m.tell(ctx, m.view.listed(links, addrs, lost)); err != nil {
		return err
	}
	m.listed.Store(true)
	return nil
}

// follow reports what the notifications say, until it is time to list again. lost says that some were lost.
func (m *Monitor) follow(ctx context.Context, k kernel) (lost bool, err error) {
	var deadline time.Time // never
	if m.resync > 0 {
		deadline = time.Now().Add(m.resync)
	}
	for began := time.Now(); ; {
		if err := k.SetDeadline(deadline); err != nil {
			return lost, fmt.Errorf("set the deadline of notifications: %w", err)
		}
		if err := ctx.Err(); err != nil { // after SetDeadline: see watch
			return lost, err
		}
		var news []any
		err := k.Receive(func(typ uint16, payload []byte) { news = append(news, m.takeIn(typ, payload)...) })
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return lost, ctx.Err()
		case errors.Is(err, netlink.ErrLost):
			m.log.Info("notifications of links and addresses were lost; listing them all")
			lost, deadline = true, began.Add(lossPause)
			if err := k.Drain(); err != nil {
				return lost, err
			}
		case err != nil:
			return lost, err
		}
		if err := m.tell(ctx, news); err != nil {
			return lost, err
		}
	}
}

func (m *Monitor) takeIn(typ uint16, payload []byte) []any {
	switch typ {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		l, ok := netlink.ParseLink(payload)
		if ok && typ == unix.RTM_NEWLINK {
			return m.view.linkChanged(l)
		}
		if ok {
			return m.view.linkGone(l.Index)
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if a, ok := netlink.ParseAddress(payload); ok {
			return m.view.addrChanged(a, typ == unix.RTM_NEWADDR)
		}
	}
	return nil
}

func (m *Monitor) tell(ctx context.Context, news []any) error {
	for _, u := range news {
		select {
		case m.updates <- u:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
