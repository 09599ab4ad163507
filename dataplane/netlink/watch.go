package netlink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/internal/nsdo"
)

const (
	// lossPause is the time between listings while notifications keep being lost.
	lossPause   = 100 * time.Millisecond
	listTimeout = 10 * time.Second
)

// Watch follows the links and addresses of a network namespace. It subscribes to the kernel's notifications before the first listing, so that
// no change is missed in between, and lists again whenever notifications were lost.
type Watch struct {
	Log *slog.Logger
	// Open returns a subscription: that of OpenLinks, or a fake.
	Open func() (LinkSource, error)
	// Resync is the period of full listings, in case the loss of notifications was not noticed; ≤ 0: never.
	Resync time.Duration
	// Pause is the time between a failure and the next start.
	Pause time.Duration
	// Listed receives a full listing, Changed receives notifications.
	Listed  func(context.Context, LinkListing) error
	Changed func(context.Context, []LinkChange) error
	// Settle is the time from the first notification to another full listing; 0: notifications cause no listing.
	Settle time.Duration
}

// LinkSource is the source of a Watch.
type LinkSource interface {
	// Receive waits for notifications. ErrLost: notifications were lost. os.ErrDeadlineExceeded: see SetDeadline.
	Receive(each func(typ uint16, payload []byte)) error
	SetDeadline(time.Time) error
	// Drain discards queued notifications: after ErrLost, before List.
	Drain() error
	// List lists all links by index, and all addresses.
	List() (LinkListing, error)
	Close() error
}

// LinkListing holds all links and addresses of a namespace.
type LinkListing struct {
	Links []Link
	Addrs []Address
	Torn  bool // the list changed during each try: entries may be missing
	Lost  bool // notifications were lost before the listing
}

// LinkChange is one notification: of a link, or else of an address.
type LinkChange struct {
	Link *Link
	Addr Address
	Gone bool
}

// Run watches until ctx ends. It is a job. Failures are logged and retried.
func (w *Watch) Run(ctx context.Context) error {
	for lost := false; ; lost = true {
		err := w.once(ctx, lost)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		w.Log.Warn("links and addresses are not watched; retrying", "error", err, "retryIn", w.Pause)
		if err := pause(ctx, w.Pause); err != nil {
			return err
		}
	}
}

// once follows one subscription until it fails or ctx ends. lost reports whether there was a subscription before.
func (w *Watch) once(ctx context.Context, lost bool) error {
	k, err := w.Open()
	if err != nil {
		return err
	}
	defer k.Close()
	defer context.AfterFunc(ctx, func() { _ = k.SetDeadline(time.Unix(1, 0)) })()
	for {
		all, err := k.List()
		if err != nil {
			return err
		}
		all.Lost = lost
		if err := w.Listed(ctx, all); err != nil {
			return err
		}
		if lost, err = w.follow(ctx, k); err != nil {
			return err
		}
	}
}

// follow passes on notifications until the next listing is due. lost is true if notifications were lost.
func (w *Watch) follow(ctx context.Context, k LinkSource) (lost bool, err error) {
	var deadline time.Time // never
	if w.Resync > 0 {
		deadline = time.Now().Add(w.Resync)
	}
	for began, settling := time.Now(), false; ; {
		if err := k.SetDeadline(deadline); err != nil {
			return lost, fmt.Errorf("set the deadline of notifications: %w", err)
		}
		if err := ctx.Err(); err != nil { // after SetDeadline: see once
			return lost, err
		}
		var news []LinkChange
		err := k.Receive(func(typ uint16, payload []byte) { news = appendChange(news, typ, payload) })
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return lost, ctx.Err()
		case errors.Is(err, ErrLost):
			w.Log.Info("notifications of links and addresses were lost; listing them all")
			lost, deadline = true, began.Add(lossPause)
			if err := k.Drain(); err != nil {
				return lost, err
			}
		case err != nil:
			return lost, err
		case w.Settle > 0 && !settling && !lost:
			settling, deadline = true, time.Now().Add(w.Settle)
		}
		if len(news) == 0 || w.Changed == nil {
			continue
		}
		if err := w.Changed(ctx, news); err != nil {
			return lost, err
		}
	}
}

func appendChange(news []LinkChange, typ uint16, payload []byte) []LinkChange {
	switch typ {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if l, ok := ParseLink(payload); ok {
			return append(news, LinkChange{Link: &l, Gone: typ == unix.RTM_DELLINK})
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if a, ok := ParseAddress(payload); ok {
			return append(news, LinkChange{Addr: a, Gone: typ == unix.RTM_DELADDR})
		}
	}
	return news
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// links is the LinkSource of the kernel.
type links struct {
	*Events
	conn *Conn
}

// OpenLinks subscribes to the links and addresses of a namespace, and to further groups. buffer is the size in bytes of the kernel's queue for
// the notifications.
func OpenLinks(ns *nsdo.Namespace, buffer int, further ...int) (LinkSource, error) {
	events, err := Subscribe(ns, buffer, append(further, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)...)
	if err != nil {
		return nil, err
	}
	conn, err := Dial(ns, unix.NETLINK_ROUTE, listTimeout)
	if err != nil {
		events.Close()
		return nil, err
	}
	return &links{events, conn}, nil
}

func (s *links) List() (all LinkListing, err error) {
	var b Batch
	b.GetLinks()
	wholeLinks, wholeAddrs := false, false
	if all.Links, wholeLinks, err = ListWhole(s.conn, &b, dumpTries, ParseLink); err != nil {
		return all, fmt.Errorf("list links: %w", err)
	}
	b.Reset()
	b.GetAddresses(0)
	if all.Addrs, wholeAddrs, err = ListWhole(s.conn, &b, dumpTries, ParseAddress); err != nil {
		return all, fmt.Errorf("list addresses: %w", err)
	}
	slices.SortFunc(all.Links, func(x, y Link) int { return cmp.Compare(x.Index, y.Index) })
	all.Torn = !wholeLinks || !wholeAddrs
	return all, nil
}

// Close ends the subscription.
func (s *links) Close() error {
	s.conn.Close()
	return s.Events.Close()
}
