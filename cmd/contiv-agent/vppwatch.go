//go:build linux

package main

import (
	"context"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/traffic"
	"contiv.dev/vswitch/plugins/pathwatch"
)

// watch sets what is watched of the data path through VPP.
func (m *vppPlane) watch(a *agent, d *pathwatch.Deps) {
	path := &vppPath{a: a, m: m, endpoints: traffic.NewEndpoints(m.conn)}
	d.Echo, d.ProbesGateway, d.Dataplane, d.Table, d.Limits = pathwatch.NewPinger(), true, path, path, path
}

// vppPath is the data path through VPP.
type vppPath struct {
	a         *agent
	m         *vppPlane
	endpoints *traffic.Endpoints

	// The values of the last round: what NAT has refused, and what our plugin counts (nil: VPP does not have it).
	refused     uint64
	connections *vpp.Connections
	// refusing is the list that the plugin returned when its count of connections refused to senders with too many was refusingAt.
	refusing   []pathwatch.Refusing
	refusingAt uint64
}

// Programmed implements pathwatch.Dataplane.
func (p *vppPath) Programmed() bool {
	ok, _ := p.a.controller.Ready()
	return ok && p.m.alive() == nil
}

// Alive implements pathwatch.Dataplane.
func (p *vppPath) Alive(ctx context.Context) error { return vpp.Ping(ctx, p.m.conn) }

// Sessions implements pathwatch.SessionTable. When NAT44 needs room it removes expired sessions, so its number of sessions means little. Our
// plugin keeps connections until they expire, and refuses new ones when there is no room; the fuller one of its two tables counts.
func (p *vppPath) Sessions() pathwatch.Sessions {
	if c := p.connections; c != nil {
		return pathwatch.Sessions{
			Used: max(c.IPv4, c.IPv6), Limit: c.Max, CountsRefused: true, Refused: c.TableRefused, Keeps: true,
			ListCommand: "vppctl show contiv endpoints",
		}
	}
	used, limit := p.m.natUsed.Counts()
	return pathwatch.Sessions{Used: uint64(used), Limit: uint64(limit), CountsRefused: true, Refused: p.refused}
}

// Refusing implements pathwatch.Limits. It queries VPP only when the count in VPP's statistics has changed.
func (p *vppPath) Refusing(ctx context.Context) ([]pathwatch.Refusing, error) {
	if p.connections == nil {
		p.refusing, p.refusingAt = nil, 0
		return nil, nil
	}
	now := p.connections.EndpointRefused
	if now == p.refusingAt {
		return p.refusing, nil
	}
	list, err := p.endpoints.Connections(ctx)
	if err != nil {
		return nil, err
	}
	p.refusing, p.refusingAt = nil, now
	for _, e := range list {
		p.refusing = append(p.refusing, pathwatch.Refusing{Name: e.Name, Open: e.Open, Refused: e.Refused})
	}
	return p.refusing, nil
}

// Links implements pathwatch.Dataplane.
func (p *vppPath) Links(context.Context) (uplink, host *pathwatch.Link, err error) {
	counters, err := vpp.ReadPathCounters(statsSocket(p.m.socket))
	if err != nil {
		return nil, nil, err
	}
	p.refused, p.connections = counters.NATRefused, counters.Connections
	return p.link(p.a.ipnet.MainInterface(), counters.Links), p.link(p.a.ipnet.HostInterface(), counters.Links), nil
}

// link joins the counters of VPP and of the kernel. An interface that is being created has no index; a DPDK interface has no device.
func (p *vppPath) link(name string, counters map[uint32]vpp.LinkCounters) *pathwatch.Link {
	index, ok := p.m.index.IfIndex(name)
	if name == "" || !ok {
		return nil
	}
	c := counters[index]
	link := &pathwatch.Link{
		Device: name, Present: true, Carrier: true, Offered: c.Offered, Refused: c.Refused, Taken: c.Taken,
	}
	dev, tap, ok := p.m.index.Device(name)
	if !ok {
		return link
	}
	link.Key = nb.VppInterfaceKey(name)
	dropped := readDevice(link, dev)
	if tap { // the device is the other end: it receives what VPP sends, and it drops what VPP does not fetch
		link.Sent, link.Brought = link.Brought, link.Sent+dropped
	}
	return link
}
