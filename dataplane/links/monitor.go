package links

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// HostLink is a link of the agent's namespace.
type HostLink struct {
	Index int
	Name  string
	Alias string
	Kind  string // "veth", "tun", …; empty for a physical one
	MAC   net.HardwareAddr
	MTU   int
	Up    bool
}

// HostAddress is an address of the host.
type HostAddress struct {
	Link   string
	Prefix netip.Prefix
}

// HostMonitor watches the links and addresses of the namespace the agent runs in. It may be used from any goroutine.
type HostMonitor struct {
	log     *slog.Logger
	timeout time.Duration
}

const (
	// watchPause paces watching: however many addresses change, they are listed again at most this often.
	watchPause = 100 * time.Millisecond
	// watchRetry is when they are listed again if that failed.
	watchRetry = 2 * time.Second
	// eventBuffer is what the kernel keeps for us of notifications, in bytes.
	eventBuffer = 256 << 10
)

// NewHostMonitor is a monitor; log may be nil.
func NewHostMonitor(log *slog.Logger) *HostMonitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &HostMonitor{log: log, timeout: 5 * time.Second}
}

// Links lists all links, by index.
func (m *HostMonitor) Links(ctx context.Context) ([]HostLink, error) {
	var out []HostLink
	err := m.query(ctx, func(s *sock) error {
		links, err := s.links()
		for _, l := range links {
			out = append(out, HostLink{
				Index: int(l.index), Name: l.name, Alias: l.alias, Kind: l.kind, MAC: l.mac, MTU: int(l.mtu), Up: enabledUp(l),
			})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the host's links: %w", err)
	}
	slices.SortFunc(out, func(x, y HostLink) int { return x.Index - y.Index })
	return out, nil
}

// hostState is what Watch compares: the host's own addresses, and the MTUs of its own links.
type hostState struct {
	addresses []HostAddress
	mtus      map[string]uint32
}

// equal disregards links that appeared or disappeared: those of containers do so all the time.
func (h *hostState) equal(o *hostState) bool {
	for name, mtu := range h.mtus {
		if other, both := o.mtus[name]; both && other != mtu {
			return false
		}
	}
	return slices.Equal(h.addresses, o.addresses)
}

// Addresses lists the addresses that are the host's own: not those of loopback, of container bridges (docker, virbr) and of
// links that lead to VPP, and no link-local ones.
func (m *HostMonitor) Addresses(ctx context.Context) ([]HostAddress, error) {
	now, err := m.state(ctx)
	return now.addresses, err
}

func (m *HostMonitor) state(ctx context.Context) (out hostState, err error) {
	out.mtus = map[string]uint32{}
	err = m.query(ctx, func(s *sock) error {
		links, err := s.links()
		if err != nil {
			return err
		}
		names := map[int32]string{}
		for _, l := range links {
			if isHosts(l) {
				names[l.index], out.mtus[l.name] = l.name, l.mtu
			}
		}
		addrs, err := s.addrs()
		for _, a := range addrs {
			name := names[a.index]
			if ip := a.prefix.Addr(); name != "" && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
				out.addresses = append(out.addresses, HostAddress{name, a.prefix})
			}
		}
		return err
	})
	if err != nil {
		return hostState{}, fmt.Errorf("list the host's addresses: %w", err)
	}
	slices.SortFunc(out.addresses, func(x, y HostAddress) int {
		return firstOf(strings.Compare(x.Link, y.Link), x.Prefix.Addr().Compare(y.Prefix.Addr()), x.Prefix.Bits()-y.Prefix.Bits())
	})
	return out, nil
}

// firstOf is the first result that is not 0.
func firstOf(results ...int) int {
	for _, r := range results {
		if r != 0 {
			return r
		}
	}
	return 0
}

// isHosts reports whether the addresses of a link are the host's own.
func isHosts(l linkInfo) bool {
	return l.flags&unix.IFF_LOOPBACK == 0 && !isOurs(l) &&
		!strings.HasPrefix(l.name, "docker") && !strings.HasPrefix(l.name, "virbr")
}

// isOurs reports whether the agent has made the link.
func isOurs(l linkInfo) bool {
	for _, tag := range []string{tagPrefix, tagPeer} {
		if strings.HasPrefix(l.alias, tag) {
			return true
		}
	}
	for _, prefix := range []string{"vpp", "cali", "contiv-"} {
		if strings.HasPrefix(l.name, prefix) {
			return true
		}
	}
	return false
}

// Watch calls report with Addresses at first and whenever they, or the MTUs of the host's own links, have changed, until ctx ends. Run it
// as a job.
func (m *HostMonitor) Watch(ctx context.Context, report func([]HostAddress)) error {
	events, stop, err := subscribe(ctx, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return err
	}
	defer stop()
	var last hostState
	first, failing := true, false
	for {
		now, err := m.state(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !failing:
			m.log.Warn("the host's addresses are unknown; retrying", "error", err, "every", watchRetry)
		case err == nil && (first || !now.equal(&last)):
			report(slices.Clone(now.addresses))
			fallthrough
		case err == nil:
			first, last = false, now
		}
		if failing = err != nil; failing {
			err = pause(ctx, watchRetry)
		} else if err = next(ctx, events); err == nil {
			err = pause(ctx, watchPause)
		}
		if err != nil {
			return err
		}
	}
}

// WaitLink waits until the agent's namespace has a link called name, which is how a device that others make is waited for.
func (m *HostMonitor) WaitLink(ctx context.Context, name string) (HostLink, error) {
	events, stop, err := subscribe(ctx, unix.RTNLGRP_LINK)
	if err != nil {
		return HostLink{}, err
	}
	defer stop()
	for {
		links, err := m.Links(ctx)
		if err != nil {
			return HostLink{}, err
		}
		if i := slices.IndexFunc(links, func(l HostLink) bool { return l.Name == name }); i >= 0 {
			return links[i], nil
		}
		if err := next(ctx, events); err != nil {
			return HostLink{}, fmt.Errorf("wait for link %s: %w", name, err)
		}
	}
}

func (m *HostMonitor) query(ctx context.Context, ask func(s *sock) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := newSock(nil, m.timeout, nil)
	if err != nil {
		return err
	}
	defer s.close()
	return ask(s)
}

// subscribe opens a socket for notifications that closes when ctx ends.
func subscribe(ctx context.Context, groups ...int) (events *netlink.Events, stop func(), err error) {
	events, err = netlink.Subscribe(nil, eventBuffer, groups...)
	if err != nil {
		return nil, nil, err
	}
	release := context.AfterFunc(ctx, func() { events.Close() })
	return events, func() {
		if release() {
			events.Close()
		}
	}, nil
}

// next waits for a notification. One that was lost is as good as one that came: what has changed is looked up anyway.
func next(ctx context.Context, events *netlink.Events) error {
	err := events.Receive(func(uint16, []byte) {})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, netlink.ErrLost) {
		return events.Drain()
	}
	return err
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
