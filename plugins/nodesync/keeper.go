package nodesync

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// Parameters of the keeper's retries: after a failed attempt it waits, twice as long each time, with jitter so that the nodes of a cluster
// do not overload a recovering database.
const (
	minBackoff  = 100 * time.Millisecond
	maxBackoff  = 30 * time.Second
	keepTimeout = 5 * time.Second
)

// errChanged means that another program has changed the record between reading and writing.
var errChanged = errors.New("it has changed in the meantime")

// keeper makes sure that the database has this node's record, and takes the ID back if the database has lost or mixed up its data. Only the
// newest record counts. It is a job: the event loop does not wait for the database.
type keeper struct {
	store cas.Store
	me    self
	// quarantine is for records of earlier installations of this node.
	quarantine time.Duration
	log        *slog.Logger
	// lost is called when the ID belongs to another node, or was released. An error means that the loss has to be reported again.
	lost func(*lossError) error
	wake chan struct{}

	mu     sync.Mutex
	record *vppnode.VppNode // guarded by mu; the record to write; nil when there is nothing to do
	stale  []uint32         // guarded by mu; IDs of records of earlier installations, which must be released
}

// setDesired sets the record that the database must have, and the stale IDs of this node, whose records must be released. It does not wait.
func (k *keeper) setDesired(record *vppnode.VppNode, stale []uint32) {
	k.mu.Lock()
	k.record, k.stale = record, stale
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) wanted() (*vppnode.VppNode, []uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record, k.stale
}

// done removes the record unless there is a newer one.
func (k *keeper) done(record *vppnode.VppNode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record == record {
		k.record, k.stale = nil, nil
	}
}

func (k *keeper) run(ctx context.Context) error {
	backoff := minBackoff
	for {
		record, stale := k.wanted()
		var pause <-chan time.Time
		if record != nil {
			err := k.keep(ctx, record, stale)
			if err == nil {
				k.done(record)
				backoff = minBackoff
				continue
			}
			if ctx.Err() == nil {
				k.log.Debug("the node's record is not in the cluster database yet", "node", k.me.name, "id", record.GetId(),
					"retryIn", backoff, "error", err)
			}
			pause = time.After(backoff/2 + rand.N(backoff))
			backoff = min(2*backoff, maxBackoff)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-k.wake:
		case <-pause:
		}
	}
}

// keep writes one record and releases the stale ones. If the ID is lost, it only reports this.
func (k *keeper) keep(ctx context.Context, record *vppnode.VppNode, stale []uint32) error {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	err := k.write(ctx, record)
	if loss := (*lossError)(nil); errors.As(err, &loss) {
		return k.lost(loss)
	}
	if err != nil {
		return err
	}
	for _, id := range stale {
		if err := releaseIf(ctx, k.store, id, k.quarantine, func(r *vppnode.VppNode) bool { return k.me.owns(r) }); err != nil {
			return fmt.Errorf("release an earlier ID of this node: %w", err)
		}
	}
	return nil
}

// write puts the record into the database, unless the ID belongs to another node.
func (k *keeper) write(ctx context.Context, record *vppnode.VppNode) error {
	key := fullKey(record.GetId())
	v, err := k.store.Get(ctx, key)
	if err != nil {
		return err
	}
	var there *vppnode.VppNode
	if v.Rev != 0 {
		if there, err = decode(v.Value); err != nil {
			k.log.Error("the record of this node's ID cannot be read and is replaced", "key", key, "value", string(v.Value),
				"error", err)
		}
	}
	c := k.me.claimOf(record.GetId(), record)
	switch compareClaim(k.me, c, there) {
	case released, lost:
		return &lossError{me: k.me, claim: c, there: there}
	case newer:
		record = proto.CloneOf(record)
		record.Generation = there.GetGeneration()
	case contested:
		k.log.Warn("another machine with the name of this node claims its ID; this node runs and keeps the ID", "id", c.ID,
			"node", k.me.name, "uuid", k.me.uuid, "otherUUID", there.GetUuid())
		record = proto.CloneOf(record)
		record.Generation = there.GetGeneration() + 1
	case weaker:
		k.log.Warn("the cluster database has an invalid claim for the ID of this node, probably because it lost data; this node restores "+
			"its record", "id", c.ID, "node", k.me.name, "owner", there.GetName(),
			"generation", there.GetGeneration())
	}
	value, err := encode(record)
	if err != nil {
		return err
	}
	if there != nil && proto.Equal(there, record) || bytes.Equal(v.Value, value) {
		return nil
	}
	i, _, err := k.store.CommitFirst(ctx, cas.Change{
		If: []cas.Cond{{Key: key, Rev: v.Rev}}, Do: []cas.Write{{Key: key, Value: value}},
	})
	if err != nil {
		return err
	}
	if i == cas.None {
		return fmt.Errorf("writing %s: %w", key, errChanged)
	}
	return nil
}

// staleIDs returns the IDs of this node's records except the valid one.
func (s *sources) staleIDs(me self, id uint32) []uint32 {
	var out []uint32
	for _, other := range s.byName[me.name] {
		if other != id && me.owns(s.records[other]) {
			out = append(out, other)
		}
	}
	slices.Sort(out)
	return out
}
