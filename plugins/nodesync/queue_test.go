package nodesync

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// TestQueueIsLeft checks that a node whose allocation times out, because others are always faster, leaves no place in the queue.
func TestQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newFakeDB()
		queued := 0
		db.BeforeCommit(func(changes []cas.Change) {
			for _, c := range changes {
				if id := idInKey(c.Do[0].Key); id != 0 && len(c.If) > 0 {
					db.put(t, owned(id, "other", 1))
				} else {
					queued++
				}
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := newMachine(t, "a", db, &memoryIdentity{})
		a := &allocator{store: db, me: self{name: "a", uuid: "A"}, log: n.Logger()}
		if c, err := a.run(ctx); err == nil {
			t.Errorf("claim %+v", c)
		}
		left, _, err := db.Keys(t.Context(), queuePrefix, 0)
		if err != nil || len(left) != 0 || queued == 0 {
			t.Errorf("left %v, %v; %d changes of the queue", left, err, queued)
		}
	})
}
