package poll

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestUntil(t *testing.T) {
	n := 0
	if err := Until(t.Context(), time.Millisecond, func() error {
		if n++; n < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || n != 3 {
		t.Errorf("%v after %d attempts", err, n)
	}
	never := errors.New("never")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Until(ctx, time.Millisecond, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("%v, want the last error", err)
	}
}

// TestAwait checks that Await and Succeeds return when the condition is true, and fail the test with the last error when it stays false.
func TestAwait(t *testing.T) {
	n := 0
	Await(t, "third call", time.Minute, func() bool { n++; return n == 3 })
	if n != 3 {
		t.Errorf("%d calls", n)
	}
	failed := &recorder{TB: t}
	Succeeds(failed, "file", 10*time.Millisecond, func() error {
		if failed.text != "" {
			return nil
		}
		return errors.New("no such file")
	})
	if want := "file: not within 10ms: no such file"; failed.text != want {
		t.Errorf("%q, want %q", failed.text, want)
	}
}

// recorder records a failure instead of ending the test.
type recorder struct {
	testing.TB
	text string
}

func (r *recorder) Fatalf(format string, args ...any) { r.text = fmt.Sprintf(format, args...) }
