package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/internal/kube"
)

// TestConditionsAreKept: every minute the node's conditions are compared with those that were set last, in one request, also if the answer to
// the last one was an error.
func TestConditionsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails error
		var writes [][]kube.NodeCondition
		n := &nodeConditions{log: slog.New(slog.DiscardHandler), set: map[string]kube.NodeCondition{}}
		n.write = func(_ context.Context, all ...kube.NodeCondition) error {
			writes = append(writes, slices.Clone(all))
			return fails
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go n.Run(ctx)
		time.Sleep(2 * assertInterval)
		if synctest.Wait(); len(writes) > 0 {
			t.Errorf("nothing is set: %v", writes)
		}
		b, a := kube.NodeCondition{Type: "B", Reason: "Old"}, kube.NodeCondition{Type: "A", Status: true, Reason: "Good"}
		for _, c := range []kube.NodeCondition{b, a} {
			if err := n.Set(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		b.Reason, fails = "New", errors.New("the API server is away")
		if err := n.Set(t.Context(), b); !errors.Is(err, fails) {
			t.Error(err)
		}
		writes, fails = nil, nil // the API server may have written the condition: the old one must not follow it
		time.Sleep(3 * assertInterval)
		synctest.Wait()
		if len(writes) < 2 || len(writes) > 6 {
			t.Fatalf("%d requests in 3 minutes", len(writes))
		}
		for _, w := range writes {
			if !slices.Equal(w, []kube.NodeCondition{a, b}) {
				t.Errorf("compared with %v", w)
			}
		}
	})
}
