package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrLocked reports that another process, or another part of this one, has the lock.
var ErrLocked = errors.New("locked by another process")

// interval is the time between the attempts of Wait.
const interval = 10 * time.Millisecond

// Try locks the file, and creates it if it is missing. The file stays after unlock: another process may be about
// to lock it.
func Try(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil // nothing was written
}

// Wait is like Try, but waits for the lock until ctx ends.
func Wait(ctx context.Context, path string) (unlock func(), err error) {
	for {
		unlock, err = Try(path)
		if !errors.Is(err, ErrLocked) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}
