package vpp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// NATTarget names sessions by where they lead to.
type NATTarget struct {
	Addr  netip.Addr // of the backend
	Port  uint16     // of the backend; 0: any
	Proto uint8      // IP protocol; 0: any
	VRF   uint32     // the backend's table
	// External is the address and port that clients use; the zero value: any.
	External netip.AddrPort
}

// NATFlusher ends NAT sessions: those of UDP to a backend that has gone, which would go on as long as the client sends, and
// those of any protocol to a pod that has gone. Its methods may be called from any goroutine.
type NATFlusher struct {
	mu   sync.Mutex
	lane *conn.Lane
}

// NewNATFlusher uses a lane of its own.
func NewNATFlusher(c *conn.Conn) *NATFlusher { return &NATFlusher{lane: c.Lane()} }

var errNATWorkers = errors.New("VPP 25.10 looks for a session on the wrong one of several workers " +
	"and may delete another one; run VPP with at most one worker")

// Flush ends the sessions that lead to any of the targets, and says how many there were. Its cost to VPP is one walk through
// all sessions for each different address.
func (n *NATFlusher) Flush(ctx context.Context, targets ...NATTarget) (ended int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	byAddr := map[netip.Addr][]NATTarget{}
	for _, t := range targets {
		byAddr[t.Addr] = append(byAddr[t.Addr], t)
	}
	workers := 0
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	conn.Dump(n.lane, &nat44_ed.NatWorkerDump{}, func(*nat44_ed.NatWorkerDetails) { workers++ }, note)
	n.lane.Flush(ctx)
	if workers > 1 {
		note(errNATWorkers)
	}
	if len(errs) > 0 {
		return 0, fmt.Errorf("vpp: flush NAT sessions: %w", errors.Join(errs...))
	}
	for a, list := range byAddr {
		if !a.Is4() {
			continue
		}
		conn.Dump(n.lane, &nat44_ed.Nat44UserSessionV3Dump{IPAddress: a.As4()}, func(d *nat44_ed.Nat44UserSessionV3Details) {
			for _, t := range list {
				if t.matches(d) {
					endNATSession(n.lane, d, t.VRF, func(ok bool, err error) {
						if ok {
							ended++
						}
						note(err)
					})
					return
				}
			}
		}, note)
	}
	n.lane.Flush(ctx)
	if err := errors.Join(errs...); err != nil {
		return ended, fmt.Errorf("vpp: flush NAT sessions: %w", err)
	}
	return ended, nil
}

func (t NATTarget) matches(d *nat44_ed.Nat44UserSessionV3Details) bool {
	if t.Port != 0 && t.Port != d.InsidePort || t.Proto != 0 && uint16(t.Proto) != d.Protocol {
		return false
	}
	return t.External == netip.AddrPort{} || t.External == netip.AddrPortFrom(netip.AddrFrom4(d.OutsideIPAddress), d.OutsidePort)
}

// endNATSession ends one session. VPP finds it by its side behind NAT, where with twice-NAT the client has another address. It
// may have ended by itself.
func endNATSession(lane *conn.Lane, d *nat44_ed.Nat44UserSessionV3Details, vrf uint32, done func(ended bool, err error)) {
	req := &nat44_ed.Nat44DelSession{
		Address: d.InsideIPAddress, Port: d.InsidePort, Protocol: uint8(d.Protocol), VrfID: vrf, Flags: nat_types.NAT_IS_INSIDE,
		ExtHostAddress: d.ExtHostAddress, ExtHostPort: d.ExtHostPort,
	}
	if d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		req.ExtHostAddress, req.ExtHostPort = d.ExtHostNatAddress, d.ExtHostNatPort
	}
	lane.Request(req, func(_ api.Message, err error) {
		if conn.IsRetval(err, api.NO_SUCH_ENTRY) {
			done(false, nil)
			return
		}
		done(err == nil, err)
	})
}

// natSessionsEvery is how often the sessions are counted, natStatsTimeout how long VPP's socket is waited for.
const (
	natSessionsEvery = 5 * time.Second
	natStatsTimeout  = 100 * time.Millisecond
)

// NATSessions counts VPP's NAT sessions, from its statistics segment: asking for them would keep VPP from its packets.
type NATSessions struct {
	socket      string
	log         *slog.Logger
	used, limit atomic.Int64
	warned      bool
}

// NewNATSessions counts nothing before Run. statsSocket is VPP's, normally /run/vpp/stats.sock.
func NewNATSessions(statsSocket string, log *slog.Logger) *NATSessions {
	return &NATSessions{socket: statsSocket, log: log.With("component", "vpp-nat")}
}

// Counts are the sessions there are, and how many each worker may have; zeros while nothing is known, and the limit while NAT
// has never been on.
func (n *NATSessions) Counts() (used, limit int64) { return n.used.Load(), n.limit.Load() }

// Run counts every few seconds until ctx ends. VPP may come and go.
func (n *NATSessions) Run(ctx context.Context) error {
	tick := time.NewTicker(natSessionsEvery)
	defer tick.Stop()
	for {
		n.look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (n *NATSessions) look() {
	used, limit, err := readNATSessions(n.socket)
	if err != nil {
		n.log.Debug("VPP's statistics cannot be read", "socket", n.socket, "error", err)
		used, limit = 0, 0
	}
	n.used.Store(used)
	n.limit.Store(limit)
	low := limit > 0 && used > limit*9/10
	if low && !n.warned {
		n.log.Warn("VPP is running out of NAT sessions: new connections will fail", "sessions", used, "limit", limit)
	}
	n.warned = low
}

// readNATSessions connects each time: a client that stays would show the numbers of a VPP that is gone.
func readNATSessions(socket string) (used, limit int64, err error) {
	client := statsclient.NewStatsClient(socket, statsclient.SetSocketRetryTimeout(natStatsTimeout))
	if err := client.Connect(); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, client.Disconnect()) }()
	entries, err := client.DumpStats("^/nat44-ed/total-sessions$", "^/nat44-ed/max-cfg-sessions$")
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		switch data := e.Data.(type) {
		case adapter.SimpleCounterStat:
			for _, worker := range data {
				for _, c := range worker {
					used += int64(c)
				}
			}
		case adapter.ScalarStat:
			limit = int64(data)
		}
	}
	return used, limit, nil
}
