package clusterdb

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/internal/keyval"
)

// pageSize is the maximum number of pairs in the answer to a range request.
const pageSize = 1000

// NewBroker returns a broker that puts prefix before every key.
func (db *DB) NewBroker(prefix string) keyval.ProtoBroker { return &broker{db: db, prefix: prefix} }

type broker struct {
	db     *DB
	prefix string
}

// Put writes the value as JSON.
func (b *broker) Put(ctx context.Context, key string, value proto.Message) error {
	data, err := encode(value)
	if err != nil {
		return fmt.Errorf("etcd: value of %s%s: %w", b.prefix, key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, b.db.conf.OperationTimeout)
	defer cancel()
	if _, err := b.db.client.Put(ctx, b.prefix+key, string(data)); err != nil {
		return fmt.Errorf("etcd: put of %s%s: %w", b.prefix, key, err)
	}
	return nil
}

// GetValue reads the key into value; rev is the revision of its last change.
func (b *broker) GetValue(ctx context.Context, key string, value proto.Message) (found bool, rev int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.db.conf.OperationTimeout)
	defer cancel()
	resp, err := b.db.client.Get(ctx, b.prefix+key)
	if err != nil {
		return false, 0, fmt.Errorf("etcd: get of %s%s: %w", b.prefix, key, err)
	}
	if len(resp.Kvs) == 0 {
		return false, 0, nil
	}
	if err := decode(resp.Kvs[0].Value, value); err != nil {
		return true, resp.Kvs[0].ModRevision, fmt.Errorf("etcd: value of %s%s: %w", b.prefix, key, err)
	}
	return true, resp.Kvs[0].ModRevision, nil
}

// ListKeys lists the keys below prefix, without the broker's own prefix.
func (b *broker) ListKeys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	_, err := b.db.list(ctx, b.prefix+prefix, func(kv keyValue) {
		keys = append(keys, strings.TrimPrefix(kv.key, b.prefix))
	}, clientv3.WithKeysOnly())
	return keys, err
}

// Delete removes the key.
func (b *broker) Delete(ctx context.Context, key string) (existed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, b.db.conf.OperationTimeout)
	defer cancel()
	resp, err := b.db.client.Delete(ctx, b.prefix+key)
	if err != nil {
		return false, fmt.Errorf("etcd: delete of %s%s: %w", b.prefix, key, err)
	}
	return resp.Deleted > 0, nil
}

// keyValue is a pair of a snapshot or of a change.
type keyValue struct {
	key   string
	value []byte
	rev   int64
}

// list visits all pairs below prefix as of one revision, and returns this revision. Each page is a bounded call.
func (db *DB) list(ctx context.Context, prefix string, visit func(keyValue), opts ...clientv3.OpOption) (rev int64, err error) {
	return db.listAt(ctx, prefix, 0, visit, opts...)
}

// listAt is list at a given revision; zero means the current one.
func (db *DB) listAt(ctx context.Context, prefix string, rev int64, visit func(keyValue), opts ...clientv3.OpOption) (
	int64, error) {
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	for {
		page := append([]clientv3.OpOption{
			clientv3.WithRange(end), clientv3.WithLimit(pageSize), clientv3.WithRev(rev),
		}, opts...)
		callCtx, cancel := context.WithTimeout(ctx, db.conf.OperationTimeout)
		resp, err := db.client.Get(callCtx, from, page...)
		cancel()
		if err != nil {
			return 0, fmt.Errorf("etcd: list of %s: %w", prefix, err)
		}
		if rev == 0 {
			rev = resp.Header.Revision
		}
		for _, kv := range resp.Kvs {
			visit(keyValue{key: string(kv.Key), value: kv.Value, rev: kv.ModRevision})
		}
		if !resp.More || len(resp.Kvs) == 0 {
			return rev, nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}

// encode returns the stored form of a value: JSON with the field names of the message.
func encode(value proto.Message) ([]byte, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(value)
}

// decode parses the stored form; fields of later versions are ignored.
func decode(data []byte, into proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, into)
}
