package nodesync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

const (
	// allocateTimeout bounds the allocation of an ID. This is the only case in which the event loop waits for the database: nothing can be
	// configured before the node has an ID.
	allocateTimeout = 15 * time.Second
	// maxCandidates is the number of IDs that are tried in one transaction; each needs two of the cas.MaxOps operations. The cost in etcd
	// grows faster than the number: 0.3 ms for one, 0.5 ms for 16, 2.7 ms for 48.
	maxCandidates = 8
	// Between attempts a node waits for a random part of a window, which grows up to a limit.
	minWindow    = 100 * time.Millisecond
	windowGrowth = 3
	maxWindow    = 3 * time.Second
)

// errNameConflict is an error that only an operator can resolve.
var errNameConflict = errors.New("two machines have one node name")

// allocator finds an ID for a node that has no record.
type allocator struct {
	store     cas.Store
	me        self
	rival     string        // the UUID of another machine with the same name: see identity
	preferred uint32        // an ID that the node had before, which is tried first; zero if there is none
	probation time.Duration // how long a new claim must stand before it is used; not positive: no probation
	log       *slog.Logger
}

// run returns the node's claim, which is then in the database. If the node has a record, run takes it over; otherwise run claims the first
// free ID. A new claim is on probation: meanwhile nodes whose records the database has lost take their IDs back, and a machine that already
// uses this node's name objects.
func (a *allocator) run(ctx context.Context) (claim, error) {
	for {
		c, err := a.claim(ctx)
		if err != nil {
			return claim{}, err
		}
		stands, there, err := a.confirm(ctx, c)
		if err != nil || stands {
			return c, err
		}
		if there.GetName() == a.me.name && !isReleased(there) {
			return claim{}, a.nameConflict(c.ID, there.GetUuid())
		}
		a.log.Warn("the ID that this node claimed was taken back by its earlier owner, probably because the cluster database had lost the "+
			"owner's record; this node claims another ID", "id", c.ID, "owner", there.GetName())
		a.preferred = 0
	}
}

// nameConflict returns the error for an ID that is claimed in this node's name by another machine.
func (a *allocator) nameConflict(id uint32, other string) error {
	return fmt.Errorf("%w: the machine %s has the ID %d, and this one, %s, is called %s as well; give one of them another name, "+
		"or switch the wrong one off", errNameConflict, other, id, a.me.uuid, a.me.name)
}

// claim writes a record of this node into the database. If other nodes are faster, it queues.
func (a *allocator) claim(ctx context.Context) (claim, error) {
	v, err := readView(ctx, a.store)
	if err != nil {
		return claim{}, err
	}
	var place *place
	defer func() { place.leave(ctx) }()
	for window, attempt := minWindow, 1; ; attempt++ {
		if id, ok := v.ownID(a.me); ok {
			return a.me.claimOf(id, v.records[id]), nil
		}
		c, ok, err := a.try(ctx, v, place)
		if ok {
			place = nil // freed by the claim
		}
		if ok || errors.Is(err, errNameConflict) {
			return c, err
		}
		if pauseErr := pause(ctx, rand.N(window)); pauseErr != nil {
			return claim{}, fmt.Errorf("in %d attempts other nodes were first or the database did not respond; it is retried: %w", attempt,
				errors.Join(err, pauseErr))
		}
		window = min(windowGrowth*window, maxWindow)
		if err == nil {
			if place == nil {
				place, err = enqueue(ctx, a.store)
			}
			if err == nil && place == nil { // the database has no queue
				err = v.refresh(ctx, a.store, 0)
			}
		} else { // the claim may have been carried out although its response got lost
			v, err = readView(ctx, a.store)
		}
		if err != nil {
			return claim{}, err
		}
	}
}

// try makes one attempt. A node that has a place in the queue tries the one ID that belongs to the place.
func (a *allocator) try(ctx context.Context, v *view, place *place) (claim, bool, error) {
	n := maxCandidates
	if place != nil {
		rank, err := place.readRank(ctx, v)
		if err != nil {
			return claim{}, false, err
		}
		n = rank + 1
	}
	ids, err := a.candidates(v, n)
	if err != nil {
		return claim{}, false, err
	}
	if place != nil {
		ids = ids[len(ids)-1:]
	}
	claims, changes := make([]claim, len(ids)), make([]cas.Change, len(ids))
	for i, id := range ids {
		if claims[i], changes[i], err = v.claimChange(a.me, id, time.Now()); err != nil {
			return claim{}, false, err
		}
		changes[i].Do = append(changes[i].Do, place.writes()...)
	}
	i, _, err := a.store.CommitFirst(ctx, changes...)
	if err != nil {
		return claim{}, false, fmt.Errorf("claiming one of %d IDs from %d: %w", len(ids), ids[0], err)
	}
	if i == cas.None && v.records[ids[0]].GetName() == a.me.name && !isReleased(v.records[ids[0]]) {
		return claim{}, false, fmt.Errorf("the record of the ID %d has changed in the meantime", ids[0]) // the record is read again
	}
	if i == cas.None { // all of them have changed
		for _, id := range ids {
			v.markTaken(id)
		}
		return claim{}, false, nil
	}
	return claims[i], true, nil
}

// candidates returns the IDs to try, the best first: the ID of the record in this node's name, if the machine was installed again; an ID
// that the node had and that was released; the ID that it remembers; and the first n free ones.
func (a *allocator) candidates(v *view, n int) ([]uint32, error) {
	var out []uint32
	if id, ok := v.idOf(a.me.name); ok {
		if other := v.records[id].GetUuid(); other != "" && other == a.rival {
			return nil, a.nameConflict(id, other)
		}
		return []uint32{id}, nil
	}
	for id, r := range v.records {
		if isReleased(r) && a.me.uuid != "" && r.GetUuid() == a.me.uuid && r.GetName() == a.me.name {
			out = append(out, id)
		}
	}
	if id := a.preferred; id != 0 && v.revs[id] == 0 {
		out = append(out, id)
	}
	return append(out, v.free(n)...), nil
}

// confirm waits until the probation of the claim has ended. If the claim does not stand, there is the record that has replaced it.
func (a *allocator) confirm(ctx context.Context, c claim) (stands bool, there *vppnode.VppNode, err error) {
	end := time.UnixMilli(c.Claimed).Add(a.probation)
	end = time.Now().Add(min(time.Until(end), a.probation)) // never longer than the probation, even if the clock is wrong
	for time.Now().Before(end) {
		if err := pause(ctx, min(a.probation/8, time.Until(end))); err != nil {
			return false, nil, fmt.Errorf("the ID %d is this node's if no other node claims it until %s; retrying: %w", c.ID,
				end.Format(time.TimeOnly), err)
		}
		v, err := a.store.Get(ctx, fullKey(c.ID))
		if err != nil {
			return false, nil, fmt.Errorf("checking whether the ID %d is still this node's: %w", c.ID, err)
		}
		if v.Rev == 0 {
			return false, nil, nil // lost by the database: the allocation starts again
		}
		there, err := decode(v.Value)
		if err != nil || compareClaim(a.me, c, there) != mine {
			return false, there, nil
		}
	}
	return true, nil, nil
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// StoredID returns the node's ID from an earlier copy of the shared state, by key below the common prefix. It is intended for
// UsePreferredID, and must be called before the copy is replaced.
func StoredID(values map[string][]byte, nodeName string) (id uint32, ok bool) {
	s := newSources(0)
	for key, value := range values {
		if len(key) <= len(allocatedIDs) || key[:len(allocatedIDs)+1] != allocatedIDs+"/" {
			continue
		}
		if record, err := decode(value); err == nil {
			_, _ = s.set(key, record)
		}
	}
	return s.idOf(nodeName)
}
