package clusterdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

var _ cas.Store = (*DB)(nil)

// errTooMany is a programming error: etcd would reject the transaction.
var errTooMany = fmt.Errorf("the commit has more than %d operations", cas.MaxOps)

// leases maps times to live to the leases of one commit.
type leases map[time.Duration]clientv3.LeaseID

// CommitFirst implements cas.Store. The changes become one etcd transaction: each change is the else branch of the one
// before it.
func (db *DB) CommitFirst(ctx context.Context, changes ...cas.Change) (index int, rev int64, err error) {
	if len(changes) == 0 {
		return cas.None, 0, errors.New("etcd: a commit without changes")
	}
	ops := 0
	for _, c := range changes {
		ops += max(len(c.If), len(c.Do), 1)
	}
	if ops > cas.MaxOps {
		return cas.None, 0, fmt.Errorf("etcd: %d changes: %w", len(changes), errTooMany)
	}
	ctx, cancel := context.WithTimeout(ctx, db.conf.OperationTimeout)
	defer cancel()
	granted, err := db.grant(ctx, changes)
	if err != nil {
		return cas.None, 0, err
	}
	index, rev, err = db.commit(ctx, changes, granted)
	if err == nil && index == cas.None {
		db.revoke(ctx, granted) // after an error the change may be stored: then its lease must stay too
	}
	return index, rev, err
}

func (db *DB) commit(ctx context.Context, changes []cas.Change, granted leases) (index int, rev int64, err error) {
	var otherwise []clientv3.Op
	for i := len(changes) - 1; i > 0; i-- {
		otherwise = []clientv3.Op{clientv3.OpTxn(conditions(changes[i]), writes(changes[i], granted), otherwise)}
	}
	first := changes[0]
	resp, err := db.client.Txn(ctx).If(conditions(first)...).Then(writes(first, granted)...).Else(otherwise...).Commit()
	if err != nil {
		return cas.None, 0, fmt.Errorf("etcd: change of %s: %w", firstKey(first), err)
	}
	rev = resp.Header.Revision
	ok, answers := resp.Succeeded, resp.Responses
	for i := range changes {
		if ok {
			return i, rev, nil
		}
		if len(answers) > 0 {
			next := answers[0].GetResponseTxn()
			ok, answers = next.GetSucceeded(), next.GetResponses()
		}
	}
	return cas.None, rev, nil
}

// firstKey returns the key that identifies a change in errors.
func firstKey(c cas.Change) string {
	if len(c.Do) == 0 {
		return "nothing"
	}
	return c.Do[0].Key
}

func conditions(c cas.Change) []clientv3.Cmp {
	out := make([]clientv3.Cmp, 0, len(c.If))
	for _, cond := range c.If { // the revision of a key that does not exist is zero
		out = append(out, clientv3.Compare(clientv3.ModRevision(cond.Key), "=", cond.Rev))
	}
	return out
}

func writes(c cas.Change, granted leases) []clientv3.Op {
	out := make([]clientv3.Op, 0, len(c.Do))
	for _, w := range c.Do {
		switch {
		case w.Value == nil:
			out = append(out, clientv3.OpDelete(w.Key))
		case w.TTL > 0:
			out = append(out, clientv3.OpPut(w.Key, string(w.Value), clientv3.WithLease(granted[w.TTL])))
		default:
			out = append(out, clientv3.OpPut(w.Key, string(w.Value)))
		}
	}
	return out
}

// grant requests a lease for each time to live.
func (db *DB) grant(ctx context.Context, changes []cas.Change) (leases, error) {
	out := leases{}
	for _, c := range changes {
		for _, w := range c.Do {
			if w.TTL <= 0 || w.Value == nil || out[w.TTL] != 0 {
				continue
			}
			seconds := int64((w.TTL + time.Second - 1) / time.Second)
			resp, err := db.client.Grant(ctx, seconds)
			if err != nil {
				db.revoke(ctx, out)
				return nil, fmt.Errorf("etcd: lease of %s for %s: %w", w.TTL, w.Key, err)
			}
			out[w.TTL] = resp.ID
		}
	}
	return out, nil
}

// revoke returns unused leases. A lease that is not revoked expires.
func (db *DB) revoke(ctx context.Context, granted leases) {
	for _, id := range granted {
		if _, err := db.client.Revoke(ctx, id); err != nil {
			db.log.Debug("a lease of etcd was not revoked and expires by itself", "error", err)
		}
	}
}

// Get implements cas.Store.
func (db *DB) Get(ctx context.Context, key string) (cas.Value, error) {
	ctx, cancel := context.WithTimeout(ctx, db.conf.OperationTimeout)
	defer cancel()
	resp, err := db.client.Get(ctx, key)
	if err != nil {
		return cas.Value{}, fmt.Errorf("etcd: get of %s: %w", key, err)
	}
	if len(resp.Kvs) == 0 {
		return cas.Value{Key: key}, nil
	}
	return cas.Value{Key: key, Value: resp.Kvs[0].Value, Rev: resp.Kvs[0].ModRevision}, nil
}

// List implements cas.Store.
func (db *DB) List(ctx context.Context, prefix string) (values []cas.Value, rev int64, err error) {
	rev, err = db.list(ctx, prefix, func(kv keyValue) {
		values = append(values, cas.Value{Key: kv.key, Value: kv.value, Rev: kv.rev})
	})
	if err != nil {
		return nil, 0, err
	}
	return values, rev, nil
}

// Keys implements cas.Store.
func (db *DB) Keys(ctx context.Context, prefix string, at int64) (keys []cas.Value, rev int64, err error) {
	rev, err = db.listAt(ctx, prefix, at, func(kv keyValue) {
		keys = append(keys, cas.Value{Key: kv.key, Rev: kv.rev})
	}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, err
	}
	return keys, rev, nil
}

// Private reports whether no other machine can use the database: it is embedded, or reached only by sockets of this
// machine.
func (db *DB) Private() bool { return Config{Endpoints: db.Endpoints()}.private() }

// TooLarge reports whether etcd has rejected a commit because of its size.
func TooLarge(err error) bool { return errors.Is(err, rpctypes.ErrRequestTooLarge) }
