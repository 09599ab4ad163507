package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestStopEndsJobsInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), quiet())
		ended := make(chan string, 3)
		for _, name := range []string{"a", "b", "c"} {
			g.Go(name, func(ctx context.Context) error {
				<-ctx.Done()
				ended <- name
				return ctx.Err()
			})
		}
		if err := g.Stop(time.Second); err != nil {
			t.Fatal(err)
		}
		if got := <-ended + <-ended + <-ended; got != "cba" {
			t.Errorf("jobs ended in the order %s, want cba", got)
		}
		select {
		case err := <-g.Failed():
			t.Errorf("a cancelled job counts as failed: %v", err)
		default:
		}
	})
}

func TestStopNamesJobsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), quiet())
		release := make(chan struct{})
		g.Go("stuck", func(context.Context) error { <-release; return nil })
		g.Go("fine", func(ctx context.Context) error { <-ctx.Done(); return nil })
		err := g.Stop(time.Second)
		if err == nil || !strings.Contains(err.Error(), "stuck") || strings.Contains(err.Error(), "fine") {
			t.Errorf("Stop: %v, want an error that names the job stuck and no other", err)
		}
		close(release)
	})
}

// TestStopGoesOnBehindAHungJob checks that the jobs that were started before a hung one are stopped in their order, within the time limit,
// and that only the hung job is named, with its functions.
func TestStopGoesOnBehindAHungJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		g := NewGroup(t.Context(), slog.New(slog.NewTextHandler(&text, nil)))
		release := make(chan struct{})
		var ended []string
		for _, name := range []string{"a", "b"} {
			g.Go(name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(500 * time.Millisecond)
				ended = append(ended, name)
				return nil
			})
		}
		for _, name := range []string{"stuck", "stuck too"} {
			g.Go(name, func(context.Context) error { stuckHere(release); return nil })
		}
		g.Go("slow", func(ctx context.Context) error { <-ctx.Done(); time.Sleep(3 * time.Second); return nil })
		begun := time.Now()
		err := g.Stop(8 * time.Second)
		if took := time.Since(begun); took > 8*time.Second {
			t.Errorf("the stop took %s", took)
		}
		if got := fmt.Sprint(err); got != "job stuck too did not stop within 8s\njob stuck did not stop within 8s" {
			t.Errorf("error %q", got)
		}
		if !slices.Equal(ended, []string{"b", "a"}) {
			t.Errorf("ended: %v", ended)
		}
		if log := text.String(); strings.Count(log, "job does not stop") != 3 || !strings.Contains(log, `job="stuck too" stack="lifecycle.stuckHere < `) {
			t.Errorf("the log:\n%s", log)
		}
		close(release)
	})
}

// stuckHere returns when release is closed.
func stuckHere(release <-chan struct{}) { <-release }

// TestSteps checks that steps that hang are reported and abandoned, and that the whole has a limit that no step exceeds by more than its
// minimum time.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		s := NewSteps(slog.New(slog.NewTextHandler(&text, nil)), 3*time.Second)
		release, broken, begun := make(chan struct{}), errors.New("broken"), time.Now()
		hang := func(time.Duration) error { stuckHere(release); return nil }
		s.Do("fails", time.Second, func(time.Duration) error { return broken })
		s.Do("panics", time.Second, func(time.Duration) error { panic("at once") })
		s.Do("database", 2*time.Second, hang)
		s.Do("more", 2*time.Second, hang)
		s.Do("the rest", 2*time.Second, hang)
		var had time.Duration
		s.Do("last", time.Second, func(limit time.Duration) error { had = limit; return nil })
		if took := time.Since(begun); took > 3500*time.Millisecond || had != leastStep {
			t.Errorf("%s, the last step may take %s", took, had)
		}
		err := s.Err()
		if !errors.Is(err, broken) || !strings.Contains(err.Error(), "at once") || !strings.Contains(err.Error(), "database did not stop within 2s\n") {
			t.Errorf("error %v", err)
		}
		if log := text.String(); strings.Count(log, "takes too long") != 3 || !strings.Contains(log, `step=database took=2.1s stack="lifecycle.stuckHere < `) {
			t.Errorf("the log:\n%s", log)
		}
		close(release)
	})
}

func TestFailureAndPanicAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		g := NewGroup(t.Context(), quiet())
		g.Go("worker", func(context.Context) error { return boom })
		if err := <-g.Failed(); !errors.Is(err, boom) || !strings.Contains(err.Error(), "worker") {
			t.Errorf("failed: %v, want boom of worker", err)
		}
		g.Go("panicking", func(context.Context) error { panic("at the disco") })
		if err := <-g.Failed(); err == nil || !strings.Contains(err.Error(), "at the disco") {
			t.Errorf("failed: %v, want the panic", err)
		}
		if err := g.Stop(time.Second); err != nil {
			t.Error(err)
		}
		g.Go("late", func(context.Context) error { t.Error("a job ran after Stop"); return nil })
		synctest.Wait()
	})
}

// TestEndedJobsAreForgotten checks that a program that starts a job for each call does not grow.
func TestEndedJobsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), quiet())
		g.Go("long", func(ctx context.Context) error { <-ctx.Done(); return nil })
		for range 1000 {
			g.Go("short", func(context.Context) error { return nil })
			synctest.Wait()
		}
		if n := len(g.jobs); n > 8 {
			t.Errorf("%d jobs are remembered, one runs", n)
		}
		if err := g.Stop(time.Second); err != nil {
			t.Error(err)
		}
	})
}
