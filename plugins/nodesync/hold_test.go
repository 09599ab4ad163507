package nodesync

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	controller "contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// TestHeldNodeBesideNewOwner checks that a missing node keeps the end of its hold while another node has claimed its ID and does not use it
// yet; otherwise it would be held forever.
func TestHeldNodeBesideNewOwner(t *testing.T) {
	for range 50 { // maps have no order
		h := newHolds(10 * time.Minute)
		start := time.Now()
		h.now = func() time.Time { return start }
		lost, claimant := &Node{ID: 3, Name: "lost"}, &Node{ID: 3, Name: "claimant"}
		records := newSources(1)
		if _, err := records.set(recordKey(3), &vppnode.VppNode{Id: 3, Name: "claimant"}); err != nil {
			t.Fatal(err)
		}
		h.keep(Nodes{"lost": lost}, Nodes{"claimant": claimant}, &records)

		h.now = func() time.Time { return start.Add(5 * time.Minute) }
		next := Nodes{"claimant": claimant}
		h.keep(Nodes{"lost": lost, "claimant": claimant}, next, &records)
		if next["lost"] == nil || !h.has(lost) || h.held["lost"].end != start.Add(10*time.Minute) {
			t.Fatalf("nodes %v, held %v", next, h.held)
		}
	}
}

// TestEndOfHoldIsPushedOnce checks that an event that the loop does not handle for a long time, or refuses after a fatal error, is not
// pushed repeatedly, and that an event that found the queue full is pushed again.
func TestEndOfHoldIsPushedOnce(t *testing.T) {
	for name, full := range map[string]int{"taken": 0, "no room at first": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHolds(time.Minute)
				records := newSources(0)
				h.keep(Nodes{"lost": {ID: 3, Name: "lost"}}, Nodes{}, &records)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				pushed, refused := 0, 0
				go func() {
					ended <- h.run(ctx, func(controller.Event) error {
						if refused < full {
							refused++
							return controller.ErrQueueFull
						}
						pushed++
						return nil
					})
				}()
				time.Sleep(time.Hour)
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) || pushed != 1 {
					t.Errorf("pushed %d times; %v", pushed, err)
				}
			})
		})
	}
}
