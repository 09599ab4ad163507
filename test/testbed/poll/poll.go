package poll

import (
	"context"
	"errors"
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

// longest is the longest time between two checks of Await and Succeeds. The first ones follow each other sooner.
const longest = 50 * time.Millisecond

// Await calls ok until it returns true. It ends the test with a failure if this takes longer than limit; what names the condition.
func Await(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	Succeeds(t, what, limit, func() error {
		if !ok() {
			return errNot
		}
		return nil
	})
}

var errNot = errors.New("the condition is still false")

// Succeeds calls check until it returns nil. It ends the test with a failure, which has the last error, if this takes longer than limit.
func Succeeds(t testing.TB, what string, limit time.Duration, check func() error) {
	t.Helper()
	end := time.Now().Add(limit)
	for wait := time.Millisecond; ; wait = min(2*wait, longest) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-time.After(wait)
	}
}
