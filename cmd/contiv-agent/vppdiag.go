//go:build linux

package main

import (
	"context"
	"slices"
	"time"

	"contiv.dev/vswitch/dataplane/links"
	"contiv.dev/vswitch/dataplane/vpp"
	"contiv.dev/vswitch/dataplane/vpp/l3"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/statscollector"
)

// diagnose adds the queries to VPP that contiv-netctl can send.
func (m *vppPlane) diagnose(a *agent, d *diag.Deps) {
	d.CLI = func(ctx context.Context, command string) (string, error) { return vpp.CLI(ctx, m.conn, command) }
	d.VPP = func(ctx context.Context) *diag.VPPInfo { return a.vppVersion(ctx, m) }
	d.Interfaces = func() []diag.Interface { return a.vppInterfaces(m) }
	d.Check = a.checkVPP(l3.NewTypedRoutes(m.conn))
}

// vppVersion returns the version of the connected VPP; nil if no VPP is connected.
func (a *agent) vppVersion(ctx context.Context, m *vppPlane) *diag.VPPInfo {
	state := m.conn.State()
	if !state.Connected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	plugin, err := m.plugin.Version(ctx)
	if err != nil {
		a.log.Debug("the version of VPP's plugin is unknown", "error", err)
	}
	return &diag.VPPInfo{Version: state.Version, Plugin: plugin}
}

// vppInterfaces returns the agent's interfaces that VPP has.
func (a *agent) vppInterfaces(m *vppPlane) []diag.Interface {
	var out []diag.Interface
	for name, index := range m.index.Interfaces() {
		i := diag.Interface{Index: index, Logical: name}
		if namespace, pod, ok := a.ipnet.GetPodByIf(name); ok {
			i.Pod = namespace + "/" + pod
		}
		out = append(out, i)
	}
	return out
}

// checkVPP compares like checkAll, and also lists the typed routes, which the agent must not remove.
func (a *agent) checkVPP(typed *l3.TypedRoutes) func(context.Context) (diag.CheckReply, error) {
	return func(ctx context.Context) (diag.CheckReply, error) {
		reply, err := a.dataplane.checkAll(ctx)
		if err != nil {
			return reply, err
		}
		list, err := typed.In(ctx, a.conf.Routing().PodVRFID)
		for _, dst := range list {
			reply.TypedRoutes = append(reply.TypedRoutes, dst.String())
		}
		return reply, err
	}
}

// counters returns the counters of all interfaces that are ours.
func (m *vppPlane) counters(a *agent) ([]statscollector.Counters, error) {
	counters, err := vpp.ReadIfCounters(statsSocket(m.socket))
	if err != nil {
		return nil, err
	}
	nat, err := natCounters(statsSocket(m.socket))
	if err != nil {
		return nil, err
	}
	var out []statscollector.Counters
	for _, c := range counters {
		name, ours := m.index.NameByIndex(c.Index)
		if !ours {
			continue
		}
		s := statscollector.Counters{
			Interface: name, RxPackets: c.RxPackets, RxBytes: c.RxBytes, TxPackets: c.TxPackets, TxBytes: c.TxBytes,
			Drops: c.Drops, RxErrors: c.RxErrors, TxErrors: c.TxErrors, NoBuffer: c.RxNoBuffer, Missed: c.RxMiss,
			NATOut2In: nat[c.Index].Out2In, NATIn2Out: nat[c.Index].In2Out, NATDrops: nat[c.Index].Drops,
		}
		s.Namespace, s.Pod, _ = a.ipnet.GetPodByIf(name)
		out = append(out, s)
	}
	addTapDrops(a, out)
	return out, nil
}

// addTapDrops adds the packets that the kernel dropped at TAPs because VPP did not fetch them. VPP does not count these drops.
func addTapDrops(a *agent, list []statscollector.Counters) {
	if !a.conf.Interface().UseTAPInterfaces {
		return // VPP's contiv plugin counts the drops of AF_PACKET interfaces
	}
	taps := []links.TapAt{{Device: ipnet.HostInterconnectTAPinLinuxHostName}}
	at := []func(*statscollector.Counters) bool{func(c *statscollector.Counters) bool {
		return c.Interface == ipnet.HostInterconnectTAPinVPPLogicalName
	}}
	for _, p := range a.pods.LocalAttachments() {
		taps = append(taps, links.TapAt{Netns: p.Netns, Device: p.ID.IfName})
		at = append(at, func(c *statscollector.Counters) bool { return c.Namespace == p.Pod.Namespace && c.Pod == p.Pod.Name })
	}
	for i, n := range links.NewHostMonitor(nil).TapsDropped(taps) {
		if place := slices.IndexFunc(list, func(c statscollector.Counters) bool { return at[i](&c) }); place >= 0 {
			list[place].Missed += n
		}
	}
}
