package nat44

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

// Frontend is an address and port at which clients reach a service.
type Frontend struct {
	netip.AddrPort
	Proto uint8 // IP protocol
}

// errNoPlugin reports that the contiv plugin is missing: NAT44 cannot report at low cost which service its sessions belong to.
var errNoPlugin = errors.New("VPP counts connections by service with the contiv plugin only")

// Frontends counts the connections of services by frontend. VPP answers with some hundred at a time and forwards packets in between.
func (n *Users) Frontends(ctx context.Context) (map[Frontend]int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[Frontend]int{}
	for _, v6 := range []bool{false, true} {
		for cursor := uint32(0); ; {
			next, err := n.page(ctx, v6, cursor, out)
			if errors.Is(err, conn.ErrUnknownMessage) {
				return nil, errNoPlugin
			}
			if err != nil {
				return nil, fmt.Errorf("vpp: count connections by service: %w", err)
			}
			if next == 0 {
				break
			}
			if next == cursor {
				return nil, errors.New("vpp: count connections by service: VPP does not continue its answer")
			}
			cursor = next
		}
	}
	return out, nil
}

// page counts one page of the connections; next is the cursor of the next page, 0 after the last one.
func (n *Users) page(ctx context.Context, v6 bool, cursor uint32, out map[Frontend]int) (next uint32, failed error) {
	req := &contiv.ContivConnectionGet{IsIP6: v6, Cursor: cursor, SwIfIndex: ^interface_types.InterfaceIndex(0)}
	conn.DumpPage(n.lane, req, func(d *contiv.ContivConnectionDetails) {
		if d.Frontend == d.Backend && d.FrontendPort == d.BackendPort {
			return // the connection was not translated
		}
		out[Frontend{netip.AddrPortFrom(kit.FromAddress(d.Frontend), d.FrontendPort), d.Protocol}]++
	}, func(reply *contiv.ContivConnectionGetReply, err error) {
		failed = err
		if reply != nil {
			next = reply.Next
		}
	})
	n.lane.Flush(ctx)
	return next, failed
}
