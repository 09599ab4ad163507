package links

import (
	"context"
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
	Kind  string // "veth", "tun", …; empty for a physical link
	MAC   net.HardwareAddr
	MTU   int
	Up    bool
}

// HostAddress is an address of the host.
type HostAddress struct {
	Link   string
	Prefix netip.Prefix
}

// HostMonitor watches the links and addresses of the agent's network namespace. It may be used from any goroutine.
type HostMonitor struct {
	log     *slog.Logger
	timeout time.Duration
	open    func(further ...int) (netlink.LinkSource, error) // subscribes
}

const (
	// watchPause limits the rate: however many addresses change, they are listed at most once in this time.
	watchPause = 100 * time.Millisecond
	// watchRetry is the time after which a failed listing is repeated.
	watchRetry = 2 * time.Second
	// eventBuffer is the size in bytes of the kernel's queue for our notifications.
	eventBuffer = 256 << 10
)

// NewHostMonitor returns a monitor; log may be nil.
func NewHostMonitor(log *slog.Logger) *HostMonitor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &HostMonitor{log: log, timeout: 5 * time.Second, open: func(further ...int) (netlink.LinkSource, error) {
		return netlink.OpenLinks(nil, eventBuffer, further...)
	}}
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

// hostState is the state that Watch compares: the host's own addresses, and the MTUs of its own links.
type hostState struct {
	addresses []HostAddress
	mtus      map[string]uint32
}

// equal ignores links that appeared or disappeared: links of containers do so all the time.
func (h *hostState) equal(o *hostState) bool {
	for name, mtu := range h.mtus {
		if other, both := o.mtus[name]; both && other != mtu {
			return false
		}
	}
	return slices.Equal(h.addresses, o.addresses)
}

// Addresses lists the host's own addresses. It omits those of loopback, of container bridges (docker, virbr) and of links that lead to VPP, and
// link-local addresses.
func (m *HostMonitor) Addresses(ctx context.Context) ([]HostAddress, error) {
	now, err := m.state(ctx)
	return now.addresses, err
}

func (m *HostMonitor) state(ctx context.Context) (out hostState, err error) {
	err = m.query(ctx, func(s *sock) error {
		links, err := s.links()
		if err != nil {
			return err
		}
		addrs, err := s.addrs()
		out = stateOf(links, addrs)
		return err
	})
	if err != nil {
		return hostState{}, fmt.Errorf("list the host's addresses: %w", err)
	}
	return out, nil
}

func stateOf(links []linkInfo, addrs []addrInfo) hostState {
	out := hostState{mtus: map[string]uint32{}}
	names := map[int32]string{}
	for _, l := range links {
		if isHosts(l) {
			names[l.index], out.mtus[l.name] = l.name, l.mtu
		}
	}
	for _, a := range addrs {
		name := names[a.index]
		if ip := a.prefix.Addr(); name != "" && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
			out.addresses = append(out.addresses, HostAddress{name, a.prefix})
		}
	}
	slices.SortFunc(out.addresses, func(x, y HostAddress) int {
		return firstOf(strings.Compare(x.Link, y.Link), x.Prefix.Addr().Compare(y.Prefix.Addr()), x.Prefix.Bits()-y.Prefix.Bits())
	})
	return out
}

// firstOf returns the first result that is not 0.
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

// isOurs reports whether the agent has created the link.
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

// Watch calls report with Addresses at the start and whenever they, or the MTUs of the host's own links, have changed, until ctx ends. Run it
// as a job.
func (m *HostMonitor) Watch(ctx context.Context, report func([]HostAddress)) error {
	var last *hostState
	w := netlink.Watch{
		Log: m.log, Pause: watchRetry, Settle: watchPause,
		Open: func() (netlink.LinkSource, error) { return m.open() },
		Listed: func(_ context.Context, all netlink.LinkListing) error {
			now := stateOf(mapped(all.Links, infoOf), mapped(all.Addrs, addrInfoOf))
			if all.Torn {
				return nil // the list has changed, so it is listed again
			}
			if last == nil || !now.equal(last) {
				report(slices.Clone(now.addresses))
			}
			last = &now
			return nil
		},
	}
	return w.Run(ctx)
}

func mapped[A, B any](list []A, to func(A) B) []B {
	out := make([]B, len(list))
	for i, v := range list {
		out[i] = to(v)
	}
	return out
}

func (m *HostMonitor) query(ctx context.Context, query func(s *sock) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := newSock(nil, m.timeout, nil)
	if err != nil {
		return err
	}
	defer s.close()
	return query(s)
}
