package windataplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/dataplane/driver"
)

// machineAddresses returns the addresses of the machine's interfaces.
func machineAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of the node: %w", err)
	}
	var addrs []netip.Addr
	for _, a := range list {
		p, err := netip.ParsePrefix(a.String())
		if err == nil {
			addrs = append(addrs, p.Addr().Unmap())
		}
	}
	return addrs, nil
}

// hostWatch polls the node's own addresses and notifies the loop when they have changed.
type hostWatch struct {
	query    func() ([]netip.Addr, error)
	interval time.Duration
	clock    driver.Clock
	log      *slog.Logger
	updates  chan any
	reported atomic.Bool // the loop has received addresses at least once
}

func (w *hostWatch) run(ctx context.Context) error {
	var last []netip.Addr
	timer := w.clock.NewTimer(w.interval)
	defer timer.Stop()
	for {
		addrs, err := w.query()
		if err != nil {
			w.log.Warn("the node's own addresses are not known; it may not reach its pods", "error", err)
		}
		addrs = slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return !a.IsGlobalUnicast() })
		slices.SortFunc(addrs, netip.Addr.Compare)
		addrs = slices.Compact(addrs)
		if err == nil && (!w.reported.Load() || !slices.Equal(addrs, last)) {
			select {
			case w.updates <- &hostAddresses{addrs}:
			case <-ctx.Done():
				return nil
			}
			last = addrs
			w.reported.Store(true)
		}
		select {
		case <-timer.C():
			timer.Reset(w.interval)
		case <-ctx.Done():
			return nil
		}
	}
}
