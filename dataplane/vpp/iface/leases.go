package iface

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"go.fd.io/govpp/binapi/dhcp"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// leasesEvery is the polling interval: VPP reports a new lease only to the connection that started the client, which after a restart of
// the agent is not this one, and does not report a lost lease.
const leasesEvery = 2 * time.Second

// Lease is the result of a DHCP client.
type Lease struct {
	Address netip.Prefix
	Gateway netip.Addr // invalid if there is none
}

// Leases watches the DHCP clients of VPP's interfaces.
type Leases struct {
	conn *conn.Conn
	idx  *Index
	log  *slog.Logger
	// Every is the polling interval. Set it before Run.
	Every time.Duration
	wake  chan struct{}

	mu      sync.Mutex
	watched map[string]*watchedLease // by logical name of the interface
}

type watchedLease struct {
	callbacks []func(ip net.IP, network *net.IPNet, gateway net.IP)
	present   Lease
	reported  int // number of callbacks that were called with present
}

// NewLeases returns a watcher that sends no requests before Run.
func NewLeases(c *conn.Conn, idx *Index, log *slog.Logger) *Leases {
	return &Leases{
		conn: c, idx: idx, log: log.With("component", "vpp-dhcp"), Every: leasesEvery, wake: make(chan struct{}, 1),
		watched: map[string]*watchedLease{},
	}
}

// WatchDHCPLeases registers a callback for every lease of the interface with the given logical name: the current lease, then each lease
// that differs from the previous one. gateway is nil if the server names none. The callback is not called when a lease is lost; Lease
// reports that.
func (l *Leases) WatchDHCPLeases(ifName string, callback func(ip net.IP, network *net.IPNet, gateway net.IP)) error {
	if ifName == "" || callback == nil {
		return errors.New("vpp: watching DHCP leases takes the name of an interface and a callback")
	}
	l.mu.Lock()
	w := l.watched[ifName]
	if w == nil {
		w = &watchedLease{}
		l.watched[ifName] = w
	}
	w.callbacks = append(w.callbacks, callback)
	l.mu.Unlock()
	l.signal()
	return nil
}

// Lease returns the current lease of a watched interface.
func (l *Leases) Lease(ifName string) (Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.watched[ifName]
	if w == nil || !w.present.Address.IsValid() {
		return Lease{}, false
	}
	return w.present, true
}

func (l *Leases) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends.
func (l *Leases) Run(ctx context.Context) error {
	sub, err := l.conn.Subscribe(ctx, &dhcp.DHCPComplEvent{}, nil, 16)
	if err != nil {
		return fmt.Errorf("vpp: watch DHCP leases: %w", err)
	}
	defer sub.Close()
	lane := l.conn.Lane()
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	for {
		l.readLeases(ctx, lane)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-sub.C: // the event has no permanent name of the interface: poll all
		case <-l.wake:
		}
	}
}

// readLeases polls VPP's DHCP clients, if there is a subscriber.
func (l *Leases) readLeases(ctx context.Context, lane *conn.Lane) {
	l.mu.Lock()
	idle := len(l.watched) == 0
	l.mu.Unlock()
	if idle || !l.conn.State().Connected() {
		return
	}
	found := map[string]Lease{}
	var failed error
	conn.Dump(lane, &dhcp.DHCPClientDump{}, func(d *dhcp.DHCPClientDetails) {
		if name, ours := l.idx.NameByIndex(uint32(d.Client.SwIfIndex)); ours {
			found[name] = Lease{leasedPrefix(&d.Lease), leaseAddr(d.Lease.RouterAddress.Un.GetIP4())}
		}
	}, func(err error) { failed = err })
	lane.Flush(ctx)
	if failed != nil {
		l.log.Debug("dump of DHCP clients failed", "error", failed)
		return
	}
	for _, call := range l.compare(found) {
		call()
	}
}

// compare stores the leases found, and returns the callbacks that are due.
func (l *Leases) compare(found map[string]Lease) (calls []func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, w := range l.watched {
		now := found[name]
		if now != w.present {
			w.present, w.reported = now, 0
			if now.Address.IsValid() {
				l.log.Info("DHCP lease received", "interface", name, "address", now.Address, "gateway", now.Gateway)
			} else {
				l.log.Warn("DHCP lease lost; the client continues to send requests", "interface", name)
			}
		}
		if !now.Address.IsValid() {
			continue
		}
		for _, callback := range w.callbacks[w.reported:] {
			calls = append(calls, func() { callback(now.netIPs()) })
		}
		w.reported = len(w.callbacks)
	}
	return calls
}

func (l Lease) netIPs() (ip net.IP, network *net.IPNet, gateway net.IP) {
	network = &net.IPNet{IP: l.Address.Masked().Addr().AsSlice(), Mask: net.CIDRMask(l.Address.Bits(), 32)}
	if l.Gateway.IsValid() {
		gateway = l.Gateway.AsSlice()
	}
	return l.Address.Addr().AsSlice(), network, gateway
}
