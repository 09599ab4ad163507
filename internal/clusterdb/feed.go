package clusterdb

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"contiv.dev/vswitch/internal/clusterdb/cas"
)

// Feed reports the changes below a prefix.
type Feed struct {
	db      *DB
	changes clientv3.WatchChan
	losses  uint64
	cancel  context.CancelFunc
}

// Follow visits all pairs below prefix as of one revision, and returns the feed of the changes after it.
func (db *DB) Follow(ctx context.Context, prefix string, visit func(cas.Value)) (*Feed, error) {
	losses, _, _ := db.state()
	rev, err := db.list(ctx, prefix, func(kv keyValue) { visit(cas.Value{Key: kv.key, Value: kv.value, Rev: kv.rev}) })
	if err != nil {
		return nil, err
	}
	db.saw(rev)
	db.report(nil)
	ctx, cancel := context.WithCancel(ctx)
	return &Feed{db: db, losses: losses, cancel: cancel, changes: db.client.Watch(
		clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithRev(rev+1))}, nil
}

// Next waits for changes and returns them in order; a deleted key has the Value nil. It returns nil, nil when wake has a
// token first, and an error when the feed cannot be continued, e.g. because the connection was lost.
func (f *Feed) Next(ctx context.Context, wake <-chan struct{}) ([]cas.Value, error) {
	resp, err := f.db.next(ctx, f.changes, f.losses, wake)
	if err != nil || resp == nil {
		return nil, err
	}
	out := make([]cas.Value, 0, len(resp.Events))
	for _, ev := range resp.Events {
		v := cas.Value{Key: string(ev.Kv.Key), Rev: ev.Kv.ModRevision}
		if ev.Type == clientv3.EventTypePut {
			v.Value = append([]byte{}, ev.Kv.Value...)
		}
		out = append(out, v)
	}
	return out, nil
}

// Close ends the feed.
func (f *Feed) Close() { f.cancel() }

// next waits for an answer of a watch; it returns nil when wake has a token first.
func (db *DB) next(ctx context.Context, changes clientv3.WatchChan, losses uint64, wake <-chan struct{}) (
	*clientv3.WatchResponse, error) {
	for {
		now, connected, changed := db.state()
		if now != losses && connected {
			return nil, fmt.Errorf("the connection was lost: %w", errGoOn)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wake:
			return nil, nil
		case <-changed:
		case resp, ok := <-changes:
			if !ok {
				return nil, errors.New("the watch ended")
			}
			if err := resp.Err(); err != nil {
				return nil, fmt.Errorf("watch: %w", err)
			}
			db.saw(resp.Header.Revision)
			return &resp, nil
		}
	}
}
