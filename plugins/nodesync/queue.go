package nodesync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

const (
	// queuePrefix is where nodes that wait for an ID have a key each. The database deletes the key of one that has died.
	queuePrefix = "/contiv-queue/node/"
	// queueTTL must be longer than an allocation takes.
	queueTTL = allocateTimeout + 5*time.Second
	// leaveTimeout bounds the deletion of a key that is not needed any more.
	leaveTimeout = 2 * time.Second
)

// place is a node's place in the queue of those that wait for an ID: the n-th of the queue claims the n-th free ID. When one
// has claimed, which takes its key away in the same transaction, all behind it move up, and so do the free IDs: everybody's ID
// stays the same, however late he looks. So hundreds of nodes do not get in each other's way, and leave no gaps.
type place struct {
	store cas.Store
	key   string
	rev   int64 // of the key; the order of the queue
}

// enqueue gets a place at the end; nil if the database cannot have a queue.
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

// look returns how many are in front, and makes the view one of the same moment.
func (p *place) look(ctx context.Context, v *view) (rank int, err error) {
	waiting, rev, err := p.store.Keys(ctx, queuePrefix, 0)
	if err != nil {
		return 0, fmt.Errorf("looking at the queue for IDs: %w", err)
	}
	for _, w := range waiting {
		if w.Rev < p.rev {
			rank++
		}
	}
	return rank, v.refresh(ctx, p.store, rev)
}

// writes are what a claim has to do besides, to free the place.
func (p *place) writes() []cas.Write {
	if p == nil {
		return nil
	}
	return []cas.Write{{Key: p.key}}
}

// leave frees the place, if it has not been freed.
func (p *place) leave(ctx context.Context) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	// If this fails, the database does it a little later. A place that is free already is left alone.
	_, _, _ = p.store.CommitFirst(ctx, cas.Change{If: []cas.Cond{{Key: p.key, Rev: p.rev}}, Do: []cas.Write{{Key: p.key}}})
}
