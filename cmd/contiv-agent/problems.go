package main

import (
	"context"
	"sync/atomic"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/problem"
)

// newProblems makes what informs users of objects that are not served as they say. Without a client of the API server (relay, outside of a
// pod) there are the metric and the log.
func (a *agent) newProblems() (*problem.Reporter, error) {
	var write problem.Write
	if a.kube != nil && a.kube.client != nil {
		write = func(ctx context.Context, o problem.Object, p problem.Problem) error {
			return a.kube.client.WriteObjectEvent(ctx, kube.ObjectEvent{
				APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID,
				Component: "contiv", Node: a.opts.nodeName, Reason: p.Reason, Message: p.Message,
			})
		}
	}
	r := problem.NewReporter(write, a.log.With("component", "problems"))
	return r, a.registry.Register(r)
}

// policyStatuses writes the conditions of ClusterNetworkPolicies while this node is the one that does.
type policyStatuses struct {
	writes atomic.Bool
	status *kube.PolicyStatus
}

// newPolicyStatuses is nil where contiv-ksr writes, and where there is no API server.
func (a *agent) newPolicyStatuses() *policyStatuses {
	if a.kube == nil || a.kube.client == nil || a.opts.kubernetes.mode == kubernetesRelay {
		return nil
	}
	s := &policyStatuses{}
	s.status = kube.NewPolicyStatus(kube.PolicyStatusDeps{
		Client: a.kube.client, Log: a.log.With("component", "kube"), Writes: s.writes.Load,
		Large: func() map[string]string { return a.policies.LargeClusterPolicies() }, Interval: kube.PolicyStatusInterval,
	})
	return s
}

// set implements policy.Deps.Statuses.
func (s *policyStatuses) set(writes bool) {
	s.writes.Store(writes)
	s.status.Touch()
}
