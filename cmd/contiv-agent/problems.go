package main

import (
	"context"
	"sync/atomic"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/problem"
)

// newProblems makes the reporter that informs users about objects that are not served as they specify. Without a client of the API server
// (relay, or outside of a pod) only the metric and the log are written.
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

// policyStatuses writes the conditions of ClusterNetworkPolicies while this node is the one selected to write them.
type policyStatuses struct {
	writes atomic.Bool
	status *kube.PolicyStatus
}

// newPolicyStatuses returns nil if contiv-ksr writes the conditions, and if there is no API server.
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
