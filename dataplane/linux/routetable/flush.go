package routetable

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/lifecycle"
)

const (
	flushTries = 3
	flushPause = 100 * time.Millisecond // between tries
	stopLimit  = 5 * time.Second
)

// flusher removes the connections of addresses in a background job, in the order in which the addresses were queued.
type flusher struct {
	name        string
	deleteFlows func(ctx context.Context, addrs []netip.Addr) error
	log         *slog.Logger
	group       *lifecycle.Group
	started     bool
	wake        chan struct{} // capacity 1

	mu      sync.Mutex
	queued  []netip.Addr
	waiting map[netip.Addr]*pass // queued or being processed
	next    *pass
}

// pass is one call of deleteFlows; done is closed after it.
type pass struct{ done chan struct{} }

func newFlusher(name string, deleteFlows func(context.Context, []netip.Addr) error, log *slog.Logger) *flusher {
	return &flusher{
		name: name, deleteFlows: deleteFlows, log: log, group: lifecycle.NewGroup(context.Background(), log),
		wake: make(chan struct{}, 1), waiting: map[netip.Addr]*pass{},
	}
}

// add queues addresses. An address that is being processed is queued again: it may have new connections.
func (f *flusher) add(addrs []netip.Addr) {
	if len(addrs) == 0 {
		return
	}
	f.mu.Lock()
	if f.next == nil {
		f.next = &pass{make(chan struct{})}
	}
	for _, a := range addrs {
		if f.waiting[a] != f.next {
			f.waiting[a] = f.next
			f.queued = append(f.queued, a)
		}
	}
	f.mu.Unlock()
	if !f.started {
		f.started = true
		f.group.Go(f.name, f.run)
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// pending returns a channel that is closed when the connections of an address have been removed; nil if there is nothing to wait for.
func (f *flusher) pending(a netip.Addr) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.waiting[a]; p != nil {
		return p.done
	}
	return nil
}

func (f *flusher) stop() error { return f.group.Stop(stopLimit) }

func (f *flusher) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
		}
		f.mu.Lock()
		addrs, p := f.queued, f.next
		f.queued, f.next = nil, nil
		f.mu.Unlock()
		if p == nil {
			continue
		}
		f.work(ctx, addrs)
		f.mu.Lock()
		for _, a := range addrs {
			if f.waiting[a] == p {
				delete(f.waiting, a)
			}
		}
		f.mu.Unlock()
		close(p.done)
	}
}

// work removes connections. If that fails permanently they are kept: the address's next owner must not lose its network because of that.
func (f *flusher) work(ctx context.Context, addrs []netip.Addr) {
	var err error
	for try := 1; try <= flushTries; try++ {
		if err = f.deleteFlows(ctx, addrs); err == nil {
			return
		}
		t := time.NewTimer(flushPause)
		select {
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
	if !errors.Is(err, context.Canceled) {
		f.log.Error("connections of removed addresses could not be deleted; the next owners of the addresses may see packets "+
			"of them: remove them with conntrack -D", "addresses", addrs, "error", err)
	}
}
