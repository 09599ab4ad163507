package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"time"
)

// Group is a set of named jobs. The zero value is not usable; call NewGroup.
type Group struct {
	log    *slog.Logger
	parent context.Context

	mu      sync.Mutex
	jobs    []*job
	stopped bool
	failed  chan error
}

type job struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func (j *job) ended() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// NewGroup returns an empty group whose jobs' contexts derive from ctx.
func NewGroup(ctx context.Context, log *slog.Logger) *Group {
	return &Group{log: log, parent: ctx, failed: make(chan error, 1)}
}

// Go starts run as the job called name. run must return soon after its context is cancelled. An error other than the
// context's own is logged and reported on Failed; a panic is reported as an error of the job.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return
	}
	ctx, cancel := context.WithCancel(g.parent)
	j := &job{name: name, cancel: cancel, done: make(chan struct{})}
	if len(g.jobs) == cap(g.jobs) { // before append grows the slice, because programs start jobs as long as they run
		g.jobs = slices.DeleteFunc(g.jobs, (*job).ended)
	}
	g.jobs = append(g.jobs, j)
	go func() {
		defer close(j.done)
		defer cancel()
		pprof.Do(ctx, pprof.Labels(jobLabel, name), func(ctx context.Context) {
			if err := guard(ctx, run); err != nil && !errors.Is(err, context.Canceled) {
				g.report(name, err)
			}
		})
	}()
}

func guard(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return run(ctx)
}

func (g *Group) report(name string, err error) {
	err = fmt.Errorf("job %s: %w", name, err)
	g.log.Error("job failed", "job", name, "error", err)
	select {
	case g.failed <- err:
	default:
	}
}

// Failed returns the channel that delivers the first error of a job.
func (g *Group) Failed() <-chan error { return g.failed }

// Stop cancels the jobs in reverse order of start, and waits for each; jobs started afterwards do not run. A job that does not end in time is
// logged with the functions in which it is, and may take a quarter of timeout; then the jobs that were started before it are cancelled. Stop
// returns an error that names the jobs that were still running when timeout (for all of them together) was over.
func (g *Group) Stop(timeout time.Duration) error {
	g.mu.Lock()
	g.stopped = true
	jobs := g.jobs
	g.jobs = nil
	g.mu.Unlock()

	const shares = 4
	end := time.Now().Add(timeout)
	var late []*job
	for _, j := range slices.Backward(jobs) {
		j.cancel()
		// Even when the time is over, a job has a short time to notice its cancellation.
		if !j.within(max(leastStep/10, min(timeout/shares, time.Until(end)))) {
			g.log.Warn("a job does not stop; continuing without it", "job", j.name, "stack", where(j.name))
			late = append(late, j)
		}
	}
	var errs []error
	for _, j := range late {
		if !j.within(max(0, time.Until(end))) {
			errs = append(errs, fmt.Errorf("job %s did not stop within %s", j.name, timeout))
		}
	}
	return errors.Join(errs...)
}

// within waits for the job's end, at most for d, and reports whether it has ended.
func (j *job) within(d time.Duration) bool {
	if j.ended() {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
		return j.ended()
	}
}
