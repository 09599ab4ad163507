package traffic

import (
	"context"
	"fmt"

	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
)

// EndpointConnections counts the connections of an interface that has an
// endpoint in our plugin.
type EndpointConnections struct {
	Name    string // the plugin's name of the endpoint: for a pod, namespace and name
	Open    uint64 // of both families
	Refused uint64 // refused at the limit of connections, since VPP has the interface
}

// Endpoints queries VPP for connections by interface. It is not safe for
// concurrent use.
type Endpoints struct{ lane *conn.Lane }

// NewEndpoints returns an Endpoints that sends no requests before Connections.
func NewEndpoints(c *conn.Conn) *Endpoints { return &Endpoints{lane: c.Lane()} }

// Connections lists all interfaces that have an endpoint in the plugin.
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
