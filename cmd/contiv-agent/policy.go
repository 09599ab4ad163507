package main

import (
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/plugins/policy"
)

// newPolicies makes the policy plugin with the renderer of this dataplane, and its metrics.
func (a *agent) newPolicies() (*policy.Plugin, error) {
	deps := policy.Deps{
		PluginDeps: a.pluginDeps("policy"), ServiceLabel: a.label, Problems: a.problems, PodManager: a.pods,
		HTTPHandlers: a.http, Renderer: a.dataplane.policy.renderer(), Kubernetes: a.kube != nil, OwnAddresses: a.ipnet.OwnAddresses,
		NotEnforced: a.dataplane.policy.notEnforced,
		Denied:      a.dataplane.policy.denied,
		Connections: a.dataplane.policy.connections,
		ParsePolicy: kube.ParsePolicy,
		SetLimit:    a.opts.services.policySetLimit,
	}
	if a.statuses != nil {
		deps.Statuses = a.statuses.set
	}
	p := policy.New(deps)
	return p, a.registry.Register(deniedCollector{p.DeniedCounts})
}
