package clusterdb

import (
	"context"
	"log/slog"
	"time"
)

const (
	// saveRetry is the pause after a save that failed; each further pause is twice the previous one, up to maxSaveRetry.
	saveRetry    = time.Second
	maxSaveRetry = time.Minute
)

// saver keeps the local copy up to date. It writes changes at once; changes that may wait are written together
// after a delay. What could not be written, for example because the disk is full, stays pending and is tried again: the database reports a
// change only once.
type saver struct {
	local    *LocalCopy // nil: there is no local copy
	delay    time.Duration
	log      *slog.Logger
	snapshot *snapshot         // could not be written yet; nil: there is none
	pending  map[string][]byte // changes after the snapshot, and values of keys that the snapshot does not replace
	due      time.Time         // when pending is to be written; zero: nothing is pending
	retry    time.Duration     // the last pause after a failure; zero: the last save has succeeded
}

// snapshot is the complete state, except for keys for which keep is true.
type snapshot struct {
	values map[string][]byte
	keep   func(key string) bool
}

// apply saves changes. They may be written later if canWait is true for all their keys.
func (s *saver) apply(changes map[string][]byte, canWait func(key string) bool) {
	if s.local == nil || len(changes) == 0 {
		return
	}
	wait := s.delay > 0
	s.add(changes)
	for key := range changes {
		wait = wait && canWait(key)
	}
	switch {
	case s.retry > 0: // not with each change
		s.flushDue()
	case !wait:
		s.flush()
	case s.due.IsZero():
		s.due = time.Now().Add(s.delay)
	}
}

func (s *saver) add(changes map[string][]byte) {
	if s.pending == nil {
		s.pending = make(map[string][]byte, len(changes))
	}
	for key, value := range changes {
		s.pending[key] = value
	}
}

// replace saves a snapshot; keys for which keep is true stay as they are. keep must not change its results later.
func (s *saver) replace(values map[string][]byte, keep func(key string) bool) {
	if s.local == nil {
		return
	}
	if old := s.snapshot; old != nil {
		for key, value := range old.values {
			if _, newer := s.pending[key]; !newer && keep(key) && !old.keep(key) {
				s.add(map[string][]byte{key: value})
			}
		}
	}
	for key := range s.pending {
		if !keep(key) {
			delete(s.pending, key) // the snapshot is newer
		}
	}
	s.snapshot = &snapshot{values, keep}
	s.flush()
}

// deadline returns a context that ends when pending changes have to be written.
func (s *saver) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.due.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.due)
}

// flushDue writes what is pending if its time has come.
func (s *saver) flushDue() {
	if !s.due.IsZero() && !time.Now().Before(s.due) {
		s.flush()
	}
}

// flush writes what is pending.
func (s *saver) flush() {
	if s.local == nil {
		return
	}
	err := s.save()
	if err == nil {
		if s.retry > 0 {
			s.log.Info("the local copy of the cluster state is up to date again")
		}
		s.due, s.retry = time.Time{}, 0
		return
	}
	if s.retry == 0 {
		s.log.Error("the local copy of the cluster state is out of date: after a restart without etcd the agent would use old state; "+
			"the write is repeated", "error", err)
	}
	s.retry = min(max(2*s.retry, saveRetry), maxSaveRetry)
	s.due = time.Now().Add(s.retry)
}

func (s *saver) save() error {
	if s.snapshot != nil {
		if err := s.local.ReplaceBut(s.snapshot.values, s.snapshot.keep); err != nil {
			return err
		}
		s.snapshot = nil
	}
	if err := s.local.Apply(s.pending); err != nil {
		return err
	}
	s.pending = nil
	return nil
}
