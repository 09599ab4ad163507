package nat44

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/nat_types"

	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// sessionTarget identifies sessions of balanced mappings by their backend and their external address and port.
type sessionTarget struct {
	addr     netip.Addr
	port     uint16
	proto    uint8 // IP protocol
	vrf      uint32
	external netip.AddrPort
}

func targetOf(m *natMapping, b natBackend) sessionTarget {
	return sessionTarget{b.Addr, b.Port, m.External.Proto, b.VRF, netip.AddrPortFrom(m.External.Addr, m.External.Port)}
}

func (t sessionTarget) matches(d *nat44_ed.Nat44UserSessionV3Details) bool {
	return t.port == d.InsidePort && uint16(t.proto) == d.Protocol &&
		t.external == netip.AddrPortFrom(netip.AddrFrom4(d.OutsideIPAddress), d.OutsidePort)
}

// endNATSession ends one session. VPP can look it up by either side, but if two sessions have the same key on the inside, that finds
// only the newer one (docs/adr/0009). So the request identifies the session by the client's side first. VPP does not report the
// client's table: clients whose address is hidden (twice-NAT) are mostly outside, in table 0, the others are pods, like most
// backends. The session may have ended already.
func endNATSession(lane *conn.Lane, d *nat44_ed.Nat44UserSessionV3Details, vrf uint32, done func(error)) {
	request := func(flags nat_types.NatConfigFlags, table uint32) *nat44_ed.Nat44DelSession {
		return &nat44_ed.Nat44DelSession{
			Address: d.ExtHostAddress, Port: d.ExtHostPort, ExtHostAddress: d.OutsideIPAddress, ExtHostPort: d.OutsidePort,
			Protocol: uint8(d.Protocol), VrfID: table, Flags: flags,
		}
	}
	behind := request(nat_types.NAT_IS_INSIDE, vrf)
	behind.Address, behind.Port = d.InsideIPAddress, d.InsidePort
	behind.ExtHostAddress, behind.ExtHostPort = d.ExtHostAddress, d.ExtHostPort
	names := []*nat44_ed.Nat44DelSession{request(0, vrf), request(0, 0), behind}
	if d.Flags&nat_types.NAT_IS_TWICE_NAT != 0 {
		behind.ExtHostAddress, behind.ExtHostPort = d.ExtHostNatAddress, d.ExtHostNatPort
		names[0], names[1] = names[1], names[0]
	}
	endByAnyOf(lane, names, done)
}

func endByAnyOf(lane *conn.Lane, names []*nat44_ed.Nat44DelSession, done func(error)) {
	if len(names) == 0 {
		done(nil)
		return
	}
	lane.Request(names[0], func(_ api.Message, err error) {
		if conn.IsRetval(err, api.NO_SUCH_ENTRY) {
			endByAnyOf(lane, names[1:], done)
			return
		}
		done(err)
	})
}

// natSessionsEvery is the counting interval, natStatsTimeout the timeout for VPP's statistics socket.
const (
	natSessionsEvery = 5 * time.Second
	natStatsTimeout  = 100 * time.Millisecond
)

// Sessions counts VPP's NAT sessions, from its statistics segment: API requests for them would delay VPP's packet processing.
type Sessions struct {
	socket      string
	log         *slog.Logger
	used, limit atomic.Int64
	warned      bool
}

// NewSessions returns a counter that starts with Run. statsSocket is VPP's, normally /run/vpp/stats.sock.
func NewSessions(statsSocket string, log *slog.Logger) *Sessions {
	return &Sessions{socket: statsSocket, log: log.With("component", "vpp-nat")}
}

// Counts returns the number of sessions, and the limit of each worker; both are 0 while there is no data, and the limit is 0 while
// NAT has never been enabled.
func (n *Sessions) Counts() (used, limit int64) { return n.used.Load(), n.limit.Load() }

// Run counts every few seconds until ctx ends. VPP may stop and start in the meantime.
func (n *Sessions) Run(ctx context.Context) error {
	tick := time.NewTicker(natSessionsEvery)
	defer tick.Stop()
	for {
		n.Look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (n *Sessions) Look() {
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

// readNATSessions connects each time: a permanent client would return the numbers of a VPP process that has ended.
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
