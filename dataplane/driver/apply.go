package driver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// mayApply reports whether an apply is wanted and possible now. If it is not possible, an alarm or a message will wake the loop.
func (l *loop) mayApply() bool {
	if !l.dirty || !l.mayWrite() {
		return false
	}
	awaited := len(l.flushes) > 0 || l.d.hurried.Load() > 0
	if !l.bucket.take(l.d.clock.Now()) && !awaited {
		if !l.throttled {
			l.d.log.Debug("applies are being throttled", "interval", l.bucket.interval)
			l.throttled = true
		}
		l.throttle.set(l.bucket.next())
		return false
	}
	l.throttled = false
	return true
}

// mayWrite reports whether writes are allowed: before the first write, the state of the managers must be a complete and consistent snapshot.
// Once allowed, writes stay allowed.
func (l *loop) mayWrite() bool {
	if l.gatesOpen {
		return true
	}
	if !l.inSync {
		return false
	}
	for _, s := range l.d.managers {
		if len(s.held) > 0 {
			return false // the redelivery wakes the loop
		}
	}
	for _, gate := range l.d.cfg.Gates {
		open := false
		if err := guard(named("gate"), func() error { open = gate(); return nil }); err != nil {
			l.notePanic(err)
			open = false
		}
		if !open {
			l.gatePoll.set(l.d.clock.Now().Add(gatePoll))
			return false
		}
	}
	l.gatesOpen = true
	return true
}

// apply is phase two.
func (l *loop) apply(ctx context.Context) {
	l.dirty = false
	begin := l.d.clock.Now()
	result := l.write(ctx)
	end := l.d.clock.Now()
	took := end.Sub(begin)
	l.bucket.adapt(end, took)
	l.metrics.applyTime.Observe(took.Seconds())

	l.again.off()
	if result.Again > 0 {
		l.again.set(end.Add(result.Again))
	}
	l.failed, l.lastErr = result.Err != nil, result.Err
	if l.failed {
		l.retry.set(end.Add(l.d.cfg.RetryInterval))
		l.metrics.failures.Inc()
		l.panicked = l.panicked || isPanic(result.Err)
		l.d.log.Warn("dataplane: some objects could not be applied; retrying",
			"retryIn", l.d.cfg.RetryInterval, "took", took, "error", result.Err)
	} else {
		l.retry.off()
		l.succeeded()
	}
	l.report()
	l.answer(result.Err)
}

// write runs the managers' deferred work and then Config.Apply, even if an earlier step fails.
func (l *loop) write(ctx context.Context) ApplyResult {
	var errs []error
	for _, s := range l.d.managers {
		err := s.complete()
		logPanic(l.d.log, err)
		errs = append(errs, err)
		l.reportProgress()
	}
	var result ApplyResult
	if l.d.cfg.Apply != nil {
		err := guard(named("apply"), func() error { result = l.d.cfg.Apply(ctx); return nil })
		logPanic(l.d.log, err)
		errs = append(errs, err)
	}
	if result.Err != nil {
		errs = append(errs, fmt.Errorf("apply: %w", result.Err))
	}
	result.Err = errors.Join(errs...)
	return result
}

func (l *loop) succeeded() {
	l.panicked = false
	if l.applied {
		return
	}
	l.applied = true
	l.d.log.Info("dataplane is in sync", "took", l.d.clock.Now().Sub(l.begun))
	if l.d.cfg.PostInSync == nil {
		return
	}
	if err := guard(named("PostInSync"), func() error { l.d.cfg.PostInSync(); return nil }); err != nil {
		logPanic(l.d.log, err) // a defect, but the dataplane is complete
	}
}

// logPanic logs the stack of err if err is a panic.
func logPanic(log *slog.Logger, err error) {
	if p := (*panicError)(nil); errors.As(err, &p) {
		log.Error(p.Error(), "stack", string(p.stack))
	}
}
