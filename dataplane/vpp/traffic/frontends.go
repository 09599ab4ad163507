package traffic

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

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

// Frontends counts the connections of services by frontend.
func (n *Users) Frontends(ctx context.Context) (map[Frontend]int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := map[Frontend]int{}
	err := eachConnection(ctx, n.lane, func(d *contiv.ContivConnectionDetails) {
		if d.Frontend == d.Backend && d.FrontendPort == d.BackendPort {
			return // the connection was not translated
		}
		out[Frontend{netip.AddrPortFrom(kit.FromAddress(d.Frontend), d.FrontendPort), d.Protocol}]++
	})
	if errors.Is(err, conn.ErrUnknownMessage) {
		return nil, errNoPlugin
	}
	if err != nil {
		return nil, fmt.Errorf("vpp: count connections by service: %w", err)
	}
	return out, nil
}
