package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// leastStep is the minimum time of a step of a stop, even if the steps before it have used all the time.
const leastStep = 100 * time.Millisecond

// Steps is an orderly stop: functions that run one after the other, with a time limit for all of them together. A function that does not return in
// time is reported by name and abandoned, and the next one runs.
type Steps struct {
	log      *slog.Logger
	group    *Group
	deadline time.Time
	errs     []error
}

// NewSteps starts a stop that takes at most limit.
func NewSteps(log *slog.Logger, limit time.Duration) *Steps {
	return &Steps{
		log: log, group: NewGroup(context.Background(), slog.New(slog.DiscardHandler)), deadline: time.Now().Add(limit),
	}
}

// Do runs a step and passes it its time limit: most, or the rest of the whole limit if that is less.
func (s *Steps) Do(name string, most time.Duration, step func(limit time.Duration) error) {
	limit := max(leastStep, min(most, time.Until(s.deadline)))
	done := make(chan error, 1)
	job := "stop: " + name
	begun := time.Now()
	s.group.Go(job, func(ctx context.Context) error {
		done <- guard(ctx, func(context.Context) error { return step(limit) })
		return nil
	})
	// A step that watches its own limit has a short extra time to report which part of it is late.
	timer := time.NewTimer(limit + leastStep)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			s.errs = append(s.errs, err)
		}
		s.log.Debug("step of the stop done", "step", name, "took", time.Since(begun))
	case <-timer.C:
		s.log.Warn("a step of the stop takes too long; continuing without it", "step", name, "took", time.Since(begun), "stack", where(job))
		s.errs = append(s.errs, fmt.Errorf("%s did not stop within %s", name, limit))
	}
}

// Err returns the errors of all steps so far, and names the steps that did not return in time.
func (s *Steps) Err() error { return errors.Join(s.errs...) }
