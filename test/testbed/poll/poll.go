package poll

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Until calls ok once per interval until it returns nil. It returns the last error of ok when the context ends.
func Until(ctx context.Context, every time.Duration, ok func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up waiting: %w", err)
		case <-tick.C:
		}
	}
}

// interval is the time between two checks of Await.
const interval = 5 * time.Millisecond

// Await calls ok until it returns true. It ends the test with a failure if this takes longer than limit; what names the condition.
func Await(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !ok() {
		select {
		case <-timeout.C:
			t.Fatalf("%s: not within %s", what, limit)
		case <-tick.C:
		}
	}
}
