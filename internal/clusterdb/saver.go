package clusterdb

import (
	"context"
	"log/slog"
	"time"
)

// saver keeps the local copy up to date. It writes changes at once; changes that may wait are written together
// after a delay.
type saver struct {
	local   *LocalCopy // nil: there is no local copy
	delay   time.Duration
	log     *slog.Logger
	pending map[string][]byte
	due     time.Time // when pending is to be written; zero: nothing is pending
}

// apply saves changes. They may be written later if canWait is true for all their keys.
func (s *saver) apply(changes map[string][]byte, canWait func(key string) bool) {
	if s.local == nil || len(changes) == 0 {
		return
	}
	wait := s.delay > 0
	if s.pending == nil {
		s.pending = make(map[string][]byte, len(changes))
	}
	for key, value := range changes {
		s.pending[key] = value
		wait = wait && canWait(key)
	}
	if !wait {
		s.flush()
	} else if s.due.IsZero() {
		s.due = time.Now().Add(s.delay)
	}
}

// replace saves a snapshot; keys for which keep is true stay as they are.
func (s *saver) replace(values map[string][]byte, keep func(key string) bool) {
	if s.local == nil {
		return
	}
	s.flush()
	if err := s.local.ReplaceBut(values, keep); err != nil {
		s.log.Error("the local copy of the cluster state is out of date", "error", err)
	}
}

// deadline returns a context that ends when pending changes have to be written.
func (s *saver) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.due.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.due)
}

// flush writes the pending changes.
func (s *saver) flush() {
	changes := s.pending
	s.pending, s.due = nil, time.Time{}
	if s.local == nil || len(changes) == 0 {
		return
	}
	if err := s.local.Apply(changes); err != nil {
		s.log.Error("the local copy of the cluster state is out of date", "error", err)
	}
}
