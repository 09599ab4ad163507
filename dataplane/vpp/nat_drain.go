package vpp

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

const (
	drainEvery  = time.Second     // between two looks
	drainSlowly = 5 * time.Second // …at backends that went drainRecent ago and still have connections
	drainRecent = time.Minute
	// drainAfter is how long a backend has to be away: one that flaps, or terminates in order, still serves.
	drainAfter   = 2 * time.Second
	drainMost    = 60 // addresses in one look: VPP walks through all its sessions for each
	drainRequest = 64 // bytes, at least what one request takes; see Lane.Together
	// drainQuiet is after how many seconds without a packet a connection that was closed, or never came about, has ended.
	drainQuiet = 1
)

// NATDrain ends what is left of TCP connections to backends that have left their service. The connections themselves may go on:
// backends that terminate finish what they have begun. But VPP keeps the session of a closed connection for tcp-transitory, and
// would send the client's next one from the same port to the same backend, which may be gone by then. Linux clients choose ports
// anew every ten seconds, so that happens to a busy one in every rolling update.
//
// VPP does not tell whether a connection is closed, only whether its session has timed out, and it has two timeouts, one for
// those that are open. So the other one is lowered while VPP is asked (scenario nat_closed of vppfake's contract): no packet is
// handled meanwhile without workers; with a worker, what comes in that moment for a closed connection begins a new one.
type NATDrain struct {
	conn     *conn.Conn
	lane     *conn.Lane // of the goroutine that runs Run
	settings NATSettings
	log      *slog.Logger
	wake     chan struct{}

	mu       sync.Mutex
	backends map[sessionTarget]*drainedBackend
}

type drainedBackend struct{ since, next time.Time }

// NewNATDrain knows of no backends. The settings are those of the agent.
func NewNATDrain(c *conn.Conn, settings NATSettings, log *slog.Logger) *NATDrain {
	settings.setDefaults()
	n := &NATDrain{conn: c, lane: c.Lane(), settings: settings, log: log.With("component", "vpp-nat"),
		wake: make(chan struct{}, 1), backends: map[sessionTarget]*drainedBackend{}}
	c.OnChange(func(conn.State) { n.nudge() })
	return n
}

func (n *NATDrain) nudge() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// drain is told what a mapping had, and has now. Several workers are left out: VPP then looks for sessions on the wrong one.
func (k *kinds) drain(m *natMapping, before, after []natBackend) {
	if n := k.deps.NATDrain; n != nil && m.External.Proto == protoTCP && !k.nat.handoff {
		n.change(m, before, after)
	}
}

func (n *NATDrain) change(m *natMapping, before, after []natBackend) {
	gone, come := goneBackends(before, after), goneBackends(after, before)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, b := range come {
		delete(n.backends, targetOf(m, b))
	}
	now := time.Now()
	for _, b := range gone {
		n.backends[targetOf(m, b)] = &drainedBackend{since: now, next: now.Add(drainAfter)}
	}
	if len(gone) > 0 {
		n.nudge()
	}
}

// Waiting is the number of backends, for each of their places, that have gone and have connections.
func (n *NATDrain) Waiting() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.backends)
}

// Run looks after the connections until ctx ends.
func (n *NATDrain) Run(ctx context.Context) error {
	for {
		if n.Waiting() == 0 || !n.conn.State().Connected() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-n.wake:
				continue
			}
		}
		wait := drainEvery
		if err := n.look(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, conn.ErrDisconnected) {
			n.log.Warn("closed connections to removed backends stay in VPP until they time out", "error", err)
			wait = drainSlowly
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// look looks at the backends whose time has come.
func (n *NATDrain) look(ctx context.Context) error {
	now := time.Now()
	due := n.due(now)
	left := map[sessionTarget]int{}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	// One address at a time: a client that uses its port again between VPP's answer and the end of the session loses its connection.
	for a, targets := range due {
		n.lane.Together(4*drainRequest, func() {
			n.setTransitory(drainQuiet, note)
			n.ask(a, targets, left, note)
			n.setTransitory(n.settings.TCPTransitory, note)
		})
		n.lane.Flush(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return err // all are looked at again
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, targets := range due {
		for _, t := range targets {
			switch b := n.backends[t]; {
			case b == nil || b.since.After(now): // is back, or has gone once more
			case left[t] == 0:
				delete(n.backends, t)
			case now.Sub(b.since) > drainRecent:
				b.next = now.Add(drainSlowly)
			default:
				b.next = now
			}
		}
	}
	return nil
}

// due are those to be looked at, by address; of too many those that have waited longest.
func (n *NATDrain) due(now time.Time) map[netip.Addr][]sessionTarget {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := map[netip.Addr]time.Time{}
	for t, b := range n.backends {
		if at, ok := first[t.addr]; !b.next.After(now) && (!ok || b.next.Before(at)) {
			first[t.addr] = b.next
		}
	}
	addrs := make([]netip.Addr, 0, len(first))
	for a := range first {
		addrs = append(addrs, a)
	}
	if len(addrs) > drainMost {
		slices.SortFunc(addrs, func(a, b netip.Addr) int { return first[a].Compare(first[b]) })
		addrs = addrs[:drainMost]
	}
	due := make(map[netip.Addr][]sessionTarget, len(addrs))
	for _, a := range addrs {
		due[a] = nil
	}
	for t := range n.backends {
		if _, ok := due[t.addr]; ok {
			due[t.addr] = append(due[t.addr], t)
		}
	}
	return due
}

func (n *NATDrain) setTransitory(seconds uint32, note func(error)) {
	s := n.settings
	n.lane.Request(&nat44_ed.NatSetTimeouts{UDP: s.UDP, TCPEstablished: s.TCPEstablished, TCPTransitory: seconds, ICMP: s.ICMP},
		func(_ api.Message, err error) { note(err) })
}

// ask counts the sessions that stay, and ends the others.
func (n *NATDrain) ask(a netip.Addr, targets []sessionTarget, left map[sessionTarget]int, note func(error)) {
	var sessions []nat44_ed.Nat44UserSessionV3Details
	conn.Dump(n.lane, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: a.As4()}, func(d *nat44_ed.Nat44UserSessionV3Details) {
		sessions = append(sessions, *d)
	}, func(err error) {
		note(err)
		open := openFlows(sessions)
		for i := range sessions {
			d := &sessions[i]
			for _, t := range targets {
				switch {
				case !t.matches(d) || d.Flags&nat_types.NAT_IS_STATIC == 0:
				case !hasEnded(d) || open[flowOf(d)]:
					left[t]++
				default:
					endNATSession(n.lane, d, t.vrf, note)
				}
			}
		}
	})
}

// hasEnded: VPP rounds down the present time when it decides about timeouts, so that one of a second may be over at once.
func hasEnded(d *nat44_ed.Nat44UserSessionV3Details) bool {
	return d.IsTimedOut && d.TimeSinceLastHeard >= drainQuiet
}

// natFlow is what VPP knows the answers of a connection by. Those of two services may have it in common; then it is the newer
// one's, and would be lost with the older one (docs/adr/0009).
type natFlow struct {
	backend, client netip.AddrPort
	proto           uint16
}

func flowOf(d *nat44_ed.Nat44UserSessionV3Details) natFlow {
	client := netip.AddrPortFrom(netip.AddrFrom4(d.ExtHostAddress), d.ExtHostPort)
	if d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		client = netip.AddrPortFrom(netip.AddrFrom4(d.ExtHostNatAddress), d.ExtHostNatPort)
	}
	return natFlow{netip.AddrPortFrom(netip.AddrFrom4(d.InsideIPAddress), d.InsidePort), client, d.Protocol}
}

func openFlows(sessions []nat44_ed.Nat44UserSessionV3Details) map[natFlow]bool {
	open := map[natFlow]bool{}
	for i := range sessions {
		if d := &sessions[i]; !hasEnded(d) {
			open[flowOf(d)] = true
		}
	}
	return open
}
