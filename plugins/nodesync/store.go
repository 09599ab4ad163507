package nodesync

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"contiv.dev/vswitch/internal/clusterdb/cas"
	"contiv.dev/vswitch/internal/keyval"
	"contiv.dev/vswitch/plugins/nodesync/vppnode"
)

// storeOf returns the database as a cas.Store. A database that offers only ClusterWideDB supports less: IDs are claimed safely, but not
// released, and records are replaced without an atomic comparison.
func storeOf(db ClusterWideDB) cas.Store {
	if s, ok := db.(cas.Store); ok {
		return s
	}
	return &basicStore{db: db, broker: db.NewBroker("")}
}

// basicStore implements cas.Store with ClusterWideDB. It has no values except records of nodes.
type basicStore struct {
	db     ClusterWideDB
	broker keyval.ProtoBroker
}

// CommitFirst implements cas.Store: it tries one change after the other. A change must be a single write.
func (b *basicStore) CommitFirst(ctx context.Context, changes ...cas.Change) (index int, rev int64, err error) {
	for i, c := range changes {
		if len(c.Do) != 1 || c.Do[0].TTL != 0 || c.Do[0].Value == nil {
			return cas.None, 0, fmt.Errorf("%w: the client of the cluster database has no transactions", errors.ErrUnsupported)
		}
		if ok, err := b.change(ctx, c, c.Do[0]); ok || err != nil {
			return i, 0, err
		}
	}
	return cas.None, 0, nil
}

func (b *basicStore) change(ctx context.Context, c cas.Change, w cas.Write) (bool, error) {
	create := false
	for _, cond := range c.If {
		if create = create || (cond.Key == w.Key && cond.Rev == 0); cond.Key == w.Key && cond.Rev == 0 {
			continue
		}
		v, err := b.Get(ctx, cond.Key)
		if err != nil || v.Rev != cond.Rev {
			return false, err
		}
	}
	if create {
		return b.db.PutIfNotExists(w.Key, w.Value)
	}
	record, err := decode(w.Value)
	if err != nil {
		return false, err
	}
	return true, b.broker.Put(ctx, w.Key, record)
}

// Get implements cas.Store. A broker without revisions reports 0, which means "does not exist" for comparisons, so Get returns 1 then.
func (b *basicStore) Get(ctx context.Context, key string) (cas.Value, error) {
	var record vppnode.VppNode
	found, rev, err := b.broker.GetValue(ctx, key, &record)
	if err != nil || !found {
		return cas.Value{Key: key}, err
	}
	value, err := encode(&record)
	return cas.Value{Key: key, Value: value, Rev: max(rev, 1)}, err
}

// List implements cas.Store. Guards do not exist, because nothing is released.
func (b *basicStore) List(ctx context.Context, prefix string) (values []cas.Value, rev int64, err error) {
	keys, _, err := b.Keys(ctx, prefix, 0)
	if err != nil {
		return nil, 0, err
	}
	for _, key := range keys {
		v, err := b.Get(ctx, key.Key)
		if err != nil {
			return nil, 0, err
		}
		values = append(values, v)
	}
	return values, 0, nil
}

// Keys implements cas.Store, without revisions.
func (b *basicStore) Keys(ctx context.Context, prefix string, _ int64) (keys []cas.Value, rev int64, err error) {
	if strings.HasPrefix(prefix, guardPrefix) {
		return nil, 0, nil
	}
	list, err := b.broker.ListKeys(ctx, prefix)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, 0, nil // IDs that are taken are then detected at the claim
	}
	for _, key := range list {
		keys = append(keys, cas.Value{Key: key})
	}
	return keys, 0, err
}
