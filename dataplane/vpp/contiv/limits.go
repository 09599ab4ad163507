package contiv

import (
	"context"
	"fmt"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// EndpointConnections are those of an interface that our plugin cares for.
type EndpointConnections struct {
	Name    string // as the plugin has it: of a pod, namespace and name
	Open    uint64 // of both families
	Refused uint64 // because there were as many as there may be, since VPP has the interface
}

// Endpoints asks VPP for connections by interface. Not for concurrent use.
type Endpoints struct{ lane *conn.Lane }

// NewEndpoints asks nothing before Connections.
func NewEndpoints(c *conn.Conn) *Endpoints { return &Endpoints{lane: c.Lane()} }

// Connections lists all interfaces that the plugin cares for.
func (e *Endpoints) Connections(ctx context.Context) (out []EndpointConnections, err error) {
	conn.Dump(e.lane, &contiv.ContivEndpointDump{}, func(d *contiv.ContivEndpointDetails) {
		out = append(out, EndpointConnections{d.Name, uint64(d.Connections4) + uint64(d.Connections6), d.Refused})
	}, func(failed error) { err = failed })
	e.lane.Flush(ctx)
	if err != nil {
		return nil, fmt.Errorf("vpp: connections by interface: %w", err)
	}
	return out, nil
}
