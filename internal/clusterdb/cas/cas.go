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
	// TTL makes the database delete the key after this time, in whole seconds (rounded up). The database measures it: a
	// restart of the database, or of its leader, can only make the time longer. Zero: the key stays.
	TTL time.Duration
}

// Change is a set of writes that is carried out as a whole if all conditions hold.
type Change struct {
	If []Cond
	Do []Write
}

// Value is a pair that was read. Rev is the revision of its last change; zero if the key does not exist.
type Value struct {
	Key   string
	Value []byte
	Rev   int64
}

// None is the index that CommitFirst returns when no change was carried out.
const None = -1

// Store is a database that can change several keys atomically. Keys are absolute. All calls are bounded in time.
type Store interface {
	// CommitFirst carries out the first change whose conditions hold, or none; the choice and the writes are one atomic
	// step. It returns the index of the change, or None, and the revision after it. After an error the change may have
	// been carried out nevertheless: read before a retry.
	CommitFirst(ctx context.Context, changes ...Change) (index int, rev int64, err error)
	// Get reads one key.
	Get(ctx context.Context, key string) (Value, error)
	// List reads all pairs below prefix as of one revision, in the order of keys.
	List(ctx context.Context, prefix string) (values []Value, rev int64, err error)
	// Keys is List without the contents of the values, as of the revision at; zero means the current one.
	Keys(ctx context.Context, prefix string, at int64) (keys []Value, rev int64, err error)
}
