package links

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestJanitorRunsUnderLoad tests that links of deleted pods are removed even if pods are created and deleted all the time.
func TestJanitorRunsUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJanitor(slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		busy := make(chan struct{})
		defer close(busy)
		go func() {
			for {
				j.call()
				select {
				case <-busy:
					return
				case <-time.After(janitorQuiet / 5):
				}
			}
		}()
		start := time.Now()
		if err := j.quiet(ctx); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited > janitorLimit {
			t.Errorf("it waited for %s", waited)
		}
	})
}

// TestJanitorWaitsUntilItIsQuiet tests that the janitor waits, so that it removes many links at once.
func TestJanitorWaitsUntilItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJanitor(slog.New(slog.DiscardHandler))
		start := time.Now()
		time.AfterFunc(janitorQuiet/2, j.call)
		if err := j.quiet(t.Context()); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != janitorQuiet*3/2 {
			t.Errorf("it waited for %s, want until %s after the last call", waited, janitorQuiet)
		}
	})
}
