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

// parts are what a dataplane gives the agent. VPP (vpp.go), the host's own stack (linux.go) and Windows' network service (hns.go) have one
// constructor each, which returns them. What is called has all that the agent is made of before it; what is nil a dataplane does not have,
// where the comment says so.
type parts struct {
	// backends are flushed by the scheduler in their order.
	backends []scheduler.Backend
	// kinds adds the descriptors.
	kinds func(s *scheduler.Scheduler) error
	// wire reports how pods are wired.
	wire func(d *ipnet.Deps)
	// services are the renderers of the service plugin.
	services func(p *service.Plugin) []renderer.ServiceRendererAPI
	policy   policyParts
	counts   countParts
	// watch reports what of the data path is watched; nil: packets are not watched.
	watch func(d *pathwatch.Deps)
	// diagnose adds what contiv-netctl can ask of this dataplane only; nil: nothing.
	diagnose func(d *diag.Deps)
	// devices are the devices of pods, by namespace/name; nil: they are not the host's.
	devices func() map[string]string

	// open connects; then the jobs start.
	open       func() error
	jobs       []job
	collectors []prometheus.Collector
	health     healthParts
	// close ends our side; what is programmed stays.
	close func() error
}

// policyParts are what a dataplane does about network policy.
type policyParts struct {
	renderer func() policyrenderer.Renderer
	// notEnforced reports what network policy lacks on this node; empty: nothing.
	notEnforced func() string
	// denied reports what policies have dropped; nil: nothing does.
	denied policy.Denied
	// connections lists open connections; nil: it does not.
	connections policy.Connections
}

// countParts are what a dataplane counts.
type countParts struct {
	// interfaces are the counters of all interfaces that are ours.
	interfaces func() ([]statscollector.Counters, error)
	// translated reports where translated connections are counted; nil: nowhere.
	translated func(s *statscollector.NATSource)
}

// healthParts are what a dataplane reports of itself.
type healthParts struct {
	// await gives what was started a moment to be there before the first resync; nil: it is there.
	await func(log *slog.Logger)
	// alive reports why it cannot be programmed.
	alive func() error
	// roomForPods reports why it cannot take more pods; nil: it has no such limit.
	roomForPods func() error
}

// room is roomForPods, where there is a limit.
func (h healthParts) room() error {
	if h.roomForPods == nil {
		return nil
	}
	return h.roomForPods()
}

// job is work that ends with its context.
type job struct {
	name string
	run  func(ctx context.Context) error
}

// noCounters is for what counts nothing.
func noCounters() ([]statscollector.Counters, error) { return nil, nil }

// driverPolicy renders policies for the in-process drivers, which take the same messages.
func (a *agent) driverPolicy() policyrenderer.Renderer {
	return linuxpolicy.New(linuxpolicy.Deps{EndpointID: ipnet.EndpointID, Log: a.logger("policy")})
}
