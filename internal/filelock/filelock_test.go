package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestTry checks that a lock has one owner until it is released, and that a path that cannot be opened causes another error.
func TestTry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(path); !errors.Is(err, ErrLocked) {
		t.Errorf("the second lock: error %v", err)
	}
	unlock()
	if unlock, err = Try(path); err != nil {
		t.Fatal(err)
	}
	unlock()
	if _, err := Try(filepath.Join(path, "x")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a path below a file: error %v", err)
	}
}

// TestWait checks that Wait returns when the lock is free, and returns the cause if its context ends before. It does not wait for a path that
// cannot be opened.
func TestWait(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if _, err := Wait(ctx, path); !errors.Is(err, late) || !errors.Is(err, ErrLocked) {
		t.Errorf("without the lock: error %v", err)
	}
	if _, err := Wait(t.Context(), filepath.Join(path, "x")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a path below a file: error %v", err)
	}
	type result struct {
		unlock func()
		err    error
	}
	done := make(chan result)
	go func() {
		unlock, err := Wait(t.Context(), path)
		done <- result{unlock, err}
	}()
	select {
	case r := <-done:
		t.Fatalf("two have the lock; error %v", r.err)
	default:
	}
	first()
	second := <-done
	if second.err != nil {
		t.Fatal(second.err)
	}
	second.unlock()
}
