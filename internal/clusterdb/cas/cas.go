package cas

import (
	"context"
	"time"
)

// MaxOps bounds a commit: the sum over its changes of max(conditions, writes). It is etcd's default limit.
const MaxOps = 128

// Cond is a condition: the key was last changed at the revision Rev. Zero means that the key must not exist.
type Cond struct {
	Key string
	Rev int64
}

// Write puts a value under a key, or deletes the key if Value is nil.
type Write struct {
	Key   string
	Value []byte
	// TTL makes the database itself delete the key after this time, in whole seconds (rounded up). It is measured by the
	// database: a restart of it, or of its leader, can only make the time longer. Zero: the key stays.
	TTL time.Duration
}

// Change is a set of writes that is carried out as a whole if all conditions hold.
type Change struct {
	If []Cond
	Do []Write
}

// Value is a pair as it was read. Rev is the revision of its last change; zero if there is no such key.
type Value struct {
	Key   string
	Value []byte
	Rev   int64
}

// None is the index that CommitFirst returns when no change was carried out.
const None = -1

// Store is a database that can change several keys atomically. Keys are absolute. All calls are bounded in time.
type Store interface {
	// CommitFirst carries out the first of the changes whose conditions hold, or none; the choice and the writes are one
	// atomic step. It returns the index of the change, or None, and the revision after it. After an error the change may
	// have been carried out all the same: read before trying again.
	CommitFirst(ctx context.Context, changes ...Change) (index int, rev int64, err error)
	// Get reads one key.
	Get(ctx context.Context, key string) (Value, error)
	// List reads all pairs below prefix as they are at one revision, in the order of keys.
	List(ctx context.Context, prefix string) (values []Value, rev int64, err error)
	// Keys is List without the contents of the values, as they were at the revision at; zero is now.
	Keys(ctx context.Context, prefix string, at int64) (keys []Value, rev int64, err error)
}
