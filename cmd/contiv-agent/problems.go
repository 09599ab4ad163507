package main

import (
	"context"

	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/problem"
)

// newProblems makes what informs users of objects that are not served as they say. Without a client of the API server (relay) there are the
// metric and the log.
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
