package main

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"contiv.dev/vswitch/internal/kube"
)

// assertInterval is how often the node's conditions are compared. All nodes send this request, so it is one for all conditions.
const assertInterval = time.Minute

// nodeConditions has the conditions that this agent has set. Another program may overwrite or remove them, for example a controller of the cloud
// provider or a node that registers again.
type nodeConditions struct {
	// write sets the conditions that differ.
	write func(context.Context, ...kube.NodeCondition) error
	log   *slog.Logger

	mu  sync.Mutex // held while writing: an older value must not follow a newer one
	set map[string]kube.NodeCondition
}

func newNodeConditions(client *kube.Client, node string, log *slog.Logger) *nodeConditions {
	return &nodeConditions{
		write: func(ctx context.Context, all ...kube.NodeCondition) error {
			return client.SetNodeCondition(ctx, node, all...)
		},
		log: log, set: map[string]kube.NodeCondition{},
	}
}

// Set writes a condition, which Run keeps, also after an error: the API server may have written it although its answer was lost.
func (n *nodeConditions) Set(ctx context.Context, c kube.NodeCondition) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set[c.Type] = c
	return n.write(ctx, c)
}

// Run restores the conditions until ctx ends.
func (n *nodeConditions) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(assertInterval/2 + rand.N(assertInterval)):
		}
		if err := n.restore(ctx); err != nil {
			n.log.Debug("the node's conditions are not compared", "error", err)
		}
	}
}

// restore compares all conditions and writes those that differ.
func (n *nodeConditions) restore(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.set) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
	defer cancel()
	all := slices.SortedFunc(maps.Values(n.set), func(a, b kube.NodeCondition) int { return strings.Compare(a.Type, b.Type) })
	return n.write(ctx, all...)
}
