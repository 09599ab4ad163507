package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/diag"
	"contiv.dev/vswitch/plugins/ipnet"
	"contiv.dev/vswitch/plugins/pathwatch"
	"contiv.dev/vswitch/plugins/policy"
	policyrenderer "contiv.dev/vswitch/plugins/policy/renderer"
	linuxpolicy "contiv.dev/vswitch/plugins/policy/renderer/linux"
	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/statscollector"
)

// parts is what a dataplane gives the agent. VPP (vpp.go), the host's own stack (linux.go) and Windows' network service (hns.go) have one
// constructor each, which returns it. When a function of it is called, the agent's earlier parts exist. A field may be nil, if the dataplane
// does not have it, only where its comment says so.
type parts struct {
	// backends are flushed by the scheduler in this order.
	backends []scheduler.Backend
	// kinds registers the descriptors.
	kinds func(s *scheduler.Scheduler) error
	// wire sets how pods are connected.
	wire func(d *ipnet.Deps)
	// services returns the renderers of the service plugin.
	services func(p *service.Plugin) []renderer.ServiceRendererAPI
	policy   policyParts
	counts   countParts
	// watch sets what is watched of the data path; nil: packets are not watched.
	watch func(d *pathwatch.Deps)
	// diagnose adds the queries of contiv-netctl that only this dataplane answers; nil: none.
	diagnose func(d *diag.Deps)
	// devices maps namespace/name to the device of the pod; nil: the host does not have the devices.
	devices func() map[string]string

	// open connects; the jobs start after it.
	open       func() error
	jobs       []job
	collectors []prometheus.Collector
	health     healthParts
	// close closes the agent's side; what is programmed stays.
	close func() error
}

// policyParts is the part of a dataplane for network policy.
type policyParts struct {
	renderer func() policyrenderer.Renderer
	// notEnforced returns what network policy lacks on this node; empty: nothing.
	notEnforced func() string
	// denied reports what policies have dropped; nil: not reported.
	denied policy.Denied
	// connections lists open connections; nil: not supported.
	connections policy.Connections
}

// countParts is the part of a dataplane for counters.
type countParts struct {
	// interfaces returns the counters of all interfaces that are ours.
	interfaces func() ([]statscollector.Counters, error)
	// translated sets the sources of the counts of translated connections; nil: they are not counted.
	translated func(s *statscollector.NATSource)
}

// healthParts is what a dataplane reports about its own state.
type healthParts struct {
	// await waits briefly, before the first resync, for what was started; nil: no wait is needed.
	await func(log *slog.Logger)
	// alive returns why the dataplane cannot be programmed, or nil.
	alive func() error
	// roomForPods returns why the dataplane cannot take more pods, or nil; a nil function: there is no such limit.
	roomForPods func() error
}

// room returns the result of roomForPods, or nil if there is no limit.
func (h healthParts) room() error {
	if h.roomForPods == nil {
		return nil
	}
	return h.roomForPods()
}

// job is work that runs until its context ends.
type job struct {
	name string
	run  func(ctx context.Context) error
}

// noCounters is for dataplanes that count nothing.
func noCounters() ([]statscollector.Counters, error) { return nil, nil }

// driverPolicy renders policies for the in-process drivers, which receive the same messages.
func (a *agent) driverPolicy() policyrenderer.Renderer {
	return linuxpolicy.New(linuxpolicy.Deps{EndpointID: ipnet.EndpointID, Log: a.logger("policy")})
}
