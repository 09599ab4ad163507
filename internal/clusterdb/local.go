package clusterdb

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// localLockTimeout bounds the wait for another process that has opened the file.
const localLockTimeout = time.Second

// stateBucket contains the values of the database by key, without the common prefix.
const stateBucket = "cluster-state"

// ownBucket contains the node's own values: they are not part of the shared state, and a new snapshot does not replace them.
const ownBucket = "own"

// LocalCopy is the node's copy of the shared state, in a bbolt file.
type LocalCopy struct {
	path string
	log  *slog.Logger
	db   *bolt.DB
}

// OpenLocalCopy opens the file or creates it. A damaged file is replaced by an empty one: the shared state can be read from the database
// again, and so can the node's own values unless the database loses its data at the same time. A file that the system does not let the
// agent open does not count as damaged.
func OpenLocalCopy(path string, log *slog.Logger) (*LocalCopy, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("local copy of the cluster state: %w", err)
	}
	l := &LocalCopy{path: path, log: log}
	err := l.open()
	if errno := syscall.Errno(0); err != nil && !errors.Is(err, bolterrors.ErrTimeout) && !errors.As(err, &errno) {
		log.Warn("the local copy of the cluster state is damaged; starting with an empty one", "path", path, "error", err)
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("local copy of the cluster state: %w", err)
		}
		err = l.open()
	}
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("local copy of the cluster state: %s is in use by another agent; stop it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("local copy of the cluster state: %w", err)
	}
	return l, nil
}

// open checks the file and opens it.
func (l *LocalCopy) open() (err error) {
	if err := checkBolt(l.path); err != nil {
		return err
	}
	faults := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reading %s: %v", l.path, r)
		}
	}()
	l.db, err = bolt.Open(l.path, 0o600, &bolt.Options{Timeout: localLockTimeout})
	if err != nil {
		return err
	}
	err = l.db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(stateBucket))
		_, ownErr := tx.CreateBucketIfNotExists([]byte(ownBucket))
		return errors.Join(err, ownErr)
	})
	if err != nil {
		return errors.Join(err, l.db.Close())
	}
	return nil
}

// Load returns all values by key.
func (l *LocalCopy) Load() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := l.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(stateBucket)).ForEach(func(k, v []byte) error {
			out[string(k)] = append([]byte(nil), v...)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("local copy of the cluster state: reading %s: %w", l.path, err)
	}
	return out, nil
}

// Replace replaces the contents of the copy with the given values.
func (l *LocalCopy) Replace(values map[string][]byte) error { return l.ReplaceBut(values, nil) }

// ReplaceBut replaces the contents of the copy with the given values, except for the keys for which keep returns true (nil: no key):
// these stay as they are. It writes nothing when there is no difference.
func (l *LocalCopy) ReplaceBut(values map[string][]byte, keep func(key string) bool) error {
	changes := make(map[string][]byte)
	for key, value := range values {
		if keep == nil || !keep(key) {
			changes[key] = append([]byte{}, value...) // nil would delete the key
		}
	}
	err := l.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(stateBucket)).ForEach(func(k, v []byte) error {
			key := string(k)
			if value, stays := changes[key]; stays && bytes.Equal(value, v) {
				delete(changes, key)
			} else if !stays && (keep == nil || !keep(key)) {
				changes[key] = nil
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("local copy of the cluster state: reading %s: %w", l.path, err)
	}
	return l.Apply(changes)
}

// Apply applies changes of single values; a nil value deletes the key.
func (l *LocalCopy) Apply(changes map[string][]byte) error {
	if len(changes) == 0 {
		return nil
	}
	return l.update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(stateBucket))
		// The keys are sorted: bbolt splits a page when the transaction ends, and until then each insertion moves all keys behind it.
		for _, k := range slices.Sorted(maps.Keys(changes)) {
			var err error
			if v := changes[k]; v == nil {
				err = b.Delete([]byte(k))
			} else {
				err = b.Put([]byte(k), v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// LoadOwn reads one of the node's own values; nil if there is none.
func (l *LocalCopy) LoadOwn(key string) (value []byte, err error) {
	err = l.db.View(func(tx *bolt.Tx) error {
		if v := tx.Bucket([]byte(ownBucket)).Get([]byte(key)); v != nil {
			value = append([]byte{}, v...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the node's own data: reading %s of %s: %w", key, l.path, err)
	}
	return value, nil
}

// SaveOwn writes one of the node's own values; it is on the disk when SaveOwn returns.
func (l *LocalCopy) SaveOwn(key string, value []byte) error {
	return l.update(func(tx *bolt.Tx) error { return tx.Bucket([]byte(ownBucket)).Put([]byte(key), value) })
}

func (l *LocalCopy) update(change func(*bolt.Tx) error) error {
	if err := l.db.Update(change); err != nil {
		return fmt.Errorf("local copy of the cluster state: writing %s: %w", l.path, err)
	}
	return nil
}

// Close closes the file.
func (l *LocalCopy) Close() error {
	if err := l.db.Close(); err != nil {
		return fmt.Errorf("local copy of the cluster state: %w", err)
	}
	return nil
}
