package lifecycle

import (
	"context"
	"errors"
	"log/slog"
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

// TestEndedJobsAreForgotten: a program that starts a job for each call does not grow.
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
