package main

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/plugins/nodesync"
)

// database is a nodesync.ClusterWideDB. It has no revisions.
type database struct {
	mu     sync.Mutex
	values map[string][]byte
}

var _ nodesync.ClusterWideDB = (*database)(nil)

func newDB() *database { return &database{values: map[string][]byte{}} }

// OnConnect implements nodesync.ClusterWideDB: a map is always connected, so that callback is
// called at once.
func (db *database) OnConnect(callback func() error) { _ = callback() }

// NewBroker implements nodesync.ClusterWideDB.
func (db *database) NewBroker(prefix string) nodesync.ProtoBroker { return &broker{db, prefix} }

// PutIfNotExists implements nodesync.ClusterWideDB.
func (db *database) PutIfNotExists(key string, value []byte) (succeeded bool, err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if _, there := db.values[key]; there {
		return false, nil
	}
	db.values[key] = value
	return true, nil
}

// Close implements nodesync.ClusterWideDB.
func (db *database) Close() error { return nil }

type broker struct {
	db     *database
	prefix string
}

func (b *broker) Put(_ context.Context, key string, value proto.Message) error {
	data, err := protojson.Marshal(value)
	if err != nil {
		return err
	}
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	b.db.values[b.prefix+key] = data
	return nil
}

func (b *broker) GetValue(_ context.Context, key string, value proto.Message) (found bool, rev int64, err error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	data, found := b.db.values[b.prefix+key]
	if !found {
		return false, 0, nil
	}
	return true, 0, protojson.Unmarshal(data, value)
}

func (b *broker) ListKeys(_ context.Context, prefix string) (keys []string, err error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	for key := range b.db.values {
		if strings.HasPrefix(key, b.prefix+prefix) {
			keys = append(keys, strings.TrimPrefix(key, b.prefix))
		}
	}
	return keys, nil
}

func (b *broker) Delete(_ context.Context, key string) (existed bool, err error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	_, existed = b.db.values[b.prefix+key]
	delete(b.db.values, b.prefix+key)
	return existed, nil
}
