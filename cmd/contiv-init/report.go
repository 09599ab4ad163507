package main

import (
	"context"
	"time"

	"contiv.dev/vswitch/cmd/contiv-init/internal/preflight"
	"contiv.dev/vswitch/internal/kube"
)

// The node conditions that contiv-init writes. Kubernetes taints nodes whose network is unavailable; in clouds, nodes start with this taint.
const (
	conditionPreflight = "ContivPreflight"
	conditionNetwork   = "NetworkUnavailable"
	component          = "contiv"
)

// reportTimeout bounds the requests to the API server.
const reportTimeout = 15 * time.Second

// report writes the Event and the condition. A node that passes gets no Event, because nothing has changed.
func report(ctx context.Context, c *common, found []preflight.Finding) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	client, err := c.client()
	if err != nil {
		return err
	}
	node, err := c.nodeName()
	if err != nil {
		return err
	}
	conditions := []kube.NodeCondition{{
		Type: conditionPreflight, Status: true, Reason: "NothingLacking", Message: "the node has everything that the vswitch needs",
	}}
	if len(found) > 0 {
		event := kube.NodeEvent{
			Node: node, Component: component, Reason: "PreflightWarning", Message: preflight.Summary(found), Warning: true,
		}
		conditions[0].Reason, conditions[0].Message = "Warnings", event.Message
		if preflight.Failed(found) {
			event.Reason = "PreflightFailed"
			conditions[0].Status, conditions[0].Reason = false, "Lacking"
			conditions = append(conditions, kube.NodeCondition{
				Type: conditionNetwork, Status: true, Reason: "ContivPreflightFailed", Message: event.Message,
			})
		}
		if err := client.WriteEvent(ctx, event); err != nil {
			return err
		}
	}
	return client.SetNodeCondition(ctx, node, conditions...)
}
