package clusterdb

import (
	"context"
	"log/slog"
	"time"
)

// saver keeps the local copy up to date: at once, or later and together what the node can do without for a while.
type saver struct {
	local   *LocalCopy // nil: none
	delay   time.Duration
	log     *slog.Logger
	pending map[string][]byte
	due     time.Time // when pending is to be written; zero: nothing is
}

// apply takes changes. Those of which canWait is true for all may be written later.
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

// replace takes a snapshot; what keep is true for stays as it is.
func (s *saver) replace(values map[string][]byte, keep func(key string) bool) {
	if s.local == nil {
		return
	}
	s.flush()
	if err := s.local.ReplaceBut(values, keep); err != nil {
		s.log.Error("the local copy of the cluster state is out of date", "error", err)
	}
}

// deadline is a context that ends when something has to be written.
func (s *saver) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.due.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.due)
}

// flush writes what is pending.
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
