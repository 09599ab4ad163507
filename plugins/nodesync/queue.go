package nodesync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

const (
	// queuePrefix is the prefix of the keys of nodes that wait for an ID. The database deletes the key of a node that stops responding.
	queuePrefix = "/contiv-queue/node/"
	// queueTTL must be longer than an allocation.
	queueTTL = allocateTimeout + 5*time.Second
	// leaveTimeout bounds the deletion of a key that is no longer needed.
	leaveTimeout = 2 * time.Second
)

// place is a node's place in the queue of the nodes that wait for an ID: the n-th node of the queue claims the n-th free ID. A claim
// deletes the node's key in the same transaction. Then all nodes behind it move up by one place and the list of free IDs gets shorter by
// one: the ID for each node remains the same, even if the node reads the queue late. So hundreds of nodes do not conflict, and leave no
// gaps.
type place struct {
	store cas.Store
	key   string
	rev   int64 // of the key; the order of the queue
}

// enqueue adds a place at the end; it returns nil if the database does not support a queue.
func enqueue(ctx context.Context, store cas.Store) (*place, error) {
	p := &place{store: store, key: queuePrefix + newUUID()}
	i, rev, err := store.CommitFirst(ctx, cas.Change{Do: []cas.Write{{Key: p.key, Value: []byte("waits for an ID"), TTL: queueTTL}}})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if err != nil || i == cas.None {
		return nil, fmt.Errorf("queueing for an ID: %w", err)
	}
	p.rev = rev
	return p, nil
}

// readRank returns the number of places in front, and refreshes the view to the same revision.
func (p *place) readRank(ctx context.Context, v *view) (rank int, err error) {
	waiting, rev, err := p.store.Keys(ctx, queuePrefix, 0)
	if err != nil {
		return 0, fmt.Errorf("read the queue for IDs: %w", err)
	}
	for _, w := range waiting {
		if w.Rev < p.rev {
			rank++
		}
	}
	return rank, v.refresh(ctx, p.store, rev)
}

// writes returns the additional writes of a claim, which free the place.
func (p *place) writes() []cas.Write {
	if p == nil {
		return nil
	}
	return []cas.Write{{Key: p.key}}
}

// leave frees the place, if it has not been freed yet.
func (p *place) leave(ctx context.Context) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	// If this fails, the database deletes the key a little later. A place that is already free is not changed.
	_, _, _ = p.store.CommitFirst(ctx, cas.Change{If: []cas.Cond{{Key: p.key, Rev: p.rev}}, Do: []cas.Write{{Key: p.key}}})
}
