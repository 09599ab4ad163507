package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"contiv.dev/vswitch/dataplane/txn"
)

func (p RetryPolicy) withDefaults() RetryPolicy {
	if p.First <= 0 {
		p.First = time.Second
	}
	if p.Max <= 0 {
		p.Max = time.Minute
	}
	if p.Attempts == 0 {
		p.Attempts = 10
	}
	return p
}

// delay returns the time before retry number attempt (from 1).
func (p RetryPolicy) delay(attempt int) time.Duration {
	d := p.First
	for i := 1; i < attempt && d < p.Max; i++ {
		d *= 2
	}
	return min(d, p.Max)
}

// retry is a scheduled retry of a node.
type retry struct {
	attempt int
	due     time.Time
}

// retryQueue holds the nodes to be retried. An entry counts only if it is still the current retry of its node.
type retryQueue []retryEntry

type retryEntry struct {
	n *node
	r *retry
}

// earliest reports when the first retry is due.
func (q *retryQueue) earliest() (due time.Time, ok bool) {
	*q = slices.DeleteFunc(*q, func(e retryEntry) bool { return e.n.retry != e.r })
	for _, e := range *q {
		if !ok || e.r.due.Before(due) {
			due, ok = e.r.due, true
		}
	}
	return due, ok
}

// take removes and returns the nodes that are due, by key. It includes nodes that are due within slack: one plan costs less than several.
func (q *retryQueue) take(now time.Time, slack time.Duration) []*node {
	var due []*node
	now = now.Add(slack)
	*q = slices.DeleteFunc(*q, func(e retryEntry) bool {
		if e.n.retry != e.r {
			return true
		}
		if e.r.due.After(now) {
			return false
		}
		due = append(due, e.n)
		return true
	})
	slices.SortFunc(due, func(a, b *node) int { return strings.Compare(a.key, b.key) })
	return due
}

// scheduleRetry decides whether n, which failed with err, will be retried, and sets the state of n.
func (s *Scheduler) scheduleRetry(n *node, err error, never bool) bool {
	attempt := 1
	if n.retry != nil {
		attempt = n.retry.attempt + 1
	}
	n.retry = nil
	n.state = Failed
	// A resync does not help a pod that prevents its own configuration, so the value itself is retried as long as it fails.
	limited := s.cfg.Retry.Attempts > 0 && !IsPodOnly(err)
	if never || !s.retriable(n, err) || limited && attempt > s.cfg.Retry.Attempts {
		if n.flags&flagUnknown != 0 {
			n.state = Unknown
		}
		return false
	}
	n.state = Retrying
	if n.unknown() {
		n.state = Unknown
	}
	n.retry = &retry{attempt: attempt, due: time.Now().Add(s.cfg.Retry.delay(attempt))}
	s.retries = append(s.retries, retryEntry{n: n, r: n.retry})
	return true
}

// doubtLost makes the state of the values unknown that n needs and that are missing, as the error of n reports (see Lost). They are retried together
// with n: also values between them and n, such as the items of a link, look present until the dump.
func (s *Scheduler) doubtLost(n *node, err error) {
	var lost lostError
	if !errors.As(err, &lost) {
		return
	}
	for _, key := range lost.keys {
		m := s.graph.nodes[key]
		if m == nil || m.kind == nil || m.kind.calls.dump == nil || m.applied == nil {
			continue
		}
		m.flags |= flagUnknown
		m.state = Unknown
		if n.retry != nil && m.retry == nil {
			r := *n.retry
			m.retry = &r
			s.retries = append(s.retries, retryEntry{n: m, r: m.retry})
		}
	}
}

func (s *Scheduler) retriable(n *node, err error) bool {
	var blocked *blockedError
	if errors.As(err, &blocked) {
		return blocked.retry
	}
	switch {
	case isOutcomeUnknown(err):
		return true
	case IsPodOnly(err):
		return !isGone(err)
	}
	return n.kind.calls.retriable(err)
}

// retryDue retries the nodes that are due.
func (s *Scheduler) retryDue(ctx context.Context, now time.Time) {
	due := s.retries.take(now, s.cfg.Retry.First/10)
	if len(due) == 0 {
		return
	}
	s.serving.Store(true)
	defer s.endWork()
	b := s.newBatch(&txn.Txn{Kind: txn.Update, Description: fmt.Sprintf("retry of %d values", len(due))})
	for _, n := range due {
		s.graph.touch(n)
	}
	b.runPlan(ctx)
	err := b.finish()
	var e *txn.Error
	if s.cfg.Report == nil || !errors.As(err, &e) {
		return
	}
	for _, f := range e.Failed {
		if !f.Retriable && !f.PodOnly {
			s.cfg.Report(b.rec, e)
			return
		}
	}
}
