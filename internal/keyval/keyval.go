package keyval

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// ProtoBroker reads and writes protobuf values (stored as JSON) below a prefix.
type ProtoBroker interface {
	// Put writes value under key.
	Put(ctx context.Context, key string, value proto.Message) error
	// GetValue reads key into value; found is false when there is none.
	GetValue(ctx context.Context, key string, value proto.Message) (found bool, rev int64, err error)
	// ListKeys lists the keys below prefix.
	ListKeys(ctx context.Context, prefix string) ([]string, error)
	// Delete removes key; existed reports whether there was a value.
	Delete(ctx context.Context, key string) (existed bool, err error)
}

// KvProtoPlugin creates brokers.
type KvProtoPlugin interface {
	// NewBroker returns a broker that puts prefix before every key.
	NewBroker(prefix string) ProtoBroker
}
