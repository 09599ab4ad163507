package nodesync

import (
	"context"
	"fmt"
	"path"
	"time"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// view holds the records of nodes as needed to claim or release an ID: as they are in the database, with their revisions, and with the
// quarantine.
type view struct {
	sources
	revs  map[uint32]int64 // the revision of the value under an ID's key, whether or not the record is valid
	guard map[uint32]int64 // IDs in quarantine
}

// readView reads all records and quarantines, once.
func readView(ctx context.Context, store cas.Store) (*view, error) {
	values, _, err := store.List(ctx, ksrPrefix+allocatedIDs+"/")
	if err != nil {
		return nil, fmt.Errorf("reading the records of the nodes: %w", err)
	}
	guards, _, err := store.List(ctx, guardPrefix)
	if err != nil {
		return nil, fmt.Errorf("reading which IDs are in quarantine: %w", err)
	}
	v := &view{sources: newSources(len(values)), revs: make(map[uint32]int64, len(values)), guard: map[uint32]int64{}}
	for _, kv := range values {
		v.take(kv)
	}
	for _, kv := range guards {
		v.guard[idInKey(kv.Key)] = kv.Rev
	}
	return v, nil
}

func (v *view) take(kv cas.Value) {
	key := allocatedIDs + "/" + path.Base(kv.Key)
	v.revs[idInKey(key)] = kv.Rev
	record, err := decode(kv.Value)
	if err != nil {
		v.broken[key] = err.Error()
		return
	}
	_, _ = v.set(key, record) // the fault is in v.broken
}

// refresh reads the IDs that have been taken up to the revision at (zero: now), without reading their owners.
func (v *view) refresh(ctx context.Context, store cas.Store, at int64) error {
	keys, _, err := store.Keys(ctx, ksrPrefix+allocatedIDs+"/", at)
	if err != nil {
		return fmt.Errorf("reading the taken IDs: %w", err)
	}
	for _, key := range keys {
		if id := idInKey(key.Key); v.revs[id] == 0 || v.revs[id] != key.Rev {
			v.markTaken(id)
			v.revs[id] = max(key.Rev, 1)
		}
	}
	return nil
}

// markTaken marks an ID as taken by an unknown node.
func (v *view) markTaken(id uint32) {
	_, _ = v.set(recordKey(id), nil)
	v.revs[id] = max(v.revs[id], 1)
}

// free returns up to n IDs that can be claimed, from the lowest: those without a record and those whose quarantine has ended.
func (v *view) free(n int) []uint32 {
	out := make([]uint32, 0, n)
	for id := uint32(1); len(out) < n && id != 0; id++ {
		if v.revs[id] == 0 || (isReleased(v.records[id]) && v.guard[id] == 0) {
			out = append(out, id)
		}
	}
	return out
}

// claimChange returns the change that claims an ID for a node, if the ID has not changed since the view was read.
func (v *view) claimChange(me self, id uint32, now time.Time) (claim, cas.Change, error) {
	c := claim{ID: id, Generation: 1, Claimed: now.UnixMilli()}
	change := cas.Change{If: []cas.Cond{{Key: fullKey(id)}}}
	if there := v.records[id]; there != nil {
		// The generation continues, so that other nodes can distinguish the new owner from earlier ones.
		c.Generation = there.GetGeneration() + 1
		change.If[0].Rev = v.revs[id]
		if isReleased(there) && !me.owns(there) {
			change.If = append(change.If, cas.Cond{Key: guardKey(id)})
		}
	}
	value, err := encode(c.record(me))
	change.Do = []cas.Write{{Key: fullKey(id), Value: value}}
	return c, change, err
}

// record returns the record of a claim, without addresses.
func (c claim) record(me self) *vppnode.VppNode {
	return &vppnode.VppNode{Id: c.ID, Name: me.name, Uuid: me.uuid, Generation: c.Generation, ClaimedMs: c.Claimed}
}
