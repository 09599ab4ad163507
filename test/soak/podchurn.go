package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/poll"
)

// podChurn counts pods that are added and deleted.
type podChurn struct{ added, retried atomic.Int64 }

const (
	churnEvery = 500 * time.Millisecond
	addLimit   = 30 * time.Second // ADD is retried for this long, as the kubelet does, since an agent may be restarting
	reachLimit = 10 * time.Second
)

// churnPods adds a pod to a node, sends packets between it and pods of both nodes in both directions and families, and
// deletes it, repeatedly.
func (s *soak) churnPods(ctx context.Context, node int) {
	for i := 0; s.sleep(ctx, churnEvery); i++ {
		// Pod names are unique in a cluster.
		if err := s.addAndDelete(context.WithoutCancel(ctx), node, fmt.Sprintf("v%d-%d", node+1, i%5)); err != nil {
			s.fault("added pod", "node %d: %v", node+1, err)
		}
	}
}

func (s *soak) addAndDelete(ctx context.Context, node int, name string) error {
	p, err := retried(ctx, &s.churn.retried, func() (*testbed.Pod, error) { return s.Pod(ctx, node, name) })
	if err != nil {
		return err
	}
	stop, err := s.traffic.Serve(p.Namespace, port)
	if err == nil {
		err = s.checkReachable(ctx, p)
		stop()
	}
	_, gone := retried(ctx, &s.churn.retried, func() (struct{}, error) { return struct{}{}, s.DeletePod(ctx, node, name, p) })
	s.churn.added.Add(1)
	if err != nil {
		return fmt.Errorf("%s (%v): %w", p.Name, p.IPs, err)
	}
	return gone
}

// checkReachable checks that the new pod and the others reach each other.
func (s *soak) checkReachable(ctx context.Context, p *testbed.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	for _, other := range []podAt{s.pods[0], s.pods[2]} {
		for f := range p.IPs {
			for _, way := range []struct{ from, to *testbed.Pod }{{p, other.Pod}, {other.Pod, p}} {
				err := poll.Until(ctx, 50*time.Millisecond, func() error {
					return s.traffic.Once(way.from.Namespace, 0, at(way.to.IPs[f]), 5000, 2*time.Second)
				})
				if err != nil {
					return fmt.Errorf("from %s: %w", way.from.Name, err)
				}
			}
		}
	}
	return nil
}

// retried retries an operation that fails while an agent restarts.
func retried[T any](ctx context.Context, again *atomic.Int64, do func() (T, error)) (result T, err error) {
	for deadline := time.Now().Add(addLimit); ; {
		if result, err = do(); err == nil || time.Now().After(deadline) || ctx.Err() != nil {
			return result, err
		}
		again.Add(1)
		time.Sleep(300 * time.Millisecond)
	}
}
