package contiv

import (
	"context"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// deniedEvery is how often our plugin is asked what network policy has denied. It keeps 256 packets for each worker.
const deniedEvery = time.Second

// Denied asks our plugin what network policy has denied.
type Denied struct {
	conn *conn.Conn
	lane *conn.Lane
}

// NewDenied asks nothing before WatchDenied.
func NewDenied(c *conn.Conn) *Denied { return &Denied{conn: c, lane: c.Lane()} }

// WatchDenied hands over what our plugin has denied, until ctx ends. A VPP that is away or has no plugin has denied nothing.
func (d *Denied) WatchDenied(ctx context.Context, each func(denied.Flow)) error {
	var boot string
	var after uint64
	tick := time.NewTicker(deniedEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s := d.conn.State()
		if !s.Connected() {
			continue
		}
		if s.BootID != boot {
			boot, after = s.BootID, 0 // another VPP counts from the beginning
		}
		after = d.ask(ctx, after, each)
	}
}

// ask returns the sequence of the newest packet.
func (d *Denied) ask(ctx context.Context, after uint64, each func(denied.Flow)) uint64 {
	var list []*contiv.ContivDeniedDetails
	conn.Dump(d.lane, &contiv.ContivDeniedGet{After: after}, func(m *contiv.ContivDeniedDetails) {
		list = append(list, m)
	}, func(error) {}) // the next question is soon
	d.lane.Flush(ctx)
	now := time.Now()
	for _, m := range list {
		after = max(after, m.Sequence)
		each(denied.Flow{
			Time: now.Add(-time.Duration(m.Age) * 100 * time.Millisecond), Ingress: m.Side == contiv.CONTIV_SIDE_API_INGRESS, Protocol: m.Protocol,
			Source:   netip.AddrPortFrom(kit.FromAddress(m.Source), m.SourcePort),
			Dest:     netip.AddrPortFrom(kit.FromAddress(m.Destination), m.DestinationPort),
			ICMPType: m.ICMPType, ICMPCode: m.ICMPCode,
		})
	}
	return after
}
