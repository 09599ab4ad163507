package clusterdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"
)

// checkBackend reads the database of an embedded etcd that does not run. If the database were damaged, etcd would panic in its own
// goroutine; this ends the agent without a message about the fix.
func checkBackend(dir string) (err error) {
	path := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil // a new member has no database yet
	}
	faults := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(faults)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is damaged: %v", path, r)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: localLockTimeout})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer db.Close() // nothing was written
	return db.View(func(tx *bolt.Tx) error {
		if info, err := os.Stat(path); err != nil || info.Size() < tx.Size() {
			return errors.Join(err, fmt.Errorf("%s is damaged: it is shorter than its %d bytes", path, tx.Size()))
		}
		sum := byte(0)
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return visit(b, &sum) })
	})
}

// visit reads all keys and values of a bucket.
func visit(b *bolt.Bucket, sum *byte) error {
	return b.ForEach(func(k, v []byte) error {
		if inner := b.Bucket(k); v == nil && inner != nil {
			return visit(inner, sum)
		}
		for _, c := range v {
			*sum += c
		}
		return nil
	})
}

// recovered runs f and converts a panic into an error.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}
