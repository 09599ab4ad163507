package traffic

import (
	"context"
	"net/netip"
	"time"

	"contiv.dev/vswitch/dataplane/denied"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// deniedEvery is the polling interval for denied packets. The plugin keeps the last 256 for each worker.
const deniedEvery = time.Second

// Denied polls our plugin for packets that network policy has denied.
type Denied struct {
	conn *conn.Conn
	lane *conn.Lane
}

// NewDenied returns a Denied that sends no requests before WatchDenied.
func NewDenied(c *conn.Conn) *Denied { return &Denied{conn: c, lane: c.Lane()} }

// WatchDenied calls each with every packet that our plugin has denied, until ctx ends. A VPP that is disconnected or has no
// plugin reports no packets.
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
			boot, after = s.BootID, 0 // the count of another VPP starts at 0
		}
		after = d.query(ctx, after, each)
	}
}

// query returns the sequence number of the newest packet.
func (d *Denied) query(ctx context.Context, after uint64, each func(denied.Flow)) uint64 {
	var list []*contiv.ContivDeniedDetails
	conn.Dump(d.lane, &contiv.ContivDeniedGet{After: after}, func(m *contiv.ContivDeniedDetails) {
		list = append(list, m)
	}, func(error) {}) // an error is ignored: the next poll follows soon
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
