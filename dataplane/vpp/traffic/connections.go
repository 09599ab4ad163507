package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"go.fd.io/govpp/binapi/interface_types"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// Connection is a connection in our plugin: the client's own address and the backend's.
type Connection struct {
	Proto           uint8
	Client, Backend netip.AddrPort
	Denied          bool // policy drops its packets
}

// ConnectionList lists the connections of our plugin. It is not safe for concurrent use.
type ConnectionList struct{ lane *conn.Lane }

// NewConnectionList returns a list with its own lane; it sends no requests before List.
func NewConnectionList(c *conn.Conn) *ConnectionList { return &ConnectionList{lane: c.Lane()} }

// List returns all connections.
func (l *ConnectionList) List(ctx context.Context) (list []Connection, err error) {
	err = eachConnection(ctx, l.lane, func(d *contiv.ContivConnectionDetails) {
		list = append(list, Connection{
			Proto: d.Protocol, Client: netip.AddrPortFrom(kit.FromAddress(d.Client), d.ClientPort),
			Backend: netip.AddrPortFrom(kit.FromAddress(d.Backend), d.BackendPort), Denied: d.Denied,
		})
	})
	if errors.Is(err, conn.ErrUnknownMessage) {
		return nil, errors.New("VPP lists connections with the contiv plugin only")
	}
	if err != nil {
		return nil, fmt.Errorf("vpp: list connections: %w", err)
	}
	return list, nil
}

// eachConnection visits all connections of our plugin. VPP answers with some hundred at a time and forwards packets in between.
func eachConnection(ctx context.Context, lane *conn.Lane, visit func(*contiv.ContivConnectionDetails)) error {
	for _, v6 := range []bool{false, true} {
		for cursor := uint32(0); ; {
			next, err := connectionPage(ctx, lane, v6, cursor, visit)
			if err != nil {
				return err
			}
			if next == 0 {
				break
			}
			if next == cursor {
				return errors.New("VPP returned the same cursor twice: the list of connections is incomplete")
			}
			cursor = next
		}
	}
	return nil
}

// connectionPage visits one page of the connections; next is the cursor of the next page, 0 after the last one.
func connectionPage(ctx context.Context, lane *conn.Lane, v6 bool, cursor uint32,
	visit func(*contiv.ContivConnectionDetails)) (next uint32, failed error) {
	req := &contiv.ContivConnectionGet{IsIP6: v6, Cursor: cursor, SwIfIndex: ^interface_types.InterfaceIndex(0)}
	conn.DumpPage(lane, req, visit, func(reply *contiv.ContivConnectionGetReply, err error) {
		failed = err
		if reply != nil {
			next = reply.Next
		}
	})
	lane.Flush(ctx)
	return next, failed
}
