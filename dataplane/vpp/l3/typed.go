package l3

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"go.fd.io/govpp/binapi/fib"
	"go.fd.io/govpp/binapi/ip"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// TypedRoutes finds routes that were added on VPP's command line. VPP prefers them to routes of the API, and the agent must not remove
// them. Its methods may be called from any goroutine.
type TypedRoutes struct {
	mu   sync.Mutex
	lane *conn.Lane
}

// NewTypedRoutes returns a TypedRoutes with its own lane.
func NewTypedRoutes(c *conn.Conn) *TypedRoutes { return &TypedRoutes{lane: c.Lane()} }

// In returns the destinations of these routes in a table, for both address families.
func (r *TypedRoutes) In(ctx context.Context, table uint32) ([]netip.Prefix, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []netip.Prefix
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	source := uint8(0)
	conn.Dump(r.lane, &fib.FibSourceDump{}, func(d *fib.FibSourceDetails) {
		if d.Src.Name == "CLI" {
			source = d.Src.ID
		}
	}, note)
	r.lane.Flush(ctx)
	if source == 0 && len(errs) == 0 {
		note(errors.New("VPP has no route source called CLI"))
	}
	for _, v6 := range []bool{false, true} {
		if len(errs) > 0 {
			break
		}
		conn.Dump(r.lane, &ip.IPRouteV2Dump{Src: source, Table: ip.IPTable{TableID: table, IsIP6: v6}},
			func(d *ip.IPRouteV2Details) { out = append(out, kit.FromPrefix(d.Route.Prefix)) }, note)
		r.lane.Flush(ctx)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("vpp: list the routes that were added at VPP's command line: %w", err)
	}
	return out, nil
}
