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
	Rank   int // 0 identifies the host, and more is less suitable: single-IP, secondary or temporary, deprecated
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

// Addresses lists the host's own addresses: by link, those of a link in the order in which they identify the host. It omits those of
// loopback, of links of containers, virtual machines (docker, virbr, …) and services (kube-ipvs0), and of links that lead to VPP,
// link-local addresses, and duplicates of other machines' addresses.
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
		addrs, err := s.addrs(0)
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
	for _, a := range preferred(addrs) {
		name := names[a.index]
		if ip := a.prefix.Addr(); name != "" && a.flags&unix.IFA_F_DADFAILED == 0 && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() {
			out.addresses = append(out.addresses, HostAddress{name, a.prefix, a.rank()})
		}
	}
	slices.SortStableFunc(out.addresses, func(x, y HostAddress) int { return strings.Compare(x.Link, y.Link) })
	return out
}

// preferred returns the addresses of each link in the order in which they identify the host: IPv4 before IPv6, and within a family first
// those that stay on the link. A keepalived VIP, a temporary IPv6 address or a deprecated one comes later, however low it is.
func preferred(addrs []addrInfo) []addrInfo {
	var v4, v6 []addrInfo
	for _, a := range addrs {
		if a.prefix.Addr().Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	slices.Reverse(v6) // the kernel lists them in the opposite order of their addition
	byRank := func(x, y addrInfo) int { return x.rank() - y.rank() }
	slices.SortStableFunc(v4, byRank)
	slices.SortStableFunc(v6, byRank)
	return slices.Concat(v4, v6)
}

// rank returns 0 for an address that identifies the host, and more for one that is less suitable.
func (a addrInfo) rank() int {
	switch {
	case a.flags&unix.IFA_F_DEPRECATED != 0, a.flags&unix.IFA_F_TENTATIVE != 0 && a.flags&unix.IFA_F_OPTIMISTIC == 0:
		return 3
	case a.flags&(unix.IFA_F_SECONDARY|unix.IFA_F_TEMPORARY) != 0:
		return 2
	case a.prefix.IsSingleIP(): // a VIP usually, but some clouds give their machines such addresses only
		return 1
	}
	return 0
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
	return l.flags&unix.IFF_LOOPBACK == 0 && !isOurs(l) && !isContainers(l.name)
}

// isContainers reports whether the addresses of a link belong to containers, virtual machines or services. These are often the same on
// every node. Dummy devices with other names count as the host's: routing daemons announce their addresses.
func isContainers(name string) bool {
	for _, prefix := range []string{"docker", "podman", "cni-podman", "virbr", "lxcbr", "lxdbr", "kube-ipvs", "kube-bridge", "nodelocaldns"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	id, is := strings.CutPrefix(name, "br-") // a network of Docker: br-0123456789ab
	return name == "cni0" || is && len(id) == dockerID && strings.Trim(id, "0123456789abcdef") == ""
}

// dockerID is the number of digits in the name of the bridge of a Docker network.
const dockerID = 12

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
