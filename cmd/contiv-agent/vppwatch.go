//go:build linux

package main

import (
	"context"

	"contiv.dev/vswitch/dataplane/nb"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/contiv"
	"contiv.dev/vswitch/plugins/pathwatch"
)

// watch reports what of the data path through VPP is watched.
func (m *vppPlane) watch(a *agent, d *pathwatch.Deps) {
	path := &vppPath{a: a, m: m, endpoints: contiv.NewEndpoints(m.conn)}
	d.Echo, d.AsksGateway, d.Dataplane, d.Table, d.Limits = pathwatch.NewPinger(), true, path, path, path
}

// vppPath is the data path through VPP.
type vppPath struct {
	a         *agent
	m         *vppPlane
	endpoints *contiv.Endpoints

	// At the last look: what NAT has refused, and what our plugin counts (nil: VPP does not have it).
	refused     uint64
	connections *vpp.Connections
	// refusing is the list that the plugin gave when it had refused so many connections of senders with too many.
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

// Sessions implements pathwatch.SessionTable. NAT44 makes room when there is need, by sessions whose time is over: how many it has
// says little. Our plugin keeps connections until their time is over, and refuses new ones when there is no room; of its two
// tables the fuller one counts.
func (p *vppPath) Sessions() pathwatch.Sessions {
	if c := p.connections; c != nil {
		return pathwatch.Sessions{
			Used: max(c.IPv4, c.IPv6), Limit: c.Max, TellsRefused: true, Refused: c.TableRefused, Keeps: true,
			ListCommand: "vppctl show contiv endpoints",
		}
	}
	used, limit := p.m.natUsed.Counts()
	return pathwatch.Sessions{Used: uint64(used), Limit: uint64(limit), TellsRefused: true, Refused: p.refused}
}

// Refusing implements pathwatch.Limits. VPP is asked only when its statistics have changed.
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

// link joins what VPP and the kernel count. An interface that is being made has no number; one of DPDK's has no device.
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
	if tap { // the device is the other end: what it receives is what VPP has sent, and what VPP does not fetch it drops
		link.Sent, link.Brought = link.Brought, link.Sent+dropped
	}
	return link
}
